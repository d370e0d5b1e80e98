import type { Schedule, ScheduleTiming } from '../contract/schedule-store.js';
import { errorMessage } from '../kernel/error-message.js';
import { loadCroner } from './load-croner.cjs';

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
export function nextDue({ timing, dueAt }: Schedule, now: number): number | undefined {
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
