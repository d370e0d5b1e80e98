import { randomUUID } from 'node:crypto';
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
import { pageBehind, type Row, removeOld, type SqlDriver, statements, wholeMs } from './driver.js';

const OPEN = "status <> 'completed'";
const ROW = 'job_id, job, options, status, attempt, added_at, changed_at, result';

const unsent = (isSent: boolean, age: string): string => `
  SELECT * FROM (
    SELECT ${ROW} FROM :jobs WHERE ${OPEN} AND is_sent = ${isSent} AND changed_at <= {at} - ${age}::bigint
    ORDER BY changed_at LIMIT $3
  ) AS sent_${isSent}`;

const page = (where: string) => pageBehind({ table: ':jobs', columns: ROW, id: 'job_id', where });

const COMPLETE = `
  UPDATE :jobs SET status = 'completed', result = $2, completed_by = $3::uuid, changed_at = {now}
  WHERE job_id = $1 AND ${OPEN} RETURNING job_id`;

/** `$1` is the job, where a statement has one. Writes have names, by which one that is sent twice finds itself. */
const SQL = statements('job', {
  add: `
    INSERT INTO :jobs (job_id, job, options, status, added_by, added_at, changed_at)
    SELECT $1, $2, $3, 'waiting', $4::uuid, now, now FROM (SELECT {now} AS now) AS clock WHERE true
    ON CONFLICT DO NOTHING RETURNING job_id`,
  added: 'SELECT job_id FROM :jobs WHERE job_id = $1 AND added_by = $2::uuid',
  unsent: `${unsent(false, '$1')} UNION ALL ${unsent(true, '$2')} LIMIT $3`,
  sent: `UPDATE :jobs SET is_sent = true, changed_at = {now} WHERE job_id = $1 AND ${OPEN}`,
  begin: `
    UPDATE :jobs SET status = 'running', is_sent = true, changed_at = {now},
      attempt = CASE WHEN attempt < $2 THEN $2 ELSE attempt END
    WHERE job_id = $1 AND ${OPEN} RETURNING job_id`,
  complete: COMPLETE,
  // The entry of a conversation, `$4` to `$6`, comes with the first result; one of the same key is there already.
  complete_telling: {
    steps: {
      done: COMPLETE,
      changed: `
        UPDATE :fleet_conversations SET entered = entered + 1, revision = revision + 1, is_due = true, changed_at = {now}
        WHERE conversation_id = $4 AND {done}
          AND NOT EXISTS (SELECT 1 FROM :fleet_inbox WHERE conversation_id = $4 AND key = $5)
        RETURNING entered`,
      added: `
        INSERT INTO :fleet_inbox (conversation_id, position, key, content)
        SELECT $4, {changed.entered}, $5, $6 WHERE {changed} ON CONFLICT DO NOTHING`,
    },
    tells: { about: 'inbox', value: 4, once: 'changed' },
  },
  completed: 'SELECT job_id FROM :jobs WHERE job_id = $1 AND completed_by = $2::uuid',
  get: `SELECT ${ROW} FROM :jobs WHERE job_id = $1`,
  list: page('true'),
  list_of: page('status = $4'),
  remove: `
    DELETE FROM :jobs WHERE job_id IN (
      SELECT job_id FROM :jobs WHERE status = 'completed' AND changed_at <= {at} - $1::bigint
      LIMIT $2 FOR UPDATE SKIP LOCKED
    )`,
});

/** The started work of a store. */
export class SqlJobs implements JobStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async addJob(job: Job, options: JobOptions): Promise<boolean> {
    const name = randomUUID();
    const values = [job.id, JSON.stringify(job), JSON.stringify(options), name];
    const { rows, isRepeated } = await this.#driver.run(SQL.add, values);
    return rows.length > 0 || (isRepeated && this.#has('added', [job.id, name]));
  }

  async unsentJobs({ olderThanMs, silentForMs, limit }: UnsentQuery): Promise<readonly StoredJob[]> {
    const values = [wholeMs(olderThanMs), wholeMs(silentForMs), limit];
    return (await this.#driver.run(SQL.unsent, values)).rows.map(storedJob);
  }

  async jobSent(jobId: string): Promise<void> {
    await this.#driver.run(SQL.sent, [jobId]);
  }

  async beginJob(jobId: string, attempt: number): Promise<JobBeginning> {
    const { rows } = await this.#driver.run(SQL.begin, [jobId, attempt]);
    if (rows.length > 0) return { status: 'run' };
    const result = (await this.job(jobId))?.result;
    return result === undefined ? { status: 'missing' } : { status: 'settled', result };
  }

  async completeJob(
    jobId: string,
    result: StoredResult,
    { transaction, entry }: CompletionOptions = {},
  ): Promise<boolean> {
    const statement = entry === undefined ? SQL.complete : SQL.complete_telling;
    const told = entry === undefined ? [] : [entry.conversationId, entry.key, JSON.stringify(entry.content)];
    const name = randomUUID();
    const values = [jobId, JSON.stringify(result), name, ...told];
    if (transaction !== undefined && this.#driver.runIn !== undefined)
      return (await this.#driver.runIn(transaction, statement, values)).rows.length > 0;
    const { rows, isRepeated } = await this.#driver.run(statement, values);
    return rows.length > 0 || (isRepeated && this.#has('completed', [jobId, name]));
  }

  async job(jobId: string): Promise<StoredJob | undefined> {
    const { rows } = await this.#driver.run(SQL.get, [jobId]);
    return rows[0] && storedJob(rows[0]);
  }

  async listJobs(query: JobQuery = {}): Promise<JobPage> {
    const { status, after, limit } = readJobQuery(query);
    const place = [after?.changedAt ?? Number.MAX_SAFE_INTEGER, after?.id ?? '', limit + 1];
    const found =
      status === undefined
        ? this.#driver.run(SQL.list, place)
        : this.#driver.run(SQL.list_of, [...place, status]);
    return jobPage((await found).rows.map(storedJob), limit);
  }

  async removeJobsOlderThan(ageMs: number): Promise<number> {
    checkAge(ageMs);
    return removeOld(this.#driver.run, SQL.remove, [ageMs]);
  }

  async #has(statement: 'added' | 'completed', values: readonly string[]): Promise<boolean> {
    return (await this.#driver.run(SQL[statement], values)).rows.length > 0;
  }
}

function storedJob(row: Row): StoredJob {
  return {
    job: JSON.parse(String(row.job)) as Job,
    options: JSON.parse(String(row.options)) as JobOptions,
    status: row.status as JobStatus,
    attempt: Number(row.attempt),
    addedAt: Number(row.added_at),
    changedAt: Number(row.changed_at),
    ...(row.result === null ? {} : { result: JSON.parse(String(row.result)) as StoredResult }),
  };
}
