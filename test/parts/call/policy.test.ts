import { describe, expect, test } from '@jest/globals';
import {
  defineTool,
  type PolicyRequest,
  type ToolDefinition,
  type ToolPolicy,
  ToolRegistry,
} from 'toolwright';
import { answers, runScript } from '../loop/run-script.js';
import { logbook } from './logbook.js';

/** A tool that counts its runs. */
function counted(more: Partial<ToolDefinition> = {}) {
  const runs: unknown[] = [];
  const tool = defineTool({
    name: 'drop',
    description: 'Drops a table',
    parameters: {
      type: 'object',
      properties: { table: { type: 'string' }, rows: { type: 'integer', default: 10 } },
      required: ['table'],
    },
    execute: (args) => {
      runs.push(args);
      return 'dropped';
    },
  });
  return { runs, tool: { ...tool, ...more } };
}

const args = { table: 'users' };
const REFUSED = "The tool 'drop' was refused: ";

describe('a registry’s policy', () => {
  test.each([
    ['true', true],
    ['{ allow: true }', { allow: true }],
    ['a promise of true', Promise.resolve(true)],
    ['a promise of { allow: true }', Promise.resolve({ allow: true, reason: 'why not' })],
  ])('allows with %s', async (_what, decision) => {
    const { tool, runs } = counted();
    const tools = new ToolRegistry({ policy: () => decision }).register(tool);
    expect(await tools.execute('drop', args)).toMatchObject({ forLLM: 'dropped', isError: false });
    expect(runs).toHaveLength(1);
  });

  test.each([
    ['false', () => false, 'it is not allowed'],
    ['{ allow: false }', () => ({ allow: false }), 'it is not allowed'],
    ['a reason', () => ({ allow: false, reason: 'ask Ada first' }), 'ask Ada first'],
    ['a promise of a reason', async () => ({ allow: false, reason: 'ask Ada first' }), 'ask Ada first'],
  ] as readonly (readonly [string, ToolPolicy, string])[])(
    'refuses with %s, and the body never runs',
    async (_what, policy, reason) => {
      const { tool, runs } = counted();
      const tools = new ToolRegistry({ policy }).register(tool);
      const { record, result } = await tools.invoke({ id: 'c1', name: 'drop', arguments: args });
      expect(result).toMatchObject({
        forLLM: `${REFUSED}${reason}`,
        isError: true,
        error: { name: 'ToolRefused', code: 512 },
      });
      expect(record).toMatchObject({ status: 'refused', arguments: { table: 'users', rows: 10 } });
      expect(runs).toEqual([]);
    },
  );

  test.each([
    undefined,
    null,
    0,
    1,
    '',
    'yes',
    'true',
    {},
    [],
    [true],
    { allow: 'yes' },
    { allow: 1 },
    { allow: { valueOf: () => true } },
    { Allow: true },
    { allowed: true },
    () => true,
    Object(true),
  ])('refuses any value that is not a clear approval: %p', async (decision) => {
    const { tool, runs } = counted();
    for (const policy of [() => decision, async () => decision]) {
      const tools = new ToolRegistry({ policy: policy as unknown as ToolPolicy }).register(tool);
      expect((await tools.execute('drop', args)).forLLM).toBe(`${REFUSED}it is not allowed`);
    }
    expect(runs).toEqual([]);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('no database');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no database'))],
    [
      'decides with a getter that throws',
      () => ({
        get allow(): boolean {
          throw new Error('no database');
        },
      }),
    ],
  ] as readonly (readonly [string, ToolPolicy])[])('that %s refuses', async (_what, policy) => {
    const { tool, runs } = counted();
    const result = await new ToolRegistry({ policy }).register(tool).execute('drop', args);
    expect(result.forLLM).toBe(`${REFUSED}the policy could not decide`);
    expect(runs).toEqual([]);
  });

  test('that rejects with undefined refuses too', async () => {
    const { tool, runs } = counted();
    const policy = () => Promise.reject(undefined);
    expect((await new ToolRegistry({ policy }).register(tool).execute('drop', args)).isError).toBe(true);
    expect(runs).toEqual([]);
  });

  test('gets the tool, the validated arguments and the context of the call', async () => {
    const seen: PolicyRequest[] = [];
    const { tool } = counted();
    const policy: ToolPolicy = (request) => seen.push(request) > 0;
    const tools = new ToolRegistry({ policy }).register(tool);
    const data = { role: 'admin' };
    await tools.executeWithContext('drop', '{"table":"users","rows":"3","x":1}', {
      channel: 'web',
      callId: 'c7',
      data,
    });
    expect(seen).toHaveLength(1);
    expect(seen[0]?.tool.name).toBe('drop');
    expect(seen[0]?.arguments).toEqual({ table: 'users', rows: 3 });
    expect(seen[0]?.context).toMatchObject({ callId: 'c7', toolName: 'drop', channel: 'web' });
    expect(seen[0]?.context.data).toBe(data);
  });

  test('is not called for invalid arguments or unknown tools', async () => {
    let asked = 0;
    const { tool } = counted();
    const tools = new ToolRegistry({ policy: () => ++asked > 0 }).register(tool);
    expect((await tools.execute('drop', { table: 7 })).error).toMatchObject({ name: 'InvalidArguments' });
    expect((await tools.execute('no_such_tool', {})).error).toMatchObject({ name: 'ToolNotFound' });
    expect(asked).toBe(0);
  });

  test('applies to every way of calling and to views', async () => {
    const { tool, runs } = counted();
    const tools = new ToolRegistry({ policy: () => false }).register(tool);
    const view = tools.view({ allow: ['*'] });
    const outcomes = [
      await tools.execute('drop', args),
      await tools.executeWithContext('drop', args, { channel: 'c', chatId: '1' }, () => {}),
      await tools.call({ id: 'i', name: 'drop', arguments: args }),
      (await tools.invoke({ id: 'i', name: 'drop', arguments: args })).result,
      await view.execute('drop', args),
    ];
    expect(outcomes.map(({ isError }) => isError)).toEqual([true, true, true, true, true]);
    expect(runs).toEqual([]);
  });

  test('of a tool with setContext is called before setContext', async () => {
    const told: unknown[] = [];
    const { tool } = counted({
      setContext: (...where: unknown[]) => told.push(where),
    } as Partial<ToolDefinition>);
    const tools = new ToolRegistry({ policy: () => false }).register(tool);
    for (let time = 0; time < 2; time += 1)
      await tools.executeWithContext('drop', args, { channel: 'c', chatId: '1' });
    expect(told).toEqual([]);
  });

  test('that refuses is logged with its reason', async () => {
    const { logger, lines } = logbook();
    const { tool } = counted();
    const policy = () => ({ allow: false, reason: 'ask Ada first' });
    await new ToolRegistry({ policy, logger }).register(tool).execute('drop', args);
    expect(lines.at(-1)).toMatchObject({
      level: 'warn',
      message: 'Tool call refused',
      fields: { tool: 'drop', reason: `${REFUSED}ask Ada first` },
    });
  });
});

describe('a run’s policy', () => {
  const script = [{ toolCalls: [{ id: 'c1', name: 'drop', arguments: args }] }, { content: 'done' }];

  test('refuses a call of that run, the model gets the reason, and the run continues', async () => {
    const { tool, runs } = counted();
    const policy = () => ({ allow: false, reason: 'read only today' });
    const { run } = await runScript(script, { tools: [tool], policy });
    expect(run).toMatchObject({ status: 'completed', content: 'done' });
    expect(answers(run)).toEqual([`${REFUSED}read only today`]);
    expect(run.toolCalls[0]).toMatchObject({ status: 'refused', attempts: 1 });
    expect(runs).toEqual([]);
  });

  test.each([
    [true, true, 1],
    [true, false, 0],
    [false, true, 0],
    [false, false, 0],
  ])('and that of the registry must both allow: %p and %p', async (ofRegistry, ofRun, expected) => {
    const { tool, runs } = counted();
    const tools = new ToolRegistry({ policy: async () => ofRegistry }).register(tool);
    await runScript(script, { tools, policy: async () => ofRun });
    expect(runs).toHaveLength(expected);
  });

  test('refuses without using retries', async () => {
    const { tool } = counted();
    const refusals = Array.from({ length: 4 }, (_, rows) => ({
      toolCalls: [{ name: 'drop', arguments: { table: 'users', rows } }],
    }));
    const { run } = await runScript([...refusals, { content: 'done' }], {
      tools: [tool],
      policy: () => false,
      maxRetries: 0,
    });
    expect(run.status).toBe('completed');
  });

  test('that never decides is ended by an abort, and the body never runs', async () => {
    const controller = new AbortController();
    const { tool, runs } = counted({ observesSignal: true });
    const policy = () => {
      setImmediate(() => controller.abort());
      return new Promise<boolean>(() => {});
    };
    const { run } = await runScript(script, { tools: [tool], policy, signal: controller.signal });
    expect(run.status).toBe('aborted');
    expect(run.toolCalls[0]).toMatchObject({ status: 'aborted', result: { error: { code: 508 } } });
    expect(runs).toEqual([]);
  });
});
