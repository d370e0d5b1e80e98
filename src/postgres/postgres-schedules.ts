import {
  type DueSchedules,
  ownerSubject,
  type Schedule,
  type ScheduleMove,
  type ScheduleQuery,
  type ScheduleStore,
  subjectOf,
} from '../contract/schedule-store.js';
import type { Database } from './database.js';
import { NOW, namedStatements } from './statements.js';

/** Owners may be long, and an index has no room for that. */
const OF_SUBJECT = (subject: string): string => `md5(subject) = md5(${subject}) AND subject = ${subject}`;

const TEXTS = {
  schedule_clock: `SELECT ${NOW} AS now`,
  schedule_lock: 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))',
  schedule_find: 'SELECT 1 FROM :schedules WHERE id = $1',
  schedule_add: `
    INSERT INTO :schedules (id, conversation_id, subject, due_at, schedule)
    SELECT $1::text, $2::text, $3::text, $4::bigint, $5::text
    WHERE $6::bigint IS NULL OR (SELECT count(*) FROM :schedules WHERE ${OF_SUBJECT('$3::text')}) < $6::bigint
    ON CONFLICT DO NOTHING`,
  schedule_list: 'SELECT schedule, due_at FROM :schedules ORDER BY due_at, id LIMIT $1',
  schedule_list_conversation: `
    SELECT schedule, due_at FROM :schedules WHERE conversation_id = $2 AND ($3::text IS NULL OR subject = $3::text)
    ORDER BY due_at, id LIMIT $1`,
  schedule_list_owner: `
    SELECT schedule, due_at FROM :schedules WHERE ${OF_SUBJECT('$2::text')} ORDER BY due_at, id LIMIT $1`,
  schedule_cancel: 'DELETE FROM :schedules WHERE id = $1',
  schedule_due: `
    SELECT clock.now, first.schedule, first.due_at FROM (SELECT ${NOW} AS now) clock
    LEFT JOIN LATERAL (SELECT id, schedule, due_at FROM :schedules ORDER BY due_at, id LIMIT $1) first ON true
    ORDER BY first.due_at, first.id`,
  schedule_move: 'UPDATE :schedules SET due_at = $3 WHERE id = $1 AND due_at = $2',
  schedule_end: 'DELETE FROM :schedules WHERE id = $1 AND due_at = $2',
} as const;

const DEFAULT_LIMIT = 100;

/** The schedules of a store in PostgreSQL; they are due by the server's clock. */
export class PostgresSchedules implements ScheduleStore {
  readonly #database: Database;
  readonly #sql: ReturnType<typeof namedStatements<keyof typeof TEXTS>>;

  constructor(database: Database) {
    this.#database = database;
    this.#sql = namedStatements(database.schema, TEXTS);
  }

  async clock(): Promise<number> {
    const { rows } = await this.#database.run(this.#sql.schedule_clock, () => []);
    return Number(rows[0]?.now);
  }

  addSchedule(schedule: Schedule, most = Number.POSITIVE_INFINITY): Promise<boolean> {
    const { id, conversationId, dueAt } = schedule;
    const subject = subjectOf(schedule);
    const limit = Number.isFinite(most) ? most : null;
    const values = [id, conversationId, subject, Math.ceil(dueAt), JSON.stringify(schedule), limit];
    return this.#database.transact(async (client) => {
      // Two that are added at the same moment would not see each other.
      await client.query({ ...this.#sql.schedule_lock, values: [`${this.#database.schema} ${subject}`] });
      const found = await client.query({ ...this.#sql.schedule_find, values: [id] });
      if (found.rows.length > 0) return true;
      const { rowCount } = await client.query({ ...this.#sql.schedule_add, values });
      return (rowCount ?? 0) > 0;
    });
  }

  async listSchedules(query: ScheduleQuery = {}): Promise<readonly Schedule[]> {
    const { conversationId, owner, limit = DEFAULT_LIMIT } = query;
    const subject = ownerSubject(owner);
    const [statement, values] =
      conversationId !== undefined
        ? [this.#sql.schedule_list_conversation, [limit, conversationId, subject ?? null]]
        : subject !== undefined
          ? [this.#sql.schedule_list_owner, [limit, subject]]
          : [this.#sql.schedule_list, [limit]];
    return (await this.#database.run(statement, () => values)).rows.map(read);
  }

  async cancelSchedule(id: string): Promise<boolean> {
    const { rowCount } = await this.#database.run(this.#sql.schedule_cancel, () => [id]);
    return (rowCount ?? 0) > 0;
  }

  async dueSchedules(limit: number): Promise<DueSchedules> {
    const { rows } = await this.#database.run(this.#sql.schedule_due, () => [limit + 1]);
    const now = Number(rows[0]?.now);
    const first = rows.filter(({ schedule }) => schedule !== null).map(read);
    const due = first.filter(({ dueAt }) => dueAt <= now).slice(0, limit);
    const next = first[due.length];
    return { now, due, ...(next === undefined ? {} : { nextAt: next.dueAt }) };
  }

  async moveSchedule({ id, dueAt, next }: ScheduleMove): Promise<boolean> {
    const { rowCount } =
      next === undefined
        ? await this.#database.run(this.#sql.schedule_end, () => [id, dueAt])
        : await this.#database.run(this.#sql.schedule_move, () => [id, dueAt, Math.ceil(next)]);
    return (rowCount ?? 0) > 0;
  }
}

function read({ schedule, due_at: dueAt }: Readonly<Record<string, unknown>>): Schedule {
  return { ...(JSON.parse(String(schedule)) as Schedule), dueAt: Number(dueAt) };
}
