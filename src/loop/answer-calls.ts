import { AsyncLocalStorage } from 'node:async_hooks';
import { callRecord } from '../call/call-tool.js';
import type { Invocation } from '../call/invocation.js';
import { abortedResult, failedResult, ignoredText, resultText } from '../call/result-text.js';
import type { CallRecord, CallScope, UpdateListener } from '../contract/call.js';
import type { FinishReason, Message } from '../contract/llm-provider.js';
import type { RunState } from '../contract/run-state.js';
import { errorResult, type ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import {
  assistantMessage,
  type CallOutcome,
  isUnanswered,
  type ParsedCall,
  type SpokenReply,
  toolMessage,
} from './assistant-message.js';
import type { EventSink } from './events.js';
import { abortedRun, type LoopEnd, type LoopRun } from './loop-run.js';
import { runInOrder } from './order.js';
import { pendingOf, storedCall, suspendRun } from './suspend.js';

/** A message of the model with its calls. */
interface CallingMessage {
  readonly reply: SpokenReply;
  readonly calls: readonly ParsedCall[];
  readonly finishReason: FinishReason;
}

/**
 * Makes the calls of a message and answers them in call order; the end of the run, if it is one. Synchronous
 * where nobody watches and all calls are: a promise costs as much as a small tool.
 */
export function answerCalls(
  run: LoopRun,
  message: CallingMessage,
): LoopEnd | undefined | Promise<LoopEnd | undefined> {
  run.messages.push(assistantMessage(message.reply, message.calls));
  const outcomes = makeCalls(run, message);
  return outcomes instanceof Promise
    ? outcomes.then((ended) => conclude(run, message, ended))
    : conclude(run, message, outcomes);
}

/** Makes every call of a message and gives one outcome for each, in call order, whatever happens. */
function makeCalls(
  run: LoopRun,
  { finishReason, calls }: CallingMessage,
): readonly CallOutcome[] | Promise<readonly CallOutcome[]> {
  if (finishReason === 'length' || finishReason === 'content_filter')
    return answerTruncated(run, calls, finishReason);
  const { config, tools, sink } = run;
  const scope = new HistoryScope(run.scope, run.messages);
  const make = (call: ParsedCall): CallOutcome | Promise<CallOutcome> => {
    if (call.record !== undefined) return call.record;
    return sink === undefined ? makeCall(run, scope, call) : watchCall(run, sink, call);
  };
  const [only] = calls;
  if (only !== undefined && calls.length === 1) {
    const outcome = make(only);
    return outcome instanceof Promise ? outcome.then(listOfOne) : [outcome];
  }
  return runInOrder({
    tasks: calls,
    run: make,
    isSequential: ({ name }) => tools.offered(name)?.sequential ?? false,
    maxConcurrency: Math.max(1, config.maxConcurrency ?? Number.POSITIVE_INFINITY),
    hold: (call) => call.record ?? { call },
    isOpen: isUnanswered,
  });
}

function listOfOne<Item>(item: Item): readonly Item[] {
  return [item];
}

/** Answers the calls of a reply that was cut off: none of them can be trusted. */
async function answerTruncated(
  { sink }: LoopRun,
  calls: readonly ParsedCall[],
  finishReason: string,
): Promise<readonly CallRecord[]> {
  const records = calls.map((call) => {
    const message = `The reply was cut off (${finishReason}), so the call of '${call.name}' was not run. Send it again, shorter.`;
    const error = new ToolwrightError('ReplyTruncated', message);
    return notRun(call, 'not_run', errorResult(message).withError(error));
  });
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
  const outcome = await makeCall(run, new HistoryScope(scope, messages, onUpdate), call);
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

function makeCall(run: LoopRun, scope: CallScope, call: ParsedCall): CallOutcome | Promise<CallOutcome> {
  if (scope.signal?.aborted) return abortedCall(call);
  const { invoke, retries, synchronous } = run;
  const attempt = retries.attempt(call.name);
  // A tool that answers at once cannot have waited for a run of its own, and watching costs more than a small one.
  const inner = synchronous.has(call.name) ? undefined : new InnerRuns();
  const made = inner ? innerRuns.run(inner, invoke, call, scope, attempt) : invoke(call, scope, attempt);
  if (made instanceof Promise) {
    synchronous.delete(call.name);
    return made.then((invocation) => outcomeOf(call, invocation, inner));
  }
  if (inner !== undefined) synchronous.add(call.name);
  return outcomeOf(call, made, inner);
}

function outcomeOf(call: ParsedCall, invocation: Invocation, inner: InnerRuns | undefined): CallOutcome {
  if (invocation.status === 'suspended') return { call, suspension: invocation.suspension };
  const record = inner ? inner.judge(invocation.record) : invocation.record;
  return call.journal === undefined ? record : { ...record, ...givenAnswers(call) };
}

/** Who answered what the call waited for. */
function givenAnswers({ journal }: ParsedCall): Pick<CallRecord, 'answeredBy' | 'answers'> {
  const { given = [] } = journal ?? {};
  return given.length === 0 ? {} : { answeredBy: given.at(-1)?.answeredBy, answers: given };
}

/** Answers the calls, or suspends the run until those can be answered that wait. */
function conclude(
  run: LoopRun,
  message: CallingMessage,
  outcomes: readonly CallOutcome[],
): LoopEnd | undefined | Promise<LoopEnd | undefined> {
  if (!outcomes.some(isUnanswered)) return answer(run, outcomes as readonly CallRecord[]);
  const closed = closedCall(run, outcomes);
  const end = closed === undefined ? suspended(run, message, outcomes) : undefined;
  return end ?? answerForUnanswered(run, outcomes, closed ?? notKept);
}

/** Adds the answers to the history. */
function answer(run: LoopRun, records: readonly CallRecord[]): LoopEnd | undefined {
  const { messages, toolCalls, retries, guard, signal } = run;
  const verdict = guard?.watch(records);
  // Looking up an id reads all of it, and there is nearly never a note.
  const notes = verdict?.notes.size ? verdict.notes : undefined;
  for (const record of records) {
    const note = notes?.get(record.id);
    messages.push(toolMessage(record.id, record.result, ignoredText(record), note));
    toolCalls.push(record);
  }
  if (signal?.aborted) return abortedRun(signal);
  const error = retries.spend(records) ?? verdict?.error;
  return error === undefined ? directAnswer(run, records) : { status: 'failed', error };
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
  { signal, retries }: LoopRun,
  outcomes: readonly CallOutcome[],
): ((call: ParsedCall) => CallRecord) | undefined {
  if (signal?.aborted) return abortedCall;
  const error = retries.foresee(recordsAmong(outcomes));
  if (error === undefined) return undefined;
  return (call) => notRun(call, 'not_run', errorResult(`The run failed: ${error.message}`).withError(error));
}

/** `undefined` where the run cannot be kept; then the history is as it was. */
function suspended(
  run: LoopRun,
  { reply: { content, reasoning, providerItems }, calls }: CallingMessage,
  outcomes: readonly CallOutcome[],
): LoopEnd | undefined {
  const { messages, toolCalls } = run;
  // The history of a suspended run ends before the message that is not answered yet.
  const open = messages.splice(-1);
  const stored = outcomes.map((outcome, index) => storedCall(outcome, calls[index] as ParsedCall));
  const kept = { ...(reasoning ? { reasoning } : {}), ...(providerItems ? { providerItems } : {}) };
  const state = suspendRun(run, { content, calls: stored, ...kept });
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
    const record = isUnanswered(outcome) ? answerFor(outcome.call) : outcome;
    records.push(record);
    if (!isUnanswered(outcome)) continue;
    if (outcome.suspension === undefined) await tellStart(sink, record);
    await tellEnd(sink, record);
  }
  return answer(run, records);
}

/** What the model may try in another way: it is told. */
function notKept(call: ParsedCall): CallRecord {
  const message = `The call of '${call.name}' waits for an answer, and the run cannot be kept until then: it cannot be written as JSON. It was not run.`;
  return notRun(call, 'refused', failedResult('NotExecutableHere', message));
}

/** The record of a call that an abort of the run left open. */
function abortedCall(call: ParsedCall): CallRecord {
  return notRun(call, 'aborted', abortedResult(call.name));
}

/** The record of a call that was answered without being made. */
function notRun(call: ParsedCall, status: CallRecord['status'], result: ToolResult): CallRecord {
  return {
    ...callRecord({ request: call, attempt: 0, since: 0 }, { status, result }),
    ...givenAnswers(call),
  };
}

/** A run's scope with the history up to now, which is copied only when a tool asks for it. */
class HistoryScope implements CallScope {
  readonly channel: CallScope['channel'];
  readonly chatId: CallScope['chatId'];
  readonly conversationId: CallScope['conversationId'];
  readonly signal: CallScope['signal'];
  readonly data: CallScope['data'];
  readonly container: CallScope['container'];
  readonly onUpdate: CallScope['onUpdate'];
  readonly onLog: CallScope['onLog'];
  readonly #history: readonly Message[];
  readonly #length: number;
  #messages: readonly Message[] | undefined;

  /** `history` only grows, so that its length says what it was. */
  constructor(
    scope: CallScope,
    history: readonly Message[],
    onUpdate: UpdateListener | undefined = scope.onUpdate,
  ) {
    this.channel = scope.channel;
    this.chatId = scope.chatId;
    this.conversationId = scope.conversationId;
    this.signal = scope.signal;
    this.data = scope.data;
    this.container = scope.container;
    this.onUpdate = onUpdate;
    this.onLog = scope.onLog;
    this.#history = history;
    this.#length = history.length;
  }

  get messages(): readonly Message[] {
    this.#messages ??= Object.freeze(this.#history.slice(0, this.#length));
    return this.#messages;
  }
}

const innerRuns = new AsyncLocalStorage<InnerRuns>();

/**
 * The runs that the tool of one call began inside it (a sub-agent) and that are suspended. Nobody would hear of
 * their pending calls, so the call is an error that names the inner tool. A later issue may surface their
 * `pending` from here.
 */
class InnerRuns {
  #suspended: Map<string, RunState> | undefined;

  /** What came of the call; an error where it left a run suspended. */
  judge(record: CallRecord): CallRecord {
    const { left } = this;
    if (left === undefined || record.status === 'started') return record;
    return { ...record, status: 'error', result: leftSuspended(record.name, left) };
  }

  /** The first of the runs that are suspended. */
  get left(): RunState | undefined {
    const [left] = this.#suspended?.values() ?? [];
    return left;
  }

  note(state: RunState | undefined, runId: string | undefined): void {
    this.#suspended ??= new Map();
    if (state !== undefined) this.#suspended.set(state.runId, state);
    else if (runId !== undefined) this.#suspended.delete(runId);
  }
}

/** Notes where a run stands, in case it began inside a tool of another one. */
export function noteInnerRun(state: RunState | undefined, runId: string | undefined): void {
  if (state !== undefined || runId !== undefined) innerRuns.getStore()?.note(state, runId);
}

/** The same for work that outlives its call: what it completes with. */
export function judgeCompletion(tool: string, result: ToolResult): ToolResult {
  const left = innerRuns.getStore()?.left;
  return left === undefined ? result : leftSuspended(tool, left);
}

function leftSuspended(tool: string, { pending }: RunState): ToolResult {
  const tools = [...new Set(pending.map((call) => `'${call.tool}'`))].join(', ');
  const message = `The tool '${tool}' ran a model of its own, and that run waits for an answer about ${tools}. Nobody can give it from here; it was not done.`;
  return failedResult('NotExecutableHere', message);
}
