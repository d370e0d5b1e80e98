import { randomUUID } from 'node:crypto';
import type { Job, JobOptions } from '../../core/contract/job-engine.js';
import type {
  CompletionOptions,
  JobBeginning,
  JobPage,
  JobQuery,
  JobStatus,
  JobStore,
  StoredJob,
  UnsentQuery,
} from '../../core/contract/job-store.js';
import type { StoredResult } from '../../core/contract/run-state.js';
import { jobPage, readJobQuery } from '../../core/errors/list-pages.js';
import { checkAge } from '../../core/errors/store-checks.js';
import {
  pageStatements,
  type Row,
  readPage,
  removeOld,
  type SqlDriver,
  type Statement,
  statements,
  wholeMs,
} from './driver.js';

const OPEN = "status <> 'completed'";
const ROW = 'job_id, job, options, status, attempt, added_at, changed_at, result';

const unsent = (isSent: boolean, age: string): string => `
  SELECT * FROM (
    SELECT ${ROW} FROM :jobs WHERE ${OPEN} AND is_sent = ${isSent} AND changed_at <= {at} - ${age}::bigint
    ORDER BY changed_at LIMIT $3
  ) AS sent_${isSent}`;

const COMPLETE = `
  UPDATE :jobs SET status = 'completed', result = $2, completed_by = $3::uuid, changed_at = {now}
  WHERE job_id = $1 AND ${OPEN} RETURNING job_id`;

/** A value of each of the writes that are sent together, as lists in JSON. */
const given = (index: number) => `(value::json ->> ${index})`;

/** The jobs of the writes that have no result yet. Locked in the same order everywhere, which prevents deadlocks. */
const MINE = `
  WITH mine AS MATERIALIZED (
    SELECT job_id FROM :jobs WHERE job_id IN (SELECT ${given(0)} FROM {each $1}) AND ${OPEN}
    ORDER BY job_id FOR NO KEY UPDATE
  )`;
const OF_MINE = `FROM {each $1} WHERE job_id = ${given(0)} AND job_id IN (SELECT job_id FROM mine) AND ${OPEN}`;

/** Each write has a name, by which a repeated write recognizes itself. */
const SQL = statements('job', {
  add: `
    INSERT INTO :jobs (job_id, job, options, status, added_by, added_at, changed_at)
    SELECT ${given(0)}, ${given(1)}, ${given(2)}, 'waiting', ${given(3)}::uuid, now, now
    FROM {each $1}, (SELECT {now} AS now) AS clock WHERE true
    ON CONFLICT DO NOTHING RETURNING added_by AS name`,
  added: 'SELECT job_id FROM :jobs WHERE job_id = $1 AND added_by = $2::uuid',
  unsent: `${unsent(false, '$1')} UNION ALL ${unsent(true, '$2')} LIMIT $3`,
  sent: `${MINE} UPDATE :jobs SET is_sent = true, changed_at = {now} ${OF_MINE} RETURNING job_id AS name`,
  begin: `
    ${MINE} UPDATE :jobs SET status = 'running', is_sent = true, changed_at = {now},
      attempt = CASE WHEN attempt < ${given(1)}::integer THEN ${given(1)}::integer ELSE attempt END
    ${OF_MINE} RETURNING job_id AS name`,
  complete: `
    ${MINE} UPDATE :jobs
    SET status = 'completed', result = ${given(1)}, completed_by = ${given(2)}::uuid, changed_at = {now}
    ${OF_MINE} RETURNING completed_by AS name`,
  complete_in: COMPLETE,
  // Adds the conversation's entry (`$4` to `$6`) with the first result. An entry with the same key may exist already.
  complete_with_entry: {
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
  ...pageStatements(':jobs', 'job_id', ROW),
  remove: `
    DELETE FROM :jobs WHERE job_id IN (
      SELECT job_id FROM :jobs WHERE status = 'completed' AND changed_at <= {at} - $1::bigint
      LIMIT $2 FOR UPDATE SKIP LOCKED
    )`,
});

/** The background jobs of a store. Writes that arrive while others are being sent are sent together. */
export class SqlJobs implements JobStore {
  readonly #adding: GroupedWrites;
  readonly #sending: GroupedWrites;
  readonly #beginning: GroupedWrites;
  readonly #completing: GroupedWrites;

  constructor(protected readonly driver: SqlDriver) {
    this.#adding = new GroupedWrites(driver, SQL.add);
    this.#sending = new GroupedWrites(driver, SQL.sent);
    this.#beginning = new GroupedWrites(driver, SQL.begin);
    this.#completing = new GroupedWrites(driver, SQL.complete);
  }

  async addJob(job: Job, options: JobOptions): Promise<boolean> {
    const name = randomUUID();
    const values = [job.id, JSON.stringify(job), JSON.stringify(options), name];
    const { isDone, isRepeated } = await this.#adding.add(name, values);
    return isDone || (isRepeated && this.#has('added', [job.id, name]));
  }

  async unsentJobs({ olderThanMs, silentForMs, limit }: UnsentQuery): Promise<readonly StoredJob[]> {
    const values = [wholeMs(olderThanMs), wholeMs(silentForMs), limit];
    return (await this.driver.run(SQL.unsent, values)).rows.map(storedJob);
  }

  async jobSent(jobId: string): Promise<void> {
    await this.#sending.add(jobId, [jobId]);
  }

  async beginJob(jobId: string, attempt: number): Promise<JobBeginning> {
    if ((await this.#beginning.add(jobId, [jobId, attempt])).isDone) return { status: 'run' };
    const result = (await this.job(jobId))?.result;
    return result === undefined ? { status: 'missing' } : { status: 'settled', result };
  }

  async completeJob(
    jobId: string,
    result: StoredResult,
    { transaction, entry }: CompletionOptions = {},
  ): Promise<boolean> {
    const name = randomUUID();
    const values = [jobId, JSON.stringify(result), name];
    const entered = entry && [...values, entry.conversationId, entry.key, JSON.stringify(entry.content)];
    if (transaction !== undefined && this.driver.runIn !== undefined) {
      const statement = entered === undefined ? SQL.complete_in : SQL.complete_with_entry;
      return (await this.driver.runIn(transaction, statement, entered ?? values)).rows.length > 0;
    }
    if (entered === undefined) {
      const { isDone, isRepeated } = await this.#completing.add(name, values);
      return isDone || (isRepeated && this.#has('completed', [jobId, name]));
    }
    const { rows, isRepeated } = await this.driver.run(SQL.complete_with_entry, entered);
    return rows.length > 0 || (isRepeated && this.#has('completed', [jobId, name]));
  }

  async job(jobId: string): Promise<StoredJob | undefined> {
    const { rows } = await this.driver.run(SQL.get, [jobId]);
    return rows[0] && storedJob(rows[0]);
  }

  async listJobs(query: JobQuery = {}): Promise<JobPage> {
    const wanted = readJobQuery(query);
    const rows = await readPage(this.driver.run, SQL, wanted);
    return jobPage(rows.map(storedJob), wanted.limit);
  }

  async removeJobsOlderThan(ageMs: number): Promise<number> {
    checkAge(ageMs);
    return removeOld(this.driver.run, SQL.remove, [ageMs]);
  }

  async #has(statement: 'added' | 'completed', values: readonly string[]): Promise<boolean> {
    return (await this.driver.run(SQL[statement], values)).rows.length > 0;
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
    ...(row.result !== null && { result: JSON.parse(String(row.result)) as StoredResult }),
  };
}

/** The result of one of several writes. */
interface WriteOutcome {
  readonly isDone: boolean;
  readonly isRepeated: boolean;
}

/** A waiting write. */
interface Write {
  /** Returned by the statement if the write took effect. */
  readonly name: string;
  readonly values: readonly unknown[];
  readonly resolve: (outcome: WriteOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/** The most writes that are sent together. */
const MOST_TOGETHER = 100;

/** Groups writes into statements: sends the first one immediately, and collects those that arrive meanwhile. */
class GroupedWrites {
  #waiting: Write[] = [];
  #isSending = false;

  constructor(
    private readonly driver: SqlDriver,
    private readonly statement: Statement,
  ) {}

  add(name: string, values: readonly unknown[]): Promise<WriteOutcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ name, values, resolve, reject });
      if (!this.#isSending) void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    while (this.#waiting.length > 0) {
      const writes = this.#waiting.splice(0, MOST_TOGETHER);
      try {
        await this.#send(writes);
      } catch (error) {
        if (writes.length === 1) writes[0]?.reject(error);
        // One write may have caused the error: send each separately.
        else await Promise.all(writes.map((write) => this.#send([write], true).catch(write.reject)));
      }
    }
    this.#isSending = false;
  }

  async #send(writes: readonly Write[], wasSent = false): Promise<void> {
    const values = writes.map((write) => JSON.stringify(write.values)).sort();
    const { rows, isRepeated } = await this.driver.run(this.statement, [values]);
    const done = new Set(rows.map(({ name }) => name));
    for (const { name, resolve } of writes)
      resolve({ isDone: done.has(name), isRepeated: isRepeated || wasSent });
  }
}
