import { ToolResult } from '../contract/tool-result.js';

/**
 * What `get_current_time` answers: the local time in the zone for the model, and milliseconds since 1970 as
 * `details.utcTimestamp` for the application.
 *
 * @throws Error `Invalid timezone: X. Current UTC time: <ISO>` where the zone is unknown.
 */
export function currentTime(instant: Date, timezone?: string): ToolResult {
  // Models send '' for an argument that they mean to leave out.
  const zone = timezone?.trim() || undefined;
  return new ToolResult({ forLLM: timeIn(instant, zone), details: { utcTimestamp: instant.getTime() } });
}

function timeIn(instant: Date, zone: string | undefined): string {
  try {
    return zonedTime(instant, zone);
  } catch (cause) {
    if (zone === undefined || !(cause instanceof RangeError)) throw cause;
    const utc = `${instant.toISOString().slice(0, 19)}Z`;
    throw new Error(`Invalid timezone: ${zone.slice(0, 80)}. Current UTC time: ${utc}`, { cause });
  }
}

/**
 * An instant as local time in a zone, ISO 8601 with offset and without fractions of a second:
 * `2024-01-15T10:30:00-05:00`.
 *
 * @param timezone IANA name; default: the zone of the machine.
 * @throws RangeError where the zone is unknown.
 */
function zonedTime(instant: Date, timezone?: string): string {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'longOffset',
  });
  const parts = new Map(format.formatToParts(instant).map(({ type, value }) => [type, value]));
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? '';
  // Intl writes `GMT-05:00`, and for UTC only `GMT`.
  const offset = part('timeZoneName').slice('GMT'.length) || '+00:00';
  const date = `${part('year').padStart(4, '0')}-${part('month')}-${part('day')}`;
  return `${date}T${part('hour')}:${part('minute')}:${part('second')}${offset}`;
}
