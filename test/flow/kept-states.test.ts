import { expect, test } from '@jest/globals';
import { agentAsTool, Conversation, defineTool, type RunState, resumeToolLoop } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { KEPT_SNAPSHOT, KEPT_STATE, KEPT_STATE_1, KEPT_STATE_4 } from './kept-states.js';

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
