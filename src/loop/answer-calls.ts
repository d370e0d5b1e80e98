import type { Invocation, OnceValue } from '../call/invocation.js';
import { callRecord } from '../call/result.js';
import { failedResult, notesOf, resultText, unendedText } from '../call/result-text.js';
import { approvalNeed } from '../call/waits.js';
import type { CallRecord, CallScope, UpdateListener } from '../contract/call.js';
import { errorResult, type ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { tellQuestion, withQuestion } from './budget-question.js';
import { foundBy } from './deferred-calls.js';
import type { EventSink } from './events.js';
import { InnerRuns, innerRuns } from './inner-runs.js';
import { isToBeKept, keepResult, keptBy } from './kept-results.js';
import { abortedRun, HistoryScope, type LoopEnd, type LoopRun, type RunKeeper } from './loop-run.js';
import {
  assistantMessage,
  type CallingMessage,
  type CallOutcome,
  isUnanswered,
  keyOfCall,
  openMessage,
  type ParsedCall,
  toolMessage,
} from './messages.js';
import { beginningTasks, runInOrder } from './order.js';
import { pendingOf, storedCall, suspendRun } from './suspend.js';

/**
 * Makes the calls of a message and answers them in call order; the end of the run, if it is one. Synchronous
 * where nobody watches and all calls are: a promise costs as much as a small tool.
 */
export function answerCalls(
  run: LoopRun,
  message: CallingMessage,
): LoopEnd | undefined | Promise<LoopEnd | undefined> {
  run.messages.push(assistantMessage(message.reply, message.calls));
  return run.keeper === undefined ? makeCalls(run, message) : answerKept(run, run.keeper, message);
}

/** The same where every step of the run is kept: a call is made once it is known for good that it is. */
async function answerKept(
  run: LoopRun,
  keeper: RunKeeper,
  message: CallingMessage,
): Promise<LoopEnd | undefined> {
  const { calls } = message;
  const cutOff = isTruncated(message) ? truncatedCalls(message) : undefined;
  if (cutOff !== undefined) {
    const answered = calls.map((call, index) => ({ ...call, record: cutOff[index] as CallRecord }));
    await keeper.open(run, { ...message, calls: answered }, new Set());
  } else {
    const { isSequential, maxConcurrency } = orderIn(run);
    const first = beginningTasks({ tasks: calls, isSequential, maxConcurrency });
    await keeper.open(run, message, new Set(first.filter((index) => canRun(run, calls[index]))));
  }
  return makeCalls(run, message);
}

/** Whether the body of a call may run this time, and not only an answer be looked for or taken. */
function canRun({ tools }: LoopRun, call: ParsedCall | undefined): boolean {
  if (call === undefined || call.record !== undefined || call.suspension !== undefined) return false;
  const tool = tools.offered(call.name);
  const needsYes = approvalNeed(tool?.approval) === true && !call.journal?.approved;
  return tool !== undefined && !hasWord(call) && !needsYes && tool.execution !== 'client';
}

/** Whether somebody has said how a call ends. */
function hasWord({ journal }: ParsedCall): boolean {
  const { refused, result, outcome } = journal ?? {};
  return refused !== undefined || result !== undefined || outcome?.status === 'done';
}

/** Makes every call of a message, and goes on with one outcome for each, in call order, whatever happens. */
function makeCalls(
  run: LoopRun,
  message: CallingMessage,
): LoopEnd | undefined | Promise<LoopEnd | undefined> {
  const withOutcomes = (outcomes: readonly CallOutcome[]) => answerOrSuspend(run, message, outcomes);
  if (isTruncated(message)) return answerTruncated(run, truncatedCalls(message)).then(withOutcomes);
  const { calls } = message;
  const scope = new HistoryScope(run.scope, run.messages);
  const [only] = calls;
  if (only !== undefined && calls.length === 1) {
    const outcome = makeUnlessMade(run, scope, only);
    return outcome instanceof Promise
      ? outcome.then((ended) => withOutcomes([ended]))
      : withOutcomes([outcome]);
  }
  const { isSequential, maxConcurrency } = orderIn(run);
  const outcomes = runInOrder({
    tasks: calls,
    run: (call) => makeUnlessMade(run, scope, call),
    isSequential,
    maxConcurrency,
    hold: (call) => call.record ?? waiting(call),
    isOpen: isUnanswered,
  });
  return outcomes instanceof Promise ? outcomes.then(withOutcomes) : withOutcomes(outcomes);
}

function makeUnlessMade(
  run: LoopRun,
  scope: CallScope,
  call: ParsedCall,
): CallOutcome | Promise<CallOutcome> {
  if (call.record !== undefined) return call.record;
  if (call.suspension !== undefined) return waiting(call);
  return run.sink === undefined ? perform(run, scope, call) : watchCall(run, run.sink, call);
}

/** A call as it was suspended before. */
function waiting(call: ParsedCall): CallOutcome {
  return { call, suspension: call.suspension, inner: call.inner };
}

/** Which calls of a run wait for each other. */
function orderIn({ config, tools }: LoopRun) {
  return {
    isSequential: ({ name }: ParsedCall) => tools.offered(name)?.sequential ?? false,
    maxConcurrency: Math.max(1, config.maxConcurrency ?? Number.POSITIVE_INFINITY),
  };
}

function isTruncated({ finishReason }: CallingMessage): boolean {
  return finishReason === 'length' || finishReason === 'content_filter';
}

/** The answers to the calls of a reply that was cut off: none of them can be trusted. */
function truncatedCalls({ calls, finishReason }: CallingMessage): readonly CallRecord[] {
  return calls.map((call) => {
    const message = `The reply was cut off (${finishReason}), so the call of '${call.name}' was not run. Send it again, shorter.`;
    const error = new ToolwrightError('ReplyTruncated', message);
    return notRun(call, 'not_run', errorResult(message).withError(error));
  });
}

async function answerTruncated(
  { sink }: LoopRun,
  records: readonly CallRecord[],
): Promise<readonly CallRecord[]> {
  for (const record of records) {
    await tellStart(sink, record);
    await tellEnd(sink, record);
  }
  return records;
}

async function watchCall(run: LoopRun, sink: EventSink, call: ParsedCall): Promise<CallOutcome> {
  const { scope, messages } = run;
  const { id: callId, name: tool, arguments: args } = call;
  await sink({ type: 'call-start', callId, tool, arguments: args });
  const onUpdate: UpdateListener = (update, of) => {
    void sink({ type: 'call-progress', callId, tool, arguments: args, update });
    return scope.onUpdate?.(update, of);
  };
  const outcome = await perform(run, new HistoryScope(scope, messages, onUpdate), call);
  if (isUnanswered(outcome)) {
    const pending = pendingOf(run, outcome, call);
    await sink({ type: 'call-suspended', callId, tool, pending });
  } else await tellEnd(sink, outcome);
  return outcome;
}

function tellStart(
  sink: EventSink | undefined,
  { id, name, rawArguments }: CallRecord,
): void | Promise<void> {
  return sink?.({ type: 'call-start', callId: id, tool: name, arguments: rawArguments });
}

function tellEnd(sink: EventSink | undefined, record: CallRecord): void | Promise<void> {
  const { id, name, result } = record;
  return sink?.({ type: 'call-end', callId: id, tool: name, result, record });
}

function perform(run: LoopRun, scope: CallScope, call: ParsedCall): CallOutcome | Promise<CallOutcome> {
  return run.keeper === undefined ? invokeCall(run, scope, call) : makeKept(run, run.keeper, { scope, call });
}

/** Who watches hears of the end of a call once that is kept; the run itself need not wait for it. */
async function makeKept(
  run: LoopRun,
  keeper: RunKeeper,
  { scope, call }: { readonly scope: CallScope; readonly call: ParsedCall },
): Promise<CallOutcome> {
  if (canRun(run, call)) await keeper.start(call);
  const keepOnce = (done: OnceValue): Promise<void> => keeper.keepOnce(call, done);
  const outcome = await invokeCall(run, scope, keeper.keepsOnce ? { ...call, keepOnce } : call);
  const kept = keeper.keep(call, outcome);
  if (run.sink !== undefined) await kept;
  return outcome;
}

function invokeCall(run: LoopRun, scope: CallScope, call: ParsedCall): CallOutcome | Promise<CallOutcome> {
  // What somebody has said of a call, as that it was done, counts for a run that ends, too.
  if (scope.signal?.aborted && !hasWord(call)) return abortedCall(run, call);
  const { invoke, retries, synchronous } = run;
  const attempt = retries.attempt(call.name);
  // A tool that answers at once cannot have waited for a run of its own, and watching costs more than a small one.
  const inner = synchronous.has(call.name) ? undefined : new InnerRuns(run, scope, call);
  const made = inner ? innerRuns.run(inner, invoke, call, scope, attempt) : invoke(call, scope, attempt);
  if (made instanceof Promise) {
    synchronous.delete(call.name);
    return made.then((invocation) => {
      const outcome = outcomeOf(call, invocation, inner);
      return run.results === undefined ? outcome : keptWhole(run, call, outcome);
    });
  }
  if (inner !== undefined && made.status !== 'started') synchronous.add(call.name);
  const outcome = outcomeOf(call, made, inner);
  return run.results === undefined ? outcome : keptWhole(run, call, outcome);
}

function keptWhole(run: LoopRun, call: ParsedCall, outcome: CallOutcome): CallOutcome | Promise<CallOutcome> {
  return !isUnanswered(outcome) && isToBeKept(run, outcome) ? keepResult(run, call, outcome) : outcome;
}

function outcomeOf(call: ParsedCall, invocation: Invocation, inner: InnerRuns | undefined): CallOutcome {
  if (invocation.status === 'suspended')
    return { call, suspension: invocation.suspension, inner: inner?.close() ?? call.inner };
  const record = inner ? inner.judge(invocation.record) : invocation.record;
  return call.journal === undefined ? record : { ...record, ...givenAnswers(call) };
}

/** Who answered what the call waited for. */
function givenAnswers({ journal }: ParsedCall): Pick<CallRecord, 'answeredBy' | 'answers'> {
  const { given = [] } = journal ?? {};
  return given.length === 0 ? {} : { answeredBy: given.at(-1)?.answeredBy, answers: given };
}

/** Answers the calls, or suspends the run until those can be answered that wait. */
function answerOrSuspend(
  run: LoopRun,
  message: CallingMessage,
  outcomes: readonly CallOutcome[],
): LoopEnd | undefined | Promise<LoopEnd | undefined> {
  if (!outcomes.some(isUnanswered)) return addAnswers(run, outcomes as readonly CallRecord[]);
  const closed = closedCall(run, outcomes);
  const end = closed === undefined ? suspended(run, message, outcomes) : undefined;
  if (end?.state !== undefined && run.budget?.question !== undefined)
    return tellQuestion(run, end.state).then(() => end);
  return end ?? answerForUnanswered(run, outcomes, closed ?? ((call) => notKept(run, call)));
}

/** Adds the answers to the history. */
function addAnswers(run: LoopRun, records: readonly CallRecord[]): LoopEnd | undefined {
  const { messages, toolCalls, retries, guard, signal } = run;
  const verdict = guard?.watch(records);
  // Looking up an id reads all of it, and there is nearly never a note.
  const notes = verdict?.notes.size ? verdict.notes : undefined;
  for (const record of records) {
    const note = notes?.get(record.id);
    const told = note === undefined ? notesOf(record) : [...notesOf(record), note];
    const message = toolMessage(record.id, record.result, told);
    // Most results are a text and nothing more.
    messages.push(
      record.result.details === undefined ? message : { ...message, ...foundBy(record), ...keptBy(record) },
    );
    toolCalls.push(record);
  }
  if (signal?.aborted) return abortedRun(signal);
  const expired = run.config.onExpiry === 'end' ? expiryError(records) : undefined;
  const error = retries.spend(records) ?? verdict?.error ?? expired;
  return error === undefined ? directAnswer(run, records) : { status: 'failed', error };
}

/** Why a run ends that is not to go on without an answer. */
function expiryError(records: readonly CallRecord[]): Error | undefined {
  const errors = records.map(({ result }) => result.error);
  return errors.find((error) => ToolwrightError.is(error) && error.name === 'AnswerExpired') as
    | ToolwrightError
    | undefined;
}

/** Where every call was of a `returnDirect` tool and succeeded, the results are the answer. */
function directAnswer({ tools }: LoopRun, records: readonly CallRecord[]): LoopEnd | undefined {
  const isDirect = records.every(
    ({ name, status }) => status === 'success' && tools.offered(name)?.returnDirect,
  );
  if (!isDirect) return undefined;
  const texts = records.map(({ result }) =>
    result.silent || !result.forUser ? resultText(result) : result.forUser,
  );
  return { status: 'completed', content: texts.join('\n') };
}

/**
 * Where a run ends anyway, nobody needs to be asked: what its unanswered calls are answered with. `undefined`
 * where it does not.
 */
function closedCall(
  run: LoopRun,
  outcomes: readonly CallOutcome[],
): ((call: ParsedCall) => CallRecord) | undefined {
  const { signal, retries, budget } = run;
  if (signal?.aborted) return (call) => abortedCall(run, call);
  const error = retries.foresee(recordsAmong(outcomes)) ?? budget?.endInsteadOfAsking;
  if (error === undefined) return undefined;
  return (call) => {
    const told = errorResult(`The run failed: ${error.message}\n${unended(run, call)}`).withError(error);
    const status = progressOf(call) === 'unmade' ? 'not_run' : 'aborted';
    return withKey(run, call, notRun(call, status, told));
  };
}

/** `undefined` where the run cannot be kept; then the history is as it was. */
function suspended(
  run: LoopRun,
  message: CallingMessage,
  outcomes: readonly CallOutcome[],
): LoopEnd | undefined {
  const { messages, toolCalls } = run;
  // The history of a suspended run ends before the message that is not answered yet.
  const open = messages.splice(-1);
  const kept = openMessage(message, (call, index) => storedCall(outcomes[index] as CallOutcome, call));
  const state = suspendRun(run, run.budget === undefined ? kept : withQuestion(run, kept));
  if (state === undefined) {
    messages.push(...open);
    return undefined;
  }
  toolCalls.push(...recordsAmong(outcomes));
  return { status: 'suspended', state };
}

function recordsAmong(outcomes: readonly CallOutcome[]): readonly CallRecord[] {
  return outcomes.filter((outcome): outcome is CallRecord => !isUnanswered(outcome));
}

/** Who watches hears of the end of every call, also of those that are answered for. */
async function answerForUnanswered(
  run: LoopRun,
  outcomes: readonly CallOutcome[],
  answerFor: (call: ParsedCall) => CallRecord,
): Promise<LoopEnd | undefined> {
  const { sink } = run;
  const records: CallRecord[] = [];
  for (const outcome of outcomes) {
    const record = isUnanswered(outcome) ? answerFor(withWaits(outcome)) : outcome;
    records.push(record);
    if (!isUnanswered(outcome)) continue;
    await run.keeper?.keep(outcome.call, record);
    if (outcome.suspension === undefined) await tellStart(sink, record);
    await tellEnd(sink, record);
  }
  return addAnswers(run, records);
}

/** What the model may try in another way: it is told. */
function notKept(run: LoopRun, call: ParsedCall): CallRecord {
  const message = `The call of '${call.name}' waits for an answer, and the run cannot be kept until then: it cannot be written as JSON. ${unended(run, call)}`;
  return notRun(call, 'refused', failedResult('NotExecutableHere', message));
}

/** The record of a call that an abort of the run left open. */
function abortedCall(run: LoopRun, call: ParsedCall): CallRecord {
  const result = failedResult('RunAborted', `The run was aborted. ${unended(run, call)}`);
  return withKey(run, call, notRun(call, 'aborted', result));
}

/** With the key of what the call may have done, where the steps of the run are kept. */
function withKey({ keeper }: LoopRun, call: ParsedCall, record: CallRecord): CallRecord {
  if (keeper === undefined || progressOf(call) !== 'begun') return record;
  const { journal } = call;
  const edited = journal?.edited && { arguments: journal.arguments };
  return { ...record, ...edited, idempotencyKey: keyOfCall(call) };
}

function unended({ tools }: LoopRun, call: ParsedCall): string {
  const { name } = call;
  return unendedText({ name, annotations: tools.offered(name)?.annotations ?? call }, progressOf(call));
}

/** How far a call has come that has no result. */
function progressOf({
  hasBegun,
  suspension,
  inner = [],
  ...call
}: ParsedCall): 'unmade' | 'asking' | 'begun' {
  const { waits = [], journal = call.journal } = suspension ?? {};
  const kinds = new Set(waits.map(({ kind }) => kind));
  const hasDone = inner.length > 0 || Boolean(journal?.once.length);
  if (hasBegun || hasDone || kinds.has('outcome') || kinds.has('client')) return 'begun';
  return kinds.has('question') || journal?.answers.length ? 'asking' : 'unmade';
}

/** A call with what it waits for by now. */
function withWaits({ call, suspension, inner }: Exclude<CallOutcome, CallRecord>): ParsedCall {
  return { ...call, ...(suspension ? { suspension } : {}), ...(inner ? { inner } : {}) };
}

/** The record of a call that was answered without being made. */
function notRun(call: ParsedCall, status: CallRecord['status'], result: ToolResult): CallRecord {
  return {
    ...callRecord({ request: call, attempt: 0, since: 0 }, { status, result }),
    ...givenAnswers(call),
  };
}
