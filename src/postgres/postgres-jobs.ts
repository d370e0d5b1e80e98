import { randomUUID } from 'node:crypto';
import type { Job, JobOptions, SqlTransaction } from '../contract/job-engine.js';
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
import type { Database } from './database.js';
import type { PostgresRows } from './pool.js';
import { NOW, NOW_ONCE, namedStatements, pageBehind } from './statements.js';

const JOBS = ':jobs';
const OPEN = "status <> 'completed'";
const ROW = 'job_id, job, options, status, attempt, added_at, changed_at, result';

const unsent = (isSent: boolean, age: string): string => `
  (SELECT ${ROW} FROM ${JOBS} WHERE ${OPEN} AND is_sent = ${isSent} AND changed_at <= ${NOW_ONCE} - ${age}::bigint
   ORDER BY changed_at LIMIT $3)`;

const page = (where: string) => pageBehind({ table: JOBS, columns: ROW, id: 'job_id', where });

/** `$1` is the job, where a statement has one. Those that are sent twice take effect once: writes have names. */
const TEXTS = {
  job_add: `
    WITH done AS (
      INSERT INTO ${JOBS} (job_id, job, options, status, added_by, added_at, changed_at)
      SELECT $1, $2, $3, 'waiting', $4::uuid, now, now FROM (SELECT ${NOW} AS now) AS clock
      ON CONFLICT DO NOTHING RETURNING job_id
    )
    SELECT job_id FROM done UNION ALL SELECT job_id FROM ${JOBS} WHERE job_id = $1 AND added_by = $4::uuid`,
  job_unsent: `${unsent(false, '$1')} UNION ALL ${unsent(true, '$2')} LIMIT $3`,
  job_sent: `UPDATE ${JOBS} SET is_sent = true, changed_at = ${NOW} WHERE job_id = $1 AND ${OPEN}`,
  job_begin: `
    WITH done AS (
      UPDATE ${JOBS} SET status = 'running', is_sent = true, attempt = greatest(attempt, $2), changed_at = ${NOW}
      WHERE job_id = $1 AND ${OPEN} RETURNING job_id
    )
    SELECT job_id, NULL AS result FROM done
    UNION ALL SELECT job_id, result FROM ${JOBS} WHERE job_id = $1 AND NOT EXISTS (SELECT 1 FROM done)`,
  job_complete: `
    WITH done AS (
      UPDATE ${JOBS} SET status = 'completed', result = $2, completed_by = $3::uuid, changed_at = ${NOW}
      WHERE job_id = $1 AND ${OPEN} RETURNING job_id
    )
    SELECT job_id FROM done UNION ALL SELECT job_id FROM ${JOBS} WHERE job_id = $1 AND completed_by = $3::uuid`,
  // The entry of a conversation, `$4` to `$6`, comes with the first result; one of the same key is there already.
  job_complete_telling: `
    WITH done AS (
      UPDATE ${JOBS} SET status = 'completed', result = $2, completed_by = $3::uuid, changed_at = ${NOW}
      WHERE job_id = $1 AND ${OPEN} RETURNING job_id
    ), changed AS (
      UPDATE :fleet_conversations
      SET entered = entered + 1, revision = revision + 1, is_due = true, changed_at = ${NOW}
      WHERE conversation_id = $4 AND EXISTS (SELECT FROM done)
        AND NOT EXISTS (SELECT FROM :fleet_inbox WHERE conversation_id = $4 AND key = $5)
      RETURNING entered
    ), added AS (
      INSERT INTO :fleet_inbox (conversation_id, position, key, content) SELECT $4, entered, $5, $6 FROM changed
      ON CONFLICT DO NOTHING RETURNING position
    ), told AS (SELECT pg_notify(':fleet_conversations', 'inbox ' || $4) FROM added)
    SELECT job_id, (SELECT count(*) FROM told) FROM done
    UNION ALL SELECT job_id, 0 FROM ${JOBS} WHERE job_id = $1 AND completed_by = $3::uuid`,
  job_get: `SELECT ${ROW} FROM ${JOBS} WHERE job_id = $1`,
  job_list: page('true'),
  job_list_of: page('status = $4'),
  job_remove: `
    DELETE FROM ${JOBS} WHERE job_id IN (
      SELECT job_id FROM ${JOBS} WHERE status = 'completed' AND changed_at <= ${NOW_ONCE} - $1::bigint
      LIMIT $2 FOR UPDATE SKIP LOCKED
    )`,
  // By whatever name it is reached.
  job_place: `
    SELECT concat(system_identifier, ' ', oid) AS place FROM pg_control_system(), pg_database
    WHERE datname = current_database()`,
};

/** The code of `insufficient_privilege`. */
const NOT_ALLOWED = '42501';

/** How many jobs are forgotten at once: others wait no longer than for these. */
const BATCH = 5_000;

/** The started work of a store in PostgreSQL. */
export class PostgresJobs implements JobStore {
  readonly #database: Database;
  readonly #sql: ReturnType<typeof namedStatements<keyof typeof TEXTS>>;

  constructor(database: Database) {
    this.#database = database;
    this.#sql = namedStatements(database.schema, TEXTS, 'job');
  }

  async addJob(job: Job, options: JobOptions): Promise<boolean> {
    const { rows } = await this.#run('job_add', [
      job.id,
      JSON.stringify(job),
      JSON.stringify(options),
      randomUUID(),
    ]);
    return rows.length > 0;
  }

  async unsentJobs({ olderThanMs, silentForMs, limit }: UnsentQuery): Promise<readonly StoredJob[]> {
    const { rows } = await this.#run('job_unsent', [Math.ceil(olderThanMs), Math.ceil(silentForMs), limit]);
    return rows.map(read);
  }

  async jobSent(jobId: string): Promise<void> {
    await this.#run('job_sent', [jobId]);
  }

  async beginJob(jobId: string, attempt: number): Promise<JobBeginning> {
    const { rows } = await this.#run('job_begin', [jobId, attempt]);
    const [row] = rows;
    if (row === undefined) return { status: 'missing' };
    if (row.result === null) return { status: 'run' };
    return { status: 'settled', result: JSON.parse(String(row.result)) as StoredResult };
  }

  async completeJob(
    jobId: string,
    result: StoredResult,
    { transaction, entry }: CompletionOptions = {},
  ): Promise<boolean> {
    const name = entry === undefined ? 'job_complete' : 'job_complete_telling';
    const told = entry === undefined ? [] : [entry.conversationId, entry.key, JSON.stringify(entry.content)];
    const values = [jobId, JSON.stringify(result), randomUUID(), ...told];
    if (transaction === undefined) return (await this.#run(name, values)).rows.length > 0;
    await this.#database.migrate();
    return (await transaction.query(this.#sql[name].text, values)).rows.length > 0;
  }

  async job(jobId: string): Promise<StoredJob | undefined> {
    const { rows } = await this.#run('job_get', [jobId]);
    return rows[0] && read(rows[0]);
  }

  async listJobs(query: JobQuery = {}): Promise<JobPage> {
    const { status, after, limit } = readJobQuery(query);
    const { changedAt, id } = after ?? { changedAt: Number.MAX_SAFE_INTEGER, id: '' };
    const place = [changedAt, id, limit + 1];
    const found =
      status === undefined ? this.#run('job_list', place) : this.#run('job_list_of', [...place, status]);
    return jobPage((await found).rows.map(read), limit);
  }

  async removeJobsOlderThan(ageMs: number): Promise<number> {
    checkAge(ageMs);
    for (let removed = 0; ; ) {
      const { rowCount } = await this.#run('job_remove', [Math.ceil(ageMs), BATCH]);
      removed += rowCount ?? 0;
      if ((rowCount ?? 0) < BATCH) return removed;
    }
  }

  async isKeptIn(database: SqlTransaction): Promise<boolean> {
    try {
      const [kept, given] = await Promise.all([this.#run('job_place', []), database.query(TEXTS.job_place)]);
      return kept.rows[0]?.place === (given.rows[0] as { readonly place?: unknown } | undefined)?.place;
    } catch (error) {
      // A role that may not ask is told of by the first commit that fails.
      if ((error as { readonly code?: unknown }).code === NOT_ALLOWED) return true;
      throw error;
    }
  }

  #run(name: keyof typeof TEXTS, values: readonly unknown[]): Promise<PostgresRows> {
    return this.#database.run(this.#sql[name], () => [...values]);
  }
}

/** `pg` gives whole numbers of 64 bits as text. */
function read(row: Readonly<Record<string, unknown>>): StoredJob {
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
