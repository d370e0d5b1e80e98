import { DatabaseSync } from 'node:sqlite';
import { inject, singleton } from 'tsyringe';
import { calendarDay } from './calendar-day.js';
import { DATABASE } from './database.js';

/** A task with the day on which it is due (`2026-01-31`). */
export interface Reminder {
  readonly id: number;
  readonly text: string;
  readonly dueOn: string;
  readonly done: boolean;
}

const SELECT = 'SELECT id, text, due_on AS dueOn, done FROM reminders';

/** The reminders of the user. */
@singleton()
export class ReminderList {
  constructor(@inject(DATABASE) private readonly database: DatabaseSync) {}

  /** Most urgent first. */
  list({ includeDone }: { readonly includeDone: boolean }): readonly Reminder[] {
    const rows = this.database
      .prepare(`${SELECT} WHERE done <= ? ORDER BY due_on, id`)
      .all(Number(includeDone));
    return rows.map(toReminder);
  }

  add(text: string, due: Date): Reminder {
    const { lastInsertRowid } = this.database
      .prepare('INSERT INTO reminders (text, due_on) VALUES (?, ?)')
      .run(text, calendarDay(due));
    return this.#get(Number(lastInsertRowid));
  }

  /** Throws if there is no reminder with this number. */
  complete(id: number): Reminder {
    this.database.prepare('UPDATE reminders SET done = 1 WHERE id = ?').run(id);
    return this.#get(id);
  }

  #get(id: number): Reminder {
    const row = this.database.prepare(`${SELECT} WHERE id = ?`).get(id);
    if (row === undefined) throw new Error(`There is no reminder ${id}.`);
    return toReminder(row);
  }
}

/** SQLite has no booleans. */
function toReminder(row: Readonly<Record<string, unknown>>): Reminder {
  return { ...(row as unknown as Reminder), done: row.done === 1 };
}
