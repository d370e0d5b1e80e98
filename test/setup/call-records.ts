import type { CallRecord } from 'toolwright';

/** A record without what differs each time: times of day and durations. */
export function withoutTimes(record: CallRecord): Omit<CallRecord, 'durationMs'> {
  const { durationMs: _duration, ...others } = record;
  return others;
}
