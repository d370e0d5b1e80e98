import { describe, expect, test } from '@jest/globals';
import type { ConversationEvent } from 'toolwright';
import { EventHub } from '../../../src/run/conversation/events.js';

const event = (iteration: number): ConversationEvent => ({ type: 'step-start', iteration });

function setup() {
  const errors: unknown[] = [];
  const told: string[] = [];
  const hub = new EventHub((error) => errors.push(error));
  const note = (who: string) => (heard: ConversationEvent) => {
    if (heard.type === 'step-start') told.push(`${who}${heard.iteration}`);
  };
  return { hub, told, errors, note };
}

describe('the events of a conversation', () => {
  test('reach every listener in one order, also those that a listener sets off', () => {
    const { hub, told, note } = setup();
    hub.subscribe((heard) => {
      note('a')(heard);
      if (told.length === 1) {
        hub.emit(event(2));
        hub.emit(event(3));
      }
    });
    hub.subscribe(note('b'));
    hub.emit(event(1));
    expect(told).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'b3']);
  });

  test('go on where a listener throws or rejects, and the errors are reported', async () => {
    const { hub, told, errors, note } = setup();
    hub.subscribe(() => {
      throw new Error('thrown');
    });
    hub.subscribe(() => Promise.reject(new Error('rejected')));
    hub.subscribe(note('c'));
    hub.emit(event(1));
    hub.emit(event(2));
    await new Promise(setImmediate);
    expect(told).toEqual(['c1', 'c2']);
    expect(errors.map(String)).toEqual(
      Array(2).fill(['Error: thrown', 'Error: rejected']).flat().sort().reverse(),
    );
  });

  test('are for those who are subscribed when they are told, as often as they are subscribed', () => {
    const { hub, told, note } = setup();
    const b = note('b');
    const leave = [hub.subscribe(b), hub.subscribe(b)];
    const first = hub.subscribe(() => {
      leave[1]?.();
      hub.subscribe(note('late'));
      first();
    });
    hub.emit(event(1));
    hub.emit(event(2));
    expect(told).toEqual(['b1', 'b1', 'b2', 'late2']);
    expect(hub.hasListeners).toBe(true);
  });
});
