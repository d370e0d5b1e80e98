import type { EnteredEntry } from '../../contract/conversation-log.js';
import { expectSame } from '../conformance/expectations.js';
import {
  enter,
  hold,
  ID,
  keysOf,
  LEASE,
  lease,
  ODD_TEXT,
  type OpenedCase,
  type OpenedConversationLog,
  PROMPT,
  readKept,
} from './store-bench.js';

const ODD_NAMES = [
  'c',
  'C',
  'c ',
  '__proto__',
  'constructor',
  '1',
  '01',
  "a'b",
  'é',
  'e\u0301',
  '\\',
  '👩‍🚀',
];

/** What enters conversations. */
export const ENTRY_CASES: readonly OpenedCase<OpenedConversationLog>[] = [
  {
    title: 'enter keeps an entry once for each key, and numbers entries in order of arrival',
    async run({ log }) {
      expectSame('what was never entered', await log.read(ID), undefined);
      expectSame('the first', await enter(log, 'a'), { position: 1, isNew: true });
      expectSame('the second', await enter(log, 'b'), { position: 2, isNew: true });
      const again = await enter(log, 'a', { kind: 'prompt', content: 'Something else' });
      expectSame('the first again', again, { position: 1, isNew: false });
      const elsewhere = await log.enter({ conversationId: 'c2', key: 'a', content: PROMPT });
      expectSame('the same key elsewhere', elsewhere, { position: 1, isNew: true });
      const { revision: _, ...kept } = await readKept(log);
      expectSame('read', kept, {
        ...{ conversationId: ID, turns: 0, messages: [], lastEvent: 0, isAbortAsked: false, isHeld: false },
        inbox: ['a', 'b'].map((key, index) => ({ position: index + 1, key, content: PROMPT })),
      });
    },
  },
  {
    title: 'enter keeps texts as they are, and tells conversations and keys apart whatever they are called',
    async run({ log }) {
      for (const name of ODD_NAMES) {
        const content = { kind: 'prompt', content: `${name}${ODD_TEXT}` } as const;
        const entered = [
          await log.enter({ conversationId: name, key: name, content }),
          await log.enter({ conversationId: 'keys', key: name, content }),
        ];
        expectSame(
          `what entered as ${JSON.stringify(name)}`,
          entered.map((one) => one?.isNew),
          [true, true],
        );
      }
      for (const name of ODD_NAMES) {
        const { inbox } = await readKept(log, name);
        const content = { kind: 'prompt', content: `${name}${ODD_TEXT}` };
        expectSame('the inbox', inbox, [{ position: 1, key: name, content }]);
      }
      expectSame('the keys', keysOf(await readKept(log, 'keys')), ODD_NAMES);
    },
  },
  {
    title: 'enter refuses with `onlyKnown` what would begin a conversation',
    async run({ log }) {
      const entry = { conversationId: ID, key: 'k1', content: PROMPT };
      expectSame('entering', await log.enter({ ...entry, onlyKnown: true }), undefined);
      expectSame('read', await log.read(ID), undefined);
      await log.enter(entry);
      const second = await log.enter({ ...entry, key: 'k2', onlyKnown: true });
      expectSame('what is known', second, { position: 2, isNew: true });
      const again = await log.enter({ ...entry, onlyKnown: true });
      expectSame('the first again', again, { position: 1, isNew: false });
    },
  },
  {
    title: 'enter refuses with `onlyOwner` what another owner brings, and keeps the first owner',
    async run({ log }) {
      const owner = { user: 'é', tenant: ODD_TEXT };
      const entry = (key: string, whose?: unknown) => ({
        ...{ conversationId: ID, key, onlyOwner: true },
        content: whose === undefined ? PROMPT : { ...PROMPT, owner: whose },
      });
      await log.enter(entry('a', owner));
      const same = await log.enter(entry('b', { tenant: ODD_TEXT, user: 'é' }));
      expectSame('the same owner', same, { position: 2, isNew: true });
      for (const other of [{ user: 'é' }, 'é', undefined])
        for (const key of ['a', 'c'])
          expectSame('another owner', await log.enter(entry(key, other)), undefined);
      const kept = await readKept(log);
      expectSame('read', [kept.owner, keysOf(kept)], [owner, ['a', 'b']]);
    },
  },
  {
    title: 'enter takes a key for used after its entry is done, until it is forgotten',
    async run({ log, advance }) {
      await enter(log, 'a');
      await log.hold(lease('x'));
      await log.commit(hold('x'), { done: [1] });
      expectSame('the key again', await enter(log, 'a'), { position: 1, isNew: false });
      expectSame('the inbox', keysOf(await readKept(log)), []);
      await advance(LEASE);
      await log.removeEventsOlderThan(LEASE);
      expectSame('the key in the end', await enter(log, 'a'), { position: 2, isNew: true });
    },
  },
  {
    title: 'enter makes one entry of many of the same key that come at the same moment',
    async run({ log, other = log }) {
      for (let round = 0; round < 5; round += 1) {
        const conversationId = `round ${round}`;
        const entered = await Promise.all(
          Array.from({ length: 12 }, async (_, index): Promise<EnteredEntry | undefined> => {
            const key = `k${index % 2}`;
            return (index % 3 === 0 ? other : log).enter({ conversationId, key, content: PROMPT });
          }),
        );
        expectSame('how many are new', entered.filter((entry) => entry?.isNew).length, 2);
        const positions = new Set(entered.map((entry) => entry?.position));
        expectSame('the positions', [...positions].sort(), [1, 2]);
      }
    },
  },
];
