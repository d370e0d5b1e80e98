import type { CallRecord } from '../contract/call-record.js';
import type { Suspension } from '../contract/suspension.js';
import type { ReadCall } from './read-call.js';

/** A call that has no answer yet: it waits for somebody, or (`held`) for those that do. */
export interface UnansweredCall {
  readonly call: ReadCall;
  /** Absent for a call that has not begun. */
  readonly suspension?: Suspension;
}

/** What came of a call of the loop. */
export type CallOutcome = CallRecord | UnansweredCall;

/** Whether a call has no answer yet. */
export function isUnanswered(outcome: CallOutcome): outcome is UnansweredCall {
  return 'call' in outcome;
}
