import { AsyncResource } from 'node:async_hooks';
import {
  type CallRecord,
  type CallScope,
  scopeFields,
  type UpdateListener,
} from '../../core/contract/call.js';
import type { LLMResponse, Message } from '../../core/contract/llm-provider.js';
import { CHECKPOINT_STORE, type CheckpointStore } from '../../core/contract/run-checkpoint.js';
import type { RunState, RunStore, StoredCall, StoredWaitingCall } from '../../core/contract/run-state.js';
import type { RunTrace } from '../../core/contract/telemetry.js';
import { errorResult, type ToolResult, toolResult } from '../../core/contract/tool-result.js';
import { refusedBegin } from '../../core/errors/store-checks.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { andThen, anySignal, onAbort } from '../../core/kernel/async.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { logFailure } from '../call/failure-log.js';
import { hadBegun, type Invocation, type InvokeOptions, type MaybeLater } from '../call/invocation.js';
import { jobsOf } from '../call/job-dispatch.js';
import { failedResult, isCutDetails, notesOf, resultText, unendedText } from '../call/result-text.js';
import { callRecord } from '../call/run-body.js';
import { registryOf, type ToolRegistry } from '../call/tool-registry.js';
import { approvalNeed } from '../call/waits.js';
import { TEXT_TOOLS } from '../text/text-tool-calls.js';
import { detectCalls, numberCalls, type Reply } from './ask-model.js';
import {
  ChildRuns,
  childRuns,
  childWaits,
  finalizeCompletion,
  historyInCall,
  revealingAnswer,
} from './child-runs.js';
import type { EventSink, LoopEnd, LoopEvent, ToolLoopResult } from './events.js';
import { FinalAnswer } from './final-answer.js';
import { givenHistory } from './given-history.js';
import { LoopGuard, RetryBudget } from './guard.js';
import {
  type AsyncContext,
  addUsage,
  HistoryScope,
  type LoopRun,
  NO_USAGE,
  type RunDeps,
  type RunStart,
  type RunWatcher,
  usageSince,
  type Writable,
} from './loop-run.js';
import {
  callLoopTools,
  foundBy,
  handleIn,
  isLoopCall,
  OfferedTools,
  onlyKnown,
  resultStoreOf,
  storeIfLarge,
} from './loop-tools.js';
import {
  assistantMessage,
  type CallingMessage,
  isTruncated,
  keyOfCall,
  openMessage,
  type ParsedCall,
  parseCall,
  SentMessages,
  toolMessage,
} from './messages.js';
import type { ResumeConfig, ToolLoopConfig } from './options.js';
import { RequestHooks, requestReply } from './request.js';
import { standingLookup } from './resume.js';
import { budgetOf } from './run-budget.js';
import { storeFailed, wrongConfig } from './run-errors.js';
import { ownerOfRun } from './run-owner.js';
import { openWaits, pendingOf, restoredCall, restoredRecord, storedCall, suspendRun } from './suspend.js';

/** The loop: send a request, execute the calls, answer them, send the next request. */
export function driveLoop(config: ResumeConfig, start: RunStart, deps: RunDeps): Promise<ToolLoopResult> {
  let run = beginRun(config, start, deps);
  const { watcher } = run.tools;
  if (watcher !== undefined && 'aroundRun' in watcher) {
    const { sink, hasReader } = run;
    const watch = (watcher as RunWatcher).aroundRun(run);
    run = {
      ...run,
      // A watcher alone does not cause streaming.
      hasReader: hasReader ?? (() => sink !== undefined),
      sink: (event) => {
        watch(event);
        return sink?.(event);
      },
    };
  }
  const { trace } = run;
  return trace === undefined ? driveBegun(run, deps) : driveTraced(run, trace, () => driveBegun(run, deps));
}

/** Whether a store has a run with this id; some stores have only suspended runs. */
async function isStored(runId: string, store: RunStore | undefined): Promise<boolean> {
  const isComplete = CHECKPOINT_STORE.accepts(store);
  const run = isComplete ? (store as CheckpointStore).read(runId) : store?.load(runId);
  return (await run) !== undefined;
}

async function driveBegun(run: LoopRun, deps: RunDeps): Promise<ToolLoopResult> {
  const { sink, record, checkpointer, signal, config } = run;
  if (record?.steps !== undefined) {
    // Guard, retries and budget count the steps from before the crash, too.
    const uncounted = [...(record.uncounted?.values() ?? [])];
    run.budget?.countSettled(uncounted, (name) => run.tools.offered(name));
    for (const step of record.steps) {
      const records = step.map(restoredRecord);
      run.guard?.watch(records);
      run.retries.spend(records);
    }
  }
  if (checkpointer !== undefined) await checkpointer.begin(run);
  else if (record === undefined && deps.save === undefined && config.runId !== undefined)
    if (await isStored(config.runId, config.store)) throw refusedBegin(config.runId);
  if (sink !== undefined) await sink({ type: 'run-start' });
  let end = record?.open && (await resumeCalls(run, record.open, record.pending));
  if (end === undefined) {
    // One listener for all calls, because adding a listener to a signal is slow.
    const unfollow = signal && onAbort(signal, () => {});
    try {
      end = await iterate(run);
    } finally {
      unfollow?.();
    }
  }
  if (run.output !== undefined) end = await run.output.parsed(end);
  if (run.reveal !== undefined) end = { ...end, ...run.reveal({ content: end.content }) };
  try {
    if (run.budget !== undefined) await run.budget.close();
  } catch (error) {
    const { runId } = config;
    const what = 'The last amounts of a run could not be written to its shared budget';
    logFailure(config.logger, { what, error, at: withoutUndefined({ runId }) });
  }
  let result = endRun(run, end);
  const { state } = result;
  if (state !== undefined || record !== undefined) childRuns.getStore()?.note(result, record?.runId);
  if (checkpointer !== undefined) result = await checkpointer.end(run, result);
  else if (state !== undefined)
    try {
      await (deps.save ? deps.save(state) : config.store?.save(state));
    } catch (cause) {
      result = {
        ...result,
        status: 'failed',
        error: storeFailed('The suspended run could not be saved', cause),
      };
    }
  if (result.status === 'failed') {
    // Logged here, because the application may not show its users the reason.
    const { runId, scope } = run;
    const at = withoutUndefined({ runId, conversationId: scope.conversationId, model: config.model });
    logFailure(config.logger, { what: 'Run failed', error: result.error, at });
  }
  if (sink !== undefined) await sink({ type: 'run-end', result });
  return result;
}

/** Sends requests until the run ends. A run without a sink and with synchronous tools awaits only the model. */
async function iterate(run: LoopRun): Promise<LoopEnd> {
  const { maxIterations, config, tools, sink, signal } = run;
  const { detector, onLimit } = config;
  for (;;) {
    let limit: LoopEnd | undefined;
    if (run.iterations >= maxIterations) {
      if (signal?.aborted) return abortedRun(signal);
      limit = limitReached(run);
      if (onLimit === 'throw') throw limit.error;
      if (onLimit !== 'answer' || maxIterations === 0) return limit;
    }
    const asked = await requestReply(run, limit === undefined);
    const isText = detector === undefined || limit !== undefined;
    const reply = isText ? asked : detectCalls(asked, { detector, tools });
    if (!reply.ok) return endWithoutReply(run, reply);
    const { response } = reply;
    addUsage(run, response.usage);
    // Most sinks are synchronous.
    const taken = sink?.(endedReply(run, response));
    if (taken !== undefined) await taken;
    let ending: MaybeLater<LoopEnd | undefined>;
    if (limit !== undefined) {
      // Calls that arrive although none were offered are dropped, with the provider's items of them.
      const { providerItems: _, ...spoken } = response;
      if (response.content.trim() !== '')
        run.messages.push(assistantMessage(response.toolCalls.length > 0 ? spoken : response, []));
      ending = { ...limit, content: response.content };
    } else if (response.toolCalls.length === 0) ending = answeredInText(run, response);
    else {
      run.isAskedAgain = false;
      const { toolCalls, finishReason } = response;
      const { runId, iterations: step } = run;
      let calls: readonly ParsedCall[] = numberCalls(toolCalls, run).map((call, index) =>
        parseCall(call, { runId, step, index }),
      );
      if (run.offer.hasOurs) calls = await callLoopTools(run, calls);
      if (run.output !== undefined) calls = await run.output.answered(calls);
      const message = acceptCalls(run, { reply: response, calls, finishReason });
      const making = makeCalls(run, message);
      if (making !== undefined) await making;
      ending = answerOrSuspend(run, message);
    }
    const end = ending instanceof Promise ? await ending : ending;
    run.onStep?.(run, end);
    const stepTaken = sink?.(endedStep(run, response));
    if (stepTaken !== undefined) await stepTaken;
    if (end !== undefined) return end;
  }
}

/** Continues at the message at which the run was suspended: makes its calls, unless some still wait. */
async function resumeCalls(
  run: LoopRun,
  open: RunState['open'],
  pending: RunState['pending'] = [],
): Promise<LoopEnd | undefined> {
  if (pending.length > 0 && !run.signal?.aborted) {
    const state = suspendRun(run, open, pending);
    if (state !== undefined) return { status: 'suspended', state };
    throw new ToolwrightError(
      'InvalidAnswer',
      'The run was not resumed; its answers cannot be written as JSON.',
    );
  }
  const { runId, iterations: step } = run;
  const stored = await takeGrant(run, open.calls);
  if (stored.length === 0) return run.budget?.ended;
  const calls = stored.map((call, index) => restoredCall(call, { runId, step, index }));
  const message = acceptCalls(run, { reply: open, calls, finishReason: 'tool_calls' });
  await makeCalls(run, message);
  let end = await answerOrSuspend(run, message);
  if (end === undefined && run.record?.isOneCall) {
    // Such a run asks no model.
    const [call] = run.toolCalls;
    const error = call && mcpErrorOf(call.result);
    end = { status: error ? 'failed' : 'completed', ...(error && { error }) };
  }
  run.onStep?.(run, end);
  return end;
}

/** The error of MCP that a tool has thrown instead of a result; known by its name, as a worker may lack the SDK. */
export function mcpErrorOf({ error }: ToolResult): Error | undefined {
  try {
    return [error, Object(error).cause].find((one) => Object(one).name === 'ProtocolError');
  } catch {
    // An error that cannot be read.
    return undefined;
  }
}

/** A reply without calls ends the run. If it is empty, the model is asked again once. */
function answeredInText(run: LoopRun, response: LLMResponse): MaybeLater<LoopEnd | undefined> {
  const { content, finishReason } = response;
  const hasSpoken = ({ name, status, result }: CallRecord) => {
    const isShown = Boolean(result.forUser) && !result.silent;
    return isShown || (status === 'success' && run.tools.offered(name)?.returnDirect);
  };
  if (content.trim() !== '' || run.toolCalls.some(hasSpoken)) {
    run.messages.push(assistantMessage(response, []));
    return run.output === undefined
      ? { status: 'completed', content }
      : run.output.endWithText(run, response);
  }
  if (!run.isAskedAgain && run.iterations < run.maxIterations) {
    run.isAskedAgain = true;
    return undefined;
  }
  const message = `The model replied with neither text nor calls (finish reason: ${finishReason}).`;
  return { status: 'failed', error: new ToolwrightError('EmptyReply', message) };
}

async function endWithoutReply(run: LoopRun, reply: Extract<Reply, { ok: false }>): Promise<LoopEnd> {
  if (reply.reason === 'aborted') return abortedRun(run.signal, reply.streamed);
  const { error } = reply;
  if (error.name !== 'BudgetSpent') return { status: 'failed', error };
  // Until an answer grants a further amount.
  const state = run.budget?.isAsking ? suspendRun(run, { content: '', calls: [] }) : undefined;
  if (state === undefined) return { status: 'budget', error };
  await emitQuestion(run, state);
  return { status: 'suspended', state };
}

/** The end of a run at its limit, without an answer. */
function limitReached({ iterations, maxIterations }: LoopRun): LoopEnd {
  const message =
    maxIterations === 0
      ? 'The run made no request: maxIterations is 0.'
      : `The run made ${iterations} requests and the model still wanted tools (maxIterations: ${maxIterations}).`;
  return { status: 'limit', error: new ToolwrightError('ToolLoopLimitReached', message) };
}

function endedStep(run: LoopRun, response: LLMResponse): LoopEvent {
  const event = replyEvent('step-end', run, response);
  return run.budget === undefined ? event : ({ ...event, spent: run.budget.spending } as LoopEvent);
}

function endedReply(run: LoopRun, response: LLMResponse): LoopEvent {
  const event = replyEvent('reply-end', run, response);
  const notes = run.hooks?.takeNotes() ?? [];
  return notes.length === 0 ? event : ({ ...event, hooks: notes } as LoopEvent);
}

function replyEvent(
  type: 'reply-end' | 'step-end',
  { iterations: iteration }: LoopRun,
  { finishReason, rawFinishReason, usage }: LLMResponse,
): LoopEvent {
  const ended = { type, iteration, finishReason, usage };
  return rawFinishReason === undefined ? ended : { ...ended, rawFinishReason };
}

/** Adds a message with calls to the history; calls of a reply that was cut off cannot be trusted, and are answered. */
function acceptCalls(run: LoopRun, message: CallingMessage): CallingMessage {
  run.messages.push(assistantMessage(message.reply, message.calls));
  if (!isTruncated(message.finishReason)) return message;
  const calls = message.calls.map((call) => {
    const text = `The reply was cut off (${message.finishReason}), so the call of '${call.name}' was not run. Send it again, shorter.`;
    const error = new ToolwrightError('ReplyTruncated', text);
    return { ...call, record: notRun(call, 'not_run', errorResult(text).withError(error)) };
  });
  return { ...message, calls };
}

/**
 * Makes every call of a message; each then has its record or waits. Synchronous without a sink if all calls are,
 * because a promise costs as much as a small tool.
 */
function makeCalls(run: LoopRun, message: CallingMessage): MaybeLater<unknown> {
  const { checkpointer } = run;
  if (checkpointer === undefined) return makeOpenCalls(run, message);
  const { calls } = message;
  const barrier = calls.length > 1 ? calls.findIndex((call) => isSequential(run, call)) : -1;
  const free = barrier < 0 ? calls.length : Math.max(1, barrier);
  const first = calls.slice(0, Math.min(free, maxConcurrencyOf(run)));
  // A call is made only after it is saved that it begins.
  const saved = checkpointer.open(
    run,
    message,
    first.filter((call) => canRun(run, call)),
  );
  return saved.then(() => makeOpenCalls(run, message));
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
  if (isTruncated(message.finishReason)) return emitTruncated(run, calls);
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
    if (calls.slice(0, from).some(({ record }) => record === undefined)) return;
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

async function emitTruncated(run: LoopRun, calls: readonly ParsedCall[]): Promise<void> {
  for (const record of recordsOf(calls)) {
    if (isLoopCall(run, record.name)) continue;
    await emitStart(run.sink, record);
    await emitEnd(run.sink, record);
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

/** The records of those calls that are answered. */
function recordsOf(calls: readonly ParsedCall[]): readonly CallRecord[] {
  // A loop, because `flatMap` costs as much as a small tool.
  const records: CallRecord[] = [];
  for (const { record } of calls) if (record !== undefined) records.push(record);
  return records;
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
  const { invoke, retries } = run;
  const attempt = retries.attempt(call.name);
  const children = new ChildRuns(run, scope, call);
  const made = contextOfRun(run).runInAsyncScope(() => childRuns.run(children, invoke, call, scope, attempt));
  return andThen(made, (invocation) => settle(run, call, { invocation, children }));
}

/** `AsyncLocalStorage.run` leaves a larger context behind, which every later call would copy. */
function contextOfRun(run: LoopRun): AsyncContext {
  run.context ??= new AsyncResource('ToolLoop');
  return run.context;
}

function settle(
  run: LoopRun,
  call: ParsedCall,
  { invocation, children }: { readonly invocation: Invocation; readonly children: ChildRuns },
): MaybeLater<void> {
  if (invocation.status === 'suspended') {
    call.suspension = invocation.suspension;
    call.inner = children.close() ?? call.inner;
    return undefined;
  }
  const record = children.finish(invocation.record);
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
function answerOrSuspend(run: LoopRun, message: CallingMessage): MaybeLater<LoopEnd | undefined> {
  const records = recordsOf(message.calls);
  return records.length === message.calls.length ? addAnswers(run, records) : suspendOrClose(run, message);
}

/**
 * Suspends a run with unanswered calls. If it ends anyway, or cannot be written as JSON, they are answered instead; the
 * sink receives the end of these calls, too.
 */
async function suspendOrClose(run: LoopRun, message: CallingMessage): Promise<LoopEnd | undefined> {
  const { messages, toolCalls, signal, retries, budget, sink, checkpointer } = run;
  const { calls } = message;
  const isAborted = signal?.aborted === true;
  const error = isAborted ? undefined : (retries.foresee(recordsOf(calls)) ?? budget?.endInsteadOfAsking);
  if (!isAborted && error === undefined) {
    // The history of a suspended run ends before the message with open calls.
    const open = messages.splice(-1);
    const state = suspendRun(run, openMessage(message, storedCall));
    if (state !== undefined) {
      toolCalls.push(...recordsOf(calls));
      if (budget?.isAsking) await emitQuestion(run, state);
      return { status: 'suspended', state };
    }
    messages.push(...open);
  }
  const answerFor = (call: ParsedCall): CallRecord => {
    if (isAborted) return abortedCall(run, call);
    if (error !== undefined) {
      const failed = errorResult(`The run failed: ${error.message}\n${unended(run, call)}`).withError(error);
      const status = progressOfCall(call) === 'not-begun' ? 'not_run' : 'aborted';
      return withKey(run, call, notRun(call, status, failed));
    }
    const text = `The call of '${call.name}' needs an answer, but the run cannot be suspended, because it cannot be written as JSON. ${unended(run, call)}`;
    return notRun(call, 'refused', failedResult('NotExecutableHere', text));
  };
  for (const call of calls) {
    if (call.record !== undefined) continue;
    const record = answerFor(call);
    call.record = record;
    await checkpointer?.save(call);
    if (call.suspension === undefined) await emitStart(sink, record);
    await emitEnd(sink, record);
  }
  return addAnswers(run, recordsOf(calls));
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
  const exhausted = retries.spend(records);
  let error = (exhausted && run.output?.exhausted(exhausted, records)) ?? exhausted ?? verdict?.error;
  if (run.config.onExpiry === 'end')
    for (const { result } of records)
      if (ToolwrightError.is(result.error) && result.error.name === 'AnswerExpired') error ??= result.error;
  if (error !== undefined) return { status: 'failed', error };
  const end = run.output ? run.output.endWithCalls(run, records.length) : directAnswer(run, records);
  return end ?? run.budget?.ended;
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

/** The record of a call that an abort of the run left open. */
function abortedCall(run: LoopRun, call: ParsedCall): CallRecord {
  const result = failedResult('RunAborted', `The run was aborted. ${unended(run, call)}`);
  return withKey(run, call, notRun(call, 'aborted', result));
}

/** Adds the key of the call's possible effect, if the steps of the run are saved. */
function withKey({ checkpointer }: LoopRun, call: ParsedCall, record: CallRecord): CallRecord {
  if (checkpointer === undefined || progressOfCall(call) !== 'begun') return record;
  const { journal } = call;
  const edited = journal?.edited && { arguments: journal.arguments };
  return { ...record, ...edited, idempotencyKey: keyOfCall(call) };
}

function unended({ tools }: LoopRun, call: ParsedCall): string {
  const { name } = call;
  return unendedText({ name, annotations: tools.offered(name)?.annotations ?? call }, progressOfCall(call));
}

/** The progress of a call without a result. */
function progressOfCall({ suspension, ...call }: ParsedCall): 'not-begun' | 'asking' | 'begun' {
  const { waits = [], journal = call.journal } = suspension ?? {};
  const kinds = new Set(waits.map(({ kind }) => kind));
  if (hadBegun({ ...call, journal }) || kinds.has('outcome') || kinds.has('client')) return 'begun';
  return kinds.has('question') || journal?.answers.length ? 'asking' : 'not-begun';
}

function notRun(call: ParsedCall, status: CallRecord['status'], result: ToolResult): CallRecord {
  return {
    ...callRecord({ request: call, attempt: 0, since: 0 }, { status, result }),
    ...givenAnswers(call),
  };
}

/** Drives a run within its trace, which ends with it. */
async function driveTraced(
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

type Counted = Pick<ToolLoopResult, 'messages' | 'toolCalls' | 'iterations' | 'usage' | 'providerRetries'> &
  Partial<Pick<LoopRun, 'runId' | 'checkpointer' | 'budget'>>;

/** The outcome of a run that ends now. */
function endRun(run: Counted, { status, content = '', output, state, error }: LoopEnd): ToolLoopResult {
  const { messages, toolCalls, iterations, usage } = run;
  const result: Writable<ToolLoopResult> = { content, iterations, status, messages, toolCalls, usage };
  if (run.budget !== undefined) result.spent = run.budget.spending;
  if (run.providerRetries) result.providerRetries = run.providerRetries;
  if (run.checkpointer !== undefined || state !== undefined) result.runId = run.runId;
  if (output !== undefined) result.output = output;
  if (state !== undefined) {
    result.pending = state.pending;
    result.state = state;
  }
  if (error !== undefined) result.error = error;
  return result;
}

/** The outcome of a run that was aborted before it began. */
export function abortedBefore(messages: readonly Message[], signal: AbortSignal | undefined): ToolLoopResult {
  const nothing = { messages: [...messages], toolCalls: [], iterations: 0, usage: NO_USAGE };
  return endRun(nothing, abortedRun(signal));
}

/** The end of a run by its signal; `content` is the streamed text of the interrupted reply. */
function abortedRun(signal: AbortSignal | undefined, content = ''): LoopEnd {
  const error = new ToolwrightError('RunAborted', 'The run was aborted.', { cause: signal?.reason });
  return { status: 'aborted', content, error };
}

/** Whether an observed call is the question of a budget, and not a call of a model. */
export function isBudgetQuestion(callId: unknown, tool: unknown): boolean {
  return tool === 'budget' && /^budget_\d+_[a-zA-Z]+_/.test(String(callId));
}

/** The step in which a suspended run asks: a question without other calls belongs to the request that was not made. */
export function askingStep({ iterations, open: { calls } }: Pick<RunState, 'iterations' | 'open'>): number {
  return calls.length > 0 && calls.every(isQuestion) ? iterations + 1 : iterations;
}

/** Reports the question to observers as a call that begins, and waits. */
async function emitQuestion({ sink }: LoopRun, state: RunState): Promise<void> {
  const asked = state.open.calls.find(isQuestion);
  if (sink === undefined || asked === undefined) return;
  const { id: callId, name: tool, arguments: args } = asked;
  const pending = openWaits(state).flatMap((open) => (open.call.id === callId ? [open.pending] : []));
  await sink({ type: 'call-start', callId, tool, arguments: args });
  await sink({ type: 'call-suspended', callId, tool, pending });
}

type Question = StoredWaitingCall & Required<Pick<StoredWaitingCall, 'asks'>>;

function isQuestion(call: StoredCall): call is Question {
  return call.status === 'waiting' && call.asks !== undefined;
}

/**
 * Applies the answer to the question of a continued run, if it asked one; the sink receives it as the end of that
 * call. Returns the calls of the model.
 */
async function takeGrant(
  { budget, sink, runId, iterations: step }: LoopRun,
  calls: readonly StoredCall[],
): Promise<readonly StoredCall[]> {
  const asked = calls.find(isQuestion);
  if (asked === undefined) return calls;
  const { asks, journal, id: callId, name: tool } = asked;
  const value = journal.answers[0]?.value;
  const granted = typeof value === 'number' && journal.refused === undefined ? value : undefined;
  const reason = journal.refused?.reason;
  const id = `grant ${runId} ${callId}`;
  await budget?.answer({ ...asks, id }, granted ?? (reason === undefined ? '' : `: ${reason}`));
  const isRefused = granted === undefined;
  const result = isRefused
    ? failedResult('BudgetSpent', 'No more budget was granted.')
    : toolResult(`${granted} more were granted.`);
  const request = parseCall(asked, { runId, step, index: calls.indexOf(asked) });
  const status = isRefused ? 'refused' : 'success';
  const record = callRecord({ request, attempt: 0, since: 0 }, { status, result });
  await sink?.({ type: 'call-end', callId, tool, result, record });
  return calls.filter((call) => call !== asked);
}

const ITERATIONS = 20;
/** Models without native calls get fewer requests. */
const TEXT_ITERATIONS = 5;
const TOOL_TIMEOUT_MS = 120_000;

/**
 * Prepares a run; throws only for mistakes of its author. Fields are not spread into the object, because building it
 * key by key takes several times as long.
 */
function beginRun(given: ResumeConfig, start: RunStart, deps: RunDeps): LoopRun {
  const { scope, sink, hasReader, onStep, checkpointer, onUnknown, turnOf, followUntil, resultsOf } = deps;
  const isNew = 'messages' in start;
  const record = isNew ? undefined : start.record;
  const model = record?.model ?? given.model ?? missingModel();
  const givenTools = registryOf(given.tools);
  const tools = onlyKnown(givenTools, record?.tools);
  const { logger = tools.logger } = given;
  const isReady = model === given.model && logger === given.logger;
  const config = (isReady ? given : { ...given, model, logger }) as ToolLoopConfig;
  const { messages, reveal } = wordsOf(start, { tools, config });
  const signal = scope.signal === undefined ? config.signal : anySignal(config.signal, scope.signal);
  const parent = childRuns.getStore()?.run.budget;
  const budget = budgetOf(config, { scope, parent, before: record, signal });
  const runId = record?.runId ?? config.runId ?? crypto.randomUUID();
  const owner = ownerOfRun(scope, isNew ? tools : undefined);
  const storing = config.store && resultStoreOf(config, tools);
  const limits = { budget, maxResultChars: (storing ?? config).maxResultChars };
  const options = callOptionsOf(config, tools, { runId, owner, ...limits });
  const ofCalls = checkpointer ? { ...options, recordsKeys: true, onUnknown, followUntil } : options;
  return {
    config,
    runId,
    owner,
    turnOf: record?.turnOf ?? turnOf,
    tools,
    results: storing?.results,
    maxResultChars: storing?.maxResultChars,
    resultsOf: resultsOf ?? { runId, isShared: true },
    signal,
    sink,
    hasReader,
    onStep,
    checkpointer,
    scope: { ...scopeFields(scope), signal },
    retries: new RetryBudget({ maxRetries: config.maxRetries, tools, spent: record?.retries }),
    guard: config.loopGuard === false ? undefined : new LoopGuard(config.loopGuard, record?.guard),
    maxIterations: config.maxIterations ?? (TEXT_TOOLS in config.provider ? TEXT_ITERATIONS : ITERATIONS),
    fallback: config.fallback?.map((next) => ('chat' in next ? { provider: next } : next)) ?? [],
    failedOver: 0,
    providerRetries: 0,
    lastNumber: undefined,
    isAnswerAsked: false,
    isAskedAgain: false,
    offer: new OfferedTools({ config, givenTools, messages, results: storing?.results, record }),
    trace: startTrace(given, { runId, model, tools, record }, deps),
    budget,
    hooks: tools.hooks.length > 0 || config.hooks ? RequestHooks.among(tools, config) : undefined,
    invoke: tools.invoker(ofCalls),
    record,
    messages,
    sent: isNew && start.isShared ? SentMessages.of(messages, logger) : new SentMessages(messages, logger),
    toolCalls: record?.toolCalls.map(restoredRecord) ?? [],
    iterations: record?.iterations ?? 0,
    usage: record?.usage ?? NO_USAGE,
    output: config.output === undefined ? undefined : new FinalAnswer(config.output, tools, reveal),
    reveal,
  };
}

function startTrace(
  given: ResumeConfig,
  run: Pick<LoopRun, 'runId' | 'tools' | 'record'> & { readonly model: string },
  { scope: { conversationId }, turnOf, inPrompt }: RunDeps,
): RunTrace | undefined {
  const { telemetry = run.tools.telemetry, agentName: agent } = given;
  if (!telemetry?.isOn) return undefined;
  const { runId, model, record } = run;
  const isTurn = turnOf !== undefined;
  return telemetry.startRun({ runId, model, agent, conversationId, before: record?.trace, isTurn, inPrompt });
}

/** The history at the start of a run, and how its answer is read outside of it. */
function wordsOf(start: RunStart, run: Pick<LoopRun, 'tools' | 'config'>) {
  const messages =
    'messages' in start
      ? givenHistory(historyInCall(start, run), run.config.logger)
      : [...start.record.messages];
  return { messages, reveal: revealingAnswer(run, messages) };
}

function missingModel(): never {
  throw wrongConfig({ option: 'model', problem: 'model is missing', fix: "model: 'gpt-5', …" });
}

/** The options of most runs: always the same object, so that a registry creates one invoker for all of them. */
const PLAIN_OPTIONS: InvokeOptions = Object.freeze({
  toolTimeoutMs: TOOL_TIMEOUT_MS,
  innerWaits: childWaits,
});

/** The run's settings for its calls; the others are the registry's. */
function callOptionsOf(
  config: ToolLoopConfig,
  tools: ToolRegistry,
  { runId, owner, budget, maxResultChars }: Pick<LoopRun, 'runId' | 'owner' | 'budget' | 'maxResultChars'>,
): InvokeOptions {
  const standing = config.store && standingLookup(config.store, { runId, owner });
  const { onAsyncResult, tasks, policy, engine, store, telemetry, answerWithinMs, hooks } = config;
  const logger = config.logger === tools.logger ? undefined : config.logger;
  const toolTimeoutMs = config.toolTimeoutMs ?? tools.toolTimeoutMs ?? TOOL_TIMEOUT_MS;
  const isPlain = !(onAsyncResult || tasks || logger || policy || hooks || engine || telemetry || standing);
  if (isPlain && budget === undefined && answerWithinMs === undefined && maxResultChars === undefined)
    return toolTimeoutMs === TOOL_TIMEOUT_MS ? PLAIN_OPTIONS : { ...PLAIN_OPTIONS, toolTimeoutMs };
  return withoutUndefined({
    toolTimeoutMs,
    innerWaits: childWaits,
    onAsyncResult,
    finalizeCompletion: onAsyncResult && finalizeCompletion,
    tasks,
    logger,
    telemetry,
    policy,
    hooks,
    budget: budget?.hook,
    jobs: engine && jobsOf({ engine, store }, 'the loop’s config'),
    maxResultChars,
    answerWithinMs,
    standing,
  });
}
