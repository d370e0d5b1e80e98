import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  Conversation,
  defineTool,
  type LLMProvider,
  type LLMResponse,
  type Message,
  type RunState,
  resumeStoredRun,
  resumeToolLoop,
  runToolLoop,
  type ToolContext,
  type ToolLoopConfig,
  ToolResult,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { runs } from '../setup/runs.js';
import { historyFaults } from './strict-history.js';

const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }];

/** Values that untyped code may return instead of a number, text, boolean or object. */
const odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    ...[10.5, -1, -0, 1e308, Number.NaN, Number.POSITIVE_INFINITY, 1, 0, '', '7', true, null, undefined],
    ...[10n, Symbol('odd'), new Date(0), new Map([[1, 2]]), new Error('odd'), () => 'odd', /odd/, [], {}],
    ...[[null], [{ type: 'text' }], ['x'], [{ type: 'image', data: 5 }], { toJSON: () => 5 }],
  ),
  fc.jsonValue(),
);

const oddUsage = fc.oneof(
  odd,
  fc.record({ inputTokens: odd, outputTokens: odd, totalTokens: odd }, { requiredKeys: [] }),
);

const oddCall = fc.oneof(
  odd,
  fc.record(
    {
      id: fc.oneof(fc.constant('c1'), odd),
      name: fc.oneof(fc.constantFrom('tell', 'pay', 'ask'), odd),
      arguments: odd,
    },
    { requiredKeys: [] },
  ),
);

const oddReply = fc.record(
  { content: odd, usage: oddUsage, finishReason: odd, toolCalls: fc.oneof(odd, fc.array(oddCall)) },
  { requiredKeys: [] },
);

const oddResult = fc.oneof(
  odd,
  fc
    .record({ forLLM: odd, forUser: odd, silent: odd, isError: odd, async: odd, content: odd, details: odd })
    .map((fields) => new ToolResult(fields as never)),
  fc
    .record({ isError: odd, silent: odd, content: odd, forUser: odd })
    .map((fields) => Object.assign(new ToolResult({ forLLM: 'ok' }), fields)),
);

interface Oddity {
  readonly replies: readonly unknown[];
  readonly results: readonly unknown[];
  readonly key: unknown;
}

const oddity: fc.Arbitrary<Oddity> = fc.record({
  replies: fc.array(oddReply, { maxLength: 4 }),
  results: fc.array(oddResult, { minLength: 1, maxLength: 4 }),
  key: odd,
});

/** A model that returns the given odd replies, then calls all tools, then ends. */
function configOf({ replies, results, key }: Oddity): ToolLoopConfig {
  const anything = { type: 'object', additionalProperties: true } as const;
  let told = 0;
  let asked = 0;
  const calls = ['tell', 'pay', 'ask'].map((name, index) => ({ id: `last_${index}`, name, arguments: {} }));
  const last: readonly unknown[] = [
    { content: 'All of it', toolCalls: calls, usage: { inputTokens: 10.5, outputTokens: -1 } },
    { content: 'Done.', toolCalls: [] },
  ];
  const provider: LLMProvider = {
    chat: async () => {
      const reply = [...replies, ...last][asked] ?? last.at(-1);
      asked += 1;
      return reply as LLMResponse;
    },
  };
  const tell = defineTool({
    name: 'tell',
    description: 'Tell',
    parameters: anything,
    execute: () => {
      told += 1;
      return results[told % results.length];
    },
  });
  const pay = defineTool({
    name: 'pay',
    description: 'Pay',
    parameters: anything,
    approval: true,
    execute: () => 'paid',
  });
  const ask = defineTool({
    name: 'ask',
    description: 'Ask',
    parameters: anything,
    execute: async (_args, context: ToolContext) => {
      await context.once(key as string, () => results[0] as never).catch(() => 'odd');
      return `to ${await context.ask({ message: 'Where to?' })}`;
    },
  });
  return { provider, model: 'm', tools: [tell, pay, ask], maxRetries: 100, loopGuard: false };
}

function answersTo({ pending }: RunState) {
  return pending.map(({ id, kind }) =>
    kind === 'approval' ? { id, approved: true } : { id, value: 'Rome' },
  );
}

test('resumeToolLoop accepts every state that runToolLoop returns, whatever provider and tools return', async () => {
  await fc.assert(
    fc.asyncProperty(oddity, async (given) => {
      const config = configOf(given);
      let run = await runToolLoop(config, hello);
      for (let count = 0; run.state !== undefined && count < 20; count += 1) {
        expect(run.status).toBe('suspended');
        const state = JSON.parse(JSON.stringify(run.state)) as RunState;
        expect(state).toEqual(run.state);
        const store = new MemoryRunStore();
        store.save(state);
        const stored = { store, runId: state.runId };
        await expect(resumeStoredRun(config, stored, [])).resolves.toMatchObject({ status: 'suspended' });
        run = await resumeToolLoop(config, state, answersTo(state));
      }
      expect(historyFaults(run.messages)).toEqual([]);
      expect(Object.values(run.usage).every((count) => Number.isSafeInteger(count) && count >= 0)).toBe(true);
      expect(['completed', 'failed']).toContain(run.status);
    }),
    { numRuns: runs(200) },
  );
});

test('Conversation can be aborted and restored at every suspension, whatever provider and tools return', async () => {
  await fc.assert(
    fc.asyncProperty(oddity, async (given) => {
      const config = configOf(given);
      const conversation = new Conversation(config);
      const first = await conversation.prompt('Hello');
      if (first.status !== 'suspended') return;
      const restored = Conversation.restore(config, JSON.parse(JSON.stringify(conversation)));
      restored.abort('enough');
      await restored.idle();
      expect(restored.pending).toEqual([]);
      expect(historyFaults(restored.messages)).toEqual([]);
      conversation.abort('enough');
      await conversation.idle();
      expect(conversation.pending).toEqual([]);
      expect(historyFaults(conversation.messages)).toEqual([]);
    }),
    { numRuns: runs(100) },
  );
});

describe('runToolLoop', () => {
  const pay = defineTool({ name: 'pay', description: 'Pay', approval: true, execute: () => 'paid' });
  const reply = (more: object): LLMProvider => ({
    chat: async () =>
      ({ content: '', toolCalls: [{ id: 'c', name: 'pay', arguments: {} }], ...more }) as never,
  });

  test.each([
    [10.5, 11],
    [-1, 0],
    [Number.NaN, 0],
    [Number.POSITIVE_INFINITY, 0],
    ['7', 0],
  ])('counts %p tokens as %p', async (inputTokens, counted) => {
    const provider = reply({ usage: { inputTokens, outputTokens: 1, totalTokens: 2 } });
    const run = await runToolLoop({ provider, model: 'm', tools: [pay] }, hello);
    expect(run).toMatchObject({ status: 'suspended', usage: { inputTokens: counted, outputTokens: 1 } });
  });

  test('rejects a Date as arguments, and the run can still be suspended and resumed', async () => {
    const calls = [
      { id: 'c1', name: 'pay', arguments: new Date(0) },
      { id: 'c2', name: 'pay', arguments: {} },
    ];
    const config = { provider: reply({ toolCalls: calls }), model: 'm', tools: [pay] };
    const run = await runToolLoop(config, hello);
    expect(run.pending).toHaveLength(1);
    expect(run.toolCalls).toMatchObject([{ id: 'c1', status: 'rejected' }]);
    await expect(resumeToolLoop(config, run.state, [])).resolves.toMatchObject({ status: 'suspended' });
  });

  test('reports a provider that throws undefined without naming a tool', async () => {
    const provider: LLMProvider = { chat: () => Promise.reject(undefined) };
    const run = await runToolLoop({ provider, model: 'm', tools: [pay] }, hello);
    expect(run.error?.message).toBe('LLM call failed: an error without a message was thrown');
  });

  test('refuses keys of `once` that are neither text nor a number', async () => {
    const odd = defineTool({
      name: 'pay',
      description: 'Pay',
      execute: async (_args, context: ToolContext) => {
        const one = await context.once(5 as never, () => 'five');
        await expect(context.once({} as never, () => 'x')).rejects.toThrow('key');
        return context.ask({ message: one });
      },
    });
    const config = { provider: reply({}), model: 'm', tools: [odd] };
    const run = await runToolLoop(config, hello);
    expect(run.pending).toMatchObject([{ kind: 'question', message: 'five' }]);
    await expect(resumeToolLoop(config, run.state, [])).resolves.toMatchObject({ status: 'suspended' });
  });
});

test('Conversation.abort ends a suspended turn whose state can no longer be resumed', async () => {
  const config = configOf({ replies: [], results: ['x'], key: 'k' });
  const conversation = new Conversation({ ...config, scope: { owner: 'alice' } });
  await conversation.prompt('Hello');
  const snapshot = JSON.parse(JSON.stringify(conversation));
  // Restored with another owner, so it can be neither answered nor continued.
  const restored = Conversation.restore({ ...config, scope: { owner: 'bob' } }, snapshot);
  restored.abort('enough');
  await restored.idle();
  expect(restored.pending).toEqual([]);
  expect(await restored.prompt('And now?')).toMatchObject({ status: 'completed' });
});
