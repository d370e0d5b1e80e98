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
])('resumeToolLoop resumes a state of version %s', async (_, kept) => {
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

test('Conversation.restore restores a snapshot of version 1', async () => {
  const provider = new ScriptedProvider([{ content: 'Done.' }]);
  const config = { provider, model: 'm', tools: [look, drop] };
  const conversation = Conversation.restore(config, KEPT_SNAPSHOT as never);
  const answers = conversation.pending.map(({ id }) => ({ id, approved: true }));
  const turn = await conversation.answer(answers);
  expect(turn).toMatchObject({ status: 'completed', content: 'Done.' });
  expect(conversation.toJSON().version).toBe(2);
});

test('resumeToolLoop resumes a state of version 4, including its nested agent', async () => {
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

/** A provider with the itemKey of the stored provider items. */
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

/** The open message as it is sent to the provider, with its provider items. */
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

test('resumeToolLoop resumes a state of version 3, and sends its provider items', async () => {
  const { provider, requests } = maker();
  const config = { provider, model: 'm', tools: [look, drop] };
  const state = KEPT_STATE_3 as unknown as RunState;
  const run = await resumeToolLoop(config, state, yesTo(state.pending));
  expect(run).toMatchObject({ status: 'completed', usage: { totalTokens: 5, reasoningTokens: 1 } });
  expect(requests[0]?.messages[1]).toMatchObject(SENT_BACK);
});

test('resumeToolLoop resumes a state of version 5, which waits for more budget', async () => {
  const { provider } = maker();
  const budget = { tokens: 250, whenSpent: 'ask', countTokens: () => 100 } as const;
  const config = { provider, model: 'm', tools: [look], llmOptions: { max_tokens: 100 }, budget };
  const state = KEPT_STATE_5 as unknown as RunState;
  const answers = state.pending.map(({ id }) => ({ id, value: 200 }));
  const run = await resumeToolLoop(config, state, answers);
  expect(run).toMatchObject({ status: 'completed', content: 'Done.', spent: { steps: 2, calls: 1 } });
});

test('Conversation.restore restores a snapshot of version 2, and then runs its waiting prompt', async () => {
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

test('recoverRuns continues a running run of version 3 after its last stored call', async () => {
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
