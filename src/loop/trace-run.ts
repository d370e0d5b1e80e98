import { KNOWN_SECRETS } from '../call/redact.js';
import type { LLMProvider, LLMRequest } from '../contract/llm-provider.js';
import type { TracePlace } from '../contract/ports.js';
import type { RequestTrace, RunTrace, Telemetry, TracedRequestEnd } from '../contract/telemetry.js';
import { type AskListeners, askModel, type PartListener, type Reply } from './ask-model.js';
import type { ToolLoopResult } from './events.js';
import { type LoopRun, usageSince } from './loop-run.js';

/** What is known of a run when it begins, or goes on. */
interface BeginningRun extends Pick<LoopRun, 'runId' | 'config' | 'scope'> {
  readonly before: TracePlace | undefined;
}

/** Records a run, if anybody records. */
export function traceOfRun(
  telemetry: Telemetry | undefined,
  { runId, config, scope, before }: BeginningRun,
): RunTrace | undefined {
  if (!telemetry?.isOn) return undefined;
  const { agentName: agent, model } = config;
  const { conversationId } = scope;
  return telemetry.startRun({ runId, model, agent, conversationId, before });
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
    return {
      requests: run.iterations - iterations,
      calls: run.toolCalls.length - calls,
      usage: usageSince(run.usage, usage),
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

/** A request to be made, and who hears of it. */
interface AskedRequest {
  readonly provider: LLMProvider;
  readonly request: LLMRequest;
  readonly onPart?: PartListener | undefined;
  readonly onFailure?: AskListeners['onFailure'];
}

/** Asks the provider once, within a trace where there is one, which goes on: it may be asked again. */
export function askWithin(
  run: LoopRun,
  trace: RequestTrace | undefined,
  { provider, request, onPart, onFailure }: AskedRequest,
): Promise<Reply> {
  const ask = (listener: PartListener | undefined): Promise<Reply> => {
    const question = { provider, request, onPart: listener, onFailure };
    if (run.hooks !== undefined) return run.hooks.ask(run, trace ? { ...question, trace } : question);
    trace?.sent(request);
    return askModel(provider, request, { onPart: listener, onFailure });
  };
  if (trace === undefined) return ask(onPart);
  return trace.within(() => ask(onPart && heard(trace, onPart)));
}

function heard(trace: RequestTrace, onPart: PartListener): PartListener {
  return (part) => {
    trace.part();
    return onPart(part);
  };
}

/** Records a request of a run. */
export function traceOfRequest(
  { trace, tools }: LoopRun,
  { provider, request, onPart }: AskedRequest,
): RequestTrace | undefined {
  const isStreamed = onPart !== undefined;
  return trace?.startRequest({ provider, request, isStreamed, redaction: tools.redaction });
}

/** One request that is of no run, recorded where anybody records. */
export async function askRecorded(telemetry: Telemetry | undefined, asked: AskedRequest): Promise<Reply> {
  const { provider, request, onPart } = asked;
  if (!telemetry?.isOn) return askModel(provider, request, { onPart });
  const isStreamed = onPart !== undefined;
  const trace = telemetry.startRequest({ provider, request, isStreamed, redaction: KNOWN_SECRETS });
  trace.sent(request);
  const listeners = { onPart: onPart && heard(trace, onPart) };
  const reply = await trace.within(() => askModel(provider, request, listeners));
  trace.end(requestEnd(reply));
  return reply;
}

/** A request has its reply, or none. */
export function requestEnd(reply: Reply): TracedRequestEnd {
  if (reply.ok) return { how: 'replied', response: reply.response, cost: reply.cost };
  return reply.reason === 'aborted'
    ? { how: 'aborted' }
    : { how: 'failed', error: reply.error.cause ?? reply.error };
}
