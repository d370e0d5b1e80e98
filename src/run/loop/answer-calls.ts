import type { CallRecord, CallScope, UpdateListener } from '../../core/contract/call.js';
import { errorResult, type ToolResult } from '../../core/contract/tool-result.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { andThen } from '../../core/kernel/async.js';
import type { Invocation, MaybeLater, OnceValue } from '../call/invocation.js';
import { failedResult, isCutDetails, notesOf, resultText, unendedText } from '../call/result-text.js';
import { callRecord } from '../call/run-body.js';
import { approvalNeed } from '../call/waits.js';
import { emitQuestion, withQuestion } from './budget-question.js';
import { ChildRuns, childRuns } from './child-runs.js';
import { foundBy } from './deferred-calls.js';
import type { EventSink } from './events.js';
import { abortedRun, type Checkpointer, HistoryScope, type LoopEnd, type LoopRun } from './loop-run.js';
import {
  assistantMessage,
  type CallEnding,
  type CallingMessage,
  endingSoFar,
  isUnanswered,
  keyOfCall,
  openMessage,
  type ParsedCall,
  toolMessage,
} from './messages.js';
import { handleIn, storeIfLarge } from './stored-results.js';
import { pendingOf, storedCall, suspendRun } from './suspend.js';

/**
 * Makes the calls of a message and answers them in call order; returns the end of the run, if it ends. Synchronous
 * without a sink if all calls are, because a promise costs as much as a small tool.
 */
export function answerCalls(run: LoopRun, given: CallingMessage): MaybeLater<LoopEnd | undefined> {
  const { checkpointer } = run;
  const message = isTruncated(given) ? truncated(given) : given;
  run.messages.push(assistantMessage(message.reply, message.calls));
  if (checkpointer === undefined) return makeCalls(run, message);
  return openCalls(run, message, checkpointer).then(() => makeCalls(run, message));
}

/** Saves the message and which of its calls begin: a call is made only after this is committed. */
function openCalls(run: LoopRun, message: CallingMessage, checkpointer: Checkpointer): Promise<void> {
  const { calls } = message;
  const barrier = calls.length > 1 ? calls.findIndex((call) => isSequential(run, call)) : -1;
  const free = barrier < 0 ? calls.length : Math.max(1, barrier);
  const first = calls.slice(0, Math.min(free, maxConcurrencyOf(run)));
  const begins = first.flatMap((call, index) => (canRun(run, call) ? [index] : []));
  return checkpointer.open(run, message, new Set(begins));
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

/** Makes every call of a message, and continues with one outcome for each, in call order, in every case. */
function makeCalls(run: LoopRun, message: CallingMessage): MaybeLater<LoopEnd | undefined> {
  const withOutcomes = (outcomes: readonly CallEnding[]) => answerOrSuspend(run, message, outcomes);
  if (isTruncated(message)) return emitTruncated(run, message).then(withOutcomes);
  const { calls } = message;
  const scope = new HistoryScope(run.scope, run.messages);
  const [only] = calls;
  if (only !== undefined && calls.length === 1) {
    const outcome = makeUnlessMade(run, scope, only);
    return outcome instanceof Promise
      ? outcome.then((ended) => withOutcomes([ended]))
      : withOutcomes([outcome]);
  }
  const isOrdered = calls.some((call) => isSequential(run, call));
  return andThen(isOrdered ? makeInGroups(run, scope, calls) : makeParallel(run, scope, calls), withOutcomes);
}

function isSequential({ tools }: LoopRun, { name }: ParsedCall): boolean {
  return tools.offered(name)?.sequential ?? false;
}

function maxConcurrencyOf({ config }: LoopRun): number {
  return Math.max(1, config.maxConcurrency ?? Number.POSITIVE_INFINITY);
}

/** A sequential call runs alone, after all earlier calls; if one of those waits, it is held. */
async function makeInGroups(
  run: LoopRun,
  scope: CallScope,
  calls: readonly ParsedCall[],
): Promise<readonly CallEnding[]> {
  const outcomes: CallEnding[] = [];
  for (let from = 0, to = 0; from < calls.length; from = to) {
    const next = calls.findIndex((call, index) => index >= from && isSequential(run, call));
    to = next === from ? from + 1 : next < 0 ? calls.length : next;
    const group = calls.slice(from, to);
    outcomes.push(
      ...(outcomes.some(isUnanswered) ? group.map(endingSoFar) : await makeParallel(run, scope, group)),
    );
  }
  return outcomes;
}

/** Makes calls in parallel, up to the configured limit; outcomes are in the order of the calls. */
function makeParallel(
  run: LoopRun,
  scope: CallScope,
  calls: readonly ParsedCall[],
): MaybeLater<readonly CallEnding[]> {
  const most = maxConcurrencyOf(run);
  if (calls.length <= most) {
    const outcomes = calls.map((call) => makeUnlessMade(run, scope, call));
    const isLater = outcomes.some((outcome) => outcome instanceof Promise);
    return isLater ? Promise.all(outcomes) : (outcomes as CallEnding[]);
  }
  const outcomes = new Array<CallEnding>(calls.length);
  const queue = calls.entries();
  const work = async (): Promise<void> => {
    for (const [index, call] of queue) outcomes[index] = await makeUnlessMade(run, scope, call);
  };
  return Promise.all(Array.from({ length: most }, work)).then(() => outcomes);
}

function makeUnlessMade(run: LoopRun, scope: CallScope, call: ParsedCall): MaybeLater<CallEnding> {
  if (call.record !== undefined || call.suspension !== undefined) return endingSoFar(call);
  return run.sink === undefined ? makeCall(run, scope, call) : watchCall(run, run.sink, call);
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

async function emitTruncated({ sink }: LoopRun, { calls }: CallingMessage): Promise<readonly CallEnding[]> {
  const records = calls.flatMap(({ record }) => record ?? []);
  for (const record of records) {
    await emitStart(sink, record);
    await emitEnd(sink, record);
  }
  return records;
}

async function watchCall(run: LoopRun, sink: EventSink, call: ParsedCall): Promise<CallEnding> {
  const { scope, messages } = run;
  const { id: callId, name: tool, arguments: args } = call;
  await sink({ type: 'call-start', callId, tool, arguments: args });
  const onUpdate: UpdateListener = (update, of) => {
    void sink({ type: 'call-progress', callId, tool, arguments: args, update });
    return scope.onUpdate?.(update, of);
  };
  const outcome = await makeCall(run, new HistoryScope(scope, messages, onUpdate), call);
  if (isUnanswered(outcome))
    await sink({ type: 'call-suspended', callId, tool, pending: pendingOf(run, outcome, call) });
  else await emitEnd(sink, outcome);
  return outcome;
}

function emitStart(sink: EventSink | undefined, record: CallRecord): void | Promise<void> {
  const { id: callId, name: tool, rawArguments } = record;
  return sink?.({ type: 'call-start', callId, tool, arguments: rawArguments });
}

function emitEnd(sink: EventSink | undefined, record: CallRecord): void | Promise<void> {
  const { id: callId, name: tool, result } = record;
  return sink?.({ type: 'call-end', callId, tool, result, record });
}

function makeCall(run: LoopRun, scope: CallScope, call: ParsedCall): MaybeLater<CallEnding> {
  return run.checkpointer === undefined
    ? invokeCall(run, scope, call)
    : makeSaved(run, run.checkpointer, { scope, call });
}

/** The sink receives the end of a call once it is committed; the run itself does not wait for that. */
function makeSaved(
  run: LoopRun,
  checkpointer: Checkpointer,
  { scope, call }: { readonly scope: CallScope; readonly call: ParsedCall },
): MaybeLater<CallEnding> {
  const keepOnce = (done: OnceValue): Promise<void> => checkpointer.saveOnce(call, done);
  const saving = checkpointer.savesOnce ? { ...call, keepOnce } : call;
  const save = (outcome: CallEnding): MaybeLater<CallEnding> => {
    const saved = checkpointer.save(call, outcome);
    return saved === undefined || run.sink === undefined ? outcome : saved.then(() => outcome);
  };
  const make = (): MaybeLater<CallEnding> => andThen(invokeCall(run, scope, saving), save);
  const start = canRun(run, call) ? checkpointer.start(call) : undefined;
  return start === undefined ? make() : start.then(make);
}

function invokeCall(run: LoopRun, scope: CallScope, call: ParsedCall): MaybeLater<CallEnding> {
  // A reported outcome, such as that the call was done, also counts in a run that ends.
  if (scope.signal?.aborted && !isDecided(call)) return abortedCall(run, call);
  const { invoke, retries, synchronous } = run;
  const attempt = retries.attempt(call.name);
  // A synchronous tool cannot have waited for its own run, and tracking costs more than a small tool.
  const isAlone = synchronous.has(call.name) && run.budget === undefined;
  const children = isAlone ? undefined : new ChildRuns(run, scope, call);
  const made = children
    ? childRuns.run(children, invoke, call, scope, attempt)
    : invoke(call, scope, attempt);
  if (made instanceof Promise) {
    synchronous.delete(call.name);
    return made.then((invocation) => outcomeOf(run, call, { invocation, children }));
  }
  if (children !== undefined && made.status !== 'started') synchronous.add(call.name);
  return outcomeOf(run, call, { invocation: made, children });
}

function outcomeOf(
  run: LoopRun,
  call: ParsedCall,
  { invocation, children }: { readonly invocation: Invocation; readonly children: ChildRuns | undefined },
): MaybeLater<CallEnding> {
  if (invocation.status === 'suspended')
    return { call, suspension: invocation.suspension, inner: children?.close() ?? call.inner };
  let record = children ? children.finish(invocation.record) : invocation.record;
  if (call.journal !== undefined) record = { ...record, ...givenAnswers(call) };
  const isLarge = run.results !== undefined && isCutDetails(record.result.details);
  return isLarge ? storeIfLarge(run, call, record) : record;
}

function givenAnswers({ journal }: ParsedCall): Pick<CallRecord, 'answeredBy' | 'answers'> {
  const { given = [] } = journal ?? {};
  return given.length === 0 ? {} : { answeredBy: given.at(-1)?.answeredBy, answers: given };
}

/** Answers the calls, or suspends the run if any of them wait. */
function answerOrSuspend(
  run: LoopRun,
  message: CallingMessage,
  outcomes: readonly CallEnding[],
): MaybeLater<LoopEnd | undefined> {
  if (!outcomes.some(isUnanswered)) return addAnswers(run, outcomes as readonly CallRecord[]);
  const closed = closedCall(run, outcomes);
  const end = closed === undefined ? suspended(run, message, outcomes) : undefined;
  if (end?.state !== undefined && run.budget?.question !== undefined)
    return emitQuestion(run, end.state).then(() => end);
  return end ?? answerForUnanswered(run, outcomes, closed ?? ((call) => notSaved(run, call)));
}

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
  return error === undefined ? directAnswer(run, records) : { status: 'failed', error };
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
  outcomes: readonly CallEnding[],
): ((call: ParsedCall) => CallRecord) | undefined {
  const { signal, retries, budget } = run;
  if (signal?.aborted) return (call) => abortedCall(run, call);
  const error = retries.foresee(recordsAmong(outcomes)) ?? budget?.endInsteadOfAsking;
  if (error === undefined) return undefined;
  return (call) => {
    const failed = errorResult(`The run failed: ${error.message}\n${unended(run, call)}`).withError(error);
    const status = progressOf(call) === 'not-begun' ? 'not_run' : 'aborted';
    return withKey(run, call, notRun(call, status, failed));
  };
}

/** `undefined` if the run cannot be written as JSON; the history is then unchanged. */
function suspended(
  run: LoopRun,
  message: CallingMessage,
  outcomes: readonly CallEnding[],
): LoopEnd | undefined {
  const { messages, toolCalls } = run;
  // The history of a suspended run ends before the message with open calls.
  const open = messages.splice(-1);
  const stored = openMessage(message, (call, index) => storedCall(outcomes[index] as CallEnding, call));
  const state = suspendRun(run, run.budget === undefined ? stored : withQuestion(run, stored));
  if (state === undefined) {
    messages.push(...open);
    return undefined;
  }
  toolCalls.push(...recordsAmong(outcomes));
  return { status: 'suspended', state };
}

function recordsAmong(outcomes: readonly CallEnding[]): readonly CallRecord[] {
  return outcomes.filter((outcome): outcome is CallRecord => !isUnanswered(outcome));
}

/** The sink receives the end of every call, including those that are answered without being executed. */
async function answerForUnanswered(
  run: LoopRun,
  outcomes: readonly CallEnding[],
  answerFor: (call: ParsedCall) => CallRecord,
): Promise<LoopEnd | undefined> {
  const { sink } = run;
  const records: CallRecord[] = [];
  for (const outcome of outcomes) {
    if (!isUnanswered(outcome)) {
      records.push(outcome);
      continue;
    }
    const { call, suspension, inner } = outcome;
    const record = answerFor({ ...call, suspension, inner });
    records.push(record);
    await run.checkpointer?.save(call, record);
    if (suspension === undefined) await emitStart(sink, record);
    await emitEnd(sink, record);
  }
  return addAnswers(run, records);
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
