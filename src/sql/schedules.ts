import {
  type DueSchedules,
  ownerSubject,
  type Schedule,
  type ScheduleMove,
  type ScheduleQuery,
  type ScheduleStore,
  subjectOf,
} from '../contract/schedule-store.js';
import { type Row, type SqlDriver, statements, type Transaction } from './driver.js';

/** Owners may be long, and an index has no room for that. */
const ofSubject = (subject: string) => `md5(subject) = md5(${subject}) AND subject = ${subject}`;

const LISTED = 'SELECT schedule, due_at FROM :schedules';
const FIRST = 'ORDER BY due_at, id LIMIT $1';

const SQL = statements('schedule', {
  clock: 'SELECT {now} AS now',
  find: 'SELECT 1 FROM :schedules WHERE id = $1',
  add: `
    INSERT INTO :schedules (id, conversation_id, subject, due_at, schedule)
    SELECT $1::text, $2::text, $3::text, $4::bigint, $5::text
    WHERE $6::bigint IS NULL OR (SELECT count(*) FROM :schedules WHERE ${ofSubject('$3::text')}) < $6::bigint
    ON CONFLICT DO NOTHING`,
  list: `${LISTED} ${FIRST}`,
  list_conversation: `
    ${LISTED} WHERE conversation_id = $2 AND ($3::text IS NULL OR subject = $3::text) ${FIRST}`,
  list_owner: `${LISTED} WHERE ${ofSubject('$2::text')} ${FIRST}`,
  cancel: 'DELETE FROM :schedules WHERE id = $1',
  due: `
    SELECT clock.now, first.schedule, first.due_at FROM (SELECT {now} AS now) AS clock
    LEFT JOIN (SELECT id, schedule, due_at FROM :schedules ${FIRST}) AS first ON true
    ORDER BY first.due_at, first.id`,
  move: 'UPDATE :schedules SET due_at = $3 WHERE id = $1 AND due_at = $2',
  end: 'DELETE FROM :schedules WHERE id = $1 AND due_at = $2',
});

const DEFAULT_LIMIT = 100;

/** The schedules of a store; they are due by the database's clock. */
export class SqlSchedules implements ScheduleStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async clock(): Promise<number> {
    return Number((await this.#driver.run(SQL.clock, [])).rows[0]?.now);
  }

  addSchedule(schedule: Schedule, most = Number.POSITIVE_INFINITY): Promise<boolean> {
    const { id, conversationId, dueAt } = schedule;
    const subject = subjectOf(schedule);
    const limit = Number.isFinite(most) ? most : null;
    const values = [id, conversationId, subject, Math.ceil(dueAt), JSON.stringify(schedule), limit];
    // Two that are added at the same moment would not see each other.
    const locks = { of: 'schedules', names: [subject] };
    return this.#driver.transaction(locks, function* (): Transaction<boolean> {
      if ((yield [SQL.find, [id]]).rows.length > 0) return true;
      return (yield [SQL.add, values]).count > 0;
    });
  }

  async listSchedules(query: ScheduleQuery = {}): Promise<readonly Schedule[]> {
    const { conversationId, owner, limit = DEFAULT_LIMIT } = query;
    const subject = ownerSubject(owner);
    const [statement, values] =
      conversationId !== undefined
        ? [SQL.list_conversation, [limit, conversationId, subject ?? null]]
        : subject !== undefined
          ? [SQL.list_owner, [limit, subject]]
          : [SQL.list, [limit]];
    return (await this.#driver.run(statement, values)).rows.map(scheduleOf);
  }

  async cancelSchedule(id: string): Promise<boolean> {
    return (await this.#driver.run(SQL.cancel, [id])).count > 0;
  }

  async dueSchedules(limit: number): Promise<DueSchedules> {
    const { rows } = await this.#driver.run(SQL.due, [limit + 1]);
    const now = Number(rows[0]?.now);
    const first = rows.filter(({ schedule }) => schedule !== null).map(scheduleOf);
    const due = first.filter(({ dueAt }) => dueAt <= now).slice(0, limit);
    const next = first[due.length];
    return { now, due, ...(next === undefined ? {} : { nextAt: next.dueAt }) };
  }

  async moveSchedule({ id, dueAt, next }: ScheduleMove): Promise<boolean> {
    const { count } = await (next === undefined
      ? this.#driver.run(SQL.end, [id, dueAt])
      : this.#driver.run(SQL.move, [id, dueAt, Math.ceil(next)]));
    return count > 0;
  }
}

function scheduleOf({ schedule, due_at: dueAt }: Row): Schedule {
  return { ...(JSON.parse(String(schedule)) as Schedule), dueAt: Number(dueAt) };
}
