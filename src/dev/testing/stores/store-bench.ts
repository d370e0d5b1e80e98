import type {
  ConversationHold,
  ConversationLease,
  ConversationLog,
  InboxContent,
  KeptConversation,
} from '../../../core/contract/conversation-log.js';
import type {
  CheckpointStore,
  RunCheckpoint,
  RunEntry,
  SeizeLease,
  TakenRun,
} from '../../../core/contract/run-checkpoint.js';
import type {
  ClaimOutcome,
  RunClaim,
  RunLease,
  RunState,
  RunStore,
} from '../../../core/contract/run-state.js';
import { checkOptions } from '../../../core/errors/author-fault.js';
import { FILLED_TEXT, FUNCTION, type OptionTable, required } from '../../../core/kernel/options.js';
import { expectSame, expectThat } from '../conformance/expectations.js';
import type { ConformanceCase } from '../conformance/provider-conformance.js';

/** An empty store under test. */
export interface OpenedStore<Store extends RunStore = RunStore> {
  readonly store: Store;
  /** The same store through another connection. Without it, concurrent operations use `store` only. */
  readonly other?: Store;
  /**
   * Advances the store's time by this many milliseconds: sets its clock forward, or all stored times back. A case may
   * itself take up to a minute.
   */
  advance(ms: number): void | Promise<void>;
  close?(): void | Promise<void>;
}

/** Long compared with a case, so that the store may use a real clock. */
export const LEASE_MS = 3_600_000;
export const MINUTE = 60_000;

/** The store of a case, with helpers for its claims. */
export class StoreBench<Store extends RunStore = RunStore> {
  readonly store: Store;
  readonly other: Store;
  readonly advance: (ms: number) => Promise<void>;

  constructor({ store, other = store, advance }: OpenedStore<Store>) {
    this.store = store;
    this.other = other;
    this.advance = async (ms) => advance(ms);
  }

  async claim(who: string, runId = 'r', store: RunStore = this.store): Promise<ClaimOutcome> {
    return store.claim(leaseOf(who, runId));
  }

  /** Async, because a store may throw or reject. */
  async save(state: RunState): Promise<void> {
    await this.store.save(state);
  }

  async revisionKept(): Promise<number | undefined> {
    return (await this.store.load('r'))?.revision;
  }

  /** The results of all methods for a claim that may be lost. */
  async attempts({ runId, claim }: RunClaim): Promise<readonly boolean[]> {
    return [
      await this.store.renew({ runId, claim, leaseMs: LEASE_MS }),
      await this.store.release({ runId, claim }),
      await this.store.release({ runId, claim }, sampleState(runId, 9)),
      await this.store.remove({ runId, claim }),
    ];
  }
}

/** Helpers for a store of running runs. */
export class CheckpointBench extends StoreBench<CheckpointStore> {
  async begin(who: string, runId = 'r', store: CheckpointStore = this.store): Promise<void> {
    await store.begin(leaseOf(who, runId), sampleCheckpoint(runId));
  }

  async append(claim: RunClaim, ...texts: readonly string[]): Promise<boolean> {
    return this.store.append(claim, texts.map(sampleStep));
  }

  async claimLost(who: string, store: CheckpointStore = this.store): Promise<TakenRun> {
    return store.claimLost({ claim: who, leaseMs: LEASE_MS });
  }

  async seize(who: string, from: SeizeLease['from'], store: CheckpointStore = this.store): Promise<TakenRun> {
    return store.seize({ ...leaseOf(who), from });
  }

  override async attempts(claim: RunClaim): Promise<readonly boolean[]> {
    return [
      await this.append(claim, 'late'),
      await this.store.checkpoint(claim, sampleCheckpoint(claim.runId, ['late'])),
      await this.store.end(claim, [sampleEnd('late')]),
      ...(await super.attempts(claim)),
    ];
  }

  /** The texts of a run's entries, which identify them. */
  async done(runId = 'r'): Promise<readonly string[]> {
    return textsOf((await this.store.read(runId))?.entries ?? []);
  }
}

export function leaseOf(who: string, runId = 'r', leaseMs = LEASE_MS): RunLease {
  return { runId, claim: who, leaseMs };
}

export function heldBy(who: string, runId = 'r'): RunClaim {
  return { runId, claim: who };
}

/** A state for a store, of a run that waits. */
export function sampleState(runId = 'r', revision = 1, texts: readonly string[] = []): RunState {
  return {
    version: 3,
    runId,
    revision,
    messages: texts.map((content) => ({ role: 'user', content })),
    open: { content: '', calls: [] },
    pending: [],
    toolCalls: [],
    iterations: revision,
    usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
    retries: { byTool: [], unknown: 0 },
  };
}

/** A checkpoint of a running run for a store. */
export function sampleCheckpoint(runId: string, texts: readonly string[] = [], revision = 0): RunCheckpoint {
  const { open: _open, pending: _pending, ...progress } = sampleState(runId, revision, texts);
  return { ...progress, status: 'running' };
}

/** An entry for a step with one call, identified by its text. */
export function sampleStep(text: string): RunEntry {
  const call = { status: 'begun', id: 'call_1', name: 'work', arguments: { text } } as const;
  return {
    type: 'step',
    messages: [{ role: 'user', content: text }],
    iterations: 1,
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
    open: { content: text, calls: [call] },
  };
}

/** The entry for the end of a run. */
export function sampleEnd(content: string): RunEntry {
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  return { type: 'end', messages: [], status: 'completed', content, iterations: 1, usage };
}

export function textsOf(entries: readonly RunEntry[]): readonly string[] {
  return entries.map((entry) => {
    if (entry.type === 'step') return entry.open.content;
    return entry.type === 'end' ? entry.content : entry.type;
  });
}

/** A value that JSON cannot represent, typed as a number. */
export const NO_JSON = 1n as unknown as number;

/** Compares only the status of an outcome. */
export function expectStatus(what: string, { status }: { readonly status: string }, wanted: string): void {
  expectSame(what, status, wanted);
}

/** Does work many times at the same moment, in turn over both connections of a store. */
export function atOnce<Store, Result>(
  count: number,
  stores: readonly [Store, Store],
  work: (store: Store, index: number) => Result | Promise<Result>,
): Promise<readonly Result[]> {
  const [one, other] = stores;
  return Promise.all(
    Array.from({ length: count }, async (_, index) => work(index % 2 === 0 ? one : other, index)),
  );
}

/** Expects an error of this name (`RunClaimed`), or any error if no name is given. */
export async function expectRefused(what: string, work: () => unknown, name?: string): Promise<void> {
  const error = await (async () => work())().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expectThat(error !== undefined, `${what} is not refused`);
  if (name !== undefined) expectSame(`what ${what} is refused with`, (error as Error).name, name);
}

/** An empty conversation log under test. */
export interface OpenedConversationLog {
  readonly log: ConversationLog;
  /** The same log through another connection. Without it, concurrent operations use `log` only. */
  readonly other?: ConversationLog;
  /** Advances the time by this many milliseconds: sets the clock forward, or all stored times back. */
  advance(ms: number): void | Promise<void>;
  close?(): void | Promise<void>;
}

export const ID = 'c1';
export const PROMPT: InboxContent = { kind: 'prompt', content: 'Hi' };

export function lease(claim: string, conversationId = ID): ConversationLease {
  return { conversationId, claim, leaseMs: LEASE_MS };
}

export function hold(claim: string): ConversationHold {
  return { conversationId: ID, claim };
}

export function enter(log: ConversationLog, key: string, content = PROMPT) {
  return log.enter({ conversationId: ID, key, content });
}

/** Reads a conversation that must exist. */
export async function readConversation(log: ConversationLog, id = ID): Promise<KeptConversation> {
  const kept = await log.read(id);
  if (kept === undefined) throw new Error(`the conversation ${JSON.stringify(id)} is not there`);
  return kept;
}

export function keysOf({ inbox }: KeptConversation): readonly string[] {
  return inbox.map(({ key }) => key);
}

/** Text that databases may misinterpret: quotes, a NUL, a lone surrogate, characters of other planes. */
export const ODD_TEXT = `'";-- \u0000 \ud83d \u{1f600} \u2028 %s $1 \\`;

/** Names that databases and objects may confuse. */
export const ODD_NAMES = [
  ...['c', 'C', 'c ', '__proto__', 'constructor', '1', '01', "a'b", 'é', 'e\u0301', '\\', '👩‍🚀'],
];

/** The result of a suite's `open`, which may need closing. */
interface Closable {
  close?(): void | Promise<void>;
}

/** Cases before they are bound to an opened subject, by title: the method that it tests, and what the method does. */
export type OpenedCases<Opened> = Readonly<Record<string, (opened: Opened) => Promise<void>>>;

/** A case for each of some values. */
export function eachCase<Value, Opened>(
  values: readonly Value[],
  titleOf: (value: Value) => string,
  run: (value: Value, opened: Opened) => Promise<void>,
): OpenedCases<Opened> {
  return Object.fromEntries(
    values.map((value) => [titleOf(value), (opened: Opened) => run(value, opened)] as const),
  );
}

/** The same cases for what a suite opens. They do nothing where it lacks their subject. */
export function casesOf<Opened, Subject>(
  cases: OpenedCases<Subject>,
  subjectOf: (opened: Opened) => Subject | undefined,
): OpenedCases<Opened> {
  const bound = Object.entries(cases).map(([title, run]) => [
    title,
    async (opened: Opened) => {
      const subject = subjectOf(opened);
      if (subject !== undefined) await run(subject);
    },
  ]);
  return Object.fromEntries(bound);
}

/** The subject of a suite, and how it is opened for each case. */
interface Suite<Opened> {
  readonly name: string;
  readonly open: () => Opened | Promise<Opened>;
}

/** The rules of a suite's options; `example` is what `open` returns. */
export function suiteRules(example: string) {
  return { name: required(FILLED_TEXT), open: required({ ...FUNCTION, fix: `() => (${example})` }) };
}

/** Cases for any test runner; each opens its own subject and closes it afterwards. */
export function openedCases<Opened extends Closable, Options extends Suite<Opened>>(
  options: Options & Suite<Opened>,
  table: OptionTable,
  casesFor: (options: Options) => OpenedCases<Opened>,
): readonly ConformanceCase[] {
  checkOptions(options, table);
  const { name, open } = options;
  return Object.entries(casesFor(options)).map(([title, run]) => ({
    title: `${name}.${title}`,
    run: async () => {
      const opened = await open();
      try {
        await run(opened);
      } finally {
        await opened.close?.();
      }
    },
  }));
}
