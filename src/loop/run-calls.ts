import type { CallRecord } from '../contract/call-record.js';
import type { CallScope, UpdateListener } from '../contract/call-scope.js';
import type { Message } from '../contract/message.js';
import { errorResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import type { Invocation } from '../invocation/invocation.js';
import { abortedResult } from '../invocation/write-ending.js';
import type { Invoker, ToolRegistry } from '../registry/tool-registry.js';
import { type CallOutcome, isUnanswered } from './call-outcome.js';
import { HistoryScope } from './history-scope.js';
import { InnerRuns } from './inner-runs.js';
import type { EventSink } from './loop-event.js';
import type { ReadCall } from './read-call.js';
import type { RetryBudget } from './retry-budget.js';
import { runInOrder } from './run-in-order.js';

/** The calls of one assistant message, and what they run in. */
export interface CallBatch {
  readonly calls: readonly ReadCall[];
  readonly tools: ToolRegistry;
  readonly invoke: Invoker;
  readonly scope: CallScope;
  /** The history, which only grows. */
  readonly messages: readonly Message[];
  readonly retries: RetryBudget;
  readonly maxConcurrency: number;
  /** Names of tools that answered at once, and so cannot have waited for a run of their own. */
  readonly prompt: Set<string>;
  /** Hears of the calls as they begin, report and end. */
  readonly sink?: EventSink;
}

/** Makes every call of a message and gives one outcome for each, in call order, whatever happens. */
export function runCalls(batch: CallBatch): Promise<readonly CallOutcome[]> {
  const scope = new HistoryScope(batch.scope, batch.messages);
  return runInOrder({
    tasks: batch.calls,
    run: (call) => runCall(batch, scope, call),
    isSequential: ({ name }) => batch.tools.offered(name)?.sequential ?? false,
    maxConcurrency: Math.max(1, batch.maxConcurrency),
    hold: (call) => call.record ?? { call },
    isOpen: isUnanswered,
  });
}

/** Answers the calls of a reply that was cut off: none of them can be trusted. */
export async function answerTruncated(
  { calls, sink }: Pick<CallBatch, 'calls' | 'sink'>,
  finishReason: string,
): Promise<readonly CallRecord[]> {
  const records = calls.map((call) => {
    const message = `The reply was cut off (${finishReason}), so the call of '${call.name}' was not run. Send it again, shorter.`;
    return notRun(
      call,
      'not_run',
      errorResult(message).withError(new ToolwrightError('ReplyTruncated', message)),
    );
  });
  for (const record of records) {
    const { id: callId, name: tool, rawArguments, result } = record;
    await sink?.({ type: 'call-start', callId, tool, arguments: rawArguments });
    await sink?.({ type: 'call-end', callId, tool, result, record });
  }
  return records;
}

function runCall(batch: CallBatch, scope: CallScope, call: ReadCall): CallOutcome | Promise<CallOutcome> {
  if (call.record !== undefined) return call.record;
  return batch.sink === undefined ? invoke(batch, scope, call) : watchCall(batch, batch.sink, call);
}

async function watchCall(batch: CallBatch, sink: EventSink, call: ReadCall): Promise<CallOutcome> {
  const { scope } = batch;
  const { id: callId, name: tool, arguments: args } = call;
  await sink({ type: 'call-start', callId, tool, arguments: args });
  const onUpdate: UpdateListener = (update, of) => {
    void sink({ type: 'call-progress', callId, tool, arguments: args, update });
    return scope.onUpdate?.(update, of);
  };
  const outcome = await invoke(batch, new HistoryScope(batch.scope, batch.messages, onUpdate), call);
  if (isUnanswered(outcome)) await sink({ type: 'call-suspended', callId, tool });
  else await sink({ type: 'call-end', callId, tool, result: outcome.result, record: outcome });
  return outcome;
}

function invoke(batch: CallBatch, scope: CallScope, call: ReadCall): CallOutcome | Promise<CallOutcome> {
  if (scope.signal?.aborted) return abortedCall(call);
  const { invoke: make, retries, prompt } = batch;
  const attempt = retries.attempt(call.name);
  // Watching costs more than a small tool does.
  const inner = prompt.has(call.name) ? undefined : new InnerRuns();
  const made = inner ? inner.watch(make, call, scope, attempt) : make(call, scope, attempt);
  if (made instanceof Promise) {
    prompt.delete(call.name);
    return made.then((invocation) => outcomeOf(call, invocation, inner));
  }
  prompt.add(call.name);
  return outcomeOf(call, made, inner);
}

function outcomeOf(call: ReadCall, invocation: Invocation, inner: InnerRuns | undefined): CallOutcome {
  if (invocation.status === 'suspended') return { call, suspension: invocation.suspension };
  const record = inner ? inner.judge(invocation.record) : invocation.record;
  return call.journal === undefined ? record : { ...record, ...givenAnswers(call) };
}

/** Who answered what the call waited for. */
function givenAnswers({ journal }: ReadCall): Pick<CallRecord, 'answeredBy' | 'answers'> {
  const { given = [] } = journal ?? {};
  return given.length === 0 ? {} : { answeredBy: given.at(-1)?.answeredBy, answers: given };
}

/** The record of a call that an abort of the run left open. */
export function abortedCall(call: ReadCall): CallRecord {
  return notRun(call, 'aborted', abortedResult(call.name));
}

/** The record of a call that was answered without being made. */
export function notRun(
  call: ReadCall,
  status: CallRecord['status'],
  result: CallRecord['result'],
): CallRecord {
  const { id, name, arguments: rawArguments } = call;
  const made = { repairs: [], removed: [], attempts: 0, durationMs: 0 };
  return { id, name, rawArguments, ...made, status, result, ...givenAnswers(call) };
}
