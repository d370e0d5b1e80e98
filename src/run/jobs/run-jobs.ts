import { setTimeout as pause } from 'node:timers/promises';
import { type CallJournal, type CallScope, scopeFields, type ToolPolicy } from '../../core/contract/call.js';
import {
  type DeadJob,
  JOB_ENGINE,
  type Job,
  type JobAttempt,
  type JobEngine,
  type JobWorker,
  type WorkOptions,
} from '../../core/contract/job-engine.js';
import {
  type JobBeginning,
  type JobStore,
  keepsJobs,
  type StoredJob,
  type StoreWithJobs,
} from '../../core/contract/job-store.js';
import type { Logger } from '../../core/contract/ports.js';
import { STORED_ID } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import {
  checkArguments,
  checkOptions,
  InvalidOptionsError,
  refuseOptions,
  ToolDeclarationError,
} from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { MAX_TIMER_MS, repeat, withinLimits } from '../../core/kernel/async.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import { plainJson, withoutUndefined } from '../../core/kernel/json.js';
import {
  COUNT,
  either,
  FUNCTION,
  instanceOf,
  LIST,
  LOGGER,
  MILLISECONDS,
  type OptionRule,
  optionTable,
  protecting,
  required,
  TEXT,
} from '../../core/kernel/options.js';
import { RunIds } from '../call/effect-key.js';
import { CONSOLE, logAnswer, logFailure, logSilence } from '../call/failure-log.js';
import type { Invocation } from '../call/invocation.js';
import { cancelledResult, completeJob, completionEntry, jobsOf } from '../call/job-dispatch.js';
import { safeLog } from '../call/log.js';
import { failedResult, resultText, storedResult } from '../call/result-text.js';
import { fingerprintOf } from '../call/tasks.js';
import { type RegisteredTool, registryOf, ToolRegistry } from '../call/tool-registry.js';

/** An engine, and the store of its jobs. */
interface JobPlace {
  readonly engine: JobEngine;
  readonly jobs: JobStore;
  readonly logger: Logger | undefined;
}

/** The settings of a process's workers. */
interface WorkOfQueues extends JobPlace {
  readonly tools: ToolRegistry;
  readonly work: WorkOptions;
}

/** `undefined` is the queue of the engine. */
type QueueName = string | undefined;

const PAGE = 1_000;

/** The workers of a process: one for each queue with jobs of its tools. */
class QueueWorkers {
  readonly #given: WorkOfQueues;
  readonly #workers = new Map<QueueName, Promise<JobWorker | undefined>>();
  #isOpen = true;

  private constructor(given: WorkOfQueues) {
    this.#given = given;
  }

  /** Takes jobs of all queues of the tools. Rejects, and takes none, if one of the queues is unreachable. */
  static async open(given: WorkOfQueues): Promise<QueueWorkers> {
    const workers = new QueueWorkers(given);
    const queues = queuesOf(given.tools.tools());
    const opened = await Promise.allSettled(queues.map((queue) => workers.#open(queue)));
    const failed = opened.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) {
      await workers.close();
      throw failed.reason;
    }
    if (queues.some((queue) => queue !== undefined)) void workers.#serveLeft();
    return workers;
  }

  /**
   * Takes jobs of the queue that a stored job waits in, if its tool is here: earlier versions may have enqueued it in
   * another queue than its tool names now.
   */
  serve({ job, options: { queue } }: StoredJob): void {
    const { tools, engine, logger } = this.#given;
    if (!this.#isOpen || this.#workers.has(queue) || tools.offered(job.tool) === undefined) return;
    this.#open(queue).catch((error) => logSilence(engine, { logger, error }));
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    const opened = await Promise.allSettled(this.#workers.values());
    await Promise.all(
      opened.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value?.close() : undefined)),
    );
  }

  async #open(queue: QueueName): Promise<void> {
    const { engine, work } = this.#given;
    const opening = engine.work(withoutUndefined({ ...work, queue }));
    this.#workers.set(queue, opening);
    try {
      await opening;
    } catch (error) {
      this.#workers.delete(queue);
      throw error;
    }
  }

  /** Serves queues of jobs from earlier versions, so that no worker without the tool ends them. */
  async #serveLeft(): Promise<void> {
    const { jobs, logger } = this.#given;
    try {
      for (const status of ['waiting', 'running'] as const) {
        for (let after: string | undefined; this.#isOpen; ) {
          const page = await jobs.listJobs(withoutUndefined({ status, limit: PAGE, after }));
          for (const stored of page.jobs) this.serve(stored);
          after = page.next;
          if (after === undefined) break;
        }
      }
    } catch (error) {
      logFailure(logger, { what: UNREAD, error });
    }
  }
}

const UNREAD = 'The jobs that were started could not be read';

/** The queues of the tools; without background tools, the queue of the engine. */
function queuesOf(tools: readonly ToolDefinition[]): readonly QueueName[] {
  const queues = new Set<QueueName>();
  for (const { background } of tools)
    if (background) queues.add(typeof background === 'object' ? background.queue : undefined);
  return queues.size === 0 ? [undefined] : [...queues];
}

/** Describes the work of a process with these tools, with its queues if there are any. */
export function jobWork(tools: readonly ToolDefinition[]): string {
  const queues = queuesOf(tools);
  if (queues.every((queue) => queue === undefined)) return 'jobs';
  return `jobs (queues: ${queues.map((queue) => queue ?? 'the engine’s own').join(', ')})`;
}

/** The store to sweep, and how often. */
interface Sweep extends JobPlace, Pick<RunJobsOptions, 'sweepMs' | 'silentForMs'> {
  /** Takes jobs of the queue of a stored job, if its tool is here. */
  readonly serve: QueueWorkers['serve'];
}

const BATCH = 100;
const LONGEST_PAUSE_MS = 3_600_000;
/** Each revival means more than ten worker crashes: the work itself may crash workers. */
const MOST_REVIVALS = 5;

/**
 * Enqueues jobs of the store that no engine has: their process crashed in between, or a broker lost them. The returned
 * function stops it.
 */
function sweepOutbox(sweep: Sweep): () => Promise<void> {
  const { engine, jobs, serve, logger, sweepMs = 5_000, silentForMs = 60_000 } = sweep;
  const olderThanMs = Math.min(sweepMs, MAX_TIMER_MS);
  const run = async (signal: AbortSignal): Promise<void> => {
    for (;;) {
      const found = await jobs.unsentJobs({ olderThanMs, silentForMs, limit: BATCH });
      for (const stored of found) serve(stored);
      let dead: ReadonlyMap<string, DeadJob>;
      try {
        const listed = await engine.deadJobs({ jobIds: found.map(({ job }) => job.id) });
        dead = new Map(listed.map((entry) => [entry.job.id, entry]));
      } catch (error) {
        logSilence(engine, { logger, error });
        return;
      }
      let failed = 0;
      // One after the other and independently: a job that the engine refuses does not block others.
      for (const stored of found) {
        const { id: jobId, tool } = stored.job;
        await settle(stored, dead.get(jobId), sweep).catch((error) => {
          failed += 1;
          logFailure(logger, { what: 'A job could not be sent to the engine', error, at: { jobId, tool } });
        });
      }
      if (failed > 0 || found.length < BATCH || signal.aborted) return;
    }
  };
  const work = async (signal: AbortSignal) => {
    await run(signal).catch((error) => logFailure(logger, { what: UNREAD, error }));
    return sweepMs;
  };
  return repeat(work, { firstMs: sweepMs, ref: true });
}

async function settle(stored: StoredJob, dead: DeadJob | undefined, place: JobPlace): Promise<void> {
  const { engine, jobs, logger } = place;
  const { job, options, attempt, addedAt, changedAt } = stored;
  const workersDied = dead?.workersDied === true;
  const { revivals = 0 } = dead?.job ?? {};
  // If it was tried and its workers live, its last failure could not be recorded, so nothing else completes it.
  const isOver = workersDied ? revivals >= (options.revivals ?? MOST_REVIVALS) : attempt > 0;
  if (dead !== undefined && isOver) {
    const times = revivals + 1;
    const why = workersDied
      ? `it crashed more workers than its engine allows, ${times === 1 ? 'once' : `${times} times`} (${dead.error})`
      : dead.error;
    const message = `The work of the tool '${job.tool}' was given up: ${why}`;
    if (await completeJob(jobs, dead.job, failedResult('TaskInterrupted', message)))
      await engine.publish({ type: 'end', jobId: job.id });
    return;
  }
  if (dead === undefined) await engine.enqueue(job, options);
  else {
    // The pause grows with the age of the job: work that crashes workers runs less and less often, and work whose
    // workers crashed for other reasons is not lost.
    const age = changedAt - addedAt - (options.delay ?? 0);
    const delay = workersDied ? Math.min(Math.max(0, age), LONGEST_PAUSE_MS) : 0;
    const revived = workersDied ? { ...job, revivals: revivals + 1 } : job;
    if (await engine.revive(revived, { ...options, delay }))
      safeLog(logger ?? CONSOLE).warn(
        'A job that was given up before its attempts were used up is tried again',
        { jobId: job.id, error: dead.error, delay },
      );
  }
  await jobs.jobSent(job.id);
}

/** Options of {@link runJobs}. */
export interface RunJobsOptions {
  readonly engine: JobEngine;
  /** The store with which the jobs were started. */
  readonly store: StoreWithJobs;
  /** The tools of the jobs. */
  readonly tools: ToolRegistry | readonly RegisteredTool[];
  /** Returns the scope of a job. Channel, chat, conversation and owner are always the job's own. */
  readonly jobScope?: (job: Job) => CallScope | Promise<CallScope>;
  /** The most jobs of each queue at the same time; default: 10. */
  readonly concurrency?: number;
  /** Decides about every job, in addition to the registry's policy: both must allow it. */
  readonly policy?: ToolPolicy;
  /**
   * Receives the result of every job that was done here, once; after a crash, possibly again. If it throws or rejects,
   * the engine delivers the job again while it has attempts left; the work is not repeated.
   */
  readonly onAsyncResult?: (completion: JobCompletion) => unknown;
  readonly logger?: Logger;
  /** How often to search for jobs that no engine has, in milliseconds; default: 5,000. */
  readonly sweepMs?: number;
  /** After how many milliseconds without news an enqueued job is enqueued again; default: 60,000. */
  readonly silentForMs?: number;
  /**
   * How long a job whose tool is missing here is returned to its queue. Other workers may have the tool. Then it ends
   * with an error. In milliseconds since it first arrived here; default: 600,000.
   */
  readonly missingToolMs?: number;
}

/** Runs jobs until it is closed. */
export interface JobRunner {
  /**
   * Takes no more jobs. Resolves when running jobs have ended, or were returned because the store is unavailable.
   * Engine and store stay open.
   */
  close(): Promise<void>;
}

const JOBS: OptionRule = { accepts: keepsJobs, fix: "new SqliteRunStore({ path: 'runs.sqlite' })" };

const OPTIONS = optionTable<RunJobsOptions>('runJobs', {
  engine: required(JOB_ENGINE),
  store: required(JOBS),
  tools: required({
    ...either(instanceOf(ToolRegistry, 'a ToolRegistry'), LIST),
    fix: 'a ToolRegistry, or [tool, …]',
  }),
  jobScope: protecting(FUNCTION),
  concurrency: COUNT,
  policy: protecting(FUNCTION),
  onAsyncResult: FUNCTION,
  logger: LOGGER,
  sweepMs: MILLISECONDS,
  silentForMs: MILLISECONDS,
  missingToolMs: MILLISECONDS,
});

const DEFAULT_CONCURRENCY = 10;

/**
 * Runs the work that calls have started on an engine, in this process. It finds the tool by name, checks the
 * arguments, evaluates the policies, and runs the tool like any call. A result is recorded once, even if two workers
 * have the same job; failed work is tried again as often as its tool states. If the definition has changed since the
 * call, the work runs if its arguments are still valid, and otherwise ends with `DefinitionChanged` (529).
 *
 * It takes jobs of the queues of its tools (`background: { queue }`), of the engine's queue for tools without a
 * queue, and of any other queue in which the store has unfinished jobs of its tools, for example after a tool's queue
 * was changed.
 *
 * It also enqueues jobs that are in the store but in no engine, so that nothing is lost if a broker forgets jobs.
 *
 * @throws InvalidOptionsError (521), also if the engine is transactional in another database than the store’s. Errors
 * of the engine if it is unreachable, and of the store if the engine is transactional.
 *
 * @example
 * ```ts
 * const engine = new MemoryJobEngine();
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * const worker = await runJobs({ engine, store, tools });
 * await runToolLoop({ provider, model, tools, engine, store }, messages);
 * await worker.close();
 * ```
 */
export async function runJobs(options: RunJobsOptions): Promise<JobRunner> {
  return beginJobs(options);
}

/** The same; `leave` stops running jobs and leaves them to other processes. */
async function beginJobs(options: RunJobsOptions): Promise<JobRunner & Pick<JobDoer, 'leave'>> {
  checkOptions(options, OPTIONS);
  const { engine, store, tools: given, concurrency = DEFAULT_CONCURRENCY } = options;
  jobsOf({ engine, store }, OPTIONS.of);
  // Otherwise results would be written to a database where they are not read.
  const { commitsIn } = engine;
  if (commitsIn !== undefined && (await store.jobs.isKeptIn?.(commitsIn)) === false) {
    const problem = 'the engine is transactional, but the store is in another database';
    const fix = 'the engine and the store in one database; or an engine without transactional';
    refuseOptions([{ where: OPTIONS.of, option: 'store', problem, fix }]);
  }
  const tools = registryOf(given);
  const { sweepMs, silentForMs } = options;
  const logger = jobLogger(options);
  const { jobs } = store;
  const doer = new JobDoer({ ...options, tools, jobs, logger });
  const handle = (job: Job, attempt: JobAttempt) => doer.handle(job, attempt);
  const work = { concurrency, handle, logger };
  const workers = await QueueWorkers.open({ engine, jobs, tools, work, logger });
  const serve = (stored: StoredJob) => workers.serve(stored);
  const closeSweep = sweepOutbox({ engine, jobs, serve, sweepMs, silentForMs, logger });
  return {
    leave: () => doer.leave(),
    close: async () => {
      doer.close();
      await Promise.all([workers.close(), closeSweep()]);
      await doer.idle();
    },
  };
}

/** The logger for running jobs; `undefined` for the console. */
function jobLogger({ logger, tools }: Pick<RunJobsOptions, 'logger' | 'tools'>): Logger | undefined {
  return logger ?? (tools instanceof ToolRegistry ? tools.logger : undefined);
}

/** Options to cancel a job. */
export interface CancelJobOptions {
  readonly engine: JobEngine;
  readonly store: StoreWithJobs;
  readonly reason?: string;
}

const CANCEL_OPTIONS = optionTable<CancelJobOptions>('cancelJob', {
  engine: required(JOB_ENGINE),
  store: required(JOBS),
  reason: TEXT,
});

/**
 * Cancels started work, waiting or running: it completes with `TaskCancelled` (519), and the signal of its tool is
 * aborted. Returns `false` if there is no such job, or if it already has its result.
 *
 * @throws InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * const engine = new MemoryJobEngine();
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * const isCancelled = await cancelJob('task_7', { engine, store, reason: 'the shop is closing' });
 * ```
 */
export async function cancelJob(jobId: string, options: CancelJobOptions): Promise<boolean> {
  checkArguments({ of: 'cancelJob', given: { jobId }, rules: { jobId: STORED_ID } });
  checkOptions(options, CANCEL_OPTIONS);
  const { engine, store, reason } = options;
  const stored = await store.jobs.job(jobId);
  if (stored === undefined) return false;
  return jobsOf({ engine, store }, 'cancelJob').cancel(jobId, reason, stored.job.tool);
}

type BegunJobs = Awaited<ReturnType<typeof beginJobs>>;

const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 10_000;
/** How long the end of a process waits for a connection to an engine that is being opened. */
const BEGIN_WITHIN_MS = 5_000;

/** Runs jobs once the engine is reachable, however long that takes. */
export class BackgroundJobs {
  readonly #closing = new AbortController();
  readonly #runner: Promise<BegunJobs | undefined>;
  #begun: BegunJobs | undefined;

  constructor(options: RunJobsOptions) {
    this.#runner = this.#begin(options);
  }

  /** Takes no more jobs, and resolves when running jobs have ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    const begun = withinLimits(this.#runner, { signal: undefined, timeoutMs: BEGIN_WITHIN_MS });
    const runner = await begun.catch(() => undefined);
    await runner?.close();
  }

  /** Stops running jobs immediately, and leaves them to other processes. */
  leave(): void {
    this.#closing.abort();
    this.#begun?.leave();
  }

  async #begin(options: RunJobsOptions): Promise<BegunJobs | undefined> {
    const { signal } = this.#closing;
    const { engine } = options;
    const logger = jobLogger(options);
    for (let wait = FIRST_RETRY_MS; !signal.aborted; wait = Math.min(2 * wait, LONGEST_RETRY_MS)) {
      try {
        const runner = await beginJobs(options);
        this.#begun = runner;
        logAnswer(engine, logger);
        if (!signal.aborted) return runner;
        await runner.close();
      } catch (error) {
        if (signal.aborted) return undefined;
        if (error instanceof InvalidOptionsError || error instanceof ToolDeclarationError) {
          logFailure(logger, { what: 'No jobs are run in this process', error });
          return undefined;
        }
        logSilence(engine, { logger, error });
        await pause(wait, undefined, { signal, ref: false }).catch(() => {});
      }
    }
    return undefined;
  }
}

const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 30_000;
/** The distance between returned jobs, up to the longest delay, so that many of them leave time for other jobs. */
const APART_MS = 30;
/** How long other workers may have the tool of a job, as in a rolling deploy. */
const MISSING_TOOL_MS = 600_000;
/** The most remembered jobs. */
const REMEMBERED = 10_000;

/**
 * Milliseconds for which a job without its tool is returned to its queue: one second at first, then twice as long each
 * time, and longer if many jobs are returned. Every second time it is returned immediately, because the end of a delay
 * may always wake the same worker first. `undefined` if no other worker has taken it for too long.
 */
function delaysOfMissingTools(limitMs = MISSING_TOOL_MS) {
  /** When each job first arrived here, by a monotonic clock. */
  const arrived = new Map<string, number>();
  /** When the latest jobs were returned, for as long as the longest delay. */
  const returned: number[] = [];
  return (jobId: string, attempt: number): number | undefined => {
    const now = performance.now();
    const since = arrived.get(jobId) ?? now;
    if (now - since >= limitMs) return undefined;
    arrived.delete(jobId);
    arrived.set(jobId, since);
    forgetOldest(arrived, REMEMBERED);
    if (attempt % 2 === 0) return 0;
    while (returned[0] !== undefined && now - returned[0] > LONGEST_DELAY_MS) returned.shift();
    const number = returned.push(now);
    const growing = FIRST_DELAY_MS * 2 ** ((attempt - 1) / 2);
    return Math.min(LONGEST_DELAY_MS, Math.max(growing, number * APART_MS));
  };
}

/** The result of a job. */
export interface JobCompletion {
  readonly job: Job;
  readonly result: ToolResult;
}

/** The settings for running jobs. */
type JobWork = Omit<RunJobsOptions, 'store' | 'tools' | 'concurrency' | 'sweepMs' | 'silentForMs'> & {
  readonly jobs: JobStore;
  readonly tools: ToolRegistry;
};

/** The outcome of one attempt. */
interface AttemptEnd {
  readonly result: ToolResult;
  /** Another attempt may succeed. */
  readonly isFailure: boolean;
  /** It was stopped before it had ended. */
  readonly isStopped?: boolean;
}

/** How long to wait for an unavailable store: before the job starts, and with a result that would be lost. */
const BEGIN_JOB_WITHIN_MS = 30_000;
const COMPLETE_WITHIN_MS = 300_000;
/** How often a result is committed with the end of its job, before it is recorded separately. */
const MOST_COMMITS = 3;
const FIRST_STORE_PAUSE_MS = 50;
const LONGEST_STORE_PAUSE_MS = 1000;

/** Runs jobs as calls of a registry, and records the result of each once. */
class JobDoer {
  readonly #work: JobWork;
  readonly #log: Logger;
  readonly #enterSlot = toolSlots();
  readonly #reporting = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  readonly #leaving = new AbortController();
  readonly #delayOf: ReturnType<typeof delaysOfMissingTools>;
  readonly #reportedMissing = new Set<string>();

  constructor(work: JobWork) {
    this.#work = work;
    this.#log = safeLog(work.logger ?? CONSOLE);
    this.#delayOf = delaysOfMissingTools(work.missingToolMs);
  }

  /** One attempt. Rejects if it failed, so that the engine tries again or lists the job as dead. */
  async handle(job: Job, attempt: JobAttempt): Promise<void> {
    // Before any write, because there may be thousands of them.
    if (await this.#leaveToOthers(job, attempt)) return;
    const background = this.#work.tools.offered(job.tool)?.background;
    const concurrency = typeof background === 'object' ? background.concurrency : undefined;
    const leave = await this.#enterSlot(job.tool, concurrency);
    try {
      // It has waited for a slot and has not started.
      if (this.#leaving.signal.aborted) return await attempt.giveBack();
      const beginning = await this.#begin(job, attempt);
      if (beginning === undefined) await attempt.giveBack();
      else if (beginning.status === 'run') await this.#attempt(job, attempt);
      // Its worker crashed before the engine and listeners had received the result.
      else if (beginning.status === 'settled') await this.#report(job, new ToolResult(beginning.result));
      else
        this.#log.warn('The engine delivered a job that the store does not have; it is not run', {
          jobId: job.id,
        });
    } finally {
      leave();
    }
  }

  /** From now on, an unavailable store is not waited for: its jobs are left to other processes. */
  close(): void {
    this.#closing.abort();
  }

  /** Stops running jobs and returns them for other processes. */
  leave(): void {
    this.close();
    this.#leaving.abort(new DOMException('The process that ran the job was closed', 'AbortError'));
  }

  /**
   * Whether a job was returned to its queue because its tool is missing here: in a rolling deploy, another worker has
   * it.
   */
  async #leaveToOthers({ id, tool }: Job, attempt: JobAttempt): Promise<boolean> {
    if (this.#work.tools.offered(tool) !== undefined) return false;
    const delay = this.#delayOf(id, attempt.attempt);
    if (delay === undefined) return false;
    if (!this.#reportedMissing.has(tool))
      this.#log.warn('A job is returned to the engine, because its tool is missing here', {
        jobId: id,
        tool,
      });
    this.#reportedMissing.add(tool);
    attempt.signal.throwIfAborted();
    await attempt.giveBack({ delay });
    return true;
  }

  /** Resolves when all completions have been delivered. */
  async idle(): Promise<void> {
    await Promise.all(this.#reporting);
  }

  /** `undefined` if the store is unavailable; that uses up no attempt of the tool. */
  async #begin(job: Job, { attempt, signal }: JobAttempt): Promise<JobBeginning | undefined> {
    try {
      const begin = () => this.#work.jobs.beginJob(job.id, attempt);
      return await this.#insist(begin, { signal, withinMs: BEGIN_JOB_WITHIN_MS });
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      this.#logFailure('A job is returned to the engine, because the store cannot be reached', job, error);
      return undefined;
    }
  }

  async #attempt(job: Job, attempt: JobAttempt): Promise<void> {
    const { result, isFailure, isStopped } = await this.#run(job, attempt);
    const { signal } = attempt;
    if (isStopped && this.#leaving.signal.aborted && !signal.aborted) return attempt.giveBack();
    // Another worker has the job now, and must complete it.
    if (signal.aborted && !isCancelled(signal)) throw signal.reason;
    // With a logger, the call has logged it.
    if (isFailure && this.#work.logger === undefined)
      this.#logFailure('A job failed', job, result.error ?? result.forLLM);
    const isOver = !isFailure || attempt.isLast;
    if (isOver && (await this.#complete(job, attempt, { result, isFailure })))
      await this.#report(job, result);
    if (isFailure) throw result.error ?? new Error(resultText(result));
  }

  /** Whether this was the first result of the job. */
  async #complete(job: Job, attempt: JobAttempt, end: AttemptEnd): Promise<boolean> {
    const { signal } = attempt;
    try {
      const record = this.#recorder(job, attempt, end);
      return await this.#insist(record, { signal, withinMs: COMPLETE_WITHIN_MS });
    } catch (error) {
      this.#logFailure('The result of a job could not be recorded', job, error);
      // As if this process had crashed: another one repeats the work.
      if (this.#closing.signal.aborted && !signal.aborted) await attempt.giveBack();
      throw error;
    }
  }

  /** Creates a function that records a result, and can be called again after a failure. */
  #recorder(
    job: Job,
    { commit, signal }: JobAttempt,
    { result, isFailure }: AttemptEnd,
  ): () => Promise<boolean> {
    const { jobs, onAsyncResult } = this.#work;
    const stored = storedResult(result);
    const entry = completionEntry(job, result);
    const reported = withoutUndefined({ entry });
    // Listeners must receive it again after a crash, so the engine must still have the job.
    if (commit === undefined || isFailure || onAsyncResult !== undefined)
      return async () => jobs.completeJob(job.id, stored, reported);
    let [failures, isFirst] = [0, false];
    const hasResult = async () => (await jobs.job(job.id))?.result !== undefined;
    return async () => {
      // The answer to a commit may have been lost.
      if (failures > 0 && (await hasResult())) return isFirst;
      let failure: unknown = new Error('the store does not find it after the commit');
      try {
        await commit(async (transaction) => {
          isFirst = await jobs.completeJob(job.id, stored, { transaction, ...reported });
        });
        // Another worker may have recorded a result.
        if (isFirst || (await hasResult())) return isFirst;
      } catch (error) {
        failures += 1;
        if (signal.aborted || failures < MOST_COMMITS) throw error;
        failure = error;
      }
      if ((await jobs.job(job.id)) === undefined) {
        const message = 'The result of a job was dropped, because its conversation or the job was deleted';
        this.#log.info(message, { jobId: job.id });
        return false;
      }
      const isNew = await jobs.completeJob(job.id, stored, reported);
      const what =
        'A result could not be committed in one transaction with the end of its job; it was saved separately';
      this.#logFailure(what, job, failure);
      return isNew;
    };
  }

  /** An unavailable store uses up no attempt, and no work is repeated. Rejects with the last error of the store. */
  async #insist<Value>(
    work: () => Value | Promise<Value>,
    { signal, withinMs }: { readonly signal: AbortSignal; readonly withinMs: number },
  ): Promise<Value> {
    const closing = this.#closing.signal;
    const end = performance.now() + withinMs;
    for (let wait = FIRST_STORE_PAUSE_MS; ; wait = Math.min(2 * wait, LONGEST_STORE_PAUSE_MS)) {
      try {
        return await work();
      } catch (error) {
        if (signal.aborted || closing.aborted || performance.now() + wait > end) throw error;
      }
      await pause(wait, undefined, { signal: AbortSignal.any([signal, closing]) }).catch(() => {});
    }
  }

  #logFailure(what: string, { id: jobId, tool }: Job, error: unknown): void {
    logFailure(this.#work.logger, { what, error, at: { jobId, tool } });
  }

  async #report(job: Job, result: ToolResult): Promise<void> {
    const { engine, logger, onAsyncResult } = this.#work;
    await onAsyncResult?.({ job, result });
    // Not awaited: processes that wait for the job check the store, too.
    const report = engine
      .publish({ type: 'end', jobId: job.id })
      .catch((error) => logSilence(engine, { logger, error }))
      .finally(() => this.#reporting.delete(report));
    this.#reporting.add(report);
  }

  async #run(job: Job, attempt: JobAttempt): Promise<AttemptEnd> {
    const { tools, policy, logger } = this.#work;
    const definition = tools.offered(job.tool);
    if (definition === undefined) {
      const message = `No worker has the tool '${job.tool}' of this job.`;
      return { result: failedResult('ToolNotFound', message), isFailure: true };
    }
    const { callId: id, tool: name, arguments: args, idempotencyKey, trace: startedBy } = job;
    const isTransformed = job.transformed === true;
    if (whatChanged(job, definition).length > 0) {
      const checked = await tools.check(name, args, { transformed: isTransformed });
      // All arguments were accepted when the job was started.
      const lost =
        checked.ok && checked.removed.length > 0 && changedResult(job, definition, checked.removed);
      if (lost) return { result: lost, isFailure: false };
    }
    // Jobs of older versions count as approved.
    const { approved = {} } = job;
    const answeredBy = approved === false ? undefined : approved.answeredBy;
    const journal: CallJournal = {
      arguments: args,
      ...(approved !== false && { approved: true }),
      ...(answeredBy !== undefined && { given: [{ kind: 'approval', index: 0, answeredBy }] }),
      answers: [],
      once: [],
    };
    const request = { id, name, arguments: args, isTransformed, journal, idempotencyKey, startedBy };
    const options = {
      attempt: attempt.attempt,
      // As for all started work: only the tool's own limit applies.
      toolTimeoutMs: Number.POSITIVE_INFINITY,
      jobs: undefined,
      ...withoutUndefined({ policy, logger }),
    };
    // The caller's scopes were checked when the job was started.
    const scope = { ...(await this.#scopeOf(job, attempt)), scopes: definition.scopes ?? [] };
    const invocation = await RunIds.inJob(idempotencyKey, () => tools.invoke(request, scope, options));
    return endOf(invocation, { job, definition, signal: attempt.signal });
  }

  async #scopeOf(job: Job, { signal }: JobAttempt): Promise<CallScope> {
    const { engine, jobScope, logger } = this.#work;
    const given = scopeFields(await jobScope?.(job));
    return {
      ...given,
      ...job.scope,
      signal: AbortSignal.any([signal, this.#leaving.signal]),
      onUpdate: (update, call) => {
        engine
          .publish({ type: 'progress', jobId: job.id, update: plainJson(update) ?? null })
          .catch((error) => logSilence(engine, { logger, error }));
        return given.onUpdate?.(update, call);
      },
    };
  }
}

function endOf(
  invocation: Invocation,
  {
    job,
    definition,
    signal,
  }: { readonly job: Job; readonly definition: ToolDefinition; readonly signal: AbortSignal },
): AttemptEnd {
  if (isCancelled(signal))
    return { result: cancelledResult(job.tool, signal.reason.message), isFailure: false };
  const { record, result } = invocation;
  const { status } = record;
  const { waits = [], journal } = invocation.status === 'suspended' ? invocation.suspension : {};
  if (status === 'rejected' || journal?.reasks !== undefined)
    return { result: changedResult(job, definition) ?? result, isFailure: false };
  if (waits.some(({ kind }) => kind === 'approval')) {
    const message = `The tool '${job.tool}' now needs an approval, and this work was started without one. The work was not done. Call the tool again to request an approval.`;
    return { result: failedResult('NotExecutableHere', message), isFailure: false };
  }
  const isStopped = status === 'aborted';
  return { result, isFailure: status === 'error' || status === 'timed_out', isStopped };
}

function isCancelled({ reason }: AbortSignal): boolean {
  return ToolwrightError.is(reason) && reason.name === 'TaskCancelled';
}

/** The outcome of a job whose arguments are no longer valid for the current tool. */
function changedResult(
  job: Job,
  definition: ToolDefinition,
  lost: readonly string[] = [],
): ToolResult | undefined {
  const changed = whatChanged(job, definition);
  if (changed.length === 0) return undefined;
  const missing = lost.length === 0 ? '' : ` It no longer has ${lost.map((path) => `'${path}'`).join(', ')}.`;
  return failedResult(
    'DefinitionChanged',
    `The tool '${job.tool}' was changed after the work had been started (${changed.join(' and ')}), and no longer accepts its arguments: ${JSON.stringify(job.arguments)}.${missing} The work was not done.`,
  );
}

/** The parts of a tool that changed since a job was started. */
function whatChanged(job: Job, definition: ToolDefinition): readonly string[] {
  const [parameters, options] = job.fingerprint.split('.');
  const [parametersNow, optionsNow] = fingerprintOf(definition).split('.');
  return [
    ...(parameters === parametersNow ? [] : ['its parameters']),
    ...(options === optionsNow ? [] : ['its options']),
  ];
}

/** Limits the running jobs of each tool to its `concurrency`. */
function toolSlots() {
  /** The number of running jobs of each tool, and the jobs that wait for a slot. */
  const tools = new Map<string, { running: number; readonly waiting: (() => void)[] }>();
  /** Resolves when the job may run; call the returned function when it has ended. */
  return async (tool: string, concurrency = Number.POSITIVE_INFINITY): Promise<() => void> => {
    const slots = tools.get(tool) ?? { running: 0, waiting: [] };
    tools.set(tool, slots);
    if (slots.running < concurrency) slots.running += 1;
    else await new Promise<void>((resolve) => slots.waiting.push(resolve));
    return () => {
      // The slot goes to the next job, or becomes free.
      const next = slots.waiting.shift();
      if (next !== undefined) next();
      else slots.running -= 1;
      if (slots.running === 0) tools.delete(tool);
    };
  };
}
