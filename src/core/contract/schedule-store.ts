import { ownerText } from '../kernel/json.js';
import { storeWith } from '../kernel/options.js';

/** When a schedule is due: once, repeatedly after a number of milliseconds, or by a cron expression of five fields. */
export type ScheduleTiming =
  | { readonly kind: 'once' }
  | { readonly kind: 'every'; readonly everyMs: number }
  | {
      readonly kind: 'cron';
      readonly cron: string;
      /** IANA name: `Europe/Vienna`. */
      readonly timeZone: string;
    };

/** A prompt that enters a conversation at a time; plain JSON. Times are milliseconds since 1970. */
export interface Schedule {
  readonly id: string;
  readonly conversationId: string;
  /** The owner of the prompt, as JSON. */
  readonly owner?: unknown;
  /** The message that the model receives. */
  readonly text: string;
  readonly timing: ScheduleTiming;
  /** When it is due next. */
  readonly dueAt: number;
  readonly createdAt: number;
}

/** Selects schedules; absent fields do not filter. */
export interface ScheduleQuery {
  readonly conversationId?: string;
  readonly owner?: unknown;
  /** The most schedules; default: 100. */
  readonly limit?: number;
}

/** Due schedules. */
export interface DueSchedules {
  /** By the store's clock. */
  readonly now: number;
  /** Due schedules, longest waiting first. */
  readonly due: readonly Schedule[];
  /** When the next of the other schedules is due; absent if there are no others. */
  readonly nextAt?: number;
}

/** Moves a schedule to its next due time; without `next`, the schedule ends. */
export interface ScheduleMove {
  readonly id: string;
  readonly dueAt: number;
  readonly next?: number;
}

/** Stores schedules. Every method is atomic, also between processes; methods may be synchronous. */
export interface ScheduleStore {
  /** The store's clock: milliseconds since 1970. */
  clock(): number | Promise<number>;
  /**
   * Stores a schedule, unless its owner has `most` or more. A schedule without an owner counts for its conversation.
   * Returns true, without a change, if there is already a schedule with this id.
   */
  addSchedule(schedule: Schedule, most?: number): boolean | Promise<boolean>;
  /** The schedules that are due next. */
  listSchedules(query?: ScheduleQuery): readonly Schedule[] | Promise<readonly Schedule[]>;
  /** Ends a schedule; false if it does not exist. */
  cancelSchedule(id: string): boolean | Promise<boolean>;
  /** The due schedules, at most `limit`. */
  dueSchedules(limit: number): DueSchedules | Promise<DueSchedules>;
  /**
   * Moves a schedule that is still due at `dueAt`; false, without a change, if another process moved it or it ended.
   */
  moveSchedule(move: ScheduleMove): boolean | Promise<boolean>;
}

/** A run store that also stores schedules. */
export interface StoreWithSchedules {
  readonly schedules: ScheduleStore;
}

/** Whether a store supports schedules. */
export const keepsSchedules = storeWith<StoreWithSchedules>('schedules', [
  ...['clock', 'addSchedule', 'listSchedules', 'cancelSchedule', 'dueSchedules', 'moveSchedule'],
]);

/** The rule for options that require a store with schedules. */
export const STORE_WITH_SCHEDULES = {
  accepts: keepsSchedules,
  fix: "new SqliteRunStore({ path: 'runs.sqlite' }), or another store that supports schedules",
};

/** The subject that a schedule counts for, as text: its owner, or its conversation if it has no owner. */
export function subjectOf({ conversationId, owner }: Pick<Schedule, 'conversationId' | 'owner'>): string {
  return ownerSubject(owner) ?? `conversation ${conversationId}`;
}

/** The same for an owner. */
export function ownerSubject(owner: unknown): string | undefined {
  const text = ownerText(owner);
  return text === undefined ? undefined : `owner ${text}`;
}
