import type { CallRecord } from '../contract/call-record.js';
import type { FinishReason } from '../contract/llm-provider.js';
import { errorResult, type ToolResult } from '../contract/tool-result.js';
import { failedResult } from '../invocation/failed-result.js';
import { ignoredText, resultText } from '../registry/result-text.js';
import { abortedRun } from './aborted-run.js';
import type { LoopRun } from './begin-run.js';
import { type CallOutcome, isUnanswered, type UnansweredCall } from './call-outcome.js';
import type { LoopEnd } from './loop-state.js';
import type { ReadCall } from './read-call.js';
import { abortedCall, answerTruncated, notRun, runCalls } from './run-calls.js';
import { storedCall } from './stored-call.js';
import { suspendRun } from './suspend-run.js';
import { assistantMessage, toolMessage } from './write-messages.js';

/** A message of the model with its calls. */
export interface CallingMessage {
  readonly content: string;
  readonly calls: readonly ReadCall[];
  readonly finishReason: FinishReason;
}

/** Makes the calls of a message and answers them in call order; the end of the run, if it is one. */
export async function answerCalls(run: LoopRun, message: CallingMessage): Promise<LoopEnd | undefined> {
  const { state } = run;
  state.messages.push(assistantMessage(message.content, message.calls));
  const outcomes = await makeCalls(run, message);
  if (!outcomes.some(isUnanswered)) return answered(run, outcomes as readonly CallRecord[]);
  const records = closed(run, outcomes);
  if (records === undefined) {
    const end = suspended(run, message, outcomes);
    if (end !== undefined) return end;
  }
  return answered(run, await tellClosed(run, outcomes, records ?? outcomes.map(notKept)));
}

/** Who watches hears of the end of every call, also of those that were answered for. */
async function tellClosed(
  { sink }: LoopRun,
  outcomes: readonly CallOutcome[],
  records: readonly CallRecord[],
): Promise<readonly CallRecord[]> {
  for (const [index, record] of records.entries()) {
    const outcome = outcomes[index];
    if (outcome === undefined || !isUnanswered(outcome)) continue;
    const { id: callId, name: tool, rawArguments, result } = record;
    if (outcome.suspension === undefined)
      await sink?.({ type: 'call-start', callId, tool, arguments: rawArguments });
    await sink?.({ type: 'call-end', callId, tool, result, record });
  }
  return records;
}

/** Every call has its answer. */
function answered(run: LoopRun, records: readonly CallRecord[]): LoopEnd | undefined {
  const { state, retries, guard, signal } = run;
  const verdict = guard?.watch(records);
  for (const record of records) {
    const notes = [ignoredText(record), verdict?.notes.get(record.id)].filter((note) => note !== undefined);
    state.messages.push(toolMessage(record.id, record.result, notes));
    state.toolCalls.push(record);
  }
  if (signal?.aborted) return abortedRun(signal);
  const error = retries.spend(records) ?? verdict?.error;
  return error === undefined ? direct(run, records) : { status: 'failed', error };
}

function makeCalls(
  { config, invoke, state, tools, scope, retries, prompt, sink }: LoopRun,
  { finishReason, calls }: CallingMessage,
): readonly CallOutcome[] | Promise<readonly CallOutcome[]> {
  const isTruncated = finishReason === 'length' || finishReason === 'content_filter';
  if (isTruncated) return answerTruncated({ calls, sink }, finishReason);
  return runCalls({
    calls,
    tools,
    scope,
    messages: state.messages,
    retries,
    prompt,
    maxConcurrency: config.maxConcurrency ?? Number.POSITIVE_INFINITY,
    invoke,
    sink,
  });
}

/**
 * Where a run ends anyway, nobody needs to be asked: its unanswered calls are answered for. `undefined` where
 * it does not.
 */
function closed(
  { signal, retries }: LoopRun,
  outcomes: readonly CallOutcome[],
): readonly CallRecord[] | undefined {
  const answer = (outcome: (call: ReadCall) => CallRecord) =>
    outcomes.map((one) => (isUnanswered(one) ? outcome(one.call) : one));
  if (signal?.aborted) return answer(abortedCall);
  const error = retries.foresee(outcomes.filter((one): one is CallRecord => !isUnanswered(one)));
  if (error === undefined) return undefined;
  return answer((call) =>
    notRun(call, 'not_run', errorResult(`The run failed: ${error.message}`).withError(error)),
  );
}

/** `undefined` where the run cannot be kept; then the history is as it was. */
function suspended(
  run: LoopRun,
  { content, calls }: CallingMessage,
  outcomes: readonly CallOutcome[],
): LoopEnd | undefined {
  const { state } = run;
  // The history of a suspended run ends before the message that is not answered yet.
  const open = state.messages.splice(-1);
  const stored = outcomes.map((outcome, index) => storedCall(outcome, calls[index] as ReadCall));
  const runState = suspendRun(run, { content, calls: stored });
  if (runState === undefined) {
    state.messages.push(...open);
    return undefined;
  }
  state.toolCalls.push(
    ...outcomes.filter((one): one is Exclude<CallOutcome, UnansweredCall> => !isUnanswered(one)),
  );
  return { status: 'suspended', state: runState };
}

/** What the model may try in another way: it is told. */
function notKept(outcome: CallOutcome): CallRecord {
  if (!isUnanswered(outcome)) return outcome;
  const { call } = outcome;
  const message = `The call of '${call.name}' waits for an answer, and the run cannot be kept until then: it cannot be written as JSON. It was not run.`;
  return notRun(call, 'refused', failedResult('NotExecutableHere', message));
}

/** Where every call was of a `returnDirect` tool and succeeded, the results are the answer. */
function direct({ tools }: LoopRun, records: readonly CallRecord[]): LoopEnd | undefined {
  const isDirect = records.every(
    ({ name, status }) => status === 'success' && tools.offered(name)?.returnDirect,
  );
  if (!isDirect) return undefined;
  return { status: 'completed', content: records.map(({ result }) => directText(result)).join('\n') };
}

function directText(result: ToolResult): string {
  return result.silent || !result.forUser ? resultText(result) : result.forUser;
}
