import { createHash, randomUUID } from 'node:crypto';
import { isNobody } from '../../core/contract/call.js';
import type { ConversationLog } from '../../core/contract/conversation-log.js';
import { STORED_ID } from '../../core/contract/run-state.js';
import {
  type Schedule,
  type ScheduleStore,
  type ScheduleTiming,
  STORE_WITH_SCHEDULES,
  type StoreWithSchedules,
  subjectOf,
} from '../../core/contract/schedule-store.js';
import { checkOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { plainJson } from '../../core/kernel/json.js';
import {
  BOOLEAN,
  COUNT_LIMIT,
  FILLED_TEXT,
  JSON_VALUE,
  NUMBER,
  optionTable,
  PAUSE,
  protecting,
  type RulesOf,
  required,
  TEXT,
  wrongValues,
} from '../../core/kernel/options.js';
import { cronTimes, enteredTime, isTimeZone, readTime } from '../../run/schedules/schedule-runner.js';

const MINUTE_MS = 60_000;
const DEFAULT_MOST = 20;
const DEFAULT_INTERVAL_MS = 5 * MINUTE_MS;

/** Times of a cron expression that are looked at for the smallest interval. */
const LOOKED_AT = 100;

/** Options of {@link Schedules}. */
export interface SchedulesOptions {
  /** `SqliteRunStore`, `PostgresRunStore` or `MemoryRunStore`: the one of the conversations. */
  readonly store: StoreWithSchedules & { readonly conversations?: Pick<ConversationLog, 'read'> };
  /** Schedules of one owner at the same time, or of one conversation that has no owner; default 20. */
  readonly maxSchedules?: number;
  /** Milliseconds between two times of a schedule at least; default 300,000, which is 5 minutes. */
  readonly minIntervalMs?: number;
  /** Where times are that name neither an offset nor a time zone, as IANA names it; default `UTC`. */
  readonly timeZone?: string;
}

/** What is to be scheduled; exactly one of `at`, `inMinutes`, `everyMinutes` and `cron` says when. */
export interface NewSchedule {
  readonly conversationId: string;
  /** On whose behalf, any JSON. */
  readonly owner?: unknown;
  /** The message that the model receives then. */
  readonly text: string;
  /** Once, at a time of ISO 8601: `2030-05-17T09:00`, with an offset or by the clock of `timeZone`. */
  readonly at?: string;
  /** Once, so many minutes from now. */
  readonly inMinutes?: number;
  /** Again and again, for the first time so many minutes from now. */
  readonly everyMinutes?: number;
  /** By a cron expression of five fields, or `@daily` and the like: `0 9 * * MON-FRI`. */
  readonly cron?: string;
  /** Where `at` and `cron` are; default: that of the {@link Schedules}. */
  readonly timeZone?: string;
  /**
   * The same key means the same schedule: given again while that is kept, it changes nothing, not its times and not its
   * text. Default: a new one.
   */
  readonly key?: string;
  /** Refuses it where nothing ever entered the conversation. Default: false, and the first prompt begins it. */
  readonly onlyKnown?: boolean;
  /**
   * A `key` is used up by its prompt: also where that has entered the conversation and the schedule has ended, nothing
   * is added. Default: false.
   */
  readonly onlyOnce?: boolean;
}

/** A schedule that was added, or why none was, as text for a model. */
export type AddedSchedule =
  | { readonly ok: true; readonly schedule: Schedule; readonly now: number }
  | { readonly ok: false; readonly problem: string };

/** Whose schedules. */
type ScheduleOwner = Pick<NewSchedule, 'conversationId' | 'owner'>;

const TIME_ZONE = {
  accepts: (value: unknown) => typeof value === 'string' && isTimeZone(value),
  fix: "'Europe/Vienna', or 'UTC'",
};

const OPTIONS = optionTable<SchedulesOptions>('Schedules', {
  store: required(STORE_WITH_SCHEDULES),
  maxSchedules: COUNT_LIMIT,
  minIntervalMs: PAUSE,
  timeZone: TIME_ZONE,
});

const OWNER_RULES: RulesOf<ScheduleOwner> = {
  conversationId: required(STORED_ID),
  owner: protecting({
    accepts: (value) => JSON_VALUE.accepts(value) && !isNobody(value),
    fix: "JSON that says who it is: { user: 'u1' }",
  }),
};
const SCHEDULE_OWNER = optionTable<ScheduleOwner>('whose schedules', OWNER_RULES);
const NEW_SCHEDULE = optionTable<NewSchedule>('Schedules.add', {
  ...OWNER_RULES,
  text: required(TEXT),
  at: TEXT,
  inMinutes: NUMBER,
  everyMinutes: NUMBER,
  cron: TEXT,
  timeZone: TEXT,
  key: FILLED_TEXT,
  onlyKnown: BOOLEAN,
  onlyOnce: BOOLEAN,
});

/**
 * Prompts that enter conversations when their time has come, in a store that all processes share. `Conversations` over
 * the same store enter them, wherever turns are taken.
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * const schedules = new Schedules({ store, timeZone: 'Europe/Vienna' });
 * await schedules.add({ conversationId: 'c1', text: 'Tell what is new', cron: '0 9 * * MON-FRI' });
 * ```
 *
 * @throws InvalidOptionsError (521) for options that are wrong.
 */
export class Schedules {
  readonly #store: ScheduleStore;
  readonly #conversations: Pick<ConversationLog, 'read'> | undefined;
  readonly #most: number;
  readonly #minIntervalMs: number;
  /** Where times are that do not say so. */
  readonly timeZone: string;

  constructor(options: SchedulesOptions) {
    checkOptions(options, OPTIONS);
    this.#store = options.store.schedules;
    this.#conversations = options.store.conversations;
    this.#most = options.maxSchedules ?? DEFAULT_MOST;
    this.#minIntervalMs = options.minIntervalMs ?? DEFAULT_INTERVAL_MS;
    this.timeZone = options.timeZone ?? 'UTC';
  }

  /**
   * Keeps a schedule, and gives it as it is kept: of a `key` that is known, the one that is there. What a model can have got wrong is told as a `problem`: times that are none, past or too close
   * together, and more schedules than there may be.
   *
   * @throws InvalidOptionsError (521) for values of a wrong type.
   */
  async add(given: NewSchedule): Promise<AddedSchedule> {
    checkOptions(given, NEW_SCHEDULE);
    const { conversationId, text, key = randomUUID(), onlyKnown, onlyOnce } = given;
    if (text.trim() === '') return refused('its text says nothing');
    const isLooked = this.#conversations !== undefined && (onlyKnown || onlyOnce);
    const conversation = isLooked ? await this.#conversations?.read(conversationId) : undefined;
    if (isLooked && onlyKnown && conversation === undefined) return refused(UNKNOWN);
    const now = await this.#store.clock();
    const owned = given.owner === undefined ? {} : { owner: plainJson(given.owner) };
    const of = { conversationId, ...owned };
    const about = { id: idOf(key, of), ...of, text, createdAt: now };
    const entered = onlyOnce ? enteredTime(about.id, conversation) : undefined;
    if (entered !== undefined && (given.at ?? given.inMinutes) !== undefined)
      return { ok: true, schedule: { ...about, timing: { kind: 'once' }, dueAt: entered }, now };
    const read = this.#readTiming(given, now);
    if (!read.ok) return read;
    const { timing, dueAt } = read;
    const schedule = { ...about, timing, dueAt };
    if (await this.#store.addSchedule(schedule, this.#most)) {
      const kept = given.key === undefined ? undefined : await this.#kept(schedule);
      return { ok: true, schedule: kept ?? schedule, now };
    }
    return refused(
      `there are ${this.#most} schedules, and no more are taken: cancel one that is not needed first`,
    );
  }

  /** Whether prompts arrive in a conversation: it is one of the store, as far as that tells. */
  async reaches(conversationId: string): Promise<boolean> {
    return (
      this.#conversations === undefined || (await this.#conversations.read(conversationId)) !== undefined
    );
  }

  /**
   * The schedules of an owner in a conversation, the first to come first.
   *
   * @throws InvalidOptionsError (521) for an owner that is `undefined`.
   */
  async list(of: ScheduleOwner): Promise<readonly Schedule[]> {
    const faults = wrongValues(of, SCHEDULE_OWNER);
    refuseOptions(faults.map((fault) => ({ where: SCHEDULE_OWNER.of, ...fault })));
    const { conversationId } = of;
    const kept = await this.#store.listSchedules({ conversationId, limit: Number.MAX_SAFE_INTEGER });
    return kept.filter((schedule) => subjectOf(schedule) === subjectOf(of));
  }

  /**
   * Ends a schedule of an owner in a conversation; false where it has no such one. A prompt that is due at this very
   * moment may still enter.
   */
  async cancel(id: string, of: ScheduleOwner): Promise<boolean> {
    const own = await this.list(of);
    return own.some((schedule) => schedule.id === id) && this.#store.cancelSchedule(id);
  }

  async #kept({ id, ...of }: Schedule): Promise<Schedule | undefined> {
    return (await this.list(of)).find((schedule) => schedule.id === id);
  }

  #readTiming(given: NewSchedule, now: number): ReadTiming {
    const { at, inMinutes, everyMinutes, cron, timeZone = this.timeZone } = given;
    const said = [at, inMinutes, everyMinutes, cron].filter((value) => value !== undefined);
    if (said.length !== 1) return refused('give exactly one of at, inMinutes, everyMinutes and cron');
    if (cron !== undefined) return this.#readCron({ kind: 'cron', cron, timeZone }, now);
    if (everyMinutes !== undefined) return this.#readInterval(everyMinutes, now);
    if (at === undefined) return once(now + (inMinutes ?? 0) * MINUTE_MS, now);
    const read = readTime(at, timeZone);
    return read.ok ? once(read.times[0] ?? 0, now) : refused(read.problem);
  }

  #readInterval(everyMinutes: number, now: number): ReadTiming {
    const everyMs = Math.round(everyMinutes * MINUTE_MS);
    if (everyMs < Math.max(1, this.#minIntervalMs))
      return this.#tooOften(`every ${everyMinutes} minutes is too often`);
    return timed({ kind: 'every', everyMs }, now + everyMs);
  }

  #readCron(timing: ScheduleTiming & { readonly kind: 'cron' }, now: number): ReadTiming {
    const count = this.#minIntervalMs > MINUTE_MS ? LOOKED_AT : 1;
    const read = cronTimes(timing, { after: now, count });
    if (!read.ok) return refused(read.problem);
    const { times } = read;
    const [first] = times;
    if (first === undefined) return refused(`'${timing.cron}' never comes`);
    const isTooOften = times.some(
      (time, index) => time - (times[index - 1] ?? -Infinity) < this.#minIntervalMs,
    );
    if (isTooOften) return this.#tooOften(`'${timing.cron}' comes too often`);
    return timed(timing, first);
  }

  #tooOften(what: string): ReadTiming {
    return refused(`${what}: there have to be ${this.#minIntervalMs / MINUTE_MS} minutes between two times`);
  }
}

const UNKNOWN = 'this conversation is not kept in the store of schedules, and nothing would arrive in it';

type ReadTiming =
  | { readonly ok: true; readonly timing: ScheduleTiming; readonly dueAt: number }
  | { readonly ok: false; readonly problem: string };

function timed(timing: ScheduleTiming, due: number): ReadTiming {
  const dueAt = Math.ceil(due);
  if (Number.isNaN(new Date(dueAt).getTime())) return refused('that is further away than times go');
  return { ok: true, timing, dueAt };
}

function once(due: number, now: number): ReadTiming {
  const read = timed({ kind: 'once' }, due);
  return !read.ok || due > now ? read : refused(`${new Date(due).toISOString()} is not in the future`);
}

function refused(problem: string): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem };
}

/** Short enough for a model, and unique. */
function idOf(key: string, of: ScheduleOwner): string {
  const digest = createHash('sha256').update(JSON.stringify([key, of.conversationId, subjectOf(of)]));
  return `sch_${digest.digest('base64url').slice(0, 16)}`;
}
