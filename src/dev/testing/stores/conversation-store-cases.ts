import type { ConversationStore, ConversationTurn } from '../../../core/contract/conversation-store.js';
import { optionTable } from '../../../core/kernel/options.js';
import { expectSame } from '../conformance/expectations.js';
import type { ConformanceCase } from '../conformance/provider-conformance.js';
import { ODD_TEXT, type OpenedCases, openedCases, suiteRules } from './store-bench.js';

/** An empty store for an assistant's conversations. */
export interface OpenedConversationStore {
  readonly store: ConversationStore;
  /** The same store through another connection. Without it, concurrent operations use `store` only. */
  readonly other?: ConversationStore;
  close?(): void | Promise<void>;
}

/** Options of {@link conversationStoreConformance}. */
export interface ConversationStoreConformanceOptions {
  /** The store's name in titles: `MyConversationStore`. */
  readonly name: string;
  /** Opens an empty store for each case. */
  readonly open: () => OpenedConversationStore | Promise<OpenedConversationStore>;
}

const OPTIONS = optionTable<ConversationStoreConformanceOptions>(
  'conversationStoreConformance',
  suiteRules('{ store: new MyConversationStore() }'),
);

/** Unusual ids that an assistant accepts. */
const ODD_NAMES = ['c', 'C', 'c.', 'c-', 'c_', 'c~', 'constructor', '1', '01', 'a:b', 'a@b', 'x'.repeat(128)];

/** A turn with a text that contains its id. */
function turn(id: string, after?: string): ConversationTurn {
  const messages = [
    { role: 'user', content: `say ${id}` },
    { role: 'assistant', content: id },
  ] as const;
  return { id, after, messages, finishReason: 'stop' };
}

async function messagesOf(store: ConversationStore, id = 'c1') {
  return (await store.load(id))?.messages;
}

const CASES: OpenedCases<OpenedConversationStore> = {
  'load returns undefined for an unknown conversation': async ({ store }) => {
    expectSame('load', await store.load('c1'), undefined);
    await store.append('c1', turn('t1'));
    expectSame('load of another', await store.load('constructor'), undefined);
  },
  'load returns all messages of all turns in order, with the id and finish reason of the last turn': async ({
    store,
    other = store,
  }) => {
    expectSame('append', await store.append('c1', turn('t1')), true);
    const second = { ...turn('t2', 't1'), finishReason: 'length' } as const;
    expectSame('append', await store.append('c1', second), true);
    const { turnId, finishReason, messages } = (await other.load('c1')) ?? {};
    expectSame('the last turn', [turnId, finishReason], ['t2', 'length']);
    expectSame('the messages', messages, [...turn('t1').messages, ...second.messages]);
  },
  'append stores texts and the other fields of a reply unchanged': async ({ store, other = store }) => {
    const providerItems = { 'maker/m': { blocks: [{ n: 1.5, text: ODD_TEXT }], none: null } };
    const messages = [
      { role: 'user', content: ODD_TEXT },
      { role: 'assistant', content: 'seen', reasoning: ODD_TEXT, providerItems },
    ] as const;
    await store.append('c1', { ...turn('t1'), messages });
    await store.append('c1', turn('t2', 't1'));
    expectSame('the messages', await messagesOf(other), [...messages, ...turn('t2').messages]);
  },
  'append stores the owner of the first turn': async ({ store, other = store }) => {
    const owner = { user: ODD_TEXT, roles: [7] };
    await store.append('c1', { ...turn('t1'), owner });
    await store.append('c1', turn('t2', 't1'));
    expectSame('the owner', (await other.load('c1'))?.owner, owner);
  },
  'append keeps conversations with similar ids separate': async ({ store, other = store }) => {
    for (const [index, name] of ODD_NAMES.entries())
      expectSame(JSON.stringify(name), await store.append(name, turn(`t${index}`)), true);
    for (const [index, name] of ODD_NAMES.entries())
      expectSame(JSON.stringify(name), (await other.load(name))?.turnId, `t${index}`);
  },
  'append accepts a turn only after the turn that it names': async ({ store }) => {
    expectSame('a turn after a missing turn', await store.append('c1', turn('t2', 't1')), false);
    expectSame('load', await store.load('c1'), undefined);
    await store.append('c1', turn('t1'));
    for (const after of [undefined, 't0', 'T1'])
      expectSame(`a turn after ${after}`, await store.append('c1', turn('t2', after)), false);
    expectSame('the messages', await messagesOf(store), turn('t1').messages);
  },
  'append accepts one of several simultaneous turns': async ({ store, other = store }) => {
    for (let round = 0; round < 10; round += 1) {
      const id = `c${round}`;
      const stores = [store, other, store, other];
      const first = await Promise.all(stores.map((one, index) => one.append(id, turn(`a${index}`))));
      expectSame('the number of accepted first turns', first.filter(Boolean).length, 1);
      const begun = `a${first.indexOf(true)}`;
      const second = await Promise.all(stores.map((one, index) => one.append(id, turn(`b${index}`, begun))));
      expectSame('the number of accepted second turns', second.filter(Boolean).length, 1);
      const said = [...turn(begun).messages, ...turn(`b${second.indexOf(true)}`).messages];
      for (const one of [store, other]) expectSame('the messages', await messagesOf(one, id), said);
    }
  },
  'load returns a copy that later turns do not change': async ({ store }) => {
    await store.append('c1', turn('t1'));
    const before = await store.load('c1');
    await store.append('c1', turn('t2', 't1'));
    expectSame('the messages loaded before', before?.messages, turn('t1').messages);
  },
};

/**
 * The contract of `ConversationStore` as cases for any test runner: the order of turns, one accepted turn among concurrent
 * turns, and unchanged texts. When conversations expire is up to the store.
 *
 * @throws InvalidOptionsError (521) for wrong options.
 *
 * @example
 * ```ts
 * const cases = conversationStoreConformance({
 *   name: 'MemoryConversationStore',
 *   open: () => ({ store: new MemoryConversationStore() }),
 * });
 * for (const { title, run } of cases) test(title, run);
 * ```
 */
export function conversationStoreConformance(
  options: ConversationStoreConformanceOptions,
): readonly ConformanceCase[] {
  return openedCases(options, OPTIONS, () => CASES);
}
