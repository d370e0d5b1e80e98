import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import {
  type Answer,
  defineTool,
  errorResult,
  type RunState,
  resumeToolLoop,
  runToolLoop,
  type ToolDefinition,
  type ToolLoopConfig,
  type ToolLoopResult,
  ToolResult,
} from 'toolwright';
import { ScriptedProvider, type ScriptedReply } from 'toolwright/testing';
import { runNode } from '../processes/run-node.js';
import { ROOT } from '../structure/repository.js';
import { historyFaults } from './strict-history.js';

const hello = [{ role: 'user', content: 'Hello' }] as const;
const anything = { type: 'object', additionalProperties: true } as const;
const done: ScriptedReply = { content: 'Done.' };

function configOf(tools: readonly ToolDefinition[], ...replies: readonly ScriptedReply[]): ToolLoopConfig {
  return { provider: new ScriptedProvider(replies), model: 'm', tools };
}

function callOf(name: string, args: Record<string, unknown> | string = {}): ScriptedReply {
  return { toolCalls: [{ id: 'c1', name, arguments: args }] };
}

/** A value as another process would receive it. */
function wire<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}

function answersTo({ pending = [] }: ToolLoopResult, answer: object): readonly Answer[] {
  return pending.map(({ id }) => ({ id, ...answer }) as Answer);
}

function contents({ messages }: ToolLoopResult): readonly unknown[] {
  return messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []));
}

describe('a method that changes its arguments', () => {
  const sent = { count: 1, list: [1] };

  function greedy(seen: unknown[]): ToolDefinition {
    return defineTool({
      name: 'greedy',
      description: 'Greedy',
      parameters: {
        type: 'object',
        properties: { count: { type: 'number' }, list: { type: 'array', items: { type: 'number' } } },
      },
      async execute(args, context) {
        seen.push(wire(args));
        (args.list as number[]).push(9);
        Object.assign(args, { count: 99 });
        const kept = await context.once('kept', () => ({ value: 1 }));
        kept.value += 1;
        const first = (await context.ask({ message: 'First?' })) as { value: number };
        first.value += 1;
        await context.ask({ message: 'Second?' });
        return [kept.value, first.value];
      },
    });
  }

  test.each([
    ['an object', () => structuredClone(sent)],
    ['text', () => JSON.stringify(sent)],
  ])(
    'runs again with the original arguments, answers and `once` values, if they were sent as %s',
    async (_how, args) => {
      const seen: unknown[] = [];
      const sibling = defineTool({
        name: 'sibling',
        description: 'Sibling',
        parameters: anything,
        execute: (given) => void Object.assign(given, { count: 99 }),
      });
      const toolCalls = ['greedy', 'sibling'].map((name) => ({ id: name, name, arguments: args() }));
      const config = configOf([greedy(seen), sibling], { toolCalls }, done);
      const first = await runToolLoop(config, hello);
      expect(first.pending).toMatchObject([{ arguments: sent }]);
      const second = await resumeToolLoop(
        config,
        wire(first.state),
        answersTo(first, { value: { value: 5 } }),
      );
      const third = await resumeToolLoop(config, wire(second.state), answersTo(second, { value: 'go' }));
      expect(seen).toEqual([sent, sent, sent]);
      expect(contents(third)).toEqual(['[2,6]', 'ok']);
      const said = third.messages.flatMap((one) => (one.role === 'assistant' ? (one.tool_calls ?? []) : []));
      expect(said.map((call) => JSON.parse(call.function.arguments))).toEqual([sent, sent]);
    },
  );

  test('does not change the state, which can be resumed again', async () => {
    const change = defineTool({
      name: 'change',
      description: 'Change',
      parameters: anything,
      approval: true,
      execute: (args) => Object.assign(args, { count: Number(args.count) + 1 }),
    });
    const run = await runToolLoop(configOf([change], callOf('change', { count: 1 })), hello);
    const before = JSON.stringify(run.state);
    for (const _turn of ['once', 'again']) {
      const resumed = await resumeToolLoop(
        configOf([change], done),
        run.state,
        answersTo(run, { approved: true }),
      );
      expect(contents(resumed)).toEqual(['{"count":2}']);
    }
    expect(JSON.stringify(run.state)).toBe(before);
  });

  test('has no effect in an approval function: the arguments that were sent are approved and run', async () => {
    const pay = defineTool({
      name: 'pay',
      description: 'Pay',
      parameters: anything,
      approval: (args) => Boolean(Object.assign(args, { amount: 1 })),
      execute: ({ amount }) => `paid ${amount}`,
    });
    const config = configOf([pay], callOf('pay', { amount: 500 }), done);
    const run = await runToolLoop(config, hello);
    expect(run.pending).toMatchObject([{ arguments: { amount: 500 } }]);
    const resumed = await resumeToolLoop(config, wire(run.state), answersTo(run, { approved: true }));
    expect(contents(resumed)).toEqual(['paid 500']);
  });
});

describe('an answer', () => {
  test('is converted to JSON, whether or not the state was serialized meanwhile', async () => {
    const seen: unknown[] = [];
    const when = defineTool({
      name: 'when',
      description: 'When',
      async execute(_args, context) {
        seen.push(await context.ask({ message: 'When?' }));
        return context.ask({ message: 'Sure?' });
      },
    });
    const config = configOf([when], callOf('when'), done);
    const first = await runToolLoop(config, hello);
    const second = await resumeToolLoop(config, first.state, answersTo(first, { value: new Date(0) }));
    await resumeToolLoop(config, wire(second.state), answersTo(second, { value: true }));
    expect(seen).toEqual(['1970-01-01T00:00:00.000Z', '1970-01-01T00:00:00.000Z']);
  });

  const circle: Record<string, unknown> = {};
  circle.self = circle;

  test.each([
    ['an error, which JSON would turn into a success', new Error('no signal')],
    ['circular', circle],
    ['a function', () => 1],
  ])('that is %s is refused and changes nothing', async (_what, result) => {
    const locate = defineTool({ name: 'locate', description: 'Where' });
    const config = configOf([locate], callOf('locate'), done);
    const run = await runToolLoop(config, hello);
    await expect(resumeToolLoop(config, run.state, answersTo(run, { result }))).rejects.toThrow(
      /`result` cannot be written as JSON/,
    );
    const resumed = await resumeToolLoop(config, run.state, answersTo(run, { result: 'Oslo' }));
    expect(contents(resumed)).toEqual(['Oslo']);
  });

  test('of a client in this process may be a ToolResult, and its parts and errors survive partial answers', async () => {
    const locate = defineTool({ name: 'locate', description: 'Where' });
    const toolCalls = ['a', 'b'].map((id) => ({ id, name: 'locate', arguments: {} }));
    const config = configOf([locate], { toolCalls }, done);
    const run = await runToolLoop(config, hello);
    const [a = '', b = ''] = run.pending?.map(({ id }) => id) ?? [];
    const content = [{ type: 'image', data: 'aGk=', mimeType: 'image/png' }] as const;
    const half = await resumeToolLoop(config, run.state, [
      { id: a, result: new ToolResult({ forLLM: 'a map', content }) },
    ]);
    const all = await resumeToolLoop(config, wire(half.state), [
      { id: b, result: errorResult('no signal').withError(new Error('x')) },
    ]);
    expect(all.toolCalls).toMatchObject([
      { status: 'success', result: { forLLM: 'a map', content } },
      { status: 'error', result: { forLLM: 'no signal' } },
    ]);
  });

  test('with the key `__proto__` is only data, as are such arguments and `once` keys', async () => {
    const odd = defineTool({
      name: 'odd',
      description: 'Odd',
      parameters: anything,
      async execute(args, context) {
        const one = await context.once('__proto__', () => 'worked');
        const two = (await context.ask({ message: 'constructor' })) as Record<string, unknown>;
        return JSON.stringify([args, one, two, args.evil === undefined && two.evil === undefined]);
      },
    });
    const config = {
      ...configOf([odd], callOf('odd', '{"__proto__":{"evil":1}}'), done),
      stateSecret: 's that has at least thirty-two characters',
    };
    const run = await runToolLoop(config, hello);
    const value: unknown = JSON.parse('{"__proto__":{"evil":2}}');
    const resumed = await resumeToolLoop(config, wire(run.state), answersTo(run, { value }));
    expect(contents(resumed)).toEqual(['[{"__proto__":{"evil":1}},"worked",{"__proto__":{"evil":2}},true]']);
    const changed = JSON.parse(JSON.stringify(run.state).replaceAll('"evil":1', '"evil":3')) as RunState;
    const { stateSecret: _, ...unsigned } = config;
    await expect(resumeToolLoop(unsigned, changed, answersTo(run, { value }))).rejects.toMatchObject({
      name: 'InvalidState',
    });
  });

  test('that another version of the method does not accept is reported to the model', async () => {
    const choose = (...options: readonly string[]) =>
      defineTool({
        name: 'choose',
        description: 'Choose',
        execute: (_args, context) =>
          context.ask({ message: 'Which?', schema: { type: 'string', enum: options } }),
      });
    const run = await runToolLoop(configOf([choose('a', 'b')], callOf('choose')), hello);
    const resumed = await resumeToolLoop(
      configOf([choose('x', 'y')], done),
      wire(run.state),
      answersTo(run, { value: 'a' }),
    );
    expect(resumed.toolCalls).toMatchObject([{ status: 'error' }]);
    expect(contents(resumed)).toEqual([expect.stringContaining('does not fit the schema of the question')]);
  });
});

describe('values that cannot be stored', () => {
  const nested = (depth: number) => `{"deep":${'['.repeat(depth)}${']'.repeat(depth)}}`;

  test.each([
    ['a signature of another type', 5],
    ['a signature that is an object', { length: 43 }],
  ])('%s is a changed state', async (_what, signature) => {
    const pay = defineTool({ name: 'pay', description: 'Pay', approval: true, execute: () => 'paid' });
    const config = {
      ...configOf([pay], callOf('pay')),
      stateSecret: 'secret that has at least thirty-two characters',
    };
    const run = await runToolLoop(config, hello);
    const state = { ...run.state, signature } as unknown as RunState;
    await expect(resumeToolLoop(config, state, answersTo(run, { approved: true }))).rejects.toMatchObject({
      name: 'InvalidState',
    });
  });

  test('arguments nested too deep for JSON reject the call, and the run continues', async () => {
    let runs = 0;
    const pay = defineTool({
      name: 'pay',
      description: 'Pay',
      parameters: anything,
      approval: true,
      execute: () => ++runs,
    });
    const run = await runToolLoop(configOf([pay], callOf('pay', nested(100_000)), done), hello);
    expect(run).toMatchObject({ status: 'completed', toolCalls: [{ status: 'rejected' }] });
    expect(contents(run)).toEqual([expect.stringContaining('nested too deep')]);
    expect(historyFaults(run.messages)).toEqual([]);
    expect(runs).toBe(0);
  });

  test('arguments nested too deep in one call do not prevent the suspension of another', async () => {
    const free = defineTool({ name: 'free', description: 'Free', parameters: anything, execute: () => 'ok' });
    const locate = defineTool({ name: 'locate', description: 'Where' });
    const toolCalls = [
      { id: 'a', name: 'free', arguments: nested(100_000) },
      { id: 'b', name: 'locate', arguments: {} },
    ];
    const config = configOf([free, locate], { toolCalls }, done);
    const run = await runToolLoop(config, hello);
    const resumed = await resumeToolLoop(config, wire(run.state), answersTo(run, { result: 'Oslo' }));
    expect(contents(resumed)).toEqual([expect.stringContaining('nested too deep'), 'Oslo']);
  });
});

describe('never-ending work in `once` while its method asks', () => {
  const hanging = (more: Partial<ToolDefinition>) =>
    defineTool({
      name: 'hang',
      description: 'Hang',
      async execute(_args, context) {
        void context.once('never', () => new Promise(() => {}));
        return context.ask({ message: 'Go?' });
      },
      ...more,
    });

  test('ends with a timeout of the call', async () => {
    const run = await runToolLoop(configOf([hanging({ timeoutMs: 20 })], callOf('hang'), done), hello);
    expect(run).toMatchObject({ status: 'completed', toolCalls: [{ status: 'timed_out' }] });
  });

  test('does not prevent an abort from ending the run', async () => {
    const stop = new AbortController();
    const config = { ...configOf([hanging({})], callOf('hang')), signal: stop.signal };
    const running = runToolLoop(config, hello);
    await wait(10);
    stop.abort();
    expect(await running).toMatchObject({ status: 'aborted', toolCalls: [{ status: 'aborted' }] });
  });
});

test('a deferred call with invalid arguments is rejected when its turn comes', async () => {
  const locate = defineTool({ name: 'locate', description: 'Where the user is' });
  const alone = defineTool({ name: 'alone', description: 'Alone', sequential: true, execute: () => 'ran' });
  const calls = {
    toolCalls: [
      { id: 'c1', name: 'locate' },
      { id: 'c2', name: 'alone', arguments: 7 as never },
    ],
  };
  const config = configOf([locate, alone], calls, done);
  const run = await runToolLoop(config, hello);
  const resumed = await resumeToolLoop(config, wire(run.state), answersTo(run, { result: 'Oslo' }));
  expect(resumed.toolCalls).toMatchObject([{ status: 'success' }, { id: 'c2', status: 'rejected' }]);
  expect(historyFaults(resumed.messages)).toEqual([]);
});

describe('context.ask', () => {
  test.each([
    [{ type: 'nope' }, "type is 'nope'"],
    [{ type: 'object', properties: { a: { $ref: '#/x' } } }, "properties.a.$ref is '#/x'"],
    [{ type: 'string', pattern: '(' }, "pattern is '('"],
  ])('fails its call for the invalid schema %j, and the run is not suspended', async (schema, fault) => {
    const asking = defineTool({
      name: 'asking',
      description: 'Asks',
      execute: (_args, context) => context.ask({ message: 'Sure?', schema }),
    });
    const run = await runToolLoop(configOf([asking], callOf('asking'), done), hello);
    expect(run).toMatchObject({ status: 'completed', toolCalls: [{ status: 'error' }] });
    expect(contents(run)[0]).toContain(`context.ask: \`schema\` is invalid: ${fault}`);
  });

  test('whose promise is not awaited suspends the call, or fails it, without an unhandled rejection', async () => {
    const code = `
      import { defineTool, runToolLoop, ToolRegistry } from 'toolwright';
      import { ScriptedProvider } from 'toolwright/testing';
      const asking = defineTool({
        name: 'asking',
        description: 'Asks',
        execute: (_args, context) => {
          context.ask({ message: 'Sure?' });
          return 'done';
        },
      });
      const provider = new ScriptedProvider([{ toolCalls: [{ name: 'asking', arguments: {} }] }]);
      const run = await runToolLoop({ provider, model: 'm', tools: [asking] }, [{ role: 'user', content: 'Hi' }]);
      const { error } = await new ToolRegistry().register(asking).execute('asking', {});
      setTimeout(() => console.log(run.status, error.code), 10);
    `;
    const { exitCode, stdout } = runNode(['--input-type=module', '-e', code], { folder: ROOT });
    expect([stdout.trim(), exitCode]).toEqual(['suspended 511', 0]);
  });
});
