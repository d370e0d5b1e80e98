import { RetryToolCall } from '../../contract/retry-tool-call.js';
import { CallSuspended } from '../../invocation/call-suspended.js';

/** What a method throws to steer its call is no failure, and no business of exception filters. */
export function passesFilters(thrown: unknown): boolean {
  return RetryToolCall.is(thrown) || thrown instanceof CallSuspended;
}
