import type { CallRecord } from 'toolwright';

/** A record without its duration, which differs each time. */
export function withoutTimes(record: CallRecord): Omit<CallRecord, 'durationMs'> {
  const { durationMs: _duration, ...others } = record;
  return others;
}
