import type { Invocation, ToolDefinition } from 'toolwright';
import type { CallEnvironment, CallOrigin } from '../../../src/call/invocation.js';
import { makeCall } from '../../../src/call/make-call.js';

/** Calls a tool under the name `work`, with what surrounds the call. */
export function callWork(
  tool: ToolDefinition | undefined,
  args: unknown = {},
  { scope = {}, attempt, ...environment }: Partial<CallEnvironment & CallOrigin> = {},
): Invocation | Promise<Invocation> {
  const find = () => tool && { open: () => tool, offered: tool };
  return makeCall(
    { find, ...environment, isRecorded: true },
    { id: 'c1', name: 'work', arguments: args },
    attempt === undefined ? { scope } : { scope, attempt },
  );
}
