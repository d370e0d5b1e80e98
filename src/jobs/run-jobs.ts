import { jobsOf } from '../call/job-dispatch.js';
import type { RegisteredTool } from '../call/registration.js';
import { registryOf, ToolRegistry } from '../call/tool-registry.js';
import type { CallScope, ToolPolicy } from '../contract/call.js';
import { JOB_ENGINE, type Job, type JobAttempt, type JobEngine } from '../contract/job-engine.js';
import { keepsJobs, type StoreWithJobs } from '../contract/job-store.js';
import type { Logger } from '../contract/ports.js';
import { STORED_ID } from '../contract/run-state.js';
import { checkArguments, checkOptions, refuseOptions } from '../errors/author-fault.js';
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
} from '../kernel/options.js';
import { warningLogger } from './engine-trouble.js';
import { type JobCompletion, JobDoer } from './job-doer.js';
import { OutboxSweeper } from './outbox-sweeper.js';
import { QueueWorkers } from './queue-workers.js';

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
  const doer = new JobDoer({ ...options, tools, jobs: store.jobs });
  const { sweepMs, silentForMs, logger } = options;
  const { jobs } = store;
  const work = {
    concurrency,
    handle: (job: Job, attempt: JobAttempt) => doer.handle(job, attempt),
    logger: logger ?? warningLogger(),
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

/** Results would be written where nobody looks for them, or nowhere. */
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
