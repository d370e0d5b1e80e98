import { type OptionRule, withMethods } from '../kernel/options.js';
import type { JsonObject } from './json-schema.js';
import type { Logger, TracePlace } from './ports.js';

/** The part of a call's scope that is stored with a job: as JSON, without `data`. */
export interface JobScope {
  readonly channel?: string;
  readonly chatId?: string;
  readonly conversationId?: string;
  /** The owner of the work. */
  readonly owner?: unknown;
}

/**
 * Started work as plain JSON: the name of a tool and arguments, never a closure, so that every process with the tool
 * can execute it.
 */
export interface Job {
  /** The same id for the same call, so that it is enqueued once. */
  readonly id: string;
  readonly tool: string;
  /** Valid for the tool's schema when the call was made. */
  readonly arguments: JsonObject;
  /** The arguments were already transformed by `@Transform` of class-transformer, and must not be transformed again. */
  readonly transformed?: true;
  readonly scope: JobScope;
  /** Fingerprint of the tool's definition when the call was made. */
  readonly fingerprint: string;
  /** Passed to other systems by the tool, so that they do not repeat an effect. */
  readonly idempotencyKey: string;
  readonly callId: string;
  readonly runId?: string;
  /** Whether the call was approved, and by whom, if that is known. Absent in jobs of older versions. */
  readonly approved?: false | { readonly answeredBy?: unknown };
  /** The position of the call in a trace; the work links to it. */
  readonly trace?: TracePlace;
  /** How often it was revived because too many workers had crashed with it; absent if never. */
  readonly revivals?: number;
}

/** The pause before the next attempt after a failure. */
export interface JobBackoff {
  /** `exponential`: `delay`, twice that, four times that, …, with a random variation. */
  readonly type: 'fixed' | 'exponential';
  /** Milliseconds, ten years at most. An engine that counts in seconds rounds up. */
  readonly delay: number;
}

/** How an engine treats a job. */
export interface JobOptions {
  /** The most attempts if the work fails, at most 1,000,000; default: 1. A worker crash does not use up an attempt. */
  readonly attempts?: number;
  /** Default: none. */
  readonly backoff?: JobBackoff;
  /** 0, the default, goes first; then 1, 2, … up to 1,000,000. */
  readonly priority?: number;
  /** Milliseconds before the first attempt, ten years at most; default: 0. */
  readonly delay?: number;
  /**
   * The job's queue: only workers of that queue take it. 1 to 64 letters, digits, `_`, `-` and `.`; default: the
   * queue of the engine.
   */
  readonly queue?: string;
  /**
   * How often the work is restarted after more than ten workers crashed with it; default: 5. Engines do not read
   * this; the process that checks the store's outbox does.
   */
  readonly revivals?: number;
}

/** Options to return a job to its queue. */
export interface GiveBackOptions {
  /** Milliseconds for which no worker receives the job. It does not count as a running job. Default: 0. */
  readonly delay?: number;
}

/** One attempt at a job. */
export interface JobAttempt {
  /** Aborted when the job is cancelled, or when the engine gave it to another worker. */
  readonly signal: AbortSignal;
  /** Counts every start from 1, including those that a crashed worker did not finish. */
  readonly attempt: number;
  /** Whether a failure of this attempt makes the job dead. */
  readonly isLast: boolean;
  /** Reports to the engine that the work continues, if the engine cannot detect it. */
  heartbeat(): Promise<void>;
  /**
   * Returns the job to its queue, for another worker or a later attempt; no attempt is used up. Afterwards, the
   * result of the handler is ignored.
   */
  giveBack(options?: GiveBackOptions): Promise<void>;
  /**
   * Commits writes together with the end of the job, in one transaction of the engine's own database; only for
   * engines that support this and are configured for it. Rejects, without a write, if the job no longer belongs to
   * this worker.
   */
  readonly commit?: (write: (transaction: SqlTransaction) => Promise<void>) => Promise<void>;
}

/** A transaction of an SQL database; the code that began it also ends it. */
export interface SqlTransaction {
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/** Executes a job. A rejection is a failed attempt, unless the job was cancelled. */
export type JobHandler = (job: Job, attempt: JobAttempt) => Promise<void>;

/** Options of a worker. */
export interface WorkOptions {
  /** The most jobs at the same time; default: 1. */
  readonly concurrency?: number;
  /** The only queue that jobs are taken from; default: the queue of the engine. */
  readonly queue?: string;
  readonly handle: JobHandler;
  /** Receives connection failures and recoveries of the engine, if the engine has no own logger. */
  readonly logger?: Logger;
}

/** Takes jobs until it is closed. */
export interface JobWorker {
  /** Stops taking jobs, and resolves when running jobs have ended. */
  close(): Promise<void>;
}

/** How an engine is closed. */
export interface EngineCloseOptions {
  /**
   * Milliseconds after which open connections are cut; other workers receive the running jobs when their leases
   * expire. Default: no limit.
   */
  readonly timeoutMs?: number;
}

/** An event of a job, which all subscribers of all processes receive: JSON. */
export type JobNews =
  | { readonly type: 'progress'; readonly jobId: string; readonly update: unknown }
  | { readonly type: 'end'; readonly jobId: string };

/** Receives news of jobs. Errors that it throws have no effect. */
export type JobNewsListener = (news: JobNews) => void;

/** A job that its engine no longer tries. */
export interface DeadJob {
  readonly job: Job;
  /** The error of its last attempt. */
  readonly error: string;
  readonly attempts: number;
  /** The job has attempts left, but more workers crashed with it than the engine allows. */
  readonly workersDied?: boolean;
}

/** Selects dead jobs. */
export interface DeadJobQuery {
  /** The most jobs, latest first; default: 100. */
  readonly limit?: number;
  /** Only jobs with these ids, without a limit. */
  readonly jobIds?: readonly string[];
}

/**
 * The interface to the queue that runs started work. `toolwright/bullmq` and `toolwright/pg-boss` outlive processes;
 * `MemoryJobEngine` does not. An engine gives a job to one worker at a time, and again after a worker crash: **at
 * least once**. Handlers must protect effects that may happen only once.
 */
export interface JobEngine {
  /**
   * Identifies the engine in messages, with its queue and address: `BullMQ, queue 'shop' in Redis at 127.0.0.1:6379`.
   */
  readonly name?: string;
  /**
   * Rejects with the reason if the engine cannot be used: a package is missing, or its broker does not answer. It
   * creates no tables. For `toolwright doctor`.
   */
  check?(): Promise<void>;
  /** Adds a job. If its queue already has the id of a waiting, running or ended job, nothing changes. */
  enqueue(job: Job, options?: JobOptions): Promise<void>;
  /** Starts to take jobs; a process may have several workers. */
  work(options: WorkOptions): Promise<JobWorker>;
  /**
   * Cancels a job in any queue: a waiting job is removed; the signal of a running job is aborted. The job is not
   * tried again and does not become a dead job. Returns `false` if no such job waits or runs.
   */
  cancel(jobId: string, reason?: string): Promise<boolean>;
  /** Publishes an event to all current subscribers; there is no replay for later ones. */
  publish(news: JobNews): Promise<void>;
  /** Resolves when the subscription is active, with a function that ends it. */
  subscribe(listener: JobNewsListener): Promise<() => Promise<void>>;
  /** Jobs of all queues that are no longer tried, latest first. */
  deadJobs(query?: DeadJobQuery): Promise<readonly DeadJob[]>;
  /**
   * Adds a dead job again, in the given form, with all its attempts, to the queue in `options`. Returns false,
   * without a change, if no job with its id is dead.
   */
  revive(job: Job, options?: JobOptions): Promise<boolean>;
  /**
   * Closes the workers of all queues after their running jobs, and then all connections that it opened. Calling it
   * twice has no further effect.
   */
  close(options?: EngineCloseOptions): Promise<void>;
  /**
   * The engine’s own database, if the engine gives `commit` to handlers: the store must use the same database. Each
   * query is its own transaction.
   */
  readonly commitsIn?: SqlTransaction | undefined;
}

/** The rule for {@link JobOptions.queue}. */
export const JOB_QUEUE: OptionRule = {
  accepts: (value) => typeof value === 'string' && /^[\w.-]{1,64}$/.test(value),
  fix: "1 to 64 letters, digits, '_', '-' and '.': 'mail'",
};

/** The rule for the option `engine`. */
export const JOB_ENGINE = withMethods(
  ['enqueue', 'work', 'cancel', 'publish', 'subscribe', 'deadJobs', 'revive', 'close'],
  'new MemoryJobEngine(), or bullmqEngine({ connection })',
);
