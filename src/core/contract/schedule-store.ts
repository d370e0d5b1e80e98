import { ownerText } from '../kernel/json.js';
import { withMethods } from '../kernel/options.js';

/** When a schedule is due: once, again and again after so many milliseconds, or by a cron expression of five fields. */
export type ScheduleTiming =
  | { readonly kind: 'once' }
  | { readonly kind: 'every'; readonly everyMs: number }
  | {
      readonly kind: 'cron';
      readonly cron: string;
      /** As IANA names it: `Europe/Vienna`. */
      readonly timeZone: string;
    };

/** A prompt that enters a conversation when its time has come; plain JSON. Times are milliseconds since 1970. */
export interface Schedule {
  readonly id: string;
  readonly conversationId: string;
  /** On whose behalf the prompt enters, as JSON. */
  readonly owner?: unknown;
  /** The message that the model receives then. */
  readonly text: string;
  readonly timing: ScheduleTiming;
  /** When it is due, or due next. */
  readonly dueAt: number;
  readonly createdAt: number;
}

/** Which schedules are listed; absent fields do not filter. */
export interface ScheduleQuery {
  readonly conversationId?: string;
  readonly owner?: unknown;
  /** Schedules at most; default 100. */
  readonly limit?: number;
}

/** What is due. */
export interface DueSchedules {
  /** By the store's clock. */
  readonly now: number;
  /** Those whose time has come, those that wait longest first. */
  readonly due: readonly Schedule[];
  /** When the first of the others is due; absent where there are none. */
  readonly nextAt?: number;
}

/** From one due time of a schedule to the next; without `next` it ends. */
export interface ScheduleMove {
  readonly id: string;
  readonly dueAt: number;
  readonly next?: number;
}

/** Keeps schedules. Every method is atomic, also between processes; methods may be synchronous. */
export interface ScheduleStore {
  /** The store's clock: milliseconds since 1970. */
  clock(): number | Promise<number>;
  /**
   * Keeps a schedule, unless its owner has `most` or more; one without an owner counts for its conversation. True also
   * if there is one with this id, and then nothing changes.
   */
  addSchedule(schedule: Schedule, most?: number): boolean | Promise<boolean>;
  /** The first of those that are due next. */
  listSchedules(query?: ScheduleQuery): readonly Schedule[] | Promise<readonly Schedule[]>;
  /** Ends one; false where there is none. */
  cancelSchedule(id: string): boolean | Promise<boolean>;
  /** At most so many of those whose time has come. */
  dueSchedules(limit: number): DueSchedules | Promise<DueSchedules>;
  /** Moves a schedule that is still due at `dueAt`; false, and nothing changes, where another process did, or it ended. */
  moveSchedule(move: ScheduleMove): boolean | Promise<boolean>;
}

/** A store of runs that stores schedules, too. */
export interface StoreWithSchedules {
  readonly schedules: ScheduleStore;
}

const SCHEDULE_STORE = withMethods(
  ['clock', 'addSchedule', 'listSchedules', 'cancelSchedule', 'dueSchedules', 'moveSchedule'],
  "new SqliteRunStore({ path: 'runs.sqlite' }), or another store that keeps schedules",
);

/** What a store of schedules may be, where one is asked for. */
export const STORE_WITH_SCHEDULES = { accepts: keepsSchedules, fix: SCHEDULE_STORE.fix };

/** Whether a store supports schedules. */
export function keepsSchedules(store: unknown): store is StoreWithSchedules {
  return SCHEDULE_STORE.accepts((store as StoreWithSchedules | undefined)?.schedules);
}

/** For whom a schedule counts, as text: its owner, or its conversation where it has none. */
export function subjectOf({ conversationId, owner }: Pick<Schedule, 'conversationId' | 'owner'>): string {
  return ownerSubject(owner) ?? `conversation ${conversationId}`;
}

/** The same of an owner. */
export function ownerSubject(owner: unknown): string | undefined {
  const text = ownerText(owner);
  return text === undefined ? undefined : `owner ${text}`;
}
