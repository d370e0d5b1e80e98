import type { ConversationLog, KeptConversation } from '../../core/contract/conversation-log.js';
import type { Logger } from '../../core/contract/ports.js';
import type { Schedule, ScheduleStore, ScheduleTiming } from '../../core/contract/schedule-store.js';
import { repeat } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { CONSOLE, logFailure } from '../call/failure-log.js';
import { SafeLog } from '../call/log.js';
import { loadCroner } from './load-croner.cjs';

/** Schedules that are looked at in one page. */
const PAGE = 100;

/** Failures after which a look ends: the store may be away. */
const MOST_FAILURES = 1_000;

/** What due prompts are taken from, and where they go. */
interface ScheduleRunnerParts {
  readonly schedules: ScheduleStore;
  readonly conversations: ConversationLog;
  /** Milliseconds between two looks, where nothing is due before. */
  readonly pollMs: number;
  readonly logger: Logger | undefined;
}

/**
 * Puts the prompts of schedules into their conversations when their time has come. Any number of processes may do so: the
 * key of a prompt names its schedule and its time, so that it enters once, even if a process dies before it has moved the
 * schedule on.
 */
export class ScheduleRunner {
  readonly #parts: ScheduleRunnerParts;
  /** Schedules that are due and failed, those that were tried longest ago first: they keep no others waiting. */
  readonly #failed = new Set<string>();
  /** Looks no more, and resolves when what is being entered is stored. */
  readonly close: () => Promise<void>;

  constructor(parts: ScheduleRunnerParts) {
    this.#parts = parts;
    const { pollMs, logger } = parts;
    this.close = repeat(async (signal) => {
      try {
        return Math.min(pollMs, await this.#enterDue(signal));
      } catch (error) {
        logFailure(logger, { what: 'The store could not be asked for schedules', error });
        return pollMs;
      }
    });
  }

  /** Enters all that is due, and returns the milliseconds until something else is. */
  async #enterDue(signal: AbortSignal): Promise<number> {
    const { schedules } = this.#parts;
    for (let failures = 0; failures < MOST_FAILURES && !signal.aborted; ) {
      const {
        now,
        due,
        nextAt = Number.POSITIVE_INFINITY,
      } = await schedules.dueSchedules(PAGE + this.#failed.size);
      const others = due.filter((schedule) => !this.#failed.has(timeOf(schedule))).slice(0, PAGE);
      failures += await this.#enterAll(others.length > 0 ? others : this.#takeFailed(due), now);
      if (others.length === 0) return nextAt > now ? nextAt - now : Number.POSITIVE_INFINITY;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** A page of those that failed before and are still due. */
  #takeFailed(due: readonly Schedule[]): readonly Schedule[] {
    const known = new Map(due.map((schedule) => [timeOf(schedule), schedule]));
    for (const time of this.#failed) if (!known.has(time)) this.#failed.delete(time);
    const page = [...this.#failed].slice(0, PAGE).flatMap((time) => known.get(time) ?? []);
    for (const schedule of page) this.#failed.delete(timeOf(schedule));
    return page;
  }

  /** Returns how many of them failed. */
  async #enterAll(page: readonly Schedule[], now: number): Promise<number> {
    const entered = await Promise.all(page.map((schedule) => this.#enter(schedule, now)));
    const failed = page.filter((_, index) => !entered[index]);
    for (const schedule of failed) this.#failed.add(timeOf(schedule));
    return failed.length;
  }

  /** False where it failed; it is due until it did not. */
  async #enter(schedule: Schedule, now: number): Promise<boolean> {
    const { schedules, conversations, logger } = this.#parts;
    const { id, conversationId, dueAt, owner, timing } = schedule;
    try {
      if (timing.kind === 'once' || !(await this.#isWaiting(schedule))) {
        const content = withoutUndefined({ kind: 'prompt' as const, content: promptOf(schedule), owner });
        await conversations.enter({ conversationId, key: timeOf(schedule), content });
      }
      const next = nextDue(schedule, now);
      if (next === undefined && timing.kind !== 'once')
        new SafeLog(logger ?? CONSOLE).warn(`Schedule '${id}' ended: its time does not come again`, {
          timing,
        });
      await schedules.moveSchedule(withoutUndefined({ id, dueAt, next }));
      return true;
    } catch (error) {
      const what = 'The prompt of a schedule could not enter its conversation';
      logFailure(logger, { what, error, at: { scheduleId: id, conversationId } });
      return false;
    }
  }

  /** A conversation that waits for somebody would else find its inbox full of one schedule's prompts. */
  async #isWaiting({ id, conversationId }: Schedule): Promise<boolean> {
    const kept = await this.#parts.conversations.read(conversationId);
    return kept?.inbox.some(({ key }) => key.startsWith(prefixOf(id))) ?? false;
  }
}

/** The key of a prompt: its schedule, and when it was due. */
function timeOf({ id, dueAt }: Pick<Schedule, 'id' | 'dueAt'>): string {
  return `${prefixOf(id)}${dueAt}`;
}

/** What the keys of a schedule's prompts begin with. */
function prefixOf(id: string): string {
  return `schedule ${id} `;
}

/** When a schedule was due whose prompt is the last of it to have entered a conversation; nothing where none has. */
export function enteredTime(id: string, kept: KeptConversation | undefined): number | undefined {
  const { messages = [], turn, inbox = [] } = kept ?? {};
  const keys = [
    ...messages.map((message) => message.turn?.key),
    turn?.entry.key,
    ...inbox.map(({ key }) => key),
  ];
  const last = keys.findLast((key) => key?.startsWith(prefixOf(id)));
  return last === undefined ? undefined : Number(last.slice(prefixOf(id).length));
}

/** The note for the model: the message did not come from the user just now. */
function promptOf({ id, text, dueAt }: Schedule): string {
  return `[System: schedule:${id}, due ${new Date(dueAt).toISOString()}] ${text}`;
}

/** A cron expression, and where its hours are. */
type CronTiming = Extract<ScheduleTiming, { readonly kind: 'cron' }>;

/** Something that was written, as times; or what is wrong with it, as a sentence without its full stop. */
type ReadTimes =
  | { readonly ok: true; readonly times: readonly number[] }
  | { readonly ok: false; readonly problem: string };

/**
 * When a schedule that is due is due next: `undefined` where it has ended. Times that were missed since are not made up
 * for.
 */
function nextDue({ timing, dueAt }: Schedule, now: number): number | undefined {
  const from = Math.max(now, dueAt);
  if (timing.kind === 'every')
    return dueAt + (Math.floor((from - dueAt) / timing.everyMs) + 1) * timing.everyMs;
  if (timing.kind === 'once') return undefined;
  const read = cronTimes(timing, { after: from, count: 1 });
  return read.ok ? read.times[0] : undefined;
}

/** The first times of a cron expression after a moment; none where it never comes. */
export function cronTimes(
  { cron, timeZone }: CronTiming,
  { after, count }: { readonly after: number; readonly count: number },
): ReadTimes {
  const problem = timeZoneProblem(timeZone);
  if (problem !== undefined) return { ok: false, problem };
  try {
    const { Cron } = loadCroner();
    const read = new Cron(cron, { mode: '5-part', timezone: timeZone, paused: true });
    if (read.getOnce() !== null) return { ok: false, problem: `'${cron}' is a time, not a cron expression` };
    const times = read.nextRuns(count, new Date(after)).map((date) => date.getTime());
    return { ok: true, times };
  } catch (error) {
    const said = errorMessage(error).replace(/^CronPattern: /, '');
    return { ok: false, problem: `'${cron}' is no cron expression: ${said.replace(/\.$/, '')}` };
  }
}

const TIME = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?\s*(Z|[+-]\d\d:?\d\d)?$/i;

/** A time of ISO 8601 as milliseconds since 1970; where it names no offset, it is the clock of the time zone. */
export function readTime(text: string, timeZone: string): ReadTimes {
  const found = TIME.exec(text.trim());
  if (found === null || !isOnCalendar(found))
    return { ok: false, problem: `'${text}' is no time: write it as 2030-05-17T09:00` };
  const offset = found[7];
  const problem = timeZoneProblem(timeZone);
  if (problem !== undefined) return { ok: false, problem };
  if (offset !== undefined) return read(Date.parse(text.trim().replace(' ', 'T').replace(/\s/g, '')), text);
  const { Cron } = loadCroner();
  const local = text
    .trim()
    .replace(' ', 'T')
    .replace(/\.\d+$/, '');
  return read(new Cron(local, { timezone: timeZone, paused: true }).getOnce()?.getTime(), text);
}

function read(time: number | undefined, text: string): ReadTimes {
  if (time === undefined || Number.isNaN(time)) return { ok: false, problem: `'${text}' is no time` };
  return { ok: true, times: [time] };
}

/** Whether there is such a day and such an hour: what `Date` makes of the 30th of February is in March. */
function isOnCalendar([, ...parts]: readonly (string | undefined)[]): boolean {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.map((part) =>
    Number(part ?? 0),
  );
  const date = new Date(Date.UTC(year, month - 1, day));
  return (
    date.getUTCMonth() === month - 1 && date.getUTCDate() === day && hour < 24 && minute < 60 && second < 60
  );
}

/** Whether a time zone has that name. */
export function isTimeZone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    return false;
  }
}

function timeZoneProblem(timeZone: string): string | undefined {
  return isTimeZone(timeZone) ? undefined : `'${timeZone}' is no time zone: write it as Europe/Vienna or UTC`;
}
