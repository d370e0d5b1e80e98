import type { CallRecord, CallScope, UpdateListener } from '../../core/contract/call.js';
import { errorResult, type ToolResult } from '../../core/contract/tool-result.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { andThen } from '../../core/kernel/async.js';
import type { Invocation, MaybeLater } from '../call/invocation.js';
import { failedResult, isCutDetails, notesOf, resultText, unendedText } from '../call/result-text.js';
import { callRecord } from '../call/run-body.js';
import { approvalNeed } from '../call/waits.js';
import { emitQuestion } from './budget-question.js';
import { ChildRuns, invokeWith } from './child-runs.js';
import type { EventSink, LoopEnd } from './events.js';
import { abortedRun, type Checkpointer, HistoryScope, type LoopRun } from './loop-run.js';
import { foundBy, handleIn, storeIfLarge } from './loop-tools.js';
import {
  assistantMessage,
  type CallingMessage,
  keyOfCall,
  openMessage,
  type ParsedCall,
  recordsOf,
  toolMessage,
} from './messages.js';
import { pendingOf, storedCall, suspendRun } from './suspend.js';

/** Adds a message with calls to the history; the calls of a reply that was cut off have their answers already. */
export function acceptCalls(run: LoopRun, message: CallingMessage): CallingMessage {
  run.messages.push(assistantMessage(message.reply, message.calls));
  return isTruncated(message) ? truncated(message) : message;
}

/**
 * Makes every call of a message; each then has its record or waits. Synchronous without a sink if all calls are,
 * because a promise costs as much as a small tool.
 */
export function makeCalls(run: LoopRun, message: CallingMessage): MaybeLater<unknown> {
  if (run.checkpointer !== undefined)
    return openCalls(run, message, run.checkpointer).then(() => makeOpenCalls(run, message));
  return makeOpenCalls(run, message);
}

/** Saves the message and which of its calls begin: a call is made only after this is committed. */
function openCalls(run: LoopRun, message: CallingMessage, checkpointer: Checkpointer): Promise<void> {
  const { calls } = message;
  const barrier = calls.length > 1 ? calls.findIndex((call) => isSequential(run, call)) : -1;
  const free = barrier < 0 ? calls.length : Math.max(1, barrier);
  const first = calls.slice(0, Math.min(free, maxConcurrencyOf(run)));
  return checkpointer.open(
    run,
    message,
    first.filter((call) => canRun(run, call)),
  );
}

/** Whether the body of a call may run this time, instead of only waiting for an answer or taking an answer. */
function canRun({ tools }: LoopRun, call: ParsedCall): boolean {
  if (call.record !== undefined || call.suspension !== undefined) return false;
  const tool = tools.offered(call.name);
  const needsApproval = approvalNeed(tool?.approval) === true && !call.journal?.approved;
  return tool !== undefined && !isDecided(call) && !needsApproval && tool.execution !== 'client';
}

/** Whether an answer determines how a call ends. */
function isDecided({ journal }: ParsedCall): boolean {
  const { refused, result, outcome } = journal ?? {};
  return refused !== undefined || result !== undefined || outcome?.status === 'done';
}

function makeOpenCalls(run: LoopRun, message: CallingMessage): MaybeLater<unknown> {
  const { calls } = message;
  if (isTruncated(message)) return emitTruncated(run, calls);
  const scope = new HistoryScope(run.scope, run.messages);
  const [only] = calls;
  if (only !== undefined && calls.length === 1) return makeUnlessMade(run, scope, only);
  const isOrdered = calls.some((call) => isSequential(run, call));
  return isOrdered ? makeInGroups(run, scope, calls) : makeParallel(run, scope, calls);
}

function isSequential({ tools }: LoopRun, { name }: ParsedCall): boolean {
  return tools.offered(name)?.sequential ?? false;
}

function maxConcurrencyOf({ config }: LoopRun): number {
  return config.maxConcurrency ?? Number.POSITIVE_INFINITY;
}

/** A sequential call runs alone, after all earlier calls; if one of those waits, it is held. */
async function makeInGroups(run: LoopRun, scope: CallScope, calls: readonly ParsedCall[]): Promise<void> {
  for (let from = 0, to = 0; from < calls.length; from = to) {
    const next = calls.findIndex((call, index) => index >= from && isSequential(run, call));
    to = next === from ? from + 1 : next < 0 ? calls.length : next;
    if (calls.slice(0, from).some(isUnanswered)) return;
    await makeParallel(run, scope, calls.slice(from, to));
  }
}

/** Makes calls in parallel, up to the configured limit. */
function makeParallel(run: LoopRun, scope: CallScope, calls: readonly ParsedCall[]): MaybeLater<unknown> {
  const most = maxConcurrencyOf(run);
  if (calls.length <= most) {
    const made = calls.map((call) => makeUnlessMade(run, scope, call));
    return made.some((outcome) => outcome instanceof Promise) ? Promise.all(made) : undefined;
  }
  const queue = calls.values();
  const work = async (): Promise<void> => {
    for (const call of queue) await makeUnlessMade(run, scope, call);
  };
  return Promise.all(Array.from({ length: most }, work));
}

function makeUnlessMade(run: LoopRun, scope: CallScope, call: ParsedCall): MaybeLater<void> {
  if (call.record !== undefined || call.suspension !== undefined) return undefined;
  return run.sink === undefined ? makeCall(run, scope, call) : watchCall(run, run.sink, call);
}

function isUnanswered({ record }: ParsedCall): boolean {
  return record === undefined;
}

function isTruncated({ finishReason }: CallingMessage): boolean {
  return finishReason === 'length' || finishReason === 'content_filter';
}

/** The calls of a reply that was cut off cannot be trusted: they are answered, and not executed. */
function truncated(message: CallingMessage): CallingMessage {
  const calls = message.calls.map((call) => {
    const text = `The reply was cut off (${message.finishReason}), so the call of '${call.name}' was not run. Send it again, shorter.`;
    const error = new ToolwrightError('ReplyTruncated', text);
    return { ...call, record: notRun(call, 'not_run', errorResult(text).withError(error)) };
  });
  return { ...message, calls };
}

async function emitTruncated({ sink }: LoopRun, calls: readonly ParsedCall[]): Promise<void> {
  for (const record of recordsOf(calls)) {
    await emitStart(sink, record);
    await emitEnd(sink, record);
  }
}

async function watchCall(run: LoopRun, sink: EventSink, call: ParsedCall): Promise<void> {
  const { scope, messages } = run;
  const { id: callId, name: tool, arguments: args } = call;
  await sink({ type: 'call-start', callId, tool, arguments: args });
  const onUpdate: UpdateListener = (update, of) => {
    void sink({ type: 'call-progress', callId, tool, arguments: args, update });
    return scope.onUpdate?.(update, of);
  };
  await makeCall(run, new HistoryScope(scope, messages, onUpdate), call);
  const { record } = call;
  if (record === undefined)
    await sink({ type: 'call-suspended', callId, tool, pending: pendingOf(run, call) });
  else await emitEnd(sink, record);
}

function emitStart(sink: EventSink | undefined, record: CallRecord): void | Promise<void> {
  const { id: callId, name: tool, rawArguments } = record;
  return sink?.({ type: 'call-start', callId, tool, arguments: rawArguments });
}

function emitEnd(sink: EventSink | undefined, record: CallRecord): void | Promise<void> {
  const { id: callId, name: tool, result } = record;
  return sink?.({ type: 'call-end', callId, tool, result, record });
}

function makeCall(run: LoopRun, scope: CallScope, call: ParsedCall): MaybeLater<void> {
  const { checkpointer, sink } = run;
  if (checkpointer === undefined) return invokeCall(run, scope, call);
  if (checkpointer.savesOnce) call.keepOnce = (done) => checkpointer.saveOnce(call, done);
  // The sink receives the end of a call once it is committed; the run itself does not wait for that.
  const save = (): MaybeLater<void> => {
    const saved = checkpointer.save(call);
    return sink === undefined ? undefined : saved;
  };
  const start = canRun(run, call) ? checkpointer.start(call) : undefined;
  return andThen(
    andThen(start, () => invokeCall(run, scope, call)),
    save,
  );
}

function invokeCall(run: LoopRun, scope: CallScope, call: ParsedCall): MaybeLater<void> {
  // A reported outcome, such as that the call was done, also counts in a run that ends.
  if (scope.signal?.aborted && !isDecided(call)) {
    call.record = abortedCall(run, call);
    return undefined;
  }
  const { invoke, retries, synchronous } = run;
  const attempt = retries.attempt(call.name);
  // A synchronous tool cannot have waited for its own run, and tracking costs more than a small tool.
  const isAlone = synchronous.has(call.name) && run.budget === undefined;
  const children = isAlone ? undefined : new ChildRuns(run, scope, call);
  const made = children ? invokeWith(children, invoke, attempt) : invoke(call, scope, attempt);
  if (made instanceof Promise) {
    if (isAlone) synchronous.delete(call.name);
    return made.then((invocation) => settle(run, call, invocation, children));
  }
  if (children !== undefined && made.status !== 'started') synchronous.add(call.name);
  return settle(run, call, made, children);
}

function settle(
  run: LoopRun,
  call: ParsedCall,
  invocation: Invocation,
  children: ChildRuns | undefined,
): MaybeLater<void> {
  if (invocation.status === 'suspended') {
    call.suspension = invocation.suspension;
    call.inner = children?.close() ?? call.inner;
    return undefined;
  }
  const record = children ? children.finish(invocation.record) : invocation.record;
  call.record = call.journal === undefined ? record : { ...record, ...givenAnswers(call) };
  return run.results !== undefined && isCutDetails(record.result.details)
    ? storeIfLarge(run, call)
    : undefined;
}

function givenAnswers({ journal }: ParsedCall): Pick<CallRecord, 'answeredBy' | 'answers'> {
  const { given = [] } = journal ?? {};
  return given.length === 0 ? {} : { answeredBy: given.at(-1)?.answeredBy, answers: given };
}

/** Answers the calls in call order, or suspends the run if any of them wait; returns the end of the run, if it ends. */
export function answerOrSuspend(run: LoopRun, message: CallingMessage): MaybeLater<LoopEnd | undefined> {
  const { calls } = message;
  const records = calls.map(({ record }) => record);
  if (!records.includes(undefined)) return addAnswers(run, records as readonly CallRecord[]);
  const closed = closedCall(run, calls);
  const end = closed === undefined ? suspended(run, message) : undefined;
  if (end?.state !== undefined && run.budget?.isAsking) return emitQuestion(run, end.state).then(() => end);
  return end ?? answerForUnanswered(run, calls, closed ?? ((call) => notSaved(run, call)));
}

/** Ends the run if it failed, if the calls were its final answer, or if its budget is spent. */
function addAnswers(run: LoopRun, records: readonly CallRecord[]): LoopEnd | undefined {
  const { messages, toolCalls, retries, guard, signal } = run;
  const verdict = guard?.watch(records);
  for (const record of records) {
    const note = verdict?.notes?.get(record.id);
    const notes = note === undefined ? notesOf(record) : [...notesOf(record), note];
    const message = toolMessage(record.id, record.result, notes);
    // Most results are only a text.
    messages.push(
      record.result.details === undefined ? message : { ...message, ...foundBy(record), ...handleIn(record) },
    );
    toolCalls.push(record);
  }
  if (signal?.aborted) return abortedRun(signal);
  let error = retries.spend(records) ?? verdict?.error;
  if (run.config.onExpiry === 'end')
    for (const { result } of records)
      if (ToolwrightError.is(result.error) && result.error.name === 'AnswerExpired') error ??= result.error;
  if (error !== undefined) return { status: 'failed', error };
  return directAnswer(run, records) ?? run.output?.endWithCalls(run, records.length) ?? run.budget?.ended;
}

/** If every call was of a `returnDirect` tool and succeeded, the results are the answer. */
function directAnswer({ tools }: LoopRun, records: readonly CallRecord[]): LoopEnd | undefined {
  for (const { name, status } of records)
    if (status !== 'success' || !tools.offered(name)?.returnDirect) return undefined;
  const texts = records.map(({ result }) =>
    result.silent || !result.forUser ? resultText(result) : result.forUser,
  );
  return { status: 'completed', content: texts.join('\n') };
}

/** The answers to open calls of a run that ends anyway, without questions; `undefined` if it continues. */
function closedCall(
  run: LoopRun,
  calls: readonly ParsedCall[],
): ((call: ParsedCall) => CallRecord) | undefined {
  const { signal, retries, budget } = run;
  if (signal?.aborted) return (call) => abortedCall(run, call);
  const error = retries.foresee(recordsOf(calls)) ?? budget?.endInsteadOfAsking;
  if (error === undefined) return undefined;
  return (call) => {
    const failed = errorResult(`The run failed: ${error.message}\n${unended(run, call)}`).withError(error);
    const status = progressOf(call) === 'not-begun' ? 'not_run' : 'aborted';
    return withKey(run, call, notRun(call, status, failed));
  };
}

/** `undefined` if the run cannot be written as JSON; the history is then unchanged. */
function suspended(run: LoopRun, message: CallingMessage): LoopEnd | undefined {
  const { messages, toolCalls } = run;
  // The history of a suspended run ends before the message with open calls.
  const open = messages.splice(-1);
  const stored = openMessage(message, storedCall);
  const state = suspendRun(run, stored);
  if (state === undefined) {
    messages.push(...open);
    return undefined;
  }
  toolCalls.push(...recordsOf(message.calls));
  return { status: 'suspended', state };
}

/** The sink receives the end of every call, including those that are answered without being executed. */
async function answerForUnanswered(
  run: LoopRun,
  calls: readonly ParsedCall[],
  answerFor: (call: ParsedCall) => CallRecord,
): Promise<LoopEnd | undefined> {
  const { sink, checkpointer } = run;
  for (const call of calls.filter(isUnanswered)) {
    const record = answerFor(call);
    call.record = record;
    await checkpointer?.save(call);
    if (call.suspension === undefined) await emitStart(sink, record);
    await emitEnd(sink, record);
  }
  return addAnswers(run, recordsOf(calls));
}

function notSaved(run: LoopRun, call: ParsedCall): CallRecord {
  const message = `The call of '${call.name}' waits for an answer, and the run cannot be kept until then: it cannot be written as JSON. ${unended(run, call)}`;
  return notRun(call, 'refused', failedResult('NotExecutableHere', message));
}

/** The record of a call that an abort of the run left open. */
function abortedCall(run: LoopRun, call: ParsedCall): CallRecord {
  const result = failedResult('RunAborted', `The run was aborted. ${unended(run, call)}`);
  return withKey(run, call, notRun(call, 'aborted', result));
}

/** Adds the key of the call's possible effect, if the steps of the run are saved. */
function withKey({ checkpointer }: LoopRun, call: ParsedCall, record: CallRecord): CallRecord {
  if (checkpointer === undefined || progressOf(call) !== 'begun') return record;
  const { journal } = call;
  const edited = journal?.edited && { arguments: journal.arguments };
  return { ...record, ...edited, idempotencyKey: keyOfCall(call) };
}

function unended({ tools }: LoopRun, call: ParsedCall): string {
  const { name } = call;
  return unendedText({ name, annotations: tools.offered(name)?.annotations ?? call }, progressOf(call));
}

/** The progress of a call without a result. */
function progressOf({
  hasBegun,
  suspension,
  inner = [],
  ...call
}: ParsedCall): 'not-begun' | 'asking' | 'begun' {
  const { waits = [], journal = call.journal } = suspension ?? {};
  const kinds = new Set(waits.map(({ kind }) => kind));
  const hasDone = inner.length > 0 || Boolean(journal?.once.length);
  if (hasBegun || hasDone || kinds.has('outcome') || kinds.has('client')) return 'begun';
  return kinds.has('question') || journal?.answers.length ? 'asking' : 'not-begun';
}

function notRun(call: ParsedCall, status: CallRecord['status'], result: ToolResult): CallRecord {
  return {
    ...callRecord({ request: call, attempt: 0, since: 0 }, { status, result }),
    ...givenAnswers(call),
  };
}
