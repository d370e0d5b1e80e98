import type { CallJournal, CallStatus, PendingKind } from '../contract/call.js';
import type { CallTrace, Telemetry, Trace } from '../contract/telemetry.js';
import type { ToolResult } from '../contract/tool-result.js';
import type { Call, ReceivedCall } from './context.js';
import type { CallEnvironment, CallOutcome } from './invocation.js';
import { KNOWN_SECRETS, type Redaction } from './redact.js';

/** Records a call from here on. */
export function startTrace(
  telemetry: Telemetry,
  { environment, request, attempt }: Pick<ReceivedCall, 'environment' | 'request' | 'attempt'>,
): CallTrace {
  const { id, name, journal, startedBy, mcp } = request;
  return telemetry.startCall({
    id,
    name,
    tool: environment.find(name)?.offered,
    attempt,
    // A job was approved before it was one.
    answered: startedBy === undefined ? answeredIn(journal) : [],
    startedBy,
    mcp,
    redaction: redactionIn(environment),
  });
}

/** What keeps secrets out of what is recorded of calls; none where their arguments are not to be told. */
export function redactionIn({ logArguments = true, redact }: CallEnvironment): Redaction | undefined {
  return logArguments ? (redact ?? KNOWN_SECRETS) : undefined;
}

function answeredIn(journal: CallJournal | undefined): readonly PendingKind[] {
  if (journal === undefined) return [];
  const { approved, refused, result, outcome, answers } = journal;
  return [
    ...(approved || refused ? (['approval'] as const) : []),
    ...(result ? (['client'] as const) : []),
    ...(outcome ? (['outcome'] as const) : []),
    ...answers.map(() => 'question' as const),
  ];
}

/** The call has its answer. */
export function endTrace(call: ReceivedCall, { status, result, suspension, taskId }: CallOutcome): undefined {
  const { hooked, checked, request, repairs, removed } = call;
  const hasCost = COSTS.has(status) && !hooked?.isAnswered && request.startedBy === undefined;
  call.trace?.end({
    status,
    result,
    // What hooks have rewritten, or were about to, is not recorded as it came.
    arguments: checked ?? (hooked === undefined ? request.arguments : undefined),
    cost: hasCost ? costOf(call) : undefined,
    repairs,
    removed,
    ...(suspension === undefined ? {} : { waits: suspension.waits.map(({ kind }) => kind) }),
    taskId,
  });
}

/** Statuses of calls that cost what their tools cost; a job costs where it is enqueued. */
const COSTS: ReadonlySet<CallStatus> = new Set(['success', 'error', 'timed_out', 'aborted', 'started']);

/** A cost that is none is the budget's to refuse. */
function costOf({ tool, checked = {} }: ReceivedCall): number | undefined {
  try {
    const cost: unknown = typeof tool?.cost === 'function' ? tool.cost(checked) : tool?.cost;
    return typeof cost === 'number' && cost >= 0 ? cost : undefined;
  } catch {
    return undefined;
  }
}

/** Records the work that a call has started, in a trace of its own: it outlives that of the call. */
export function traceTask(
  { environment, request, tool, trace }: Call,
  taskId: string,
): Trace<ToolResult> | undefined {
  const { telemetry } = environment;
  if (!telemetry?.isOn) return undefined;
  return telemetry.startTask({ taskId, callId: request.id, tool: tool.name, startedBy: trace?.place });
}
