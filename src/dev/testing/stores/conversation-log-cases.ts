import type {
  ConversationCommit,
  ConversationHold,
  ConversationLease,
  ConversationLog,
  ConversationNews,
  EnteredEntry,
  InboxContent,
  InboxEntry,
  KeptConversation,
  OpenTurn,
} from '../../../core/contract/conversation-log.js';
import { optionTable } from '../../../core/kernel/options.js';
import { expectSame, expectThat } from '../conformance/expectations.js';
import type { ConformanceCase } from '../conformance/provider-conformance.js';
import {
  atOnce,
  LEASE_MS,
  MINUTE,
  ODD_NAMES,
  ODD_TEXT,
  type OpenedCases,
  openedCases,
  suiteRules,
} from './store-bench.js';

/** An empty conversation log under test. */
export interface OpenedConversationLog {
  readonly log: ConversationLog;
  /** The same log through another connection. Without it, concurrent operations use `log` only. */
  readonly other?: ConversationLog;
  /** Advances the time by this many milliseconds: sets the clock forward, or all stored times back. */
  advance(ms: number): void | Promise<void>;
  close?(): void | Promise<void>;
}

const ID = 'c1';
const PROMPT: InboxContent = { kind: 'prompt', content: 'Hi' };

function lease(claim: string, conversationId = ID): ConversationLease {
  return { conversationId, claim, leaseMs: LEASE_MS };
}

function hold(claim: string): ConversationHold {
  return { conversationId: ID, claim };
}

async function enter(log: ConversationLog, key: string, content = PROMPT) {
  return log.enter({ conversationId: ID, key, content });
}

const BY_X = hold('x');

/** Enters a first prompt, and holds the conversation by the claim `x`. */
async function enterAndHold(log: ConversationLog) {
  await enter(log, 'a');
  await log.hold(lease('x'));
}

/** Reads a conversation that must exist. */
async function readConversation(log: ConversationLog, id = ID): Promise<KeptConversation> {
  const kept = await log.read(id);
  if (kept === undefined) throw new Error(`the conversation ${JSON.stringify(id)} does not exist`);
  return kept;
}

function keysOf({ inbox }: KeptConversation): readonly string[] {
  return inbox.map(({ key }) => key);
}

/** Cases about entries of conversations. */
const ENTRY_CASES: OpenedCases<OpenedConversationLog> = {
  'enter stores one entry per key, and numbers entries in order of arrival': async ({ log }) => {
    expectSame('an unknown conversation', await log.read(ID), undefined);
    expectSame('the first', await enter(log, 'a'), { position: 1, isNew: true });
    expectSame('the second', await enter(log, 'b'), { position: 2, isNew: true });
    const again = await enter(log, 'a', { kind: 'prompt', content: 'Something else' });
    expectSame('the first again', again, { position: 1, isNew: false });
    const elsewhere = await log.enter({ conversationId: 'c2', key: 'a', content: PROMPT });
    expectSame('the same key in another conversation', elsewhere, { position: 1, isNew: true });
    const { revision: _, ...kept } = await readConversation(log);
    expectSame('read', kept, {
      ...{ conversationId: ID, turns: 0, messages: [], lastEvent: 0, isAbortAsked: false, isHeld: false },
      inbox: ['a', 'b'].map((key, index) => ({ position: index + 1, key, content: PROMPT })),
    });
  },
  'enter stores texts unchanged, and keeps conversations and keys with similar names separate': async ({
    log,
  }) => {
    for (const name of ODD_NAMES) {
      const content = { kind: 'prompt', content: `${name}${ODD_TEXT}` } as const;
      const entered = [
        await log.enter({ conversationId: name, key: name, content }),
        await log.enter({ conversationId: 'keys', key: name, content }),
      ];
      expectSame(
        `isNew of the entries ${JSON.stringify(name)}`,
        entered.map((one) => one?.isNew),
        [true, true],
      );
    }
    for (const name of ODD_NAMES) {
      const { inbox } = await readConversation(log, name);
      const content = { kind: 'prompt', content: `${name}${ODD_TEXT}` };
      expectSame('the inbox', inbox, [{ position: 1, key: name, content }]);
    }
    expectSame('the keys', keysOf(await readConversation(log, 'keys')), ODD_NAMES);
  },
  'enter with `onlyKnown` refuses an entry that would start a conversation': async ({ log }) => {
    const entry = { conversationId: ID, key: 'k1', content: PROMPT };
    expectSame('entering', await log.enter({ ...entry, onlyKnown: true }), undefined);
    expectSame('read', await log.read(ID), undefined);
    await log.enter(entry);
    const second = await log.enter({ ...entry, key: 'k2', onlyKnown: true });
    expectSame('an entry of a known conversation', second, { position: 2, isNew: true });
    const again = await log.enter({ ...entry, onlyKnown: true });
    expectSame('the first again', again, { position: 1, isNew: false });
  },
  'enter with `onlyOwner` refuses entries of another owner, and stores the first owner': async ({ log }) => {
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
    const kept = await readConversation(log);
    expectSame('read', [kept.owner, keysOf(kept)], [owner, ['a', 'b']]);
  },
  'enter refuses the key of a finished entry as used, until the entry is removed': async ({
    log,
    advance,
  }) => {
    await enterAndHold(log);
    await log.commit(BY_X, { done: [1] });
    expectSame('the key again', await enter(log, 'a'), { position: 1, isNew: false });
    expectSame('the inbox', keysOf(await readConversation(log)), []);
    await advance(LEASE_MS);
    await log.removeEventsOlderThan(LEASE_MS);
    expectSame('the key after the removal', await enter(log, 'a'), { position: 2, isNew: true });
  },
  'enter stores one entry of many simultaneous entries with the same key': async ({ log, other = log }) => {
    for (let round = 0; round < 5; round += 1) {
      const conversationId = `round ${round}`;
      const entered = await Promise.all(
        Array.from({ length: 12 }, async (_, index): Promise<EnteredEntry | undefined> => {
          const key = `k${index % 2}`;
          return (index % 3 === 0 ? other : log).enter({ conversationId, key, content: PROMPT });
        }),
      );
      expectSame('the number of new entries', entered.filter((entry) => entry?.isNew).length, 2);
      const positions = new Set(entered.map((entry) => entry?.position));
      expectSame('the positions', [...positions].sort(), [1, 2]);
    }
  },
};

/** Options of {@link conversationLogConformance}. */
export interface ConversationLogConformanceOptions {
  /** The log's name in titles: `MyRunStore.conversations`. */
  readonly name: string;
  /** Opens an empty log for each case. */
  readonly open: () => OpenedConversationLog | Promise<OpenedConversationLog>;
}

const OPTIONS = optionTable<ConversationLogConformanceOptions>(
  'conversationLogConformance',
  suiteRules('{ log: new MyRunStore().conversations, advance: (ms) => … }'),
);

function page(log: ConversationLog, after: number, limit = 100) {
  return log.events({ conversationId: ID, after, limit });
}

/** Repeats an action until a watcher has received it: over a network, watching may start with a delay. */
async function repeatUntil(isHeard: () => boolean, act: (round: number) => unknown): Promise<void> {
  for (let round = 0; !isHeard(); round += 1) {
    await act(round);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Cases about holders and readers. */
const HOLDER_CASES: OpenedCases<OpenedConversationLog> = {
  'hold lets one holder at a time have a conversation, until its lease ends': async ({
    log,
    other = log,
    advance,
  }) => {
    expectSame('hold of an unknown conversation', await log.hold(lease('x')), { status: 'missing' });
    await enter(log, 'a');
    const held = await log.hold(lease('x'));
    expectSame('hold', held, { status: 'held', conversation: await readConversation(other) });
    expectSame('isHeld', (await readConversation(other)).isHeld, true);
    expectSame('hold by another holder', await other.hold(lease('y')), { status: 'taken' });
    await advance(LEASE_MS / 2);
    expectSame('renew', await log.renew(lease('x')), { holds: true, isAbortAsked: false });
    await advance(LEASE_MS / 2 + MINUTE);
    expectSame('hold while renewed', await other.hold(lease('y')), { status: 'taken' });
    await advance(LEASE_MS / 2);
    expectSame('hold after the lease', (await other.hold(lease('y'))).status, 'held');
  },
  'hold succeeds for one of many simultaneous callers': async ({ log, other = log, advance }) => {
    await enter(log, 'a');
    for (let round = 0; round < 10; round += 1) {
      const outcomes = await atOnce(6, [log, other], (one, index) => one.hold(lease(`${round} ${index}`)));
      const statuses = outcomes.map(({ status }) => status).sort();
      expectSame('the outcomes', statuses, ['held', ...Array(5).fill('taken')]);
      await advance(LEASE_MS);
    }
  },
  'hold replaces a holder whose lease has ended, and refuses the late writes of the old holder': async ({
    log,
    other = log,
    advance,
  }) => {
    await enterAndHold(log);
    await advance(LEASE_MS);
    await other.hold(lease('y'));
    const before = await readConversation(log);
    expectSame('renew', await log.renew(lease('x')), { holds: false });
    const change = { done: [1], events: [{ type: 'odd' }], history: { keep: 0, messages: [] } };
    expectSame('commit', await log.commit(BY_X, change), false);
    expectSame('tell', await log.tell(BY_X, [{ type: 'odd' }]), undefined);
    expectSame('letGo', await log.letGo(BY_X, before.revision), false);
    expectSame('read', await readConversation(log), before);
    expectSame('tell by the new holder', await other.tell(hold('y'), [{ type: 'right' }]), 1);
  },
  'commit accepts a late holder that was not replaced': async ({ log, advance }) => {
    await enterAndHold(log);
    await advance(5 * LEASE_MS);
    expectSame('commit', await log.commit(BY_X, { done: [1] }), true);
  },
  'commit changes turn, history, inbox and events together, and leaves other parts unchanged': async ({
    log,
    other = log,
  }) => {
    await enter(log, 'a');
    await enter(log, 'b');
    await log.hold(lease('x'));
    const turn = await beginTurn(log, { done: [1], events: [{ type: 'turn-start' }] });
    const open = await readConversation(other);
    const said = [
      { role: 'user', content: ODD_TEXT },
      { role: 'assistant', content: 'Hello' },
    ] as const;
    expectSame('the turn', [open.turn, open.turns, open.lastEvent], [turn, 1, 1]);
    expectSame('the inbox', [keysOf(open), open.messages], [['b'], []]);
    await log.commit(BY_X, { turn: null, history: { keep: 0, messages: said } });
    const ended = await readConversation(other);
    expectSame('after the turn', [ended.turn, ended.turns, ended.messages], [undefined, 1, said]);
    const another = { role: 'assistant', content: 'Good day' } as const;
    await log.commit(BY_X, { history: { keep: 1, messages: [another] } });
    expectSame('the history', (await readConversation(other)).messages, [said[0], another]);
    await log.commit(BY_X, { history: { keep: 1, messages: [] } });
    const left = await readConversation(other);
    expectSame('the rest', [left.messages, keysOf(left), left.lastEvent], [[said[0]], ['b'], 1]);
  },
  'tell numbers events without gaps, and events returns them in pages': async ({ log, other = log }) => {
    await enterAndHold(log);
    const last = await log.tell(BY_X, [{ type: 'one', text: ODD_TEXT }, { type: 'two' }]);
    expectSame('tell', last, 2);
    await log.commit(BY_X, { events: [{ type: 'three' }] });
    const first = [
      { number: 1, event: { type: 'one', text: ODD_TEXT } },
      { number: 2, event: { type: 'two' } },
    ];
    expectSame('the first page', await page(other, 0, 2), first);
    expectSame('the second page', await page(other, 2, 2), [{ number: 3, event: { type: 'three' } }]);
    expectSame('the page after the last event', await page(other, 3, 2), []);
    expectSame('lastEvent', (await readConversation(other)).lastEvent, 3);
  },
  'removeEventsOlderThan removes events by age, and their numbers are not used again': async ({
    log,
    advance,
  }) => {
    await enterAndHold(log);
    await log.tell(BY_X, [{ type: 'one' }, { type: 'two' }]);
    await advance(LEASE_MS);
    await log.tell(BY_X, [{ type: 'three' }]);
    expectSame('removed events', await log.removeEventsOlderThan(LEASE_MS), 2);
    expectSame('the next', await log.tell(BY_X, [{ type: 'four' }]), 4);
    const left = (await page(log, 0)).map(({ number, event }) => `${number} ${String(event.type)}`);
    expectSame('the rest', left, ['3 three', '4 four']);
  },
  'due lists conversations with new entries, the longest waiting first': async ({
    log,
    other = log,
    advance,
  }) => {
    expectSame('at first', await log.due(10), []);
    await enter(log, 'a');
    await advance(MINUTE);
    await log.enter({ conversationId: 'c2', key: 'a', content: PROMPT });
    expectSame('both', await other.due(10), [ID, 'c2']);
    expectSame('one', await other.due(1), [ID]);
    const held = await log.hold(lease('x'));
    expectSame('while the other conversation is held', await other.due(10), ['c2']);
    const seen = held.status === 'held' ? held.conversation.revision : Number.NaN;
    await enter(other, 'b');
    expectSame('letGo', await log.letGo(BY_X, seen), true);
    expectSame('released without the last entry', [...(await other.due(10))].sort(), [ID, 'c2']);
    await log.hold(lease('x'));
    await log.letGo(BY_X, (await readConversation(log)).revision);
    expectSame('after all entries were seen', await other.due(10), ['c2']);
    await log.hold(lease('z', 'c2'));
    expectSame('while it is held', await other.due(10), []);
    await advance(LEASE_MS);
    expectSame('after its holder has died', await other.due(10), ['c2']);
  },
  'hold makes a conversation due again if its holder dies, even if it has no new entries': async ({
    log,
    other = log,
    advance,
  }) => {
    await enterAndHold(log);
    await log.letGo(BY_X, (await readConversation(log)).revision);
    expectSame('after all entries were seen', await other.due(10), []);
    await log.hold(lease('y'));
    await advance(LEASE_MS);
    expectSame('after its holder has died', await other.due(10), [ID]);
    await other.hold(lease('z'));
    await other.letGo(hold('z'), (await readConversation(other)).revision);
    expectSame('after its release', await log.due(10), []);
  },
  'askAbort notifies the holder of the open turn, and ends with that turn': async ({ log, other = log }) => {
    await enter(log, 'a');
    expectSame('before a turn', await other.askAbort(ID), false);
    expectSame('of an unknown conversation', await other.askAbort('none'), false);
    await log.hold(lease('x'));
    await beginTurn(log);
    expectSame('askAbort', await other.askAbort(ID), true);
    expectSame('renew', await log.renew(lease('x')), { holds: true, isAbortAsked: true });
    expectSame('isAbortAsked', (await readConversation(other)).isAbortAsked, true);
    await log.commit(BY_X, { turn: null });
    expectSame('renew after it', await log.renew(lease('x')), { holds: true, isAbortAsked: false });
    expectSame('after the turn', await other.askAbort(ID), false);
  },
  'askAbort makes the conversation of a suspended turn due if it has no holder': async ({
    log,
    other = log,
  }) => {
    await enterAndHold(log);
    await beginTurn(log);
    await log.letGo(BY_X, (await readConversation(log)).revision);
    expectSame('before', await other.due(10), []);
    await other.askAbort(ID);
    expectSame('due', await log.due(10), [ID]);
  },
  'watch reports new entries and events until it ends': async ({ log, other = log }) => {
    const received: ConversationNews[] = [];
    const end = other.watch((news) => received.push(news));
    const hasHeard = (about: ConversationNews['about']) => () =>
      received.some((news) => news.about === about);
    await repeatUntil(hasHeard('inbox'), (round) => enter(log, `a${round}`));
    await log.hold(lease('x'));
    await repeatUntil(hasHeard('events'), () => log.tell(BY_X, [{ type: 'one' }]));
    const strangers = received.filter(
      ({ conversationId }) => conversationId !== ID && conversationId !== undefined,
    );
    expectSame('news of other conversations', strangers, []);
    end();
    received.length = 0;
    await enter(log, 'b');
    expectThat(received.length === 0, 'watch reports news after its end');
  },
};

/**
 * The contract of `ConversationLog` as cases for any test runner: entries and their keys, holders and leases, late
 * writes, events, and concurrent operations.
 *
 * @throws InvalidOptionsError (521) for wrong options.
 *
 * @example
 * ```ts
 * const cases = conversationLogConformance({
 *   name: 'MemoryRunStore.conversations',
 *   open() {
 *     let time = Date.now();
 *     return {
 *       log: new MemoryRunStore({ now: () => time }).conversations,
 *       advance(ms) {
 *         time += ms;
 *       },
 *     };
 *   },
 * });
 * for (const { title, run } of cases) test(title, run);
 * ```
 */
export function conversationLogConformance(
  options: ConversationLogConformanceOptions,
): readonly ConformanceCase[] {
  return openedCases(options, OPTIONS, () => ({ ...ENTRY_CASES, ...HOLDER_CASES }));
}

/** Starts the first turn with the first entry. */
async function beginTurn(log: ConversationLog, change: ConversationCommit = {}): Promise<OpenTurn> {
  const [entry] = (await readConversation(log)).inbox;
  const turn = { number: 1, entry: entry as InboxEntry, runId: 'c1.1' };
  expectSame('commit of a turn', await log.commit(BY_X, { turn, ...change }), true);
  return turn;
}
