const DAY_MS = 24 * 60 * 60 * 1000;

/** The day of an instant in UTC, as the database stores days: `2026-01-31`. */
export function calendarDay(instant: Date): string {
  return instant.toISOString().slice(0, 10);
}

/** The instant a number of days later; earlier if the number is negative. */
export function addDays(instant: Date, days: number): Date {
  return new Date(instant.getTime() + days * DAY_MS);
}
