import { withMethods } from '../kernel/options.js';
import type { NewInboxEntry } from './conversation-log.js';
import type { Job, JobOptions, SqlTransaction } from './job-engine.js';
import type { StoredResult } from './run-state.js';

/** `waiting`: not begun; `running`: a worker has begun it, and may have crashed; `completed`: it has its result. */
export type JobStatus = 'waiting' | 'running' | 'completed';

/** A job as a store knows it. */
export interface StoredJob {
  readonly job: Job;
  readonly options: JobOptions;
  readonly status: JobStatus;
  /** The number of the latest attempt that has begun; 0 where none has. */
  readonly attempt: number;
  /** Milliseconds since 1970, by the store's clock. */
  readonly addedAt: number;
  /** When it was last added, sent, begun or completed. */
  readonly changedAt: number;
  readonly result?: StoredResult;
}

/** Which jobs have to be enqueued again. */
export interface UnsentQuery {
  /** Jobs that were added at least so many milliseconds ago and were never marked as sent. */
  readonly olderThanMs: number;
  /** And jobs that were sent, of which nothing was heard for so long: a broker may have lost them. */
  readonly silentForMs: number;
  /** At most so many, the oldest first. */
  readonly limit: number;
}

/** Which jobs are listed. */
export interface JobQuery {
  readonly status?: JobStatus;
  /** The `next` of the page before. */
  readonly after?: string;
  /** At most so many, from 1 to 1,000; default 100. */
  readonly limit?: number;
}

/** One page of jobs, the latest change first. */
export interface JobPage {
  readonly jobs: readonly StoredJob[];
  readonly next?: string;
}

/** Whether an attempt is to be made: a job that has its result is not done again, and one that was forgotten neither. */
export type JobBeginning =
  | { readonly status: 'run' }
  | { readonly status: 'settled'; readonly result: StoredResult }
  | { readonly status: 'missing' };

/** What commits together with a result. */
export interface CompletionOptions {
  /** Of the same database: the store writes in it, and whoever began it commits. Others ignore it. */
  readonly transaction?: SqlTransaction;
  /** Enters its conversation with the first result, in a store that keeps conversations, too. */
  readonly entry?: NewInboxEntry;
}

/**
 * Keeps started work: an outbox, so that a job is neither lost nor made up where its process dies before a broker has
 * it, and the results, each of which is recorded once. Every method is atomic, also between processes; methods may be
 * synchronous.
 */
export interface JobStore {
  /** Stores a job; `false`, without a change, if there is one with this id. */
  addJob(job: Job, options: JobOptions): boolean | Promise<boolean>;
  unsentJobs(query: UnsentQuery): readonly StoredJob[] | Promise<readonly StoredJob[]>;
  /** An engine has the job. */
  jobSent(jobId: string): void | Promise<void>;
  /** An attempt begins, unless the job has its result. */
  beginJob(jobId: string, attempt: number): JobBeginning | Promise<JobBeginning>;
  /** Records the result of a job; true once for each job, whoever asks. */
  completeJob(jobId: string, result: StoredResult, also?: CompletionOptions): boolean | Promise<boolean>;
  job(jobId: string): StoredJob | undefined | Promise<StoredJob | undefined>;
  listJobs(query?: JobQuery): JobPage | Promise<JobPage>;
  /**
   * Forgets jobs that were completed so many milliseconds ago, or earlier, and gives their number.
   *
   * @deprecated `retention({ jobs: ageMs })` of the stores does the same.
   */
  removeJobsOlderThan(ageMs: number): number | Promise<number>;
  /**
   * Whether this is the database that the store is kept in, so that `completeJob` can write in its transactions. A store
   * without it is refused beside an engine that has any.
   */
  isKeptIn?(database: SqlTransaction): boolean | Promise<boolean>;
}

/** A store of runs that stores jobs, too. */
export interface StoreWithJobs {
  readonly jobs: JobStore;
}

const JOB_STORE = withMethods(
  [
    ...['addJob', 'unsentJobs', 'jobSent', 'beginJob', 'completeJob'],
    ...['job', 'listJobs', 'removeJobsOlderThan'],
  ],
  '',
);

/** Whether a store supports jobs. */
export function keepsJobs(store: unknown): store is StoreWithJobs {
  return JOB_STORE.accepts((store as StoreWithJobs | undefined)?.jobs);
}
