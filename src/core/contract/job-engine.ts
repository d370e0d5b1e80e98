import { type OptionRule, withMethods } from '../kernel/options.js';
import type { JsonObject } from './json-schema.js';
import type { Logger, TracePlace } from './ports.js';

/** The part of a call's scope that a job stores: as JSON, and never `data`. */
export interface JobScope {
  readonly channel?: string;
  readonly chatId?: string;
  readonly conversationId?: string;
  /** On whose behalf the work takes place. */
  readonly owner?: unknown;
}

/**
 * Started work as plain JSON: the name of a tool and arguments, never a closure, so that any process that has the
 * tool can do it.
 */
export interface Job {
  /** The same for the same call, so that it is enqueued once. */
  readonly id: string;
  readonly tool: string;
  /** As they fitted the tool's schema when the call was made. */
  readonly arguments: JsonObject;
  /** They are as `@Transform` of class-transformer left them, and are not transformed again. */
  readonly transformed?: true;
  readonly scope: JobScope;
  /** Of the tool's definition when the call was made. */
  readonly fingerprint: string;
  /** What the tool hands to other systems, so that they do nothing twice. */
  readonly idempotencyKey: string;
  readonly callId: string;
  readonly runId?: string;
  /** Whether the call was approved, and by whom, if that was given. Absent in jobs of older versions. */
  readonly approved?: false | { readonly answeredBy?: unknown };
  /** Where the call stands in a trace, which the work links to. */
  readonly trace?: TracePlace;
  /** How often it was revived because too many workers had died of it; only where it was. */
  readonly revivals?: number;
}

/** The pause before an attempt that follows a failed one. */
export interface JobBackoff {
  /** `exponential`: `delay`, twice that, four times that, …, give or take a little. */
  readonly type: 'fixed' | 'exponential';
  /** Milliseconds, ten years at most. An engine that counts in seconds rounds up. */
  readonly delay: number;
}

/** How an engine treats a job. */
export interface JobOptions {
  /** How often the work is tried, where it fails; default 1, at most 1,000,000. A worker that dies does not use up an attempt. */
  readonly attempts?: number;
  /** Default: none. */
  readonly backoff?: JobBackoff;
  /** 0, the default, goes first; then 1, 2, … up to 1,000,000. */
  readonly priority?: number;
  /** Milliseconds before the first attempt, ten years at most; default 0. */
  readonly delay?: number;
  /**
   * The queue in which the job waits: only workers of that queue take it. 1 to 64 letters, digits, `_`, `-` and `.`;
   * default: the queue of the engine.
   */
  readonly queue?: string;
  /**
   * How often the work is tried anew after more than ten workers died of it, at growing distances; default 5. Engines
   * know nothing of it: who looks through the outbox of the store does that.
   */
  readonly revivals?: number;
}

/** How a job is returned to its queue. */
export interface GiveBackOptions {
  /** Milliseconds for which no worker gets the job; it takes no place among the jobs that run. Default 0. */
  readonly delay?: number;
}

/** One try at a job. */
export interface JobAttempt {
  /** Aborted when the job is cancelled, or when the engine has given it to another worker. */
  readonly signal: AbortSignal;
  /** Counts every beginning from 1, also those that a dying worker did not end. */
  readonly attempt: number;
  /** A failure now is the last: the job is then listed as dead. */
  readonly isLast: boolean;
  /** Tells the engine that the work goes on, where it does not find out by itself. */
  heartbeat(): Promise<void>;
  /**
   * Returns the job to its queue, for another worker or for this one later: no attempt is used up. The handler ends after
   * it, and how it ends does not count.
   */
  giveBack(options?: GiveBackOptions): Promise<void>;
  /**
   * Commits writes together with the end of the job, in one transaction of the engine's own database; there where
   * the engine can do that and is configured to. Rejects, and nothing is written, where the job is no longer this
   * worker's.
   */
  readonly commit?: (write: (transaction: SqlTransaction) => Promise<void>) => Promise<void>;
}

/** A transaction of an SQL database that its owner begins and ends. */
export interface SqlTransaction {
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/** Does a job. A rejection is a failed attempt, except after the job was cancelled. */
export type JobHandler = (job: Job, attempt: JobAttempt) => Promise<void>;

/** What a worker receives with a job. */
export interface WorkOptions {
  /** Jobs at the same time; default 1. */
  readonly concurrency?: number;
  /** The only queue that jobs are taken from; default: the queue of the engine. */
  readonly queue?: string;
  readonly handle: JobHandler;
  /** Receives that the engine does not answer, and that it answers again, if the engine has no logger of its own. */
  readonly logger?: Logger;
}

/** Takes jobs, as long as it is open. */
export interface JobWorker {
  /** Takes no more jobs, and resolves when those under way have ended. */
  close(): Promise<void>;
}

/** How an engine is closed. */
export interface EngineCloseOptions {
  /**
   * Milliseconds after which its connections are cut, whatever they do; other workers get the jobs that still run when
   * their leases end. Default: as long as jobs take and the broker answers.
   */
  readonly timeoutMs?: number;
}

/** An event of a job, which all subscribers of all processes receive: JSON. */
export type JobNews =
  | { readonly type: 'progress'; readonly jobId: string; readonly update: unknown }
  | { readonly type: 'end'; readonly jobId: string };

/** Hears of news. One that throws changes nothing. */
export type JobNewsListener = (news: JobNews) => void;

/** A job that its engine tries no more. */
export interface DeadJob {
  readonly job: Job;
  /** What its last attempt failed with. */
  readonly error: string;
  readonly attempts: number;
  /** Its attempts are not used up: more workers died with it in hand than the engine lets. */
  readonly workersDied?: boolean;
}

/** Which of the dead jobs are listed. */
export interface DeadJobQuery {
  /** At most so many, the latest first; default 100. */
  readonly limit?: number;
  /** Only those of these ids, however many there are. */
  readonly jobIds?: readonly string[];
}

/**
 * The port to what runs started work: a queue that outlives processes (`toolwright/bullmq`, `toolwright/pg-boss`),
 * or `MemoryJobEngine`, which does not. It gives a job to one worker at a time, again where a worker dies, and so
 * **at least once**: what has to happen once is guarded by whoever handles it.
 */
export interface JobEngine {
  /** Names the engine in messages, with its queue and its address: `BullMQ, queue 'shop' in Redis at 127.0.0.1:6379`. */
  readonly name?: string;
  /**
   * Rejects with the reason if the engine cannot be used: a package is missing, or its broker does not answer. It makes
   * no tables. For `toolwright doctor`.
   */
  check?(): Promise<void>;
  /** Adds a job; one that its queue knows by its id, waiting, running or ended, is not added again. */
  enqueue(job: Job, options?: JobOptions): Promise<void>;
  /** Begins to take jobs; a process may have several workers. */
  work(options: WorkOptions): Promise<JobWorker>;
  /**
   * Ends a job in whatever queue it is: it is taken out where it waits, and its signal aborted where it runs. It is not tried
   * again, and is none of the dead ones. `false` where no such job waits or runs.
   */
  cancel(jobId: string, reason?: string): Promise<boolean>;
  /** Publishes an event to all current subscribers; there is no replay for later ones. */
  publish(news: JobNews): Promise<void>;
  /** Resolves when the subscription is active, with a function that ends it. */
  subscribe(listener: JobNewsListener): Promise<() => Promise<void>>;
  /** Jobs of all queues that are tried no more, the latest first. */
  deadJobs(query?: DeadJobQuery): Promise<readonly DeadJob[]>;
  /**
   * Adds a dead job again, as it is given, with all its attempts, to the queue that `options` name; false, and nothing
   * changes, if none of its id is dead.
   */
  revive(job: Job, options?: JobOptions): Promise<boolean>;
  /** Closes its workers of all queues, which drains them, and then all that it opened itself. Closing twice is no fault. */
  close(options?: EngineCloseOptions): Promise<void>;
  /**
   * The engine’s own database, where it hands `commit` to whoever does jobs: the store has to be kept there, too. Each
   * query is a transaction of its own.
   */
  readonly commitsIn?: SqlTransaction | undefined;
}

/** A name of {@link JobOptions.queue}. */
export const JOB_QUEUE: OptionRule = {
  accepts: (value) => typeof value === 'string' && /^[\w.-]{1,64}$/.test(value),
  fix: "1 to 64 letters, digits, '_', '-' and '.': 'mail'",
};

/** What the option `engine` may be. */
export const JOB_ENGINE = withMethods(
  ['enqueue', 'work', 'cancel', 'publish', 'subscribe', 'deadJobs', 'revive', 'close'],
  'new MemoryJobEngine(), or bullmqEngine({ connection })',
);
