/**
 * An instant as local time in a zone, ISO 8601 with offset and without fractions of a second:
 * `2024-01-15T10:30:00-05:00`.
 *
 * @param timezone IANA name; default: the zone of the machine.
 * @throws RangeError where the zone is unknown.
 */
export function zonedTime(instant: Date, timezone?: string): string {
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
