import { setTimeout as pause } from 'node:timers/promises';
import type { CallScope, ToolPolicy } from '../../core/contract/call.js';
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
  type JobStore,
  keepsJobs,
  type StoredJob,
  type StoreWithJobs,
} from '../../core/contract/job-store.js';
import type { Logger } from '../../core/contract/ports.js';
import { STORED_ID } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import {
  checkArguments,
  checkOptions,
  InvalidOptionsError,
  refuseOptions,
  ToolDeclarationError,
} from '../../core/errors/author-fault.js';
import { MAX_TIMER_MS, repeat, withinLimits } from '../../core/kernel/async.js';
import { withoutUndefined } from '../../core/kernel/json.js';
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
import { CONSOLE, logAnswer, logFailure, logSilence } from '../call/failure-log.js';
import { completeJob, jobsOf } from '../call/job-dispatch.js';
import { safeLog } from '../call/log.js';
import { failedResult } from '../call/result-text.js';
import { type RegisteredTool, registryOf, ToolRegistry } from '../call/tool-registry.js';
import { type JobCompletion, JobDoer } from './job-doer.js';

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
    const workers = opened.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : undefined));
    await Promise.all(workers.map((worker) => worker?.close()));
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

const UNREAD = 'Started work could not be looked through';

/** The queues of the tools; without background tools, the queue of the engine. */
function queuesOf(tools: readonly ToolDefinition[]): readonly QueueName[] {
  const queues = tools.flatMap(({ background }) => {
    if (!background) return [];
    return [typeof background === 'object' ? background.queue : undefined];
  });
  return queues.length === 0 ? [undefined] : [...new Set(queues)];
}

/** Describes the work of a process with these tools, with its queues if there are any. */
export function jobWork(tools: readonly ToolDefinition[]): string {
  const queues = queuesOf(tools);
  if (queues.every((queue) => queue === undefined)) return 'jobs';
  return `jobs (queues: ${queues.map((queue) => queue ?? 'that of the engine').join(', ')})`;
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
          logFailure(logger, { what: 'A job could not be given to the engine', error, at: { jobId, tool } });
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
      ? `more workers died of it than its engine lets, ${times === 1 ? 'once' : `${times} times`} (${dead.error})`
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
   * Receives every result once; after a crash, possibly again. If it throws or rejects, the engine delivers the job
   * again.
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
    const problem = 'the engine is transactional, and its database is another than that of the store';
    const fix = 'transactional only where both are in one';
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
          logFailure(logger, { what: 'Jobs are not done in this process', error });
          return undefined;
        }
        logSilence(engine, { logger, error });
        await pause(wait, undefined, { signal, ref: false }).catch(() => {});
      }
    }
    return undefined;
  }
}
