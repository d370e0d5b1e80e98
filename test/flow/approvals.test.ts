import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type Answer,
  defineTool,
  type Message,
  resumeToolLoop,
  runToolLoop,
  type ToolDefinition,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';

const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }];
const anything = { type: 'object', additionalProperties: true } as const;

function setup(args: string | Record<string, unknown>, more: Partial<ToolDefinition> = {}) {
  const ran: unknown[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pay',
    parameters: anything,
    approval: true,
    execute: (given) => {
      ran.push(given);
      return 'paid';
    },
    ...more,
  });
  const steps = [
    { toolCalls: [{ name: 'pay', arguments: args }] },
    { content: 'Done.' },
    { content: 'Done.' },
  ];
  return { ran, config: { provider: new ScriptedProvider(steps), model: 'm', tools: [pay] } };
}

describe('resumeToolLoop', () => {
  test.each<[string, unknown]>([
    ['a text', 'true'],
    ['the text false', 'false'],
    ['a number', 1],
    ['zero', 0],
    ['nothing', undefined],
    ['null', null],
    ['a boxed true', new Boolean(true)],
    ['an object whose JSON is true', { toJSON: () => true }],
    ['a list with true', [true]],
    ['an object', {}],
  ])('rejects an answer whose `approved` is %s, and leaves the state unchanged', async (_what, approved) => {
    const { config, ran } = setup({});
    const run = await runToolLoop(config, hello);
    const answers = run.pending!.map(({ id }) => ({ id, approved }) as Answer);
    await expect(resumeToolLoop(config, run.state, answers)).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining('`approved` is neither true nor false'),
    });
    expect(ran).toEqual([]);
    const yes = run.pending!.map(({ id }) => ({ id, approved: true }));
    expect(await resumeToolLoop(config, run.state, yes)).toMatchObject({ status: 'completed' });
    expect(ran).toHaveLength(1);
  });

  test('rejects a refusal whose reason is not text, and still waits for an answer', async () => {
    const { config, ran } = setup({});
    const run = await runToolLoop(config, hello);
    const [id = ''] = run.pending!.map((pending) => pending.id);
    await expect(
      resumeToolLoop(config, run.state, [{ id, approved: false, reason: { why: 'no' } } as never]),
    ).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining('`reason` is not a string'),
    });
    expect((await resumeToolLoop(config, run.state, [{ id, approved: true }])).status).toBe('completed');
    expect(ran).toHaveLength(1);
  });

  test('rejects an answer with a result and an invalid `approved`', async () => {
    const { config } = setup({}, { approval: false, execution: 'client' });
    const run = await runToolLoop(config, hello);
    const answers = run.pending!.map(({ id }) => ({ id, approved: 'no', result: 'paid' }) as never);
    await expect(resumeToolLoop(config, run.state, answers)).rejects.toMatchObject({ name: 'InvalidAnswer' });
  });

  test.each(['{"amount":1e999}', '{"amount":-1e999}', '{"to":[{"amount":1e400}]}'])(
    'runs %s only with the arguments that were shown',
    async (args) => {
      const { config, ran } = setup(args);
      const run = await runToolLoop(config, hello);
      const shown = run.pending?.map((pending) => pending.arguments) ?? [];
      const answers = (run.pending ?? []).map(({ id }) => ({ id, approved: true }));
      if (run.state !== undefined) await resumeToolLoop(config, run.state, answers);
      expect(ran).toEqual(shown);
    },
  );

  test('runs a call with exactly the arguments that were shown', async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), fc.boolean(), async (args, asText) => {
        const { config, ran } = setup(asText ? JSON.stringify(args) : args);
        const run = await runToolLoop(config, hello);
        const shown = run.pending?.map((pending) => pending.arguments) ?? [];
        const answers = (run.pending ?? []).map(({ id }) => ({ id, approved: true }));
        if (run.state !== undefined) await resumeToolLoop(config, run.state, answers);
        expect(JSON.stringify(ran)).toBe(JSON.stringify(shown));
      }),
      { numRuns: 100 },
    );
  });
});

describe('defineTool with an approval function', () => {
  test.each<[string, () => unknown]>([
    ['nothing', () => undefined],
    ['null', () => null],
    ['zero', () => 0],
    ['an empty text', () => ''],
    ['NaN', () => Number.NaN],
    ['the text false', () => 'false'],
    ['an object', () => ({})],
    ['a boxed false', () => new Boolean(false)],
    ['a promise of undefined', async () => undefined],
    ['an error', () => Promise.reject(new Error('the database is down'))],
    ['true', () => true],
  ])('asks if the function returns %s', async (_what, approval) => {
    const { config, ran } = setup({}, { approval: approval as never });
    expect(await runToolLoop(config, hello)).toMatchObject({ pending: [{ kind: 'approval' }] });
    expect(ran).toEqual([]);
  });

  test.each<[string, () => unknown]>([
    ['false', () => false],
    ['a promise of false', async () => false],
  ])('does not ask if the function returns %s', async (_what, approval) => {
    const { config, ran } = setup({}, { approval: approval as never });
    expect(await runToolLoop(config, hello)).toMatchObject({ status: 'completed' });
    expect(ran).toHaveLength(1);
  });

  test('asks if the function does not return within the timeout of the call', async () => {
    const { config } = setup({}, { approval: () => new Promise(() => {}), timeoutMs: 20 });
    expect(await runToolLoop(config, hello)).toMatchObject({ pending: [{ kind: 'approval' }] });
  });
});

test('runToolLoop refuses a call whose policy does not return within the timeout of the call', async () => {
  const { config, ran } = setup({}, { approval: false, timeoutMs: 20 });
  const run = await runToolLoop({ ...config, policy: () => new Promise(() => {}) }, hello);
  expect(run).toMatchObject({ status: 'completed', toolCalls: [{ status: 'refused' }] });
  expect(ran).toEqual([]);
});
