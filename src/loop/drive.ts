import type { LLMResponse } from '../contract/llm-provider.js';
import type { RunState } from '../contract/run-state.js';
import type { RequestTrace } from '../contract/telemetry.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { onAbort } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { answerCalls } from './answer-calls.js';
import { askAgain } from './ask-again.js';
import { askModel, detectCalls, type Failure, numberCalls, type Reply } from './ask-model.js';
import { assistantMessage, parseCall } from './assistant-message.js';
import { beginRun } from './begin-run.js';
import { suspendedForBudget, takeGrant, withoutQuestion } from './budget-question.js';
import { resolveCalls } from './deferred-calls.js';
import type { LoopEvent, ToolLoopResult } from './events.js';
import { answerFromText, endWithAnswer } from './final-answer.js';
import { noteInnerRun } from './inner-runs.js';
import {
  abortedRun,
  addUsage,
  endRun,
  type LoopEnd,
  type LoopRun,
  type LostRun,
  type RunStart,
  type RunSurroundings,
  targetOf,
  watchedRun,
} from './loop-run.js';
import { type ResumeConfig, type ToolLoopConfig } from './options.js';
import { buildRequest, type Offer, prepareRequest } from './request.js';
import { restoredCall, restoredRecord, suspendRun } from './suspend.js';
import { askWithin, driveTraced, requestEnd, traceOfRequest } from './trace-run.js';

/** The one loop: ask, run the calls, answer them, ask again. */
export async function driveLoop(
  config: ResumeConfig,
  start: RunStart,
  surroundings: RunSurroundings,
): Promise<ToolLoopResult> {
  let run = surroundings.run ?? beginRun(config, start, surroundings);
  const { watcher } = run.tools;
  if (watcher !== undefined && surroundings.run === undefined) run = watchedRun(run, watcher);
  const { sink, resumed, keeper, trace } = run;
  if (trace !== undefined && surroundings.run === undefined)
    return driveTraced(run, trace, () => driveLoop(config, start, { ...surroundings, run }));
  if ('lost' in start) replaySteps(run, start.lost);
  if (keeper !== undefined) await keeper.begin(run);
  await sink?.({ type: 'run-start' });
  const resumedEnd = resumed?.open && (await resumeCalls(run, resumed.open, resumed.pending));
  const end =
    resumedEnd ?? (await (run.signal === undefined ? iterate(run) : iterateListening(run, run.signal)));
  if (run.budget !== undefined) await run.budget.close();
  const result = endRun(run, end);
  if (result.state !== undefined || resumed !== undefined) noteInnerRun(result, resumed?.runId);
  let kept = result;
  if (keeper !== undefined) kept = await keeper.end(run, result);
  else if (result.state !== undefined)
    kept = await keepRun(result, result.state, surroundings.keep ?? config.store);
  await sink?.({ type: 'run-end', result: kept });
  return kept;
}

/** Guard, retries and budget have seen what was answered before the run was lost. */
function replaySteps({ guard, retries, budget, tools }: LoopRun, { steps, uncounted }: LostRun): void {
  budget?.countSettled([...uncounted.values()], (name) => tools.offered(name));
  for (const step of steps) {
    const records = step.map(restoredRecord);
    guard?.watch(records);
    retries.spend(records);
  }
}

/** Asks until the run ends. Its signal is listened to once for all: signals take long to add a listener. */
async function iterateListening(run: LoopRun, signal: AbortSignal): Promise<LoopEnd> {
  const unfollow = onAbort(signal, () => {});
  try {
    return await iterate(run);
  } finally {
    unfollow();
  }
}

/** Asks until the run ends. A run that nobody watches, and whose tools are synchronous, awaits the model only. */
async function iterate(run: LoopRun): Promise<LoopEnd> {
  const { maxIterations, config, tools, sink, signal } = run;
  const { detector } = config;
  while (run.iterations < maxIterations) {
    const asked = await ask(run);
    const reply = detector === undefined ? asked : detectCalls(asked, { detector, tools });
    if (!reply.ok) return endWithoutReply(run, reply);
    const { response } = reply;
    const { toolCalls } = response;
    addUsage(run, response.usage);
    // Most who watch need not be waited for.
    const heard = sink?.(endedReply(run, response));
    if (heard !== undefined) await heard;
    let end: LoopEnd | undefined;
    if (toolCalls.length === 0) {
      const answer = answeredInText(run, response);
      end = answer instanceof Promise ? await answer : answer;
    } else {
      const { runId, iterations: step } = run;
      const parsed = numberCalls(toolCalls, run).map((call, index) =>
        parseCall(call, { runId, step, index }),
      );
      const meant = run.offer?.hasOurs ? await resolveCalls(run, parsed) : parsed;
      const calls = run.output === undefined ? meant : await run.output.answered(meant);
      const answering = answerCalls(run, { reply: response, calls, finishReason: response.finishReason });
      end =
        (answering instanceof Promise ? await answering : answering) ??
        (run.output && endWithAnswer(run, calls.length)) ??
        run.budget?.ended;
      run.isAskedAgain = false;
    }
    run.onStep?.(run, end);
    const heardEnd = sink?.(endedStep(run, response));
    if (heardEnd !== undefined) await heardEnd;
    if (end !== undefined) return end;
  }
  return signal?.aborted ? abortedRun(signal) : atLimit(run);
}

/** The message at which the run was suspended: its calls, unless some are still to be answered. */
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
      'The run was not resumed; its answers cannot be kept as JSON.',
    );
  }
  const { runId, iterations: step } = run;
  // A question of the run's budget stands behind the calls.
  const last = open.calls.at(-1);
  const hasQuestion = last?.status === 'waiting' && last.asks !== undefined;
  if (hasQuestion) await takeGrant(run, open.calls);
  if (hasQuestion && open.calls.length === 1) return run.budget?.ended;
  const stored = hasQuestion ? withoutQuestion(open.calls) : open.calls;
  const calls = stored.map((call, index) => restoredCall(call, { runId, step, index }));
  const answered = await answerCalls(run, { reply: open, calls, finishReason: 'tool_calls' });
  const end = answered ?? (run.output && endWithAnswer(run, calls.length)) ?? run.budget?.ended;
  run.onStep?.(run, end);
  return end;
}

/** The model has said its last word, unless it has said nothing at all: then it is asked once more. */
function answeredInText(
  run: LoopRun,
  response: LLMResponse,
): LoopEnd | undefined | Promise<LoopEnd | undefined> {
  const { content, finishReason } = response;
  if (content.trim() !== '' || hasSpoken(run)) {
    run.messages.push(assistantMessage(response, []));
    return run.output === undefined
      ? { status: 'completed', content }
      : answerFromText(run, run.output, content);
  }
  if (!run.isAskedAgain && run.iterations < run.maxIterations) {
    run.isAskedAgain = true;
    return undefined;
  }
  const message = `The model replied with neither text nor calls (finish reason: ${finishReason}).`;
  return { status: 'failed', error: new ToolwrightError('EmptyReply', message) };
}

/** Whether a tool of the run has given the user an answer already. */
function hasSpoken({ toolCalls, tools }: LoopRun): boolean {
  return toolCalls.some(({ name, status, result }) => {
    const isTold = Boolean(result.forUser) && !result.silent;
    return isTold || (status === 'success' && tools.offered(name)?.returnDirect);
  });
}

const ABORTED: Reply = { ok: false, reason: 'aborted' };

/** Asks the model once: what the request is made with, the request, its reply. */
function ask(run: LoopRun, offer = WITH_TOOLS): Promise<Reply> {
  const { config, sink, signal } = run;
  if (signal?.aborted) return Promise.resolve(ABORTED);
  return sink === undefined && !isPrepared(config) ? send(run, offer) : prepareAndSend(run, offer);
}

function isPrepared({ prepareStep, compactHistory }: ToolLoopConfig): boolean {
  return prepareStep !== undefined || compactHistory !== undefined;
}

async function prepareAndSend(run: LoopRun, offer: Offer): Promise<Reply> {
  const { config, sink, signal } = run;
  const heard = sink?.({ type: 'step-start', iteration: run.iterations + 1 });
  if (heard !== undefined) await heard;
  // The reader may have aborted the run on hearing that; then nothing is asked.
  if (signal?.aborted) return ABORTED;
  const settings = isPrepared(config) ? await prepareRequest(run) : undefined;
  if (signal?.aborted) return ABORTED;
  // A promise that is returned takes longer to arrive than one that is awaited.
  return await send(run, settings === undefined ? offer : { ...offer, settings });
}

function send(run: LoopRun, offer: Offer): Promise<Reply> {
  run.iterations += 1;
  const { sink, hasReader } = run;
  const onPart = sink !== undefined && hasReader?.() !== false ? sink : undefined;
  const asked = { provider: targetOf(run).provider, request: buildRequest(run, offer), onPart };
  const trace = run.trace === undefined ? undefined : traceOfRequest(run, asked);
  const onFailure = (failure: Failure) => askAgain(run, { failure, offer, onPart, trace });
  if (trace !== undefined) return endRequest(trace, askWithin(run, trace, { ...asked, onFailure }));
  const { provider, request } = asked;
  return run.hooks?.ask(run, { ...asked, onFailure }) ?? askModel(provider, request, { onPart, onFailure });
}

async function endRequest(trace: RequestTrace, asking: Promise<Reply>): Promise<Reply> {
  const reply = await asking;
  trace.end(requestEnd(reply));
  return reply;
}

const WITH_TOOLS: Offer = { withTools: true };
const WITHOUT_TOOLS: Offer = { withTools: false };

async function endWithoutReply(run: LoopRun, reply: Extract<Reply, { ok: false }>): Promise<LoopEnd> {
  if (reply.reason === 'aborted') return abortedRun(run.signal, reply.streamed);
  const { error } = reply;
  if (error.name !== 'BudgetSpent') return { status: 'failed', error };
  return (await suspendedForBudget(run)) ?? { status: 'budget', error };
}

async function atLimit(run: LoopRun): Promise<LoopEnd> {
  const { config, iterations, maxIterations, sink } = run;
  const message =
    maxIterations === 0
      ? 'The run made no request: maxIterations is 0.'
      : `The run made ${iterations} requests and the model still wanted tools (maxIterations: ${maxIterations}).`;
  const error = new ToolwrightError('ToolLoopLimitReached', message);
  if (config.onLimit === 'throw') throw error;
  if (config.onLimit !== 'answer' || maxIterations === 0) return { status: 'limit', error };
  const reply = await ask(run, WITHOUT_TOOLS);
  if (!reply.ok) return endWithoutReply(run, reply);
  const { response } = reply;
  const { content } = response;
  addUsage(run, response.usage);
  await sink?.(endedReply(run, response));
  // Calls that come although none were offered are left out, and what the provider keeps of them: nobody answers them.
  const { providerItems: _, ...spoken } = response;
  run.messages.push(assistantMessage(response.toolCalls.length > 0 ? spoken : response, []));
  const end = { status: 'limit', content, error } as const;
  run.onStep?.(run, end);
  await sink?.(endedStep(run, response));
  return end;
}

/** The calls of a reply are answered, and so much is spent by then. */
function endedStep(run: LoopRun, response: LLMResponse): LoopEvent {
  const event = replyEvent('step-end', run, response);
  return run.budget === undefined ? event : ({ ...event, spent: run.budget.spending } as LoopEvent);
}

/** The reply is there, and what hooks did about its request. */
function endedReply(run: LoopRun, response: LLMResponse): LoopEvent {
  const event = replyEvent('reply-end', run, response);
  const notes = run.hooks?.takeNotes() ?? [];
  return notes.length === 0 ? event : ({ ...event, hooks: notes } as LoopEvent);
}

/** What came of a reply, when it is there and when its calls are answered. */
function replyEvent(
  type: 'reply-end' | 'step-end',
  { iterations: iteration }: LoopRun,
  { finishReason, rawFinishReason, usage }: LLMResponse,
): LoopEvent {
  const ended = { type, iteration, finishReason, usage };
  return rawFinishReason === undefined ? ended : { ...ended, rawFinishReason };
}

/** Keeps a suspended run in the store. A store that fails ends the run; its state is still in the result. */
async function keepRun(
  result: ToolLoopResult,
  state: RunState,
  store: RunSurroundings['keep'],
): Promise<ToolLoopResult> {
  try {
    await store?.save(state);
    return result;
  } catch (cause) {
    const message = `The suspended run could not be kept: ${errorMessage(cause)}`;
    return { ...result, status: 'failed', error: new ToolwrightError('RunStoreFailed', message, { cause }) };
  }
}
