import type { DatabaseSync } from 'node:sqlite';
import {
  type DueSchedules,
  ownerSubject,
  type Schedule,
  type ScheduleMove,
  type ScheduleQuery,
  type ScheduleStore,
  subjectOf,
} from '../contract/schedule-store.js';
import { type Prepared, preparedIn } from './open-database.js';

/** Times in milliseconds. */
const TABLE = `
  CREATE TABLE IF NOT EXISTS toolwright_schedules (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    due_at REAL NOT NULL,
    schedule TEXT NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS toolwright_schedules_due ON toolwright_schedules (due_at, id);
  CREATE INDEX IF NOT EXISTS toolwright_schedules_of_subject ON toolwright_schedules (subject, due_at);
  CREATE INDEX IF NOT EXISTS toolwright_schedules_of_conversation ON toolwright_schedules (conversation_id, due_at)`;

const SQL = {
  add: `
    INSERT INTO toolwright_schedules (id, conversation_id, subject, due_at, schedule)
    SELECT $id, $conversationId, $subject, $dueAt, $schedule
    WHERE (SELECT count(*) FROM toolwright_schedules WHERE subject = $subject) < $most
    ON CONFLICT DO NOTHING`,
  find: 'SELECT 1 FROM toolwright_schedules WHERE id = $id',
  list: `
    SELECT schedule, due_at FROM toolwright_schedules
    WHERE ($conversationId IS NULL OR conversation_id = $conversationId) AND ($subject IS NULL OR subject = $subject)
    ORDER BY due_at, id LIMIT $limit`,
  first: 'SELECT schedule, due_at FROM toolwright_schedules ORDER BY due_at, id LIMIT $limit',
  cancel: 'DELETE FROM toolwright_schedules WHERE id = $id',
  move: 'UPDATE toolwright_schedules SET due_at = $next WHERE id = $id AND due_at = $dueAt',
  end: 'DELETE FROM toolwright_schedules WHERE id = $id AND due_at = $dueAt',
} as const;

const DEFAULT_LIMIT = 100;

/** The schedules of a store in an SQLite file. */
export class SqliteSchedules implements ScheduleStore {
  readonly #now: () => number;
  readonly #sql: Prepared<keyof typeof SQL>;

  constructor(database: DatabaseSync, now: () => number) {
    this.#now = now;
    database.exec(TABLE);
    this.#sql = preparedIn(database, SQL);
  }

  clock(): number {
    return this.#now();
  }

  addSchedule(schedule: Schedule, most = Number.MAX_SAFE_INTEGER): boolean {
    const { id, conversationId, dueAt } = schedule;
    if (this.#sql.find.get({ id }) !== undefined) return true;
    const values = { id, conversationId, subject: subjectOf(schedule), dueAt, most };
    const isNew = this.#sql.add.run({ ...values, schedule: JSON.stringify(schedule) }).changes !== 0;
    // Another process may have added it in between.
    return isNew || this.#sql.find.get({ id }) !== undefined;
  }

  listSchedules({ conversationId, owner, limit = DEFAULT_LIMIT }: ScheduleQuery = {}): readonly Schedule[] {
    const values = { conversationId: conversationId ?? null, subject: ownerSubject(owner) ?? null, limit };
    return this.#sql.list.all(values).map(read);
  }

  cancelSchedule(id: string): boolean {
    return this.#sql.cancel.run({ id }).changes !== 0;
  }

  dueSchedules(limit: number): DueSchedules {
    const now = this.#now();
    const first = this.#sql.first.all({ limit: limit + 1 }).map(read);
    const due = first.filter(({ dueAt }) => dueAt <= now).slice(0, limit);
    const next = first[due.length];
    return { now, due, ...(next === undefined ? {} : { nextAt: next.dueAt }) };
  }

  moveSchedule({ id, dueAt, next }: ScheduleMove): boolean {
    const moved =
      next === undefined ? this.#sql.end.run({ id, dueAt }) : this.#sql.move.run({ id, dueAt, next });
    return moved.changes !== 0;
  }
}

function read({ schedule, due_at: dueAt }: Readonly<Record<string, unknown>>): Schedule {
  return { ...(JSON.parse(String(schedule)) as Schedule), dueAt: Number(dueAt) };
}
