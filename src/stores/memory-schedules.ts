import {
  type DueSchedules,
  ownerSubject,
  type Schedule,
  type ScheduleMove,
  type ScheduleQuery,
  type ScheduleStore,
  subjectOf,
} from '../contract/schedule-store.js';
import { plainJson } from '../kernel/json.js';

const DEFAULT_LIMIT = 100;

/** The schedules of a process. They are gone with it, as its runs are. */
export class MemorySchedules implements ScheduleStore {
  readonly #now: () => number;
  readonly #kept = new Map<string, Schedule>();

  constructor(now: () => number) {
    this.#now = now;
  }

  clock(): number {
    return this.#now();
  }

  addSchedule(schedule: Schedule, most = Number.POSITIVE_INFINITY): boolean {
    if (this.#kept.has(schedule.id)) return true;
    const subject = subjectOf(schedule);
    const others = [...this.#kept.values()].filter((kept) => subjectOf(kept) === subject);
    if (others.length >= most) return false;
    this.#kept.set(schedule.id, plainJson(schedule) as Schedule);
    return true;
  }

  listSchedules({ conversationId, owner, limit = DEFAULT_LIMIT }: ScheduleQuery = {}): readonly Schedule[] {
    const subject = ownerSubject(owner);
    const wanted = this.#sorted().filter(
      (kept) =>
        (conversationId === undefined || kept.conversationId === conversationId) &&
        (subject === undefined || subjectOf(kept) === subject),
    );
    return plainJson(wanted.slice(0, limit)) as readonly Schedule[];
  }

  cancelSchedule(id: string): boolean {
    return this.#kept.delete(id);
  }

  dueSchedules(limit: number): DueSchedules {
    const now = this.#now();
    const sorted = this.#sorted();
    const due = sorted.filter(({ dueAt }) => dueAt <= now).slice(0, limit);
    const next = sorted[due.length];
    return {
      now,
      due: plainJson(due) as readonly Schedule[],
      ...(next === undefined ? {} : { nextAt: next.dueAt }),
    };
  }

  moveSchedule({ id, dueAt, next }: ScheduleMove): boolean {
    const kept = this.#kept.get(id);
    if (kept?.dueAt !== dueAt) return false;
    if (next === undefined) this.#kept.delete(id);
    else this.#kept.set(id, { ...kept, dueAt: next });
    return true;
  }

  #sorted(): Schedule[] {
    return [...this.#kept.values()].sort(
      (one, other) => one.dueAt - other.dueAt || (one.id < other.id ? -1 : 1),
    );
  }
}
