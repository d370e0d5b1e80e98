import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { Job, JobOptions } from '../contract/job-engine.js';
import type {
  CompletionOptions,
  JobBeginning,
  JobPage,
  JobQuery,
  JobStatus,
  JobStore,
  StoredJob,
  UnsentQuery,
} from '../contract/job-store.js';
import type { StoredResult } from '../contract/run-state.js';
import { jobPage, readJobQuery } from '../errors/list-pages.js';
import { checkAge } from '../errors/store-checks.js';
import { type Prepared, preparedIn } from './open-database.js';
import type { SqliteConversationLog } from './sqlite-conversation-log.js';

/** Times in milliseconds. */
const TABLE = `
  CREATE TABLE IF NOT EXISTS toolwright_jobs (
    job_id TEXT PRIMARY KEY,
    job TEXT NOT NULL,
    options TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('waiting', 'running', 'completed')),
    is_sent INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    added_at REAL NOT NULL,
    changed_at REAL NOT NULL,
    result TEXT,
    CHECK ((status = 'completed') = (result IS NOT NULL))
  ) STRICT;
  CREATE INDEX IF NOT EXISTS toolwright_jobs_open
    ON toolwright_jobs (is_sent, changed_at) WHERE status <> 'completed';
  CREATE INDEX IF NOT EXISTS toolwright_jobs_by_change ON toolwright_jobs (changed_at DESC, job_id);
  CREATE INDEX IF NOT EXISTS toolwright_jobs_by_status ON toolwright_jobs (status, changed_at DESC, job_id);
`;

const PLACE = '(changed_at < $changedAt OR (changed_at = $changedAt AND job_id > $jobId))';
const ORDER = 'ORDER BY changed_at DESC, job_id LIMIT $limit';

const SQL = {
  add: `
    INSERT INTO toolwright_jobs (job_id, job, options, status, added_at, changed_at)
    VALUES ($jobId, $job, $options, 'waiting', $now, $now) ON CONFLICT DO NOTHING`,
  unsent: `
    SELECT * FROM toolwright_jobs WHERE status <> 'completed' AND is_sent = $isSent AND changed_at <= $limitAt
    ORDER BY changed_at LIMIT $limit`,
  sent: `
    UPDATE toolwright_jobs SET is_sent = 1, changed_at = $now WHERE job_id = $jobId AND status <> 'completed'`,
  begin: `
    UPDATE toolwright_jobs
    SET status = 'running', is_sent = 1, attempt = max(attempt, $attempt), changed_at = $now
    WHERE job_id = $jobId AND status <> 'completed'`,
  complete: `
    UPDATE toolwright_jobs SET status = 'completed', result = $result, changed_at = $now
    WHERE job_id = $jobId AND status <> 'completed'`,
  get: 'SELECT * FROM toolwright_jobs WHERE job_id = $jobId',
  list: `SELECT * FROM toolwright_jobs WHERE ${PLACE} ${ORDER}`,
  listOf: `SELECT * FROM toolwright_jobs WHERE status = $status AND ${PLACE} ${ORDER}`,
  remove: "DELETE FROM toolwright_jobs WHERE status = 'completed' AND changed_at <= $limitAt",
} as const;

interface JobRow {
  readonly job: string;
  readonly options: string;
  readonly status: JobStatus;
  readonly attempt: number;
  readonly added_at: number;
  readonly changed_at: number;
  readonly result: string | null;
}

/** Where jobs are kept, and the conversations beside them. */
interface JobsPlace {
  readonly database: DatabaseSync;
  readonly now: () => number;
  readonly conversations: SqliteConversationLog;
}

/** The started work of a store in an SQLite file. */
export class SqliteJobs implements JobStore {
  readonly #now: () => number;
  readonly #conversations: SqliteConversationLog;
  readonly #sql: Prepared<keyof typeof SQL>;

  constructor({ database, now, conversations }: JobsPlace) {
    this.#now = now;
    this.#conversations = conversations;
    database.exec(TABLE);
    this.#sql = preparedIn(database, SQL);
  }

  addJob(job: Job, options: JobOptions): boolean {
    const texts = { job: JSON.stringify(job), options: JSON.stringify(options) };
    return this.#change('add', { jobId: job.id, ...texts });
  }

  unsentJobs({ olderThanMs, silentForMs, limit }: UnsentQuery): readonly StoredJob[] {
    const now = this.#now();
    const unsent = this.#rows('unsent', { isSent: 0, limitAt: now - olderThanMs, limit });
    const rest = limit - unsent.length;
    const silent = this.#rows('unsent', { isSent: 1, limitAt: now - silentForMs, limit: rest });
    return [...unsent, ...silent];
  }

  jobSent(jobId: string): void {
    this.#change('sent', { jobId });
  }

  beginJob(jobId: string, attempt: number): JobBeginning {
    if (this.#change('begin', { jobId, attempt })) return { status: 'run' };
    const result = this.job(jobId)?.result;
    return result === undefined ? { status: 'missing' } : { status: 'settled', result };
  }

  completeJob(jobId: string, result: StoredResult, { entry }: CompletionOptions = {}): boolean {
    const complete = () => this.#change('complete', { jobId, result: JSON.stringify(result) });
    return entry === undefined ? complete() : this.#conversations.enterWith(entry, complete);
  }

  job(jobId: string): StoredJob | undefined {
    return this.#rows('get', { jobId })[0];
  }

  listJobs(query: JobQuery = {}): JobPage {
    const { status, after, limit } = readJobQuery(query);
    const { changedAt, id: jobId } = after ?? { changedAt: Number.MAX_VALUE, id: '' };
    const place = { changedAt, jobId, limit: limit + 1 };
    const jobs =
      status === undefined ? this.#rows('list', place) : this.#rows('listOf', { ...place, status });
    return jobPage(jobs, limit);
  }

  removeJobsOlderThan(ageMs: number): number {
    checkAge(ageMs);
    return Number(this.#sql.remove.run({ limitAt: this.#now() - ageMs }).changes);
  }

  #change(name: keyof typeof SQL, values: Record<string, SQLInputValue>): boolean {
    return this.#sql[name].run({ ...values, now: this.#now() }).changes !== 0;
  }

  #rows(name: keyof typeof SQL, values: Record<string, SQLInputValue>): readonly StoredJob[] {
    return (this.#sql[name].all(values) as unknown as readonly JobRow[]).map(read);
  }
}

function read({ job, options, status, attempt, added_at, changed_at, result }: JobRow): StoredJob {
  return {
    job: JSON.parse(job) as Job,
    options: JSON.parse(options) as JobOptions,
    status,
    attempt,
    addedAt: added_at,
    changedAt: changed_at,
    ...(result === null ? {} : { result: JSON.parse(result) as StoredResult }),
  };
}
