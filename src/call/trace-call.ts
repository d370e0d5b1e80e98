import type { CallJournal, PendingKind } from '../contract/call.js';
import type { CallTrace, Telemetry, Trace } from '../contract/telemetry.js';
import type { ToolResult } from '../contract/tool-result.js';
import type { Call, ReceivedCall } from './context.js';
import type { CallEnd, CallEnvironment } from './invocation.js';
import { KNOWN_SECRETS, type Redaction } from './redact.js';

/** Records a call from here on. */
export function startTrace(
  telemetry: Telemetry,
  { environment, request, attempt }: Pick<ReceivedCall, 'environment' | 'request' | 'attempt'>,
): CallTrace {
  const { id, name, arguments: args, journal, startedBy, mcp } = request;
  return telemetry.startCall({
    id,
    name,
    tool: environment.find(name)?.offered,
    attempt,
    arguments: args,
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
export function endTrace(
  trace: CallTrace,
  call: ReceivedCall & Partial<Pick<Call, 'checked' | 'repairs' | 'removed'>>,
  { status, result, suspension, taskId }: CallEnd,
): void {
  trace.end({
    status,
    result,
    arguments: call.checked,
    repairs: call.repairs ?? NONE,
    removed: call.removed ?? NONE,
    ...(suspension === undefined ? {} : { waits: suspension.waits.map(({ kind }) => kind) }),
    taskId,
  });
}

const NONE: readonly string[] = [];

/** Records the work that a call has started, in a trace of its own: it outlives that of the call. */
export function traceTask(
  { environment, request, tool, trace }: Call,
  taskId: string,
): Trace<ToolResult> | undefined {
  const { telemetry } = environment;
  if (!telemetry?.isOn) return undefined;
  return telemetry.startTask({ taskId, callId: request.id, tool: tool.name, startedBy: trace?.place });
}
