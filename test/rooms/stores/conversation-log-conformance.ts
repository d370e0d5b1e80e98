import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type {
  ConversationLog,
  ConversationNews,
  InboxContent,
  OpenTurn,
} from '../../../src/contract/conversation-log.js';

/** A log whose clock a test can put forward. */
export interface OpenedLog {
  readonly log: ConversationLog;
  /** So many milliseconds go by for the log. */
  readonly pass: (ms: number) => void | Promise<void>;
  readonly close: () => void | Promise<void>;
}

const ID = 'c1';
const PROMPT: InboxContent = { kind: 'prompt', content: 'Hi' };
const LEASE_MS = 60_000;

/** What every log of conversations does. */
export function describeConversationLog(name: string, open: () => OpenedLog | Promise<OpenedLog>): void {
  describe(`${name}: conversations`, () => {
    let opened: OpenedLog;
    let log: ConversationLog;

    beforeEach(async () => {
      opened = await open();
      log = opened.log;
    });

    afterEach(() => opened.close());

    const lease = (claim: string) => ({ conversationId: ID, claim, leaseMs: LEASE_MS });
    const hold = (claim: string) => ({ conversationId: ID, claim });
    const enter = (key: string, content = PROMPT) => log.enter({ conversationId: ID, key, content });

    test('an entry is kept once for each key, and entries are numbered in order of arrival', async () => {
      expect(await enter('a')).toEqual({ position: 1, isNew: true });
      expect(await enter('b')).toEqual({ position: 2, isNew: true });
      expect(await enter('a', { kind: 'prompt', content: 'Something else' })).toEqual({
        position: 1,
        isNew: false,
      });
      expect(await log.enter({ conversationId: 'c2', key: 'a', content: PROMPT })).toMatchObject({
        position: 1,
      });
      const kept = await log.read(ID);
      expect(kept?.inbox).toEqual([
        { position: 1, key: 'a', content: PROMPT },
        { position: 2, key: 'b', content: PROMPT },
      ]);
      expect(kept).toMatchObject({
        turns: 0,
        messages: [],
        lastEvent: 0,
        isAbortAsked: false,
        isHeld: false,
      });
      expect(await log.read('nobody')).toBeUndefined();
    });

    test('`onlyKnown` refuses an entry of a conversation that is not there', async () => {
      const entry = { conversationId: ID, key: 'k1', content: { kind: 'prompt' as const, content: 'Hi' } };
      expect(await log.enter({ ...entry, onlyKnown: true })).toBeUndefined();
      expect(await log.read(ID)).toBeUndefined();
      await log.enter(entry);
      expect(await log.enter({ ...entry, key: 'k2', onlyKnown: true })).toEqual({ position: 2, isNew: true });
      expect(await log.enter({ ...entry, onlyKnown: true })).toEqual({ position: 1, isNew: false });
    });

    test('a key stays used after its entry is done', async () => {
      await enter('a');
      await log.hold(lease('x'));
      await log.commit(hold('x'), { done: [1] });
      expect(await enter('a')).toEqual({ position: 1, isNew: false });
      expect((await log.read(ID))?.inbox).toEqual([]);
    });

    test('a conversation has one holder, until its lease ends', async () => {
      expect(await log.hold(lease('x'))).toEqual({ status: 'missing' });
      await enter('a');
      expect(await log.hold(lease('x'))).toMatchObject({
        status: 'held',
        conversation: { conversationId: ID },
      });
      expect(await log.hold(lease('y'))).toEqual({ status: 'taken' });
      await opened.pass(LEASE_MS / 2);
      expect(await log.renew(lease('x'))).toEqual({ holds: true, isAbortAsked: false });
      await opened.pass(LEASE_MS / 2);
      expect(await log.hold(lease('y'))).toEqual({ status: 'taken' });
      await opened.pass(LEASE_MS / 2);
      expect(await log.hold(lease('y'))).toMatchObject({ status: 'held' });
    });

    test('what a holder writes after it was replaced is refused, and changes nothing', async () => {
      await enter('a');
      await log.hold(lease('x'));
      await opened.pass(LEASE_MS);
      await log.hold(lease('y'));
      const before = await log.read(ID);
      expect(await log.renew(lease('x'))).toEqual({ holds: false });
      expect(await log.commit(hold('x'), { done: [1], events: [{ type: 'odd' }] })).toBe(false);
      expect(await log.tell(hold('x'), [{ type: 'odd' }])).toBeUndefined();
      expect(await log.letGo(hold('x'), 1)).toBe(false);
      expect(await log.read(ID)).toEqual(before);
      expect(await log.tell(hold('y'), [{ type: 'right' }])).toBe(1);
    });

    test('a holder that is late, but was not replaced, has lost nothing', async () => {
      await enter('a');
      await log.hold(lease('x'));
      await opened.pass(5 * LEASE_MS);
      expect(await log.commit(hold('x'), { done: [1] })).toBe(true);
    });

    test('a commit changes turn, history, inbox and events at once', async () => {
      await enter('a');
      await enter('b');
      await log.hold(lease('x'));
      const [entry] = (await log.read(ID))?.inbox ?? [];
      const turn = { number: 1, entry, runId: 'c1.1' } as OpenTurn;
      const said = [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello' },
      ] as const;
      expect(await log.commit(hold('x'), { turn, done: [1], events: [{ type: 'turn-start' }] })).toBe(true);
      expect(await log.read(ID)).toMatchObject({
        turn,
        turns: 1,
        inbox: [{ key: 'b' }],
        lastEvent: 1,
        messages: [],
      });
      await log.commit(hold('x'), { turn: null, history: { keep: 0, messages: said } });
      const ended = await log.read(ID);
      expect(ended).toMatchObject({ messages: said, turns: 1 });
      expect(ended?.turn).toBeUndefined();
      const other = { role: 'assistant', content: 'Good day' } as const;
      await log.commit(hold('x'), { history: { keep: 1, messages: [other] } });
      expect((await log.read(ID))?.messages).toEqual([said[0], other]);
    });

    test('events are numbered without gaps, read in pages, and forgotten by age', async () => {
      await enter('a');
      await log.hold(lease('x'));
      expect(await log.tell(hold('x'), [{ type: 'one' }, { type: 'two' }])).toBe(2);
      await opened.pass(100);
      expect(await log.tell(hold('x'), [{ type: 'three' }])).toBe(3);
      const page = (after: number, limit: number) => log.events({ conversationId: ID, after, limit });
      expect(await page(0, 2)).toEqual([
        { number: 1, event: { type: 'one' } },
        { number: 2, event: { type: 'two' } },
      ]);
      expect(await page(2, 2)).toEqual([{ number: 3, event: { type: 'three' } }]);
      expect(await page(3, 2)).toEqual([]);
      expect(await log.removeEventsOlderThan(100)).toBe(2);
      expect(await page(0, 9)).toEqual([{ number: 3, event: { type: 'three' } }]);
      expect(await log.tell(hold('x'), [{ type: 'four' }])).toBe(4);
      expect(await page(3, 9)).toEqual([{ number: 4, event: { type: 'four' } }]);
    });

    test('a conversation is due until somebody has seen all that entered', async () => {
      expect(await log.due(10)).toEqual([]);
      await enter('a');
      await opened.pass(1);
      await log.enter({ conversationId: 'c2', key: 'a', content: PROMPT });
      expect(await log.due(10)).toEqual([ID, 'c2']);
      expect(await log.due(1)).toEqual([ID]);
      const held = await log.hold(lease('x'));
      expect(await log.due(10)).toEqual(['c2']);
      const seen = held.status === 'held' ? held.conversation.revision : Number.NaN;
      await enter('b');
      expect(await log.letGo(hold('x'), seen)).toBe(true);
      expect(await log.due(10)).toContain(ID);
      await log.hold(lease('x'));
      expect(await log.letGo(hold('x'), (await log.read(ID))?.revision ?? 0)).toBe(true);
      expect(await log.due(10)).toEqual(['c2']);
      // A holder that died has seen nothing.
      await log.hold({ conversationId: 'c2', claim: 'z', leaseMs: LEASE_MS });
      expect(await log.due(10)).toEqual([]);
      await opened.pass(LEASE_MS);
      expect(await log.due(10)).toEqual(['c2']);
    });

    test('an abort is asked of the open turn, and its holder hears of it', async () => {
      await enter('a');
      expect(await log.askAbort(ID)).toBe(false);
      await log.hold(lease('x'));
      const [entry] = (await log.read(ID))?.inbox ?? [];
      await log.commit(hold('x'), { turn: { number: 1, entry, runId: 'c1.1' } as OpenTurn });
      expect(await log.askAbort(ID)).toBe(true);
      expect(await log.renew(lease('x'))).toEqual({ holds: true, isAbortAsked: true });
      await log.commit(hold('x'), { turn: null });
      expect(await log.renew(lease('x'))).toEqual({ holds: true, isAbortAsked: false });
      expect(await log.askAbort(ID)).toBe(false);
    });

    test('whoever watches is told what entered, and of new events', async () => {
      const told: ConversationNews[] = [];
      const end = log.watch((news) => told.push(news));
      await enter('a');
      await log.hold(lease('x'));
      await log.tell(hold('x'), [{ type: 'one' }]);
      // Where news come over a network, they come later.
      while (!told.some(({ about }) => about === 'events'))
        await new Promise((resolve) => setTimeout(resolve, 5));
      expect(told).toContainEqual({ conversationId: ID, about: 'inbox' });
      end();
      told.length = 0;
      await enter('b');
      expect(told).toEqual([]);
    });
  });
}
