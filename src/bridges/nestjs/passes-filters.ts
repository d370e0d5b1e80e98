import { RetryToolCall } from '../../contract/retry-tool-call.js';
import type { ToolContext } from '../../contract/tool-context.js';
import { CallContext } from '../../invocation/call-context.js';
import { CallSuspended } from '../../invocation/call-suspended.js';

/**
 * What a method throws to steer its call is no failure, and no business of exception filters; nor is the end of a
 * call that has been answered as aborted or timed out.
 */
export function passesFilters(thrown: unknown, context: ToolContext): boolean {
  if (RetryToolCall.is(thrown) || thrown instanceof CallSuspended) return true;
  return context instanceof CallContext && context.isStopped;
}
