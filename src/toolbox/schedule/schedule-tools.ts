import { hash } from 'node:crypto';
import { Param, Tool, ToolContext, Toolset } from '../../../decorators/index.js';
import { OWNER } from '../../core/contract/call.js';
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
import type { ToolDefinition } from '../../core/contract/tool.js';
import { errorResult, type ToolResult, toolResult } from '../../core/contract/tool-result.js';
import type { ResourceAccess } from '../../core/contract/touch.js';
import { checkOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { plainJson } from '../../core/kernel/json.js';
import {
  BOOLEAN,
  COUNT_LIMIT,
  FILLED_TEXT,
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
import { toolsOfInstances } from '../../tools/discovery/discover-tools.js';

const MINUTE_MS = 60_000;
const DEFAULT_MOST = 20;
const DEFAULT_INTERVAL_MS = 5 * MINUTE_MS;

/** How many times of a cron expression are checked for the smallest interval. */
const LOOKED_AT = 100;

/** Options of {@link Schedules}. */
export interface SchedulesOptions {
  /** The store of the conversations. */
  readonly store: StoreWithSchedules & { readonly conversations?: Pick<ConversationLog, 'read'> };
  /** The most schedules per owner, or per conversation without an owner; default 20. */
  readonly maxSchedules?: number;
  /** The smallest interval of a schedule in milliseconds; default 300,000 (5 minutes). */
  readonly minIntervalMs?: number;
  /** Time zone for times without one; default `UTC`. */
  readonly timeZone?: string;
}

/** A new schedule; exactly one of `at`, `inMinutes`, `everyMinutes` and `cron` sets its time. */
export interface NewSchedule {
  readonly conversationId: string;
  /** The owner, any JSON. */
  readonly owner?: unknown;
  /** The message for the model. */
  readonly text: string;
  /** Once, at an ISO 8601 time: `2030-05-17T09:00`, with an offset or in `timeZone`. */
  readonly at?: string;
  /** Once, after this many minutes. */
  readonly inMinutes?: number;
  /** Repeatedly, every so many minutes, starting after the first interval. */
  readonly everyMinutes?: number;
  /** By a cron expression with five fields, or `@daily` and the like: `0 9 * * MON-FRI`. */
  readonly cron?: string;
  /** Time zone of `at` and `cron`; default: that of the {@link Schedules}. */
  readonly timeZone?: string;
  /** Identifies the schedule: adding a stored key again changes neither its times nor its text. Default: a new key. */
  readonly key?: string;
  /** Refuses an unknown conversation. Default: false; the first prompt starts the conversation. */
  readonly onlyKnown?: boolean;
  /**
   * Adds nothing if the prompt of this `key` has been delivered, even if the schedule has ended since. Default: false.
   */
  readonly onlyOnce?: boolean;
}

/** The added schedule, or why it was refused, as text for a model. */
export type AddedSchedule =
  | { readonly ok: true; readonly schedule: Schedule; readonly now: number }
  | { readonly ok: false; readonly problem: string };

/** The owner of schedules. */
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
  owner: protecting(OWNER),
};
const SCHEDULE_OWNER = optionTable<ScheduleOwner>('the owner of schedules', OWNER_RULES);
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
 * Prompts that enter conversations at a scheduled time, in a store that all processes share. `Conversations` with the
 * same store deliver them, in whichever process runs the turns.
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * const schedules = new Schedules({ store, timeZone: 'Europe/Vienna' });
 * await schedules.add({ conversationId: 'c1', text: 'Tell what is new', cron: '0 9 * * MON-FRI' });
 * ```
 *
 * @throws InvalidOptionsError (521) for invalid options.
 */
export class Schedules {
  readonly #store: ScheduleStore;
  readonly #conversations: Pick<ConversationLog, 'read'> | undefined;
  readonly #most: number;
  readonly #minIntervalMs: number;
  /** The time zone of times that do not specify one. */
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
   * Stores a schedule and returns it; for a known `key`, returns the stored one. Mistakes that a model can make are
   * returned as a `problem`: invalid or past times, too short intervals, and too many schedules.
   *
   * @throws InvalidOptionsError (521) for values of a wrong type.
   */
  async add(given: NewSchedule): Promise<AddedSchedule> {
    checkOptions(given, NEW_SCHEDULE);
    const { conversationId, text, key = crypto.randomUUID(), onlyKnown, onlyOnce } = given;
    if (text.trim() === '') return refused('its text is empty');
    const conversations = onlyKnown || onlyOnce ? this.#conversations : undefined;
    const conversation = await conversations?.read(conversationId);
    if (conversations !== undefined && onlyKnown && conversation === undefined) return refused(UNKNOWN);
    const now = await this.#store.clock();
    const owned = given.owner === undefined ? {} : { owner: plainJson(given.owner) };
    const of = { conversationId, ...owned };
    // Unique, and short enough for a model.
    const place = JSON.stringify([key, of.conversationId, subjectOf(of)]);
    const id = `sch_${hash('sha256', place, 'base64url').slice(0, 16)}`;
    const about = { id, ...of, text, createdAt: now };
    const entered = onlyOnce ? enteredTime(about.id, conversation) : undefined;
    if (entered !== undefined && (given.at ?? given.inMinutes) !== undefined)
      return { ok: true, schedule: { ...about, timing: { kind: 'once' }, dueAt: entered }, now };
    const read = this.#readTiming(given, now);
    if (!read.ok) return read;
    const { timing, dueAt } = read;
    const schedule = { ...about, timing, dueAt };
    if (await this.#store.addSchedule(schedule, this.#most)) {
      const kept = given.key === undefined ? undefined : await this.#find(schedule.id, of);
      return { ok: true, schedule: kept ?? schedule, now };
    }
    return refused(`there are already ${this.#most} schedules, which is the limit: cancel one of them first`);
  }

  /** Whether prompts can be delivered to a conversation: it is in the store, or the store cannot tell. */
  async reaches(conversationId: string): Promise<boolean> {
    return (
      this.#conversations === undefined || (await this.#conversations.read(conversationId)) !== undefined
    );
  }

  /**
   * The schedules of an owner in a conversation, sorted by their next time.
   *
   * @throws InvalidOptionsError (521) if `owner` is given as `undefined`.
   */
  async list(of: ScheduleOwner): Promise<readonly Schedule[]> {
    const faults = wrongValues(of, SCHEDULE_OWNER);
    refuseOptions(faults.map((fault) => ({ where: SCHEDULE_OWNER.of, ...fault })));
    const { conversationId } = of;
    const kept = await this.#store.listSchedules({ conversationId, limit: Number.MAX_SAFE_INTEGER });
    return kept.filter((schedule) => subjectOf(schedule) === subjectOf(of));
  }

  /**
   * Cancels a schedule of an owner in a conversation; false if it does not exist. A prompt that is due at the same moment
   * may still be delivered.
   */
  async cancel(id: string, of: ScheduleOwner): Promise<boolean> {
    return (await this.#find(id, of)) !== undefined && this.#store.cancelSchedule(id);
  }

  async #find(id: string, of: ScheduleOwner): Promise<Schedule | undefined> {
    return (await this.list(of)).find((schedule) => schedule.id === id);
  }

  #readTiming(given: NewSchedule, now: number): ReadTiming {
    const { at, inMinutes, everyMinutes, cron, timeZone = this.timeZone } = given;
    const said = [at, inMinutes, everyMinutes, cron].filter((value) => value !== undefined);
    if (said.length !== 1) return refused('give exactly one of at, inMinutes, everyMinutes and cron');
    if (cron !== undefined) {
      const timing = { kind: 'cron', cron, timeZone } as const;
      const count = this.#minIntervalMs > MINUTE_MS ? LOOKED_AT : 1;
      const read = cronTimes(timing, { after: now, count });
      if (!read.ok) return refused(read.problem);
      const { times } = read;
      const [first] = times;
      if (first === undefined) return refused(`'${cron}' never occurs`);
      const isTooOften = times.some(
        (time, index) => time - (times[index - 1] ?? -Infinity) < this.#minIntervalMs,
      );
      return isTooOften ? this.#tooOften(`'${cron}' occurs too often`) : timed(timing, first);
    }
    if (everyMinutes !== undefined) {
      const everyMs = Math.round(everyMinutes * MINUTE_MS);
      if (everyMs >= Math.max(1, this.#minIntervalMs))
        return timed({ kind: 'every', everyMs }, now + everyMs);
      return this.#tooOften(`every ${everyMinutes} minutes is too often`);
    }
    if (at === undefined) return once(now + (inMinutes ?? 0) * MINUTE_MS, now);
    const read = readTime(at, timeZone);
    return read.ok ? once(read.times[0] ?? 0, now) : refused(read.problem);
  }

  #tooOften(what: string): ReadTiming {
    return refused(`${what}: there must be ${this.#minIntervalMs / MINUTE_MS} minutes between two times`);
  }
}

const UNKNOWN = 'this conversation is not in the store of schedules, so no message could be delivered to it';

type ReadTiming =
  | { readonly ok: true; readonly timing: ScheduleTiming; readonly dueAt: number }
  | { readonly ok: false; readonly problem: string };

function timed(timing: ScheduleTiming, due: number): ReadTiming {
  const dueAt = Math.ceil(due);
  if (Number.isNaN(new Date(dueAt).getTime())) return refused('the time is too far in the future');
  return { ok: true, timing, dueAt };
}

function once(due: number, now: number): ReadTiming {
  const read = timed({ kind: 'once' }, due);
  return !read.ok || due > now ? read : refused(`${new Date(due).toISOString()} is not in the future`);
}

function refused(problem: string): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem };
}

const YEAR_MINUTES = 366 * 24 * 60;

const PROMPT_TEXT = {
  description: 'The message that you will receive at that time, with all the information that you will need',
  minLength: 1,
  maxLength: 4_000,
};
const OPTIONAL_TEXT = { type: () => String, required: false };
const OPTIONAL_NUMBER = { type: () => Number, required: false };
const AT = { description: 'Once, at this time, e.g. 2030-05-17T09:00', ...OPTIONAL_TEXT };
const IN_MINUTES = {
  description: 'Once, after this number of minutes',
  ...OPTIONAL_NUMBER,
  minimum: 0.1,
  maximum: 10 * YEAR_MINUTES,
};
const EVERY_MINUTES = {
  description: 'Repeatedly, with this number of minutes in between',
  ...OPTIONAL_NUMBER,
  minimum: 1,
  maximum: YEAR_MINUTES,
};
const CRON = {
  description: 'Repeatedly, by a cron expression with five fields, e.g. 0 9 * * MON-FRI',
  ...OPTIONAL_TEXT,
  maxLength: 200,
};
const ZONE = {
  description: 'Time zone of at and cron, e.g. Europe/Vienna',
  ...OPTIONAL_TEXT,
  maxLength: 100,
};

/**
 * Tools that let a model schedule prompts: at the given time, a message from the model enters the conversation and
 * starts a turn. They need a conversation in the store (`Conversations`).
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * container.register(Schedules, { useValue: new Schedules({ store, timeZone: 'Europe/Vienna' }) });
 * tools.register(...discoverTools({ toolsets: [ScheduleTools] }));
 * ```
 */
@Toolset({ name: 'Schedule' })
export class ScheduleTools {
  constructor(protected readonly schedules: Schedules) {}

  @Tool({
    description:
      'Schedule a message for later in this conversation. At that time, your text arrives as a new message, and you act on it then. Give exactly one of at, inMinutes, everyMinutes and cron.',
    annotations: {
      title: 'Schedule',
      readOnly: false,
      destructive: false,
      idempotent: true,
      openWorld: false,
    },
    sequential: true,
    touches: 'touchesOfNew',
  })
  async schedulePrompt(
    @Param({ name: 'text', ...PROMPT_TEXT, required: true }) text: string,
    @Param({ name: 'at', ...AT }) at?: string,
    @Param({ name: 'inMinutes', ...IN_MINUTES }) inMinutes?: number,
    @Param({ name: 'everyMinutes', ...EVERY_MINUTES }) everyMinutes?: number,
    @Param({ name: 'cron', ...CRON }) cron?: string,
    @Param({ name: 'timeZone', ...ZONE }) timeZone?: string,
    context?: ToolContext,
  ): Promise<ToolResult> {
    const of = ownerOf(context);
    if (of === undefined) return errorResult(NO_CONVERSATION);
    // A call that is repeated after a crash must not schedule twice, even if its prompt has already been delivered.
    const once = { key: context?.idempotencyKey, onlyKnown: true, onlyOnce: true };
    const wanted = { ...of, at, inMinutes, everyMinutes, cron, timeZone, text, ...once };
    const said = Object.entries(wanted).filter(([, value]) => value !== undefined && value !== null);
    const added = await this.schedules.add(Object.fromEntries(said) as typeof wanted);
    if (!added.ok) return errorResult(`Nothing was scheduled: ${added.problem}.`);
    const zone = timeZone ?? this.schedules.timeZone;
    const { schedule, now } = added;
    const rest = schedule.timing.kind === 'once' ? '' : `, then ${describeTiming(schedule.timing)}`;
    return toolResult(
      `Scheduled as ${schedule.id}: ${describeTime(schedule.dueAt, zone)}${rest}. It is now ${describeTime(now, zone)}.`,
    );
  }

  @Tool({
    description: 'List the schedules of this conversation.',
    annotations: { title: 'List schedules', readOnly: true },
  })
  async listSchedules(context?: ToolContext): Promise<ToolResult> {
    const of = ownerOf(context);
    if (of === undefined) return errorResult(NO_CONVERSATION);
    return toolResult(this.#describe(await this.schedules.list(of)));
  }

  @Tool({
    description: 'Cancel a schedule of this conversation.',
    annotations: {
      title: 'Cancel schedule',
      readOnly: false,
      destructive: true,
      idempotent: true,
      openWorld: false,
    },
    sequential: true,
    touches: 'touchesOfEnd',
  })
  async cancelSchedule(
    @Param({ name: 'id', description: 'Id of the schedule, as returned by list_schedules', required: true })
    id: string,
    context?: ToolContext,
  ): Promise<ToolResult> {
    const of = ownerOf(context);
    if (of === undefined) return errorResult(NO_CONVERSATION);
    if (await this.schedules.cancel(id, of)) return toolResult(`${id} was cancelled.`);
    const left = this.#describe(await this.schedules.list(of));
    return errorResult(
      `There is no schedule '${id}': it has ended, it was cancelled, or it never existed. ${left}`,
    );
  }

  /** A schedule that would be refused accesses nothing: the call fails before an approval is requested. */
  async touchesOfNew(_: unknown, context?: ToolContext): Promise<readonly ResourceAccess[] | 'as annotated'> {
    const of = ownerOf(context);
    return of !== undefined && (await this.schedules.reaches(of.conversationId)) ? 'as annotated' : [];
  }

  /** Cancelling a schedule that does not exist accesses nothing. */
  async touchesOfEnd(
    { id }: { readonly id?: unknown },
    context?: ToolContext,
  ): Promise<readonly ResourceAccess[] | 'as annotated'> {
    const of = ownerOf(context);
    const own = of === undefined ? [] : await this.schedules.list(of);
    return own.some((schedule) => schedule.id === id) ? 'as annotated' : [];
  }

  #describe(schedules: readonly Schedule[]): string {
    if (schedules.length === 0) return 'Nothing is scheduled.';
    const lines = schedules.map(({ id, timing, dueAt, text }) => {
      const zone = timing.kind === 'cron' ? timing.timeZone : this.schedules.timeZone;
      return `- ${id}: ${describeTime(dueAt, zone)}, ${describeTiming(timing)}: ${text}`;
    });
    return ['Scheduled:', ...lines].join('\n');
  }
}

const NO_CONVERSATION = 'This call does not belong to a conversation, so there are no schedules.';

/** The conversation and owner of the schedules that a call may see. */
function ownerOf(context: ToolContext | undefined) {
  const { conversationId, owner } = context ?? {};
  if (conversationId === undefined) return undefined;
  return owner === undefined ? { conversationId } : { conversationId, owner };
}

function describeTiming(timing: ScheduleTiming): string {
  if (timing.kind === 'once') return 'once';
  if (timing.kind === 'every') return `every ${timing.everyMs / 60_000} minutes`;
  return `by cron ${timing.cron}`;
}

/** With the day of the week, so that a model notices weekends: `Tue 2030-05-14 09:00 Europe/Vienna`. */
function describeTime(time: number, timeZone: string): string {
  const day = new Intl.DateTimeFormat('en', { weekday: 'short', timeZone }).format(time);
  const clock = new Intl.DateTimeFormat('sv', { dateStyle: 'short', timeStyle: 'short', timeZone });
  return `${day} ${clock.format(time)} ${timeZone}`;
}

/**
 * Creates `schedule_prompt`, `list_schedules` and `cancel_schedule` without a container.
 *
 * @throws InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * tools.register(...scheduleTools({ store, timeZone: 'Europe/Vienna' }));
 * ```
 */
export function scheduleTools(options: SchedulesOptions): ToolDefinition[] {
  return toolsOfInstances(new ScheduleTools(new Schedules(options)));
}
