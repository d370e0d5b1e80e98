import { describe, expect, test } from '@jest/globals';
import type { ConversationStore, ConversationTurn } from 'toolwright/satellite';

/** A turn that says its own id. */
export function turn(id: string, after?: string): ConversationTurn {
  const messages = [
    { role: 'user', content: `say ${id}` },
    { role: 'assistant', content: id },
  ] as const;
  return { id, after, messages, finishReason: 'stop' };
}

/** What every store of conversations must do. Each call of `open` gives one with nothing in it. */
export function describeConversationStore(name: string, open: () => ConversationStore): void {
  describe(`${name} as a conversation store`, () => {
    test('gives nothing for a conversation that it never saw', async () => {
      expect(await open().load('c1')).toBeUndefined();
    });

    test('gives all messages of all turns in order, and what the last turn was', async () => {
      const store = open();
      expect(await store.append('c1', turn('t1'))).toBe(true);
      expect(await store.append('c1', { ...turn('t2', 't1'), finishReason: 'length' })).toBe(true);
      expect(await store.load('c1')).toMatchObject({ turnId: 't2', finishReason: 'length' });
      expect((await store.load('c1'))?.messages).toEqual([...turn('t1').messages, ...turn('t2').messages]);
    });

    test('keeps what a reply has beside its text, byte for byte', async () => {
      const store = open();
      const reply = {
        role: 'assistant',
        content: 'seen',
        reasoning: 'I should look.',
        providerItems: { 'maker/m': { blocks: [{ n: 1.5, text: 'ä\u2028' }], none: null } },
      } as const;
      const messages = [{ role: 'user', content: 'Look' }, reply] as const;
      await store.append('c1', { ...turn('t1'), messages });
      await store.append('c1', turn('t2', 't1'));
      expect((await store.load('c1'))?.messages).toEqual([...messages, ...turn('t2').messages]);
    });

    test('takes a turn only after the one it names, and nothing of any other', async () => {
      const store = open();
      expect(await store.append('c1', turn('t2', 't1'))).toBe(false);
      await store.append('c1', turn('t1'));
      for (const after of [undefined, 't0', 'T1'])
        expect(await store.append('c1', turn('t2', after))).toBe(false);
      expect((await store.load('c1'))?.messages).toEqual(turn('t1').messages);
    });

    test('of turns that come at the same moment takes exactly one', async () => {
      const store = open();
      await store.append('c1', turn('t1'));
      const taken = await Promise.all(['a', 'b', 'c'].map((id) => store.append('c1', turn(id, 't1'))));
      expect(taken.filter(Boolean)).toHaveLength(1);
      expect((await store.load('c1'))?.messages).toHaveLength(4);
    });

    test('keeps every text as it is', async () => {
      const store = open();
      const content = '\u0000 "\' \\ \u2028 😀 \ud800 __proto__ \r\n';
      const messages = [{ role: 'user', content }] as const;
      await store.append('__proto__', { ...turn('t1'), messages });
      expect((await store.load('__proto__'))?.messages).toEqual(messages);
      expect(await store.load('constructor')).toBeUndefined();
    });

    test('what it gave does not change when the conversation goes on', async () => {
      const store = open();
      await store.append('c1', turn('t1'));
      const before = await store.load('c1');
      await store.append('c1', turn('t2', 't1'));
      expect(before?.messages).toHaveLength(2);
    });
  });
}
