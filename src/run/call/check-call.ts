import type { JsonObject } from '../../core/contract/json-schema.js';
import { andThen } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { writeOutcome } from './call-outcome.js';
import { acceptedArguments, copyOfSent, prepareArguments, type ReadyArguments } from './check-arguments.js';
import type { Call, ReceivedCall } from './context.js';
import type { CallOutcome, CallRequest } from './invocation.js';
import { failedResult } from './result-text.js';
import { awaitWork } from './run-body.js';

/** Steps "read" and "check": the arguments for the tool, or the rejection of invalid arguments. */
export function check(call: Call): CallOutcome | undefined | Promise<CallOutcome | undefined> {
  const { request, tool, plan } = call;
  const accepted = tool.hydrate === undefined ? acceptedArguments(plan, request) : undefined;
  if (accepted === undefined)
    return andThen(readyArguments(call, request), (ready) => takeArguments(call, ready));
  copySent(call, true);
  call.checked = accepted;
  call.args = accepted;
  return undefined;
}

/** The tool may change its arguments. The sent ones are needed only for a record or a context. */
function copySent(call: Call, isAccepted: boolean): void {
  const { environment, tool, plan, request } = call;
  if (environment.isRecorded || !tool.ignoresContext) call.sent = copyOfSent(request, plan, isAccepted);
}

/** The arguments of a request, checked within the limits of the call, because rules of a class may be asynchronous. */
export function readyArguments(
  call: Call,
  request: CallRequest,
): ReadyArguments | CallOutcome | Promise<ReadyArguments | CallOutcome> {
  const ready = prepareArguments(call.tool, call.plan, request);
  if (!(ready instanceof Promise)) return ready;
  return awaitWork<ReadyArguments | CallOutcome>(call, ready, {
    onEnd: (end) => {
      if (end.type === 'returned') return end.value as ReadyArguments;
      if (end.type === 'error') return invalidTool(call, end.error);
      return writeOutcome(call, 'hasBegun' in end ? { ...end, hasBegun: false } : end);
    },
  });
}

/** Sets the arguments that the call continues with; returns its outcome if there are none. */
export function takeArguments(call: Call, ready: ReadyArguments | CallOutcome): CallOutcome | undefined {
  if (!('ok' in ready)) return ready;
  if (!ready.ok) {
    const { message, faults } = ready;
    return { status: 'rejected', result: failedResult('InvalidArguments', message), faults };
  }
  const { value, hydrated = value, repairs, removed, isAccepted, transformed } = ready;
  copySent(call, isAccepted === true && call.request.journal === undefined);
  if (repairs !== undefined) call.repairs = repairs;
  call.removed = removed;
  call.checked = value;
  call.args = hydrated;
  call.transformed = transformed;
  return undefined;
}

/**
 * The outcome of a call whose tool has a faulty declaration: an invalid schema, or a factory, constructor or getter
 * that throws.
 */
export function invalidTool(call: ReceivedCall, cause: unknown): CallOutcome {
  const message = `The tool '${call.request.name}' cannot be called: ${errorMessage(cause)}`;
  return { status: 'error', result: failedResult('InvalidToolSignature', message, cause) };
}

/** The arguments that a tool would receive, in JSON form, or their faults. */
export type CheckedArguments =
  | { readonly ok: true; readonly arguments: JsonObject; readonly removed: readonly string[] }
  /** All faults in one sentence without its full stop. */
  | { readonly ok: false; readonly problem: string };
