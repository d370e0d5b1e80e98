import { storeWith } from '../kernel/options.js';
import type { NewInboxEntry } from './conversation-log.js';
import type { Job, JobOptions, SqlTransaction } from './job-engine.js';
import type { StoredResult } from './run-state.js';

/** `waiting`: not begun; `running`: a worker has begun it, and may have crashed; `completed`: it has its result. */
export type JobStatus = 'waiting' | 'running' | 'completed';

/** A job in a store. */
export interface StoredJob {
  readonly job: Job;
  readonly options: JobOptions;
  readonly status: JobStatus;
  /** The number of the latest attempt that has begun; 0 if there was no attempt. */
  readonly attempt: number;
  /** Milliseconds since 1970, by the store's clock. */
  readonly addedAt: number;
  /** When it was last added, sent, begun or completed. */
  readonly changedAt: number;
  readonly result?: StoredResult;
}

/** Selects the jobs that must be enqueued again. */
export interface UnsentQuery {
  /** Selects jobs that were added at least this many milliseconds ago and were never marked as sent. */
  readonly olderThanMs: number;
  /** Also selects jobs that were sent and did not change for this many milliseconds: a broker may have lost them. */
  readonly silentForMs: number;
  /** The most jobs, oldest first. */
  readonly limit: number;
}

/** Selects jobs. */
export interface JobQuery {
  readonly status?: JobStatus;
  /** The `next` of the previous page. */
  readonly after?: string;
  /** The most jobs, from 1 to 1,000; default: 100. */
  readonly limit?: number;
}

/** A page of jobs, latest change first. */
export interface JobPage {
  readonly jobs: readonly StoredJob[];
  readonly next?: string;
}

/** Whether an attempt may start: completed and deleted jobs are not executed again. */
export type JobBeginning =
  | { readonly status: 'run' }
  | { readonly status: 'settled'; readonly result: StoredResult }
  | { readonly status: 'missing' };

/** Changes that are committed together with a result. */
export interface CompletionOptions {
  /** A transaction of the same database: the store writes in it, and the caller commits it. Other stores ignore it. */
  readonly transaction?: SqlTransaction;
  /** Added to its conversation with the first result, if the store also stores conversations. */
  readonly entry?: NewInboxEntry;
}

/**
 * Stores started work. The outbox ensures that a job is neither lost nor duplicated if its process crashes before a
 * broker has it. Each result is recorded once. Every method is atomic, also between processes; methods may be
 * synchronous.
 */
export interface JobStore {
  /** Stores a job; `false`, without a change, if there is already a job with this id. */
  addJob(job: Job, options: JobOptions): boolean | Promise<boolean>;
  unsentJobs(query: UnsentQuery): readonly StoredJob[] | Promise<readonly StoredJob[]>;
  /** Marks the job as enqueued in an engine. */
  jobSent(jobId: string): void | Promise<void>;
  /** Starts an attempt, unless the job has its result. */
  beginJob(jobId: string, attempt: number): JobBeginning | Promise<JobBeginning>;
  /** Records the result of a job; true only for the first call per job. */
  completeJob(jobId: string, result: StoredResult, also?: CompletionOptions): boolean | Promise<boolean>;
  job(jobId: string): StoredJob | undefined | Promise<StoredJob | undefined>;
  listJobs(query?: JobQuery): JobPage | Promise<JobPage>;
  /**
   * Deletes jobs that were completed at least this many milliseconds ago; returns their number.
   *
   * @deprecated `retention({ jobs: ageMs })` of the stores does the same.
   */
  removeJobsOlderThan(ageMs: number): number | Promise<number>;
  /**
   * Whether the store uses this database, so that `completeJob` can write in its transactions. A store without this
   * method is refused if the engine has such a database.
   */
  isKeptIn?(database: SqlTransaction): boolean | Promise<boolean>;
}

/** A run store that also stores jobs. */
export interface StoreWithJobs {
  readonly jobs: JobStore;
}

/** Whether a store supports jobs. */
export const keepsJobs = storeWith<StoreWithJobs>('jobs', [
  ...['addJob', 'unsentJobs', 'jobSent', 'beginJob', 'completeJob'],
  ...['job', 'listJobs', 'removeJobsOlderThan'],
]);
