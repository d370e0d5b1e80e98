import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { type Answer, OWNER, type PendingCall } from '../../core/contract/call.js';
import type {
  ConversationLog,
  EnteredEntry,
  InboxContent,
  NewInboxEntry,
} from '../../core/contract/conversation-log.js';
import { JOB_ENGINE } from '../../core/contract/job-engine.js';
import { keepsJobs, type StoreWithJobs } from '../../core/contract/job-store.js';
import type { UserMessage } from '../../core/contract/llm-provider.js';
import { STORED_ID } from '../../core/contract/run-state.js';
import { keepsSchedules } from '../../core/contract/schedule-store.js';
import {
  checkArguments,
  checkOptions,
  type InvalidOption,
  invalidOptions,
  refuseOptions,
} from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { closeWithin, MAX_TIMER_MS, onAbort, repeat } from '../../core/kernel/async.js';
import { cached } from '../../core/kernel/cached.js';
import { plainJson, withoutUndefined } from '../../core/kernel/json.js';
import {
  BOOLEAN,
  either,
  FUNCTION,
  JSON_VALUE,
  LIST,
  LOGGER,
  optionTable,
  PAUSE,
  protecting,
  RECORD,
  required,
  SIGNAL,
  WHOLE,
} from '../../core/kernel/options.js';
import { logFailure } from '../call/failure-log.js';
import { jobsOf } from '../call/job-dispatch.js';
import { registryOf } from '../call/tool-registry.js';
import { BackgroundJobs, type RunJobsOptions } from '../jobs/run-jobs.js';
import { DEFAULT_LEASE_MS } from '../loop/claimed-run.js';
import { LOOP_RULES } from '../loop/options.js';
import { isSameOwner, ownerOf } from '../loop/run-owner.js';
import { runSchedules } from '../schedules/schedule-runner.js';
import { ConversationClaim } from './conversation-lease.js';
import {
  type AnswersOptions,
  type ConversationDeleteOptions,
  type ConversationIdleOptions,
  type ConversationsCloseOptions,
  type ConversationsOptions,
  type ConversationsStore,
  type EventsOptions,
  keepsConversations,
  type PromptOptions,
  TAKING_RULES,
  TURN_CONFIG,
} from './conversations-options.js';
import type { NumberedEvent } from './events.js';
import { CONTENT } from './options.js';
import {
  type ConversationView,
  checkAnswers,
  checkReplaced,
  StoredTurns,
  type TurnDeps,
  viewOf,
} from './stored-turns.js';

const DEFAULT_CONCURRENCY = 100;

/** The conversations whose `close` was called. */
export const closedConversations = new WeakSet<object>();

/** The conversations of this process that take turns, by their log: any of them may take any turn. */
const takingTurns = new WeakMap<ConversationLog, Map<Conversations, ConversationsOptions>>();

/**
 * Conversations in a store: any process can prompt, answer, abort and read them. One process at a time holds a
 * conversation and takes its turns in order. Turns survive a crash at every step (see `checkpoint`): another process
 * takes over.
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * const conversations = new Conversations({ store, config: { provider, model: 'gpt-5', tools } });
 * await conversations.prompt('c1', 'Which orders are open?', { key: 'request-17' });
 * const view = await conversations.idle('c1');
 * console.log(view?.messages.at(-1)?.content);
 * await conversations.close();
 * ```
 *
 * @throws InvalidOptionsError (521) for invalid options.
 */
export class Conversations {
  readonly #options: ConversationsOptions;
  readonly #log: ConversationLog;
  readonly #deps: TurnDeps;
  /** Conversations whose turns run in this process. */
  readonly #active = new Map<string, Promise<void>>();
  readonly #leases = new Set<ConversationClaim>();
  /** Conversations to process again, or as soon as there is a free slot. */
  readonly #wanted = new Set<string>();
  /** A turn must not run in the async context of the request that happens to trigger it, maybe of another user. */
  readonly #outside = AsyncLocalStorage.snapshot();
  /** The async contexts of entries that were added here, by conversation and key, until they are processed. */
  readonly #added = new Map<string, Map<string, ReturnType<typeof AsyncLocalStorage.snapshot>>>();
  /** Conversations that are being deleted here, which begin no further turn. */
  readonly #deleting = new Set<string>();
  /** Timers of conversations whose answers expire. */
  readonly #expiries = new Map<string, NodeJS.Timeout>();
  readonly #unwatch: () => void = () => {};
  readonly #jobs: BackgroundJobs | undefined;
  readonly #stopSchedules: (() => Promise<void>) | undefined;
  #stopLooking: (() => Promise<void>) | undefined;
  readonly #closing = new AbortController();
  readonly #closed = new AbortController();

  constructor(options: ConversationsOptions) {
    checkConversations(options);
    const { store, scope, logger, leaseMs = DEFAULT_LEASE_MS, pollMs = leaseMs / 3 } = options;
    this.#options = options;
    this.#log = store.conversations;
    this.#deps = {
      options,
      leaseMs,
      closing: this.#closing.signal,
      followUntil: this.#closed.signal,
      inEntry: (conversationId, key) => this.#added.get(conversationId)?.get(key),
      expect: (conversationId, pending) => this.#expect(conversationId, pending),
      enter: (conversationId, key, content) => this.#enter(conversationId, key, content),
    };
    const jobs = jobsOfOptions(options);
    if (options.takesTurns === false) return;
    const others = takingTurns.get(this.#log) ?? new Map<Conversations, ConversationsOptions>();
    checkSameTools(options, [...others.values()]);
    takingTurns.set(this.#log, others.set(this, options));
    if (jobs !== undefined)
      this.#jobs = new BackgroundJobs({
        ...jobs,
        ...(logger && { logger }),
        jobScope: async ({ scope: { conversationId = '', owner } }) =>
          (await scope?.({ conversationId, owner })) ?? {},
      });
    this.#unwatch = this.#log.watch(({ conversationId, about }) => {
      if (about === 'inbox') this.#want(conversationId);
    });
    this.#stopLooking = repeat(async () => {
      // Conversations that no process handles, because theirs crashed or was too busy.
      try {
        for (const id of await this.#log.due(MAX_DUE)) this.#want(id);
        // Suspended turns with an expired answer, whose process has gone.
        const expired = await store.expiredRuns?.({ of: 'turns', limit: MAX_DUE });
        for (const { conversationId = '' } of expired ?? []) this.#want(conversationId);
      } catch (error) {
        logFailure(logger, {
          what: 'The conversations that are due could not be read from the store',
          error,
        });
      }
      return pollMs;
    });
    if (keepsSchedules(store)) {
      const { schedules, conversations } = store;
      this.#stopSchedules = runSchedules({ schedules, conversations, pollMs, logger });
    }
  }

  /**
   * Adds a prompt to the conversation; the first prompt creates it. Its turn comes after all earlier entries.
   * Resolves when the prompt is stored.
   *
   * @throws ToolwrightError `RunNotAllowed` (523) with `onlyOwner` if the conversation has another owner,
   * `ConversationNotReady` (526) if the history has no turn with the key in `replaces`.
   */
  async prompt(
    conversationId: string,
    content: UserMessage['content'],
    options: PromptOptions = {},
  ): Promise<EnteredEntry> {
    checkArguments({
      of: 'Conversations.prompt',
      given: { conversationId, content },
      rules: { conversationId: STORED_ID, content: CONTENT },
    });
    checkOptions(options, METHOD_OPTIONS.prompt);
    const { key = crypto.randomUUID(), onlyOwner = false, replaces } = options;
    const prompt = plainJson({ kind: 'prompt', content, replaces, ...ownerIn(options) }) as InboxContent;
    if (replaces !== undefined) checkReplaced(await this.#log.read(conversationId), { key, replaces });
    const entered = await this.#add({ conversationId, key, content: prompt, onlyOwner });
    if (entered !== undefined) return entered;
    throw new ToolwrightError(
      'RunNotAllowed',
      'The prompt was not accepted: the conversation has another owner.',
    );
  }

  /**
   * Answers the waits of the turn, by the ids in `pending`; while answers are missing, it stays suspended. Resolves
   * when the answers are stored. If other answers were faster, the event `answers-refused` reports it.
   *
   * @throws ToolwrightError `InvalidAnswer` (514) for unknown ids and for answers that do not match, `RunNotAllowed`
   * (523) for another owner than that of the turn; nothing is stored then.
   */
  async answer(
    conversationId: string,
    answers: readonly Answer[],
    options: AnswersOptions = {},
  ): Promise<EnteredEntry> {
    checkArguments({
      of: 'Conversations.answer',
      given: { conversationId, answers },
      rules: { conversationId: STORED_ID, answers: LIST },
    });
    checkOptions(options, METHOD_OPTIONS.answer);
    const { key = crypto.randomUUID(), answeredBy } = options;
    const content = withoutUndefined({ kind: 'answers' as const, answers, ...ownerIn(options), answeredBy });
    const { store, config } = this.#options;
    await checkAnswers({ conversationId, content, store, config });
    return this.#enter(conversationId, key, content);
  }

  /** Ends the open turn in any process, even if it waits for answers; false without an open turn. */
  async abort(conversationId: string): Promise<boolean> {
    checkId('abort', conversationId);
    return this.#log.askAbort(conversationId);
  }

  /**
   * Deletes a conversation: its open turn is aborted first, in any process, and waiting entries are dropped. Returns
   * false if there is no such conversation. Without `erase`, it is hidden: the next prompt with its id creates a new
   * conversation. With `erase`, the store removes all its data, and that of conversations that were hidden under its
   * id.
   *
   * @throws ToolwrightError `RunNotAllowed` (523) with `onlyOwner` if the conversation has another owner;
   * InvalidOptionsError (521) if the store cannot delete conversations.
   *
   * @example
   * ```ts
   * const store = new SqliteRunStore({ path: 'runs.sqlite' });
   * const conversations = new Conversations({ store, config: { provider, model: 'gpt-5' } });
   * await conversations.delete('c1', { erase: true, owner: 'ann', onlyOwner: true });
   * ```
   */
  async delete(conversationId: string, options: ConversationDeleteOptions = {}): Promise<boolean> {
    checkId('delete', conversationId);
    checkOptions(options, METHOD_OPTIONS.delete);
    const log = this.#log;
    if (log.remove === undefined) {
      const problem = 'store cannot delete conversations: its conversations have no method remove';
      const fix = 'a PostgresRunStore, SqliteRunStore or MemoryRunStore';
      refuseOptions([{ where: 'Conversations.delete', option: 'store', problem, fix }]);
    }
    const { erase = false, onlyOwner = false } = options;
    const { owner } = ownerIn(options);
    const { leaseMs } = this.#deps;
    const eraseHidden = async () =>
      erase && ((await log.eraseHidden?.({ conversationId, owner, onlyOwner })) ?? false);
    try {
      // Its holder releases it when the turn has ended; if that process crashes, there is no notification.
      for await (const _ of changesOf(log, conversationId, { everyMs: LOOK_MS })) {
        const kept = await log.read(conversationId);
        if (kept === undefined) break;
        if (onlyOwner && !isSameOwner(kept.owner, owner)) {
          const message = 'It was not deleted: the conversation has another owner.';
          throw new ToolwrightError('RunNotAllowed', message);
        }
        this.#deleting.add(conversationId);
        // A repeated request would itself cause a notification.
        if (kept.turn !== undefined && !kept.isAbortAsked) await log.askAbort(conversationId);
        const lease = await ConversationClaim.acquire(log, { conversationId, leaseMs });
        if (lease === undefined || !(await this.#remove(lease, erase ? 'erase' : 'hide'))) continue;
        await eraseHidden();
        return true;
      }
      return await eraseHidden();
    } finally {
      this.#deleting.delete(conversationId);
      this.#processWanted();
    }
  }

  /** Returns false if it must be tried again, because a turn has begun since the abort request. */
  async #remove(lease: ConversationClaim, how: 'hide' | 'erase'): Promise<boolean> {
    let isRemoved = false;
    try {
      // Entries behind the aborted turn are not processed.
      if (lease.conversation.isAbortAsked)
        await this.#outside(() =>
          new StoredTurns(lease, this.#deps).process(() => lease.conversation.turn === undefined),
        );
      isRemoved = lease.conversation.turn === undefined && (await lease.remove(how));
      return isRemoved;
    } finally {
      if (!isRemoved) await lease.release(NOTHING_SEEN);
    }
  }

  /**
   * The events of the conversation, in any process: first the stored events after `after`, then new ones. It ends with
   * `signal`, with `upTo`, when the reader stops, or when `close` has ended, after the events stored until then.
   */
  events(conversationId: string, options: EventsOptions = {}): AsyncIterable<NumberedEvent> {
    checkId('events', conversationId);
    checkOptions(options, METHOD_OPTIONS.events);
    return readEvents(this.#log, conversationId, { ...options, closed: this.#closed.signal });
  }

  /** The current state of the conversation; `undefined` if it does not exist. */
  async snapshot(conversationId: string): Promise<ConversationView | undefined> {
    checkId('snapshot', conversationId);
    const kept = await this.#log.read(conversationId);
    return kept && viewOf(kept, this.#options.store);
  }

  /**
   * Resolves with the conversation as soon as it is idle or suspended, whichever process takes its turns.
   *
   * @throws ToolwrightError `RunClaimed` (517) if it still runs in another process when `close` has ended.
   */
  async idle(
    conversationId: string,
    options: ConversationIdleOptions = {},
  ): Promise<ConversationView | undefined> {
    checkId('idle', conversationId);
    checkOptions(options, METHOD_OPTIONS.idle);
    const { signal } = options;
    const closed = this.#closed.signal;
    let last: number | undefined;
    for await (const _ of changesOf(this.#log, conversationId, { signal, closed })) {
      if (last !== undefined) {
        // Streamed text changes nothing, and the whole conversation may be large.
        const page = await this.#log.events({ conversationId, after: last, limit: PAGE });
        last = page.at(-1)?.number ?? last;
        const isWithinTurn = !page.some(({ event }) => /^(turn|answers)-/.test(String(event.type)));
        if (isWithinTurn && page.length > 0 && page.length < PAGE) continue;
      }
      const view = await this.snapshot(conversationId);
      if (view?.status !== 'running') return view;
      last = view.lastEvent;
    }
    throw signal?.aborted ? signal.reason : new ToolwrightError('RunClaimed', STILL_RUNNING);
  }

  /**
   * Takes no more turns, and resolves when the turns that run here have ended or wait for answers, and the jobs that
   * run here have ended. Until then, a process that takes turns from a shared store does not exit. Then the readers of
   * `events` here end, also of turns that run in other processes.
   *
   * With `timeoutMs`, a longer turn is left in its stored state: its calls are aborted here, and another process
   * continues it when the lease has expired.
   *
   * @example
   * ```ts
   * const store = new SqliteRunStore({ path: 'runs.sqlite' });
   * const conversations = new Conversations({ store, config: { provider, model: 'gpt-5' } });
   * process.once('SIGTERM', () => void conversations.close({ timeoutMs: 10_000 }));
   * ```
   */
  async close(options: ConversationsCloseOptions = {}): Promise<void> {
    checkOptions(options, METHOD_OPTIONS.close);
    const { timeoutMs } = options;
    closedConversations.add(this);
    takingTurns.get(this.#log)?.delete(this);
    this.#closing.abort();
    this.#unwatch();
    void this.#stopLooking?.();
    for (const timer of this.#expiries.values()) clearTimeout(timer);
    this.#wanted.clear();
    const ending = Promise.all([...this.#active.values(), this.#jobs?.close(), this.#stopSchedules?.()]);
    try {
      await closeWithin(ending, { timeoutMs }, () => {
        for (const lease of this.#leases) lease.abandon();
        this.#jobs?.leave();
        return closeWithin(ending, { timeoutMs: GRACE_MS }, () => {}).catch(() => {});
      });
    } finally {
      this.#closed.abort();
    }
  }

  async #enter(conversationId: string, key: string, content: InboxContent): Promise<EnteredEntry> {
    const entry = { conversationId, key, content: plainJson(content) as InboxContent };
    // Only prompts can be refused.
    return (await this.#add(entry)) as EnteredEntry;
  }

  async #add(entry: NewInboxEntry): Promise<EnteredEntry | undefined> {
    if (this.#options.takesTurns === false) return this.#log.enter(entry);
    const { conversationId, key } = entry;
    const added = cached(this.#added, conversationId, () => new Map());
    // Before the entry is stored, because its turn may then begin at once.
    added.set(key, AsyncLocalStorage.snapshot());
    const entered = await this.#log.enter(entry);
    if (!entered?.isNew) added.delete(key);
    return entered;
  }

  #want(conversationId: string): void {
    if (this.#closing.signal.aborted) return;
    this.#wanted.add(conversationId);
    this.#processWanted();
  }

  /** Starts processing as many wanted conversations as there are free slots. */
  #processWanted(): void {
    const { maxConcurrency = DEFAULT_CONCURRENCY } = this.#options;
    for (const id of this.#wanted) {
      if (this.#active.size >= maxConcurrency) return;
      if (this.#active.has(id) || this.#deleting.has(id)) continue;
      this.#wanted.delete(id);
      const processing = this.#outside(() => this.#process(id)).finally(() => {
        this.#active.delete(id);
        if (!this.#wanted.has(id)) this.#added.delete(id);
        this.#processWanted();
      });
      this.#active.set(id, processing);
    }
  }

  async #process(conversationId: string): Promise<void> {
    try {
      const { leaseMs } = this.#deps;
      const lease = await ConversationClaim.acquire(this.#log, { conversationId, leaseMs });
      // Another holder is also notified of new entries.
      if (lease === undefined) return;
      // The conversation stays due until everything is done: if processing fails, the next search finds it again.
      let seen = NOTHING_SEEN;
      this.#leases.add(lease);
      try {
        const isStopped = () => this.#closing.signal.aborted || this.#deleting.has(conversationId);
        await new StoredTurns(lease, this.#deps).process(isStopped);
        const { revision, turn, inbox } = lease.conversation;
        const isLeft = isStopped() && (turn !== undefined || inbox.length > 0);
        seen = isLeft ? revision - 1 : revision;
      } finally {
        this.#leases.delete(lease);
        await lease.release(seen);
      }
    } catch (error) {
      const what = 'A conversation could not be continued';
      logFailure(this.#options.logger, { what, error, at: { conversationId } });
    }
  }

  /** Processes a conversation again when the first of its answers expires. */
  #expect(conversationId: string, pending: readonly PendingCall[]): void {
    clearTimeout(this.#expiries.get(conversationId));
    this.#expiries.delete(conversationId);
    let first = Number.POSITIVE_INFINITY;
    for (const { expiresAt } of pending)
      if (expiresAt !== undefined) first = Math.min(first, Date.parse(expiresAt));
    if (first === Number.POSITIVE_INFINITY || this.#closing.signal.aborted) return;
    const wait = Math.max(first - Date.now() + 1, 1);
    const look = (): void => {
      this.#expiries.delete(conversationId);
      this.#want(conversationId);
    };
    this.#expiries.set(conversationId, setTimeout(look, Math.min(wait, MAX_TIMER_MS)).unref());
  }
}

/** How often a deletion checks for its turn without notifications. */
const LOOK_MS = 1_000;

const STILL_RUNNING =
  'The conversation still runs in another process, and these conversations were closed: wait for it in a process that is not shutting down.';

/** Not a revision of a conversation. */
const NOTHING_SEEN = -1;

/** The most conversations per search. */
const MAX_DUE = 100;

/** How long abandoned turns and jobs may take to notice it. */
const GRACE_MS = 500;

/** The most events per read. */
const PAGE = 256;

/** The events of a conversation in order: stored events, then new ones, until the reader stops. */
async function* readEvents(
  log: ConversationLog,
  conversationId: string,
  { after = 0, upTo = Infinity, signal, closed }: EventsOptions & Pick<Following, 'closed'>,
): AsyncGenerator<NumberedEvent, undefined> {
  let last = after;
  for await (const _ of changesOf(log, conversationId, { signal, closed })) {
    for (let isWhole = false; !isWhole && last < upTo; ) {
      const page = await log.events({ conversationId, after: last, limit: PAGE });
      isWhole = page.length === 0;
      for (const event of page) {
        if (signal?.aborted || event.number > upTo) return undefined;
        last = event.number;
        yield event as NumberedEvent;
      }
    }
    if (upTo !== Infinity) return undefined;
  }
  return undefined;
}

/** How long changes of a conversation are followed. */
interface Following {
  readonly signal?: AbortSignal | undefined;
  readonly closed?: AbortSignal;
  /** Milliseconds after which a change may have been missed. */
  readonly everyMs?: number;
}

/**
 * Yields immediately, and whenever the conversation may have changed since then, until `signal` ends it. When `closed`
 * is aborted, it yields one last time.
 */
async function* changesOf(
  log: ConversationLog,
  conversationId: string,
  { signal, closed, everyMs }: Following,
): AsyncGenerator<void, undefined> {
  let change = Promise.withResolvers<void>();
  const unwatch = log.watch((news) => {
    // Any conversation may have been missed.
    if (news.about === 'missed' || news.conversationId === conversationId) change.resolve();
  });
  const unfollow = [signal, closed].map((ending) => ending && onAbort(ending, () => change.resolve()));
  try {
    while (!signal?.aborted) {
      change = Promise.withResolvers();
      const isLast = closed?.aborted;
      yield;
      if (isLast) break;
      await (everyMs === undefined ? change.promise : Promise.race([change.promise, pause(everyMs)]));
    }
    return undefined;
  } finally {
    unwatch();
    for (const stop of unfollow) stop?.();
  }
}

function checkId(method: string, conversationId: string): void {
  const of = `Conversations.${method}`;
  checkArguments({ of, given: { conversationId }, rules: { conversationId: STORED_ID } });
}

/** The owner in options, as JSON. */
function ownerIn({ owner }: PromptOptions): { readonly owner?: unknown } {
  return withoutUndefined({ owner: ownerOf({ owner }) });
}

const FIX = "new SqliteRunStore({ path: 'runs.sqlite' }), or another store of conversations";

const CONVERSATIONS_OPTIONS = optionTable<ConversationsOptions>('Conversations', {
  store: required({ accepts: keepsConversations, fix: FIX }),
  config: required(either(FUNCTION, RECORD)),
  engine: JOB_ENGINE,
  jobTools: LOOP_RULES.tools,
  ...TAKING_RULES,
  logger: LOGGER,
});

/** The rules for the options of each method. */
const METHOD_OPTIONS = {
  prompt: optionTable<PromptOptions>('Conversations.prompt', {
    key: STORED_ID,
    owner: protecting(OWNER),
    onlyOwner: protecting(BOOLEAN),
    replaces: STORED_ID,
  }),
  answer: optionTable<AnswersOptions>('Conversations.answer', {
    key: STORED_ID,
    owner: protecting(OWNER),
    answeredBy: JSON_VALUE,
  }),
  events: optionTable<EventsOptions>('Conversations.events', { after: WHOLE, upTo: WHOLE, signal: SIGNAL }),
  delete: optionTable<ConversationDeleteOptions>('Conversations.delete', {
    erase: BOOLEAN,
    owner: protecting(OWNER),
    onlyOwner: protecting(BOOLEAN),
  }),
  idle: optionTable<ConversationIdleOptions>('Conversations.idle', { signal: SIGNAL }),
  close: optionTable<ConversationsCloseOptions>('Conversations.close', { timeoutMs: PAUSE }),
};

/**
 * Checks the options of conversations, and the config of their turns if it is the same for all.
 *
 * @throws InvalidOptionsError (521) with every problem.
 */
function checkConversations(options: ConversationsOptions): void {
  const faults = [...invalidOptions(options, CONVERSATIONS_OPTIONS)];
  if (RECORD.accepts(options) && options.engine === undefined)
    for (const option of ['jobTools', 'jobConcurrency'] as const)
      if (options[option] !== undefined)
        faults.push({
          where: CONVERSATIONS_OPTIONS.of,
          option,
          problem: `${option} needs an engine, but engine is missing`,
          fix: `engine: ${JOB_ENGINE.fix}; or leave out ${option}`,
        });
  if (RECORD.accepts(options?.config)) faults.push(...invalidOptions(options.config, TURN_CONFIG));
  refuseOptions(faults);
}

/**
 * Refuses other tools than those of the conversations that already take turns from the store: they would run with
 * whichever tools belong to the conversations that are faster. The tools of a config function are not known here.
 */
function checkSameTools({ config }: ConversationsOptions, others: readonly ConversationsOptions[]): void {
  for (const other of others) {
    if (typeof config === 'function' || typeof other.config === 'function') continue;
    const [here, there] = [config, other.config].map(({ tools }) => registryOf(tools).list().sort().join());
    if (here === there) continue;
    const problem =
      'store is already used by conversations with other tools, and each of them runs the turns of all';
    const fix = 'a store of its own, with another file or `schema`; or the same tools';
    refuseOptions([{ where: CONVERSATIONS_OPTIONS.of, option: 'store', problem, fix }]);
  }
}

/**
 * The parts that run the jobs of turns; `undefined` if no jobs run here.
 *
 * @throws InvalidOptionsError (521) if a part is missing.
 */
function jobsOfOptions(
  options: ConversationsOptions,
): Pick<RunJobsOptions, 'engine' | 'store' | 'tools' | 'concurrency'> | undefined {
  const { engine, store, config, jobTools, jobConcurrency: concurrency } = options;
  if (engine === undefined) return undefined;
  const where = 'Conversations';
  const tools = jobTools ?? (typeof config === 'function' ? undefined : (config.tools ?? []));
  const faults: InvalidOption[] = [];
  if (!keepsJobs(store))
    faults.push({
      where,
      option: 'store',
      problem: 'store does not store jobs, which engine needs',
      fix: FIX,
    });
  if (tools === undefined && concurrency !== 0) {
    const problem = 'jobTools is missing, and config is a function';
    faults.push({ where, option: 'jobTools', problem, fix: 'jobTools: registry' });
  }
  refuseOptions(faults);
  jobsOf({ engine, store }, where);
  if (concurrency === 0) return undefined;
  const parts = { engine, store: store as ConversationsStore & StoreWithJobs, tools: tools ?? [] };
  return concurrency === undefined ? parts : { ...parts, concurrency };
}
