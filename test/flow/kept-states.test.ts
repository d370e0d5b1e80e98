import { expect, test } from '@jest/globals';
import {
  agentAsTool,
  Conversation,
  defineTool,
  type LLMProvider,
  type LLMRequest,
  type RunState,
  recoverRuns,
  resumeToolLoop,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { KEPT_SNAPSHOT, KEPT_STATE, KEPT_STATE_1, KEPT_STATE_4 } from './kept-states.js';
import { KEPT_RUN_3, KEPT_SNAPSHOT_2, KEPT_STATE_3, KEPT_STATE_5 } from './kept-states-now.js';

const look = defineTool({ name: 'look', description: 'Looks', parameters: {}, execute: () => 'seen' });
const drop = defineTool({
  name: 'drop',
  description: 'Drops',
  parameters: {},
  approval: true,
  execute: () => 'dropped',
});

test.each([
  ['2', KEPT_STATE],
  ['1', KEPT_STATE_1],
])('resumeToolLoop goes on with a state of version %s', async (_, kept) => {
  const provider = new ScriptedProvider([{ content: 'Done.' }]);
  const answers = kept.pending.map(({ id }) => ({ id, approved: true }));
  const config = { provider, model: 'm', tools: [look, drop] };
  const run = await resumeToolLoop(config, kept as unknown as RunState, answers);
  expect(run).toMatchObject({ status: 'completed', content: 'Done.', usage: { totalTokens: 5 } });
  expect(run.messages.map(({ content }) => content)).toEqual([
    'Hi',
    'Let me see.',
    'seen',
    'dropped',
    'Done.',
  ]);
});

test('Conversation.restore goes on with a snapshot of version 1', async () => {
  const provider = new ScriptedProvider([{ content: 'Done.' }]);
  const config = { provider, model: 'm', tools: [look, drop] };
  const conversation = Conversation.restore(config, KEPT_SNAPSHOT as never);
  const answers = conversation.pending.map(({ id }) => ({ id, approved: true }));
  const turn = await conversation.answer(answers);
  expect(turn).toMatchObject({ status: 'completed', content: 'Done.' });
  expect(conversation.toJSON().version).toBe(2);
});

test('resumeToolLoop goes on with a state of version 4, and with the agent in it', async () => {
  const agent = agentAsTool({
    name: 'agent',
    description: 'Acts',
    provider: new ScriptedProvider([{ content: 'Dropped.' }]),
    model: 'm',
    tools: [drop],
  });
  const config = { provider: new ScriptedProvider([{ content: 'Done.' }]), model: 'm', tools: [agent] };
  const answers = KEPT_STATE_4.pending.map(({ id }) => ({ id, approved: true }));
  const run = await resumeToolLoop(config, KEPT_STATE_4 as unknown as RunState, answers);
  expect(run).toMatchObject({ status: 'completed', content: 'Done.', usage: { totalTokens: 5 } });
  expect(run.toolCalls).toMatchObject([{ name: 'agent', result: { forLLM: 'Dropped.' } }]);
});

/** The provider that the kept runs had begun with: the items in them are its own. */
function maker() {
  const requests: LLMRequest[] = [];
  const provider: LLMProvider = {
    itemKey: (model) => `maker/${model}`,
    chat: async (request) => {
      requests.push(structuredClone({ ...request, signal: undefined }) as LLMRequest);
      return { content: 'Done.', toolCalls: [], finishReason: 'stop' };
    },
  };
  return { provider, requests };
}

/** What a request has of the open message, which had items of its own and of each call. */
const SENT_BACK = {
  content: 'Let me see.',
  providerItems: { 'maker/m': { signature: 'abc==' } },
  tool_calls: [
    { id: 'c0', providerItems: { 'maker/m': { of: 'c0' } } },
    { id: 'c1', providerItems: { 'maker/m': { of: 'c1' } } },
  ],
};
const yesTo = (pending: readonly { readonly id: string }[]) =>
  pending.map(({ id }) => ({ id, approved: true }));

test('resumeToolLoop goes on with a state of version 3, and sends back what the provider keeps', async () => {
  const { provider, requests } = maker();
  const config = { provider, model: 'm', tools: [look, drop] };
  const state = KEPT_STATE_3 as unknown as RunState;
  const run = await resumeToolLoop(config, state, yesTo(state.pending));
  expect(run).toMatchObject({ status: 'completed', usage: { totalTokens: 5, reasoningTokens: 1 } });
  expect(requests[0]?.messages[1]).toMatchObject(SENT_BACK);
});

test('resumeToolLoop goes on with a state of version 5, which asks for more of a budget', async () => {
  const { provider } = maker();
  const budget = { tokens: 250, whenSpent: 'ask', countTokens: () => 100 } as const;
  const config = { provider, model: 'm', tools: [look], llmOptions: { max_tokens: 100 }, budget };
  const state = KEPT_STATE_5 as unknown as RunState;
  const answers = state.pending.map(({ id }) => ({ id, value: 200 }));
  const run = await resumeToolLoop(config, state, answers);
  expect(run).toMatchObject({ status: 'completed', content: 'Done.', spent: { steps: 2, calls: 1 } });
});

test('Conversation.restore goes on with a snapshot of version 2, and with what waits in it', async () => {
  const { provider, requests } = maker();
  const config = { provider, model: 'm', tools: [look, drop] };
  const conversation = Conversation.restore(config, KEPT_SNAPSHOT_2 as never);
  await conversation.answer(yesTo(conversation.pending));
  await conversation.idle();
  expect(requests[0]?.messages[1]).toMatchObject(SENT_BACK);
  expect(conversation.messages.map(({ content }) => content)).toEqual([
    'Hi',
    'Let me see.',
    'seen',
    'dropped',
    'Done.',
    'And then?',
    'Done.',
  ]);
});

test('recoverRuns goes on with a run under way of version 3, where it stood', async () => {
  const { provider, requests } = maker();
  let now = 1_700_000_000_000;
  const store = new MemoryRunStore({ now: () => now });
  const lease = { runId: 'kept', claim: 'dead', leaseMs: 1_000 };
  const { state, entries } = KEPT_RUN_3;
  await store.begin(lease, state as never);
  await store.append(lease, entries as never);
  now += 1_000;
  const again = { ...drop, approval: false, annotations: { idempotent: true } };
  const seenTwice = { ...look, execute: () => 'seen twice' };
  const [recovered] = await recoverRuns({ store, config: { provider, tools: [seenTwice, again], store } });
  expect(recovered).toMatchObject({ runId: 'kept', result: { status: 'completed', content: 'Done.' } });
  expect(requests[0]?.messages[1]).toMatchObject(SENT_BACK);
  expect(requests[0]?.messages.slice(2).map(({ content }) => content)).toEqual(['seen', 'dropped']);
});
