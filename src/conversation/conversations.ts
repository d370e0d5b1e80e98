import { setTimeout as pause } from 'node:timers/promises';
import { logFailure } from '../call/failure-log.js';
import { SafeLog } from '../call/log.js';
import type { Answer } from '../contract/call.js';
import {
  type ConversationLog,
  type ConversationNews,
  type EnteredEntry,
  type InboxContent,
  isNewsOf,
} from '../contract/conversation-log.js';
import type { Job } from '../contract/job-engine.js';
import type { UserMessage } from '../contract/llm-provider.js';
import { STORED_ID } from '../contract/run-state.js';
import { keepsSchedules, type StoreWithSchedules } from '../contract/schedule-store.js';
import { checkArguments, checkOptions, refuseOptions } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { BackgroundJobs } from '../jobs/background-jobs.js';
import { closeWithin, MAX_TIMER_MS, unlessAborted } from '../kernel/async.js';
import { plainJson } from '../kernel/json.js';
import { LIST } from '../kernel/options.js';
import { isSameOwner, ownerOf } from '../loop/run-owner.js';
import { ScheduleRunner } from '../schedules/schedule-runner.js';
import { checkAnswers } from './check-answers.js';
import { type ConversationView, viewOf } from './conversation-view.js';
import {
  type AnswersOptions,
  type ConversationDeleteOptions,
  type ConversationIdleOptions,
  type ConversationsCloseOptions,
  type ConversationsOptions,
  checkConversations,
  checkTurnConfig,
  type EventsOptions,
  jobsOfOptions,
  METHOD_OPTIONS,
  type PromptOptions,
} from './conversations-options.js';
import type { NumberedEvent } from './event-json.js';
import { News, readEvents } from './event-reader.js';
import { ExpiryWatch } from './expiry-watch.js';
import { HeldConversation } from './held-conversation.js';
import { checkReplaced } from './kept-turns.js';
import { CONTENT } from './options.js';
import { endOpenTurn, type TurnSurroundings, takeTurns } from './take-turns.js';

const DEFAULT_LEASE_MS = 30_000;
const DEFAULT_CONCURRENCY = 16;

/**
 * Conversations that live in a store, so that any process can prompt, answer, abort and read them, and any process
 * that takes turns goes on with them: one at a time holds a conversation, and takes its turns in order. Turns
 * survive the process at every step (see `checkpoint`); what a process that died has left, another takes over.
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
 * @throws InvalidOptionsError (521) for options that are wrong.
 */
export class Conversations {
  readonly #options: ConversationsOptions;
  readonly #log: ConversationLog;
  readonly #safeLog: SafeLog;
  readonly #leaseMs: number;
  /** Conversations whose turns this process takes. */
  readonly #taking = new Map<string, Promise<void>>();
  readonly #held = new Set<HeldConversation>();
  /** Those to look at again, or as soon as there is room. */
  readonly #wanted = new Set<string>();
  readonly #expiries = new ExpiryWatch((conversationId) => this.#want(conversationId));
  readonly #unwatch: () => void = () => {};
  readonly #jobs: BackgroundJobs | undefined;
  readonly #schedules: ScheduleRunner | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #closing = new AbortController();
  readonly #closed = new AbortController();

  constructor(options: ConversationsOptions) {
    checkConversations(options);
    this.#options = options;
    this.#log = options.store.conversations;
    this.#safeLog = new SafeLog(options.logger);
    this.#leaseMs = options.leaseMs ?? DEFAULT_LEASE_MS;
    const jobs = jobsOfOptions(options);
    if (options.takesTurns === false) return;
    if (jobs !== undefined) this.#jobs = this.#doJobs(jobs);
    this.#unwatch = this.#log.watch((news) => this.#hear(news));
    const pollMs = Math.min(options.pollMs ?? this.#leaseMs / 3, MAX_TIMER_MS);
    this.#poll(pollMs);
    if (keepsSchedules(options.store)) this.#schedules = this.#enterDue(options.store, pollMs);
  }

  /**
   * Puts a prompt into the conversation, which begins with its first one; its turn is taken after all that entered
   * before. Resolves as soon as it is kept.
   *
   * @throws ToolwrightError `RunNotAllowed` (523) with `onlyOwner` where the conversation has another owner,
   *   `ConversationNotReady` (526) where the history has no turn that `replaces` began.
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
    const entered = await this.#log.enter({ conversationId, key, content: prompt, onlyOwner });
    if (entered !== undefined) return entered;
    throw new ToolwrightError(
      'RunNotAllowed',
      'The prompt was not taken: the conversation has another owner.',
    );
  }

  /**
   * Answers what the turn waits for, by the ids of `pending`; while some are missing, it waits on. Resolves as soon
   * as the answers are kept. Answers that somebody else's were quicker than are refused with an event
   * `answers-refused`.
   *
   * @throws ToolwrightError `InvalidAnswer` (514) for ids that nothing waits for and for answers that do not fit,
   *   `RunNotAllowed` (523) for another owner than that of the turn; nothing is kept then.
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
    const by = answeredBy === undefined ? {} : { answeredBy };
    const content = { kind: 'answers' as const, answers, ...ownerIn(options), ...by };
    const { store, config } = this.#options;
    await checkAnswers({ conversationId, content, store, config });
    return this.#enter(conversationId, key, content);
  }

  /**
   * Asks for the end of the turn that is open, wherever it runs; false where none is. A turn that waits for answers
   * ends, too.
   */
  async abort(conversationId: string): Promise<boolean> {
    checkId('abort', conversationId);
    return this.#log.askAbort(conversationId);
  }

  /**
   * Deletes a conversation: its open turn is aborted first, wherever it runs, and what waits is dropped. False where
   * there is none. Without `erase` it is hidden: its id is unknown from then on, and whoever prompts it begins a new
   * conversation. With `erase` the store has nothing of it any more.
   *
   * @throws ToolwrightError `RunNotAllowed` (523) with `onlyOwner` where the conversation has another owner;
   *   InvalidOptionsError (521) where the store deletes no conversations.
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
    checkDeletes(log);
    const { erase = false, onlyOwner = false } = options;
    const { owner } = ownerIn(options);
    const news = new News();
    const unwatch = log.watch((told) => {
      if (isNewsOf(conversationId, told)) news.arrive();
    });
    try {
      for (;;) {
        news.expect();
        const kept = await log.read(conversationId);
        if (kept === undefined) return false;
        if (onlyOwner && !isSameOwner(kept.owner, owner))
          throw new ToolwrightError(
            'RunNotAllowed',
            'It was not deleted: the conversation has another owner.',
          );
        // Asked again, it would be news by itself.
        if (kept.turn !== undefined && !kept.isAbortAsked) await log.askAbort(conversationId);
        const held = await HeldConversation.take({ log, conversationId, leaseMs: this.#leaseMs });
        if (held !== undefined && (await this.#remove(held, erase ? 'erase' : 'hide'))) return true;
        // Whoever has it lets it go when the turn has ended, and tells nobody where its process dies.
        if (held === undefined) await Promise.race([news.arrival, pause(LOOK_MS)]);
      }
    } finally {
      unwatch();
    }
  }

  /** False where it has to be tried again: a turn has begun since its abort was asked for. */
  async #remove(held: HeldConversation, how: 'hide' | 'erase'): Promise<boolean> {
    let isRemoved = false;
    try {
      const { turn, isAbortAsked } = held.conversation;
      if (turn !== undefined && isAbortAsked) await endOpenTurn(held, this.#surroundings());
      isRemoved = held.conversation.turn === undefined && (await held.remove(how));
      return isRemoved;
    } finally {
      if (!isRemoved) await held.letGo(NOTHING_SEEN);
    }
  }

  /**
   * What happens in the conversation, in any process: first what is kept after `after`, then what comes. It ends
   * only with `signal`, with `upTo`, or when the reader leaves.
   */
  events(conversationId: string, options: EventsOptions = {}): AsyncIterable<NumberedEvent> {
    checkId('events', conversationId);
    checkOptions(options, METHOD_OPTIONS.events);
    return readEvents(this.#log, { conversationId, ...options });
  }

  /** The conversation as it stands; `undefined` where nothing ever entered it. */
  async snapshot(conversationId: string): Promise<ConversationView | undefined> {
    checkId('snapshot', conversationId);
    const kept = await this.#log.read(conversationId);
    return kept && viewOf(kept, this.#options.store);
  }

  /** Resolves with the conversation as soon as it is idle or suspended, wherever its turns are taken. */
  async idle(
    conversationId: string,
    options: ConversationIdleOptions = {},
  ): Promise<ConversationView | undefined> {
    checkId('idle', conversationId);
    checkOptions(options, METHOD_OPTIONS.idle);
    const { signal } = options;
    const news = new News();
    const unwatch = this.#log.watch((told) => {
      if (isNewsOf(conversationId, told)) news.arrive();
    });
    try {
      for (;;) {
        signal?.throwIfAborted();
        news.expect();
        const view = await this.snapshot(conversationId);
        if (view?.status !== 'running') return view;
        await (signal === undefined ? news.arrival : unlessAborted(news.arrival, signal));
      }
    } finally {
      unwatch();
    }
  }

  /**
   * Takes no more turns, and resolves when those that run here have ended or wait for answers, and the jobs that
   * run here have ended; other processes go on with the rest. Until then, a process that takes turns out of a store that
   * others write to does not end by itself.
   *
   * With `timeoutMs`, a turn that lasts longer is left as it stands, with what it has kept: another process goes on with
   * it when the lease has ended, as if this one had died. Its calls are aborted here.
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
    this.#closing.abort();
    this.#unwatch();
    clearTimeout(this.#timer);
    this.#expiries.close();
    this.#wanted.clear();
    const ending = Promise.all([...this.#taking.values(), this.#jobs?.close(), this.#schedules?.close()]);
    try {
      await closeWithin(ending, { timeoutMs }, () => {
        for (const held of this.#held) held.leave();
        this.#jobs?.leave();
        return closeWithin(ending, { timeoutMs: GRACE_MS }, () => {}).catch(() => {});
      });
    } finally {
      this.#closed.abort();
    }
  }

  async #enter(conversationId: string, key: string, content: InboxContent): Promise<EnteredEntry> {
    const entered = await this.#log.enter({
      conversationId,
      key,
      content: plainJson(content) as InboxContent,
    });
    // Only prompts can be refused.
    return entered as EnteredEntry;
  }

  #hear({ conversationId, about }: ConversationNews): void {
    if (about === 'inbox') this.#want(conversationId);
  }

  #want(conversationId: string): void {
    if (this.#closing.signal.aborted) return;
    this.#wanted.add(conversationId);
    this.#takeNext();
  }

  /** Begins with as many of those that are wanted as there is room for. */
  #takeNext(): void {
    const { maxConcurrency = DEFAULT_CONCURRENCY } = this.#options;
    for (const id of this.#wanted) {
      if (this.#taking.size >= maxConcurrency) return;
      if (this.#taking.has(id)) continue;
      this.#wanted.delete(id);
      const taking = this.#take(id).finally(() => {
        this.#taking.delete(id);
        this.#takeNext();
      });
      this.#taking.set(id, taking);
    }
  }

  async #take(conversationId: string): Promise<void> {
    try {
      const held = await HeldConversation.take({ log: this.#log, conversationId, leaseMs: this.#leaseMs });
      // Whoever holds it hears what has entered, too.
      if (held === undefined) return;
      await this.#takeHeld(held);
    } catch (error) {
      const what = 'A conversation could not be gone on with';
      logFailure(this.#options.logger, { what, error, at: { conversationId } });
    }
  }

  async #takeHeld(held: HeldConversation): Promise<void> {
    // Until all is done, the conversation is due: where something fails, the next look finds it again.
    let seen = NOTHING_SEEN;
    this.#held.add(held);
    try {
      seen = await takeTurns(held, this.#surroundings());
    } finally {
      this.#held.delete(held);
      await held.letGo(seen);
    }
  }

  #surroundings(): TurnSurroundings {
    const { store, engine, config, scope, logger, onUnknown } = this.#options;
    return {
      store,
      engine,
      onUnknown,
      leaseMs: this.#leaseMs,
      closing: this.#closing.signal,
      followUntil: this.#closed.signal,
      warn: (message, fields) => this.#safeLog.warn(message, fields),
      logFailed: (conversationId, error) =>
        logFailure(logger, { what: 'Turn failed', error, at: { conversationId } }),
      configOf: async (turn) => {
        const given = typeof config === 'function' ? await config(turn) : config;
        checkTurnConfig(given);
        return logger === undefined ? given : { logger, ...given };
      },
      scopeOf: async (turn) => (await scope?.(turn)) ?? {},
      expiries: this.#expiries,
      complete: ({ conversationId }, key, content) => {
        this.#enter(conversationId, key, content).catch((error: unknown) =>
          this.#safeLog.warn('A completion could not be kept', { error }),
        );
      },
    };
  }

  /** Does jobs in this process. What a job comes to enters its conversation with the job's end. */
  #doJobs(parts: NonNullable<ReturnType<typeof jobsOfOptions>>): BackgroundJobs {
    const { scope, logger } = this.#options;
    const jobScope = async ({ scope: { conversationId = '', owner } }: Job) =>
      (await scope?.({ conversationId, owner })) ?? {};
    return new BackgroundJobs({ ...parts, jobScope, ...(logger ? { logger } : {}) });
  }

  /** Prompts of schedules enter as soon as they are due. */
  #enterDue({ schedules }: StoreWithSchedules, pollMs: number): ScheduleRunner {
    return new ScheduleRunner({ schedules, conversations: this.#log, pollMs, log: this.#safeLog });
  }

  /** Looks again and again for conversations that nobody goes on with: their process died, or was too busy. */
  #poll(pause: number): void {
    const look = async (): Promise<void> => {
      try {
        for (const id of await this.#log.due(MAX_DUE)) this.#want(id);
        const { store } = this.#options;
        // Whose process, which would have looked in time, is gone.
        const expired = await store.expiredRuns?.({ of: 'turns', limit: MAX_DUE });
        for (const { conversationId = '' } of expired ?? []) this.#want(conversationId);
      } catch (error) {
        this.#safeLog.warn('The store could not be asked for conversations', { error });
      }
      if (!this.#closing.signal.aborted) this.#timer = setTimeout(look, pause).unref();
    };
    void look();
  }
}

/** How often a deletion looks whether it has its turn, where nobody tells it. */
const LOOK_MS = 1_000;

function checkDeletes({ remove }: ConversationLog): void {
  if (remove !== undefined) return;
  const problem = 'store deletes no conversations: its conversations have no method remove';
  const fix = 'a PostgresRunStore, SqliteRunStore or MemoryRunStore';
  refuseOptions([{ where: 'Conversations.delete', option: 'store', problem, fix }]);
}

/** No revision of a conversation. */
const NOTHING_SEEN = -1;

/** Conversations that are looked for at once. */
const MAX_DUE = 100;

/** How long turns and jobs that are left may take to notice. */
const GRACE_MS = 500;

function checkId(door: string, conversationId: string): void {
  const of = `Conversations.${door}`;
  checkArguments({ of, given: { conversationId }, rules: { conversationId: STORED_ID } });
}

/** The owner that options name, as JSON. */
function ownerIn({ owner }: PromptOptions): { readonly owner?: unknown } {
  const named = ownerOf({ owner });
  return named === undefined ? {} : { owner: named };
}
