import { KNOWN_SECRETS } from '../call/redact.js';
import type { TracePlace } from '../contract/ports.js';
import type { RequestTrace, RunTrace, Telemetry, TracedRequestEnd } from '../contract/telemetry.js';
import { askModel, type PartListener, type Question, type Reply } from './ask-model.js';
import type { ToolLoopResult } from './events.js';
import { type LoopRun, usageSince } from './loop-run.js';

/** Records a run that begins or goes on, if anybody records. */
export function traceOfRun(
  telemetry: Telemetry | undefined,
  run: Pick<LoopRun, 'runId' | 'config' | 'scope'> & { readonly before: TracePlace | undefined },
): RunTrace | undefined {
  if (!telemetry?.isOn) return undefined;
  const { runId, config, scope, before } = run;
  const { agentName: agent, model } = config;
  return telemetry.startRun({ runId, model, agent, conversationId: scope.conversationId, before });
}

/** Drives a run as a part of its trace, which ends with it. */
export async function driveTraced(
  run: LoopRun,
  trace: RunTrace,
  drive: () => Promise<ToolLoopResult>,
): Promise<ToolLoopResult> {
  const { iterations, usage, record } = run;
  const calls = run.toolCalls.length;
  const callIds = (record?.open?.calls ?? []).flatMap((call) =>
    call.status === 'settled' ? [call.record.id] : [],
  );
  if (callIds.length > 0) trace.event({ type: 'settled-before', callIds });
  const costBefore = run.budget?.spending.cost ?? 0;
  const counts = () => {
    const cost = run.budget?.spending.cost;
    const { inputTokens, outputTokens, totalTokens } = usageSince(usage, run.usage);
    return {
      requests: run.iterations - iterations,
      calls: run.toolCalls.length - calls,
      usage: { inputTokens, outputTokens, totalTokens },
      ...(cost === undefined ? {} : { cost: cost - costBefore }),
    };
  };
  try {
    const result = await trace.within(drive);
    const { status, error, pending } = result;
    trace.end({ status, error, waits: pending?.map(({ kind }) => kind), ...counts() });
    return result;
  } catch (error) {
    trace.end({ status: 'failed', error, ...counts() });
    throw error;
  }
}

/** Tells the trace of each part of a streamed reply. */
export function tracedParts(trace: RequestTrace, onPart: PartListener | undefined): PartListener | undefined {
  if (onPart === undefined) return undefined;
  return (part) => {
    trace.part();
    return onPart(part);
  };
}

/** One request that belongs to no run, recorded if anybody records. */
export async function askRecorded(
  telemetry: Telemetry | undefined,
  { provider, request, onPart }: Question,
): Promise<Reply> {
  if (!telemetry?.isOn) return askModel(provider, request, { onPart });
  const isStreamed = onPart !== undefined;
  const trace = telemetry.startRequest({ provider, request, isStreamed, redaction: KNOWN_SECRETS });
  trace.sent(request);
  const listeners = { onPart: tracedParts(trace, onPart) };
  const reply = await trace.within(() => askModel(provider, request, listeners));
  trace.end(requestEnd(reply));
  return reply;
}

export function requestEnd(reply: Reply): TracedRequestEnd {
  if (reply.ok) return { how: 'replied', response: reply.response, cost: reply.cost };
  return reply.reason === 'aborted'
    ? { how: 'aborted' }
    : { how: 'failed', error: reply.error.cause ?? reply.error };
}
