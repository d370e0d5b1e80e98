import { describe, expect, test } from '@jest/globals';
import { Conversation, type ConversationEvent, type Logger } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';

function setup() {
  const errors: string[] = [];
  const told: string[] = [];
  const logger: Logger = { debug() {}, info() {}, warn() {}, error: (message) => errors.push(message) };
  const provider = new ScriptedProvider([{ content: 'One' }, { content: 'Two' }]);
  const conversation = new Conversation({ provider, model: 'scripted', logger });
  const note = (who: string) => (heard: ConversationEvent) => {
    if (heard.type === 'turn-start' || heard.type === 'turn-end')
      told.push(`${who} ${heard.type} ${heard.turn.number}`);
  };
  return { conversation, told, errors, note };
}

describe('the events of a conversation', () => {
  test('reach every listener in the same order, including events that a listener triggers', async () => {
    const { conversation, told, note } = setup();
    conversation.subscribe((heard) => {
      note('a')(heard);
      if (heard.type === 'turn-end' && heard.turn.number === 1) void conversation.prompt('Second');
    });
    conversation.subscribe(note('b'));
    await conversation.prompt('First');
    await conversation.idle();
    const of = (event: string) => [`a ${event}`, `b ${event}`];
    expect(told).toEqual(['turn-start 1', 'turn-end 1', 'turn-start 2', 'turn-end 2'].flatMap(of));
  });

  test('continue if a listener throws or rejects, and the errors are logged', async () => {
    const { conversation, told, errors, note } = setup();
    conversation.subscribe(() => {
      throw new Error('thrown');
    });
    conversation.subscribe(() => Promise.reject(new Error('rejected')));
    conversation.subscribe(note('c'));
    await conversation.prompt('First');
    await new Promise(setImmediate);
    expect(told).toEqual(['c turn-start 1', 'c turn-end 1']);
    // The same failure is logged at most once a minute.
    expect(errors.sort()).toEqual([
      'A listener of a conversation threw: rejected',
      'A listener of a conversation threw: thrown',
    ]);
  });

  test('reach each listener that is subscribed at the time, once per subscription', async () => {
    const { conversation, told, note } = setup();
    const b = note('b');
    const leave = [conversation.subscribe(b), conversation.subscribe(b)];
    const first = conversation.subscribe(() => {
      leave[1]?.();
      conversation.subscribe(note('late'));
      first();
    });
    await conversation.prompt('First');
    const start = 'turn-start 1';
    expect(told).toEqual([`b ${start}`, `b ${start}`, 'b turn-end 1', 'late turn-end 1']);
  });
});
