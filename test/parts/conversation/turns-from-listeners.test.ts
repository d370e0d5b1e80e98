import { describe, expect, test } from '@jest/globals';
import { Conversation, type ConversationConfig, type ConversationEvent, defineTool } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';

const parameters = { type: 'object', properties: {} } as const;

const start = defineTool({
  name: 'start',
  description: 'Starts work that takes longer than its call',
  parameters,
  execute: (_, context) => context.background(() => new Promise(setImmediate), 'started'),
});

const confirm = defineTool({
  name: 'confirm',
  description: 'Asks first',
  parameters,
  approval: true,
  execute: () => 'confirmed',
});

function conversationWith(replies: ConstructorParameters<typeof ScriptedProvider>[0]) {
  const provider = new ScriptedProvider(replies);
  const config: ConversationConfig = { provider, model: 'scripted', tools: [start, confirm] };
  const conversation = new Conversation(config);
  const told: string[] = [];
  /** Calls `act` when a turn ends for the first time. */
  const atFirstEnd = (act: () => Promise<unknown>): Promise<void> => {
    const done = Promise.withResolvers<void>();
    const leave = conversation.subscribe(({ type }: ConversationEvent) => {
      if (type !== 'turn-end') return;
      leave();
      act().then(() => done.resolve(), done.reject);
    });
    return done.promise;
  };
  conversation.subscribe(({ type }) => {
    if (type.startsWith('task-')) told.push(type);
  });
  return { conversation, provider, told, atFirstEnd };
}

const call = (name: string) => ({ content: '', toolCalls: [{ id: 'c', name, arguments: {} }] });

describe('background work of a turn emits its events if a listener started the turn', () => {
  test('with a prompt at the end of the previous turn', async () => {
    const replies = [{ content: 'Hello' }, call('start'), { content: 'Wait' }, { content: 'Done' }];
    const { conversation, provider, told, atFirstEnd } = conversationWith(replies);
    const next = atFirstEnd(() => conversation.prompt('Start'));
    await conversation.prompt('Hello');
    await next;
    await conversation.idle({ tasks: true });
    expect(told).toEqual(['task-start', 'task-end']);
    provider.assertUsedUp();
  });

  test('with the answer to a suspended call', async () => {
    const replies = [call('confirm'), call('start'), { content: 'Wait' }, { content: 'Done' }];
    const { conversation, provider, told, atFirstEnd } = conversationWith(replies);
    const next = atFirstEnd(() =>
      conversation.answer(conversation.pending.map(({ id }) => ({ id, approved: true }))),
    );
    await conversation.prompt('Confirm');
    await next;
    await conversation.idle({ tasks: true });
    expect(told).toEqual(['task-start', 'task-end']);
    provider.assertUsedUp();
  });
});
