import type { ConversationLog, KeptConversation } from '../../core/contract/conversation-log.js';
import type { Logger } from '../../core/contract/ports.js';
import type { Schedule, ScheduleStore, ScheduleTiming } from '../../core/contract/schedule-store.js';
import { repeat } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { CONSOLE, logFailure } from '../call/failure-log.js';
import { safeLog } from '../call/log.js';
import { loadCroner } from './load-croner.cjs';

/** The most schedules per page. */
const PAGE = 100;

/** The number of failures after which a search ends, because the store may be unavailable. */
const MOST_FAILURES = 1_000;

/** The source and target of due prompts. */
interface ScheduleRunnerParts {
  readonly schedules: ScheduleStore;
  readonly conversations: ConversationLog;
  /** Milliseconds between searches, if nothing is due earlier. */
  readonly pollMs: number;
  readonly logger: Logger | undefined;
}

/**
 * Adds the prompts of due schedules to their conversations. Any number of processes may run it: the key of a prompt
 * contains its schedule and its time, so that it enters once, even if a process crashes before it has moved the
 * schedule. The returned function stops it, and resolves when current entries are stored.
 */
export function runSchedules(parts: ScheduleRunnerParts): () => Promise<void> {
  const { schedules, pollMs, logger } = parts;
  /** Due schedules that failed, least recently tried first, so that they do not delay others. */
  const failed = new Set<string>();

  /** Enters all due prompts, and returns the milliseconds until the next is due. */
  const enterDue = async (signal: AbortSignal): Promise<number> => {
    for (let failures = 0; failures < MOST_FAILURES && !signal.aborted; ) {
      const {
        now,
        due,
        nextAt = Number.POSITIVE_INFINITY,
      } = await schedules.dueSchedules(PAGE + failed.size);
      const others = due.filter((schedule) => !failed.has(timeOf(schedule))).slice(0, PAGE);
      let page = others;
      if (others.length === 0) {
        // Schedules that failed before and are still due.
        const known = new Map(due.map((schedule) => [timeOf(schedule), schedule]));
        for (const time of failed) if (!known.has(time)) failed.delete(time);
        page = [...failed].slice(0, PAGE).flatMap((time) => known.get(time) ?? []);
        for (const schedule of page) failed.delete(timeOf(schedule));
      }
      const entered = await Promise.all(page.map((schedule) => enter(schedule, now, parts)));
      for (const [index, schedule] of page.entries()) {
        if (entered[index]) continue;
        failed.add(timeOf(schedule));
        failures += 1;
      }
      if (others.length === 0) return nextAt > now ? nextAt - now : Number.POSITIVE_INFINITY;
    }
    return Number.POSITIVE_INFINITY;
  };

  return repeat(async (signal) => {
    try {
      return Math.min(pollMs, await enterDue(signal));
    } catch (error) {
      logFailure(logger, { what: 'The schedules that are due could not be read from the store', error });
      return pollMs;
    }
  });
}

/** Returns false after a failure; the schedule then stays due. */
async function enter(
  schedule: Schedule,
  now: number,
  { schedules, conversations, logger }: ScheduleRunnerParts,
): Promise<boolean> {
  const { id, conversationId, dueAt, owner, text, timing } = schedule;
  try {
    // If its last prompt still waits, the inbox of a suspended conversation would fill with prompts of one schedule.
    const kept = timing.kind === 'once' ? undefined : await conversations.read(conversationId);
    if (!kept?.inbox.some(({ key }) => key.startsWith(prefixOf(id)))) {
      // The model learns that the message does not come from the user at this moment.
      const prompt = `[System: schedule:${id}, due ${new Date(dueAt).toISOString()}] ${text}`;
      const content = withoutUndefined({ kind: 'prompt' as const, content: prompt, owner });
      await conversations.enter({ conversationId, key: timeOf(schedule), content });
    }
    const next = nextDue(schedule, now);
    if (next === undefined && timing.kind !== 'once')
      safeLog(logger ?? CONSOLE).warn(`Schedule '${id}' ended: it has no further time`, { timing });
    await schedules.moveSchedule(withoutUndefined({ id, dueAt, next }));
    return true;
  } catch (error) {
    const what = 'The prompt of a schedule could not be added to its conversation';
    logFailure(logger, { what, error, at: { scheduleId: id, conversationId } });
    return false;
  }
}

/** The key of a prompt: its schedule and due time. */
function timeOf({ id, dueAt }: Pick<Schedule, 'id' | 'dueAt'>): string {
  return `${prefixOf(id)}${dueAt}`;
}

/** The common prefix of the keys of a schedule's prompts. */
function prefixOf(id: string): string {
  return `schedule ${id} `;
}

/** The due time of the last prompt of a schedule that entered a conversation; `undefined` if there is none. */
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

/** A cron expression and its time zone. */
type CronTiming = Extract<ScheduleTiming, { readonly kind: 'cron' }>;

/** Parsed times, or the problem, as a sentence without its full stop. */
type ReadTimes =
  | { readonly ok: true; readonly times: readonly number[] }
  | { readonly ok: false; readonly problem: string };

/** The next due time of a due schedule; `undefined` if it has ended. Missed times are skipped. */
function nextDue({ timing, dueAt }: Schedule, now: number): number | undefined {
  const from = Math.max(now, dueAt);
  if (timing.kind === 'every')
    return dueAt + (Math.floor((from - dueAt) / timing.everyMs) + 1) * timing.everyMs;
  if (timing.kind === 'once') return undefined;
  const read = cronTimes(timing, { after: from, count: 1 });
  return read.ok ? read.times[0] : undefined;
}

/** The first times of a cron expression after a moment; empty if it never occurs. */
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
    return { ok: false, problem: `'${cron}' is not a cron expression: ${said.replace(/\.$/, '')}` };
  }
}

const TIME = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?\s*(Z|[+-]\d\d:?\d\d)?$/i;

/** A time in ISO 8601 as milliseconds since 1970; without an offset, it is local to the time zone. */
export function readTime(text: string, timeZone: string): ReadTimes {
  const written = text.trim().replace(/ (?=\d)/, 'T');
  const found = TIME.exec(written);
  if (found === null || !isOnCalendar(found))
    return { ok: false, problem: `'${text}' is not a time: write it as 2030-05-17T09:00` };
  const offset = found[7];
  const problem = timeZoneProblem(timeZone);
  if (problem !== undefined) return { ok: false, problem };
  if (offset !== undefined) return read(Date.parse(written.replace(/\s/g, '')), text);
  const { Cron } = loadCroner();
  const local = written.replace(/\.\d+$/, '');
  return read(new Cron(local, { timezone: timeZone, paused: true }).getOnce()?.getTime(), text);
}

function read(time: number | undefined, text: string): ReadTimes {
  if (time === undefined || Number.isNaN(time)) return { ok: false, problem: `'${text}' is not a time` };
  return { ok: true, times: [time] };
}

/** Whether the day and the hour exist: `Date` converts February 30 to a day in March. */
function isOnCalendar([, year, month, day, hour, minute, second = '00']: readonly string[]): boolean {
  const text = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  const time = Date.parse(`${text}Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/** Whether the time zone exists. */
export function isTimeZone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    return false;
  }
}

function timeZoneProblem(timeZone: string): string | undefined {
  return isTimeZone(timeZone)
    ? undefined
    : `'${timeZone}' is not a time zone: write it as Europe/Vienna or UTC`;
}
