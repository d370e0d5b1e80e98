import type { CallRecord } from 'toolwright';

/** A record without what differs each time: how long the call took. */
export function withoutDuration(record: CallRecord): Omit<CallRecord, 'durationMs'> {
  const { durationMs: _duration, ...others } = record;
  return others;
}
