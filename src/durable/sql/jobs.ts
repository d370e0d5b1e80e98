import { randomUUID } from 'node:crypto';
import type { JobStatus, JobStore, StoredJob } from '../../core/contract/job-store.js';
import { jobPage, readJobQuery } from '../../core/errors/list-pages.js';
import { checkAge } from '../../core/errors/store-checks.js';
import {
  type Outcome,
  pageStatements,
  type Row,
  type RunStatement,
  readPage,
  removeOld,
  type SqlDriver,
  type Statement,
  statements,
  wholeMs,
  writtenRow,
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
export function sqlJobs(driver: SqlDriver): JobStore {
  const { run } = driver;
  const add = groupedWrites(run, SQL.add);
  const send = groupedWrites(run, SQL.sent);
  const begin = groupedWrites(run, SQL.begin);
  const complete = groupedWrites(run, SQL.complete);
  const job = async (jobId: string): Promise<StoredJob | undefined> => {
    const { rows } = await run(SQL.get, [jobId]);
    return rows[0] && storedJob(rows[0]);
  };
  return {
    job,
    async completeJob(jobId, result, { transaction, entry } = {}) {
      const name = randomUUID();
      const values = [jobId, JSON.stringify(result), name];
      const entered = entry && [...values, entry.conversationId, entry.key, JSON.stringify(entry.content)];
      if (transaction !== undefined && driver.runIn !== undefined) {
        const statement = entered === undefined ? SQL.complete_in : SQL.complete_with_entry;
        return (await driver.runIn(transaction, statement, entered ?? values)).rows.length > 0;
      }
      const written = await (entered === undefined
        ? complete(name, values)
        : run(SQL.complete_with_entry, entered));
      return (await writtenRow(written, () => run(SQL.completed, [jobId, name]))) !== undefined;
    },
    async addJob(added, options) {
      const name = randomUUID();
      const values = [added.id, JSON.stringify(added), JSON.stringify(options), name];
      const written = await add(name, values);
      return (await writtenRow(written, () => run(SQL.added, [added.id, name]))) !== undefined;
    },
    async unsentJobs({ olderThanMs, silentForMs, limit }) {
      return (await run(SQL.unsent, [wholeMs(olderThanMs), wholeMs(silentForMs), limit])).rows.map(storedJob);
    },
    async jobSent(jobId) {
      await send(jobId, [jobId]);
    },
    async beginJob(jobId, attempt) {
      if ((await begin(jobId, [jobId, attempt])).rows.length > 0) return { status: 'run' };
      const result = (await job(jobId))?.result;
      return result === undefined ? { status: 'missing' } : { status: 'settled', result };
    },
    async listJobs(query = {}) {
      const wanted = readJobQuery(query);
      return jobPage((await readPage(run, SQL, wanted)).map(storedJob), wanted.limit);
    },
    async removeJobsOlderThan(ageMs) {
      checkAge(ageMs);
      return removeOld(run, SQL.remove, [ageMs]);
    },
  };
}

function storedJob(row: Row): StoredJob {
  return {
    job: JSON.parse(String(row.job)),
    options: JSON.parse(String(row.options)),
    status: row.status as JobStatus,
    attempt: Number(row.attempt),
    addedAt: Number(row.added_at),
    changedAt: Number(row.changed_at),
    ...(row.result !== null && { result: JSON.parse(String(row.result)) }),
  };
}

/** The outcome of a write; it has a row if the write took effect. */
type WriteOutcome = Pick<Outcome, 'rows' | 'isRepeated'>;

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
function groupedWrites(run: RunStatement, statement: Statement) {
  const waiting: Write[] = [];
  let isSending = false;
  const send = async (writes: readonly Write[], wasSent = false): Promise<void> => {
    const values = writes.map((write) => JSON.stringify(write.values)).sort();
    const { rows, isRepeated } = await run(statement, [values]);
    const done = new Map(rows.map((row) => [row.name, [row]]));
    for (const { name, resolve } of writes)
      resolve({ rows: done.get(name) ?? [], isRepeated: isRepeated || wasSent });
  };
  const sendAll = async (): Promise<void> => {
    isSending = true;
    while (waiting.length > 0) {
      const writes = waiting.splice(0, MOST_TOGETHER);
      try {
        await send(writes);
      } catch (error) {
        if (writes.length === 1) writes[0]?.reject(error);
        // One write may have caused the error: send each separately.
        else await Promise.all(writes.map((write) => send([write], true).catch(write.reject)));
      }
    }
    isSending = false;
  };
  return (name: string, values: readonly unknown[]): Promise<WriteOutcome> =>
    new Promise((resolve, reject) => {
      waiting.push({ name, values, resolve, reject });
      if (!isSending) void sendAll();
    });
}
