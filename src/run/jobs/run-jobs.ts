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
import { checkArguments, checkOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { MAX_TIMER_MS, repeat } from '../../core/kernel/async.js';
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
import { CONSOLE, logFailure, logSilence } from '../call/failure-log.js';
import { completeJob, jobsOf } from '../call/job-dispatch.js';
import { SafeLog } from '../call/log.js';
import type { RegisteredTool } from '../call/registration.js';
import { failedResult } from '../call/result-text.js';
import { registryOf, ToolRegistry } from '../call/tool-registry.js';
import { type JobCompletion, JobDoer } from './job-doer.js';

/** What workers do their jobs with. */
interface WorkOfQueues {
  readonly engine: JobEngine;
  readonly jobs: JobStore;
  readonly tools: ToolRegistry;
  readonly work: WorkOptions;
  readonly logger: Logger | undefined;
}

/** `undefined` is the queue of the engine. */
type QueueName = string | undefined;

const PAGE = 1_000;

/** The workers of a process: one for each queue in which jobs of its tools wait. */
class QueueWorkers {
  readonly #given: WorkOfQueues;
  readonly #workers = new Map<QueueName, Promise<JobWorker | undefined>>();
  #isOpen = true;

  private constructor(given: WorkOfQueues) {
    this.#given = given;
  }

  /** Takes jobs of all queues that the tools name. Rejects, and takes none, if one of the queues cannot be reached. */
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
   * Takes jobs of the queue that a stored job waits in, if its tool is here: versions before may have enqueued it in
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

  /** What waits since before this version, so that no worker ends it meanwhile because it lacks the tool. */
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

/** Where jobs of the tools wait: without background tools in the queue of the engine. */
function queuesOf(tools: readonly ToolDefinition[]): readonly QueueName[] {
  const queues = tools.flatMap(({ background }) => {
    if (!background) return [];
    return [typeof background === 'object' ? background.queue : undefined];
  });
  return queues.length === 0 ? [undefined] : [...new Set(queues)];
}

/** What a process does that does jobs of these tools; if they name queues, also of which queues. */
export function jobWork(tools: readonly ToolDefinition[]): string {
  const queues = queuesOf(tools);
  if (queues.every((queue) => queue === undefined)) return 'jobs';
  return `jobs (queues: ${queues.map((queue) => queue ?? 'that of the engine').join(', ')})`;
}

/** What is swept, and how often. */
interface Sweep {
  readonly engine: JobEngine;
  readonly jobs: JobStore;
  readonly workers: QueueWorkers;
  readonly sweepMs: number | undefined;
  readonly silentForMs: number | undefined;
  readonly logger: Logger | undefined;
}

const BATCH = 100;
const LONGEST_PAUSE_MS = 3_600_000;
/** Each means more than ten deaths: it may be the work that workers die of. */
const MOST_REVIVALS = 5;

/** Enqueues what the store holds and no engine has: its process died in between, or a broker lost it. */
class OutboxSweeper {
  readonly #sweep: Sweep;
  readonly #log: SafeLog;
  readonly close: () => Promise<void>;

  constructor(sweep: Sweep) {
    this.#sweep = sweep;
    const { logger, sweepMs = 5_000 } = sweep;
    this.#log = new SafeLog(logger ?? CONSOLE);
    const work = async (signal: AbortSignal) => {
      try {
        await this.#run(sweepMs, signal);
      } catch (error) {
        logFailure(logger, { what: UNREAD, error });
      }
      return sweepMs;
    };
    this.close = repeat(work, { firstMs: sweepMs, ref: true });
  }

  async #run(sweepMs: number, signal: AbortSignal): Promise<void> {
    const { jobs, workers, silentForMs = 60_000 } = this.#sweep;
    const olderThanMs = Math.min(sweepMs, MAX_TIMER_MS);
    for (;;) {
      const found = await jobs.unsentJobs({ olderThanMs, silentForMs, limit: BATCH });
      for (const stored of found) workers.serve(stored);
      const dead = await this.#deadOf(found);
      if (dead === undefined) return;
      const failed = await this.#settleAll(found, dead);
      if (failed > 0 || found.length < BATCH || signal.aborted) return;
    }
  }

  /** One after the other, and each for itself: a job that the engine cannot take keeps no others waiting. */
  async #settleAll(found: readonly StoredJob[], dead: ReadonlyMap<string, DeadJob>): Promise<number> {
    let failed = 0;
    for (const stored of found) {
      const { id: jobId, tool } = stored.job;
      await this.#settle(stored, dead.get(jobId)).catch((error) => {
        failed += 1;
        const what = 'A job could not be given to the engine';
        logFailure(this.#sweep.logger, { what, error, at: { jobId, tool } });
      });
    }
    return failed;
  }

  async #settle(stored: StoredJob, dead: DeadJob | undefined): Promise<void> {
    const workersDied = dead?.workersDied === true;
    // Its last failure could not be recorded, so nothing else completes it.
    if (dead !== undefined && stored.attempt > 0 && !workersDied) return this.#bury(dead);
    const { engine, jobs } = this.#sweep;
    const { job, options } = stored;
    const { revivals = 0 } = dead?.job ?? {};
    if (workersDied && revivals >= (options.revivals ?? MOST_REVIVALS)) return this.#bury(dead);
    if (dead === undefined) await engine.enqueue(job, options);
    else {
      const delay = workersDied ? pauseBefore(stored) : 0;
      const revived = workersDied ? { ...job, revivals: revivals + 1 } : job;
      if (await engine.revive(revived, { ...options, delay }))
        this.#log.warn('A job that was given up before its attempts were used up is tried again', {
          jobId: job.id,
          error: dead.error,
          delay,
        });
    }
    await jobs.jobSent(job.id);
  }

  /** `undefined` if the engine does not answer. */
  async #deadOf(found: readonly StoredJob[]): Promise<ReadonlyMap<string, DeadJob> | undefined> {
    const { engine, logger } = this.#sweep;
    try {
      const dead = await engine.deadJobs({ jobIds: found.map(({ job }) => job.id) });
      return new Map(dead.map((entry) => [entry.job.id, entry]));
    } catch (error) {
      logSilence(engine, { logger, error });
      return undefined;
    }
  }

  async #bury({ job, error, workersDied = false }: DeadJob): Promise<void> {
    const { engine, jobs } = this.#sweep;
    const times = (job.revivals ?? 0) + 1;
    const why = workersDied
      ? `more workers died of it than its engine lets, ${times === 1 ? 'once' : `${times} times`} (${error})`
      : error;
    const message = `The work of the tool '${job.tool}' was given up: ${why}`;
    if (await completeJob(jobs, job, failedResult('TaskInterrupted', message)))
      await engine.publish({ type: 'end', jobId: job.id });
  }
}

/**
 * As long as the job has been tried: what its workers die of comes ever more seldom, and where they died of something
 * else, no work is lost.
 */
function pauseBefore({ addedAt, changedAt, options: { delay = 0 } }: StoredJob): number {
  return Math.min(Math.max(0, changedAt - addedAt - delay), LONGEST_PAUSE_MS);
}

/** Options of {@link runJobs}. */
export interface RunJobsOptions {
  readonly engine: JobEngine;
  /** The one that the jobs were started with, or another on the same database. */
  readonly store: StoreWithJobs;
  /** The tools that jobs name: of the same classes as where they were started. */
  readonly tools: ToolRegistry | readonly RegisteredTool[];
  /**
   * The scope of a job: `data`, `container`, … of its owner (`job.scope.owner`). Channel, chat, conversation and owner
   * are the job's own, whatever this gives.
   */
  readonly jobScope?: (job: Job) => CallScope | Promise<CallScope>;
  /** Jobs of each queue at the same time; default 10. */
  readonly concurrency?: number;
  /** Decides about every job, beside the registry's policy: both must allow it. */
  readonly policy?: ToolPolicy;
  /**
   * Hears of every result, once; after a crash it may hear of one again. One that throws or rejects lets the engine
   * bring the job again.
   */
  readonly onAsyncResult?: (completion: JobCompletion) => unknown;
  readonly logger?: Logger;
  /** How often jobs are looked for that no engine has, in milliseconds; default 5,000. */
  readonly sweepMs?: number;
  /** How long nothing may be heard of a job that an engine had, before it is enqueued again; default 60,000. */
  readonly silentForMs?: number;
  /**
   * For how long a job whose tool is missing here is returned to its queue, as other workers may have the tool; then it
   * ends with the error that no worker has it. In milliseconds since it first came here, default 600,000.
   */
  readonly missingToolMs?: number;
}

/** Does jobs, until it is closed. */
export interface JobRunner {
  /**
   * Takes no more jobs, and resolves when those under way have ended, or were given back because the store cannot be
   * reached. Engine and store stay open.
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
 * Does the work that calls have started on an engine, in this process: finds the tool by its name, holds the arguments
 * against it, asks the policies, and runs it as any call. A result is recorded once, also where two workers have the
 * same job; what failed is tried again as often as its tool says. Where the definition has changed since the call,
 * the work is done if its arguments still fit, and otherwise ends with `DefinitionChanged` (529).
 *
 * It takes jobs of the queues that its tools name (`background: { queue }`), of the engine's queue for those that name
 * none, and of any other queue in which the store has unfinished jobs of its tools, as after a tool got another queue.
 *
 * It also enqueues what the store holds and no engine has, so that a broker that forgets loses nothing.
 *
 * @throws InvalidOptionsError (521), also where the engine is transactional in another database than the store’s. What the
 *   engine throws where it cannot be reached, and the store, too, where the engine is transactional.
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

/** The same; `leave` stops the jobs that run, and leaves them to others. */
export async function beginJobs(options: RunJobsOptions): Promise<JobRunner & Pick<JobDoer, 'leave'>> {
  checkOptions(options, OPTIONS);
  const { engine, store, tools: given, concurrency = DEFAULT_CONCURRENCY } = options;
  jobsOf({ engine, store }, OPTIONS.of);
  await checkDatabase({ engine, store });
  const tools = registryOf(given);
  const { sweepMs, silentForMs } = options;
  const logger = jobLogger(options);
  const { jobs } = store;
  const doer = new JobDoer({ ...options, tools, jobs, ...(logger ? { logger } : {}) });
  const work = {
    concurrency,
    handle: (job: Job, attempt: JobAttempt) => doer.handle(job, attempt),
    ...(logger ? { logger } : {}),
  };
  const workers = await QueueWorkers.open({ engine, jobs, tools, work, logger });
  const sweeper = new OutboxSweeper({ engine, jobs, workers, sweepMs, silentForMs, logger });
  return {
    leave: () => doer.leave(),
    close: async () => {
      doer.close();
      await Promise.all([workers.close(), sweeper.close()]);
      await doer.idle();
    },
  };
}

/** Where it is logged how jobs are done; `undefined` for the console. */
export function jobLogger({ logger, tools }: Pick<RunJobsOptions, 'logger' | 'tools'>): Logger | undefined {
  return logger ?? (tools instanceof ToolRegistry ? tools.logger : undefined);
}

/** Results would be written where they are not looked for, or nowhere. */
async function checkDatabase({ engine, store }: Pick<RunJobsOptions, 'engine' | 'store'>): Promise<void> {
  const { commitsIn } = engine;
  if (commitsIn === undefined || (await store.jobs.isKeptIn?.(commitsIn)) !== false) return;
  const problem = 'the engine is transactional, and its database is another than that of the store';
  refuseOptions([
    { where: OPTIONS.of, option: 'store', problem, fix: 'transactional only where both are in one' },
  ]);
}

/** Which job is to be cancelled, and where it is. */
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
 * Ends started work as cancelled, wherever it waits or runs: it completes with `TaskCancelled` (519), and the signal of
 * its tool is aborted. `false` where there is no such job, or where it has its result already.
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
