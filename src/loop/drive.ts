import { jobsOf } from '../call/job-dispatch.js';
import { type InvokeOptions, type Invoker, ToolRegistry } from '../call/tool-registry.js';
import type { LLMResponse } from '../contract/llm-provider.js';
import type { RunState } from '../contract/run-state.js';
import type { RequestTrace } from '../contract/telemetry.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { anySignal } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { hasTextTools } from '../text/with-text-tools.js';
import { answerCalls } from './answer-calls.js';
import { askAgain } from './ask-again.js';
import { askModel, createCallNumberer, detectCalls, type Failure, type Reply } from './ask-model.js';
import { assistantMessage, parseCall } from './assistant-message.js';
import { suspendedForBudget, takeGrant, withoutQuestion } from './budget-question.js';
import { BudgetedRequests } from './budgeted-requests.js';
import { resolveCalls } from './deferred-calls.js';
import type { LoopEvent, ToolLoopResult } from './events.js';
import { answerFromText, endWithAnswer, FinalAnswer } from './final-answer.js';
import { givenHistory } from './given-history.js';
import { LoopGuard, RetryBudget } from './guard.js';
import { innerWaits, judgeCompletion, noteInnerRun } from './inner-runs.js';
import { keepingOf } from './kept-results.js';
import {
  abortedRun,
  addUsage,
  endRun,
  type LoopEnd,
  type LoopRun,
  type LostRun,
  NO_USAGE,
  type RunProgress,
  type RunStart,
  type RunSurroundings,
  targetOf,
  watchedRun,
} from './loop-run.js';
import { onlyKnown } from './offered-tools.js';
import { type ResumeConfig, type ToolLoopConfig, withModel } from './options.js';
import { buildRequest, type Offer, prepareRequest } from './request.js';
import { RequestHooks } from './request-hooks.js';
import { budgetOf, type RunBudget, surroundingBudget } from './run-budget.js';
import { ownerOf } from './run-owner.js';
import { SentMessages } from './sent-messages.js';
import { standingLookup } from './standing-approvals.js';
import { restoredCall, restoredRecord, suspendRun } from './suspend.js';
import { askWithin, driveTraced, requestEnd, traceOfRequest, traceOfRun } from './trace-run.js';

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
  const end = resumedEnd ?? (await iterate(run));
  if (run.budget !== undefined) await run.budget.close();
  const result = endRun(run, end);
  noteInnerRun(result, resumed?.runId);
  const kept = keeper
    ? await keeper.end(run, result)
    : await keepRun(result, surroundings.keep ?? config.store);
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
    if (sink !== undefined) await sink(endedReply(run, response));
    let end: LoopEnd | undefined;
    if (toolCalls.length === 0) {
      const answer = answeredInText(run, response);
      end = answer instanceof Promise ? await answer : answer;
    } else {
      const { runId, iterations: step } = run;
      const parsed = run.numberCalls(toolCalls).map((call, index) => parseCall(call, { runId, step, index }));
      const meant = run.offer?.hasOurs ? await resolveCalls(run, parsed) : parsed;
      const calls = run.output === undefined ? meant : await run.output.answered(meant);
      const answering = answerCalls(run, { reply: response, calls, finishReason: response.finishReason });
      end =
        (answering instanceof Promise ? await answering : answering) ??
        endWithAnswer(run, calls.length) ??
        run.budget?.ended;
      run.isAskedAgain = false;
    }
    run.onStep?.(run, end);
    if (sink !== undefined) await sink(endedStep(run, response));
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
  const asked = await takeGrant(run, open.calls);
  if (asked !== undefined && open.calls.length === 1) return run.budget?.ended;
  const calls = withoutQuestion(open.calls).map((call, index) => restoredCall(call, { runId, step, index }));
  const answered = await answerCalls(run, { reply: open, calls, finishReason: 'tool_calls' });
  const end = answered ?? endWithAnswer(run, calls.length) ?? run.budget?.ended;
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
  await sink?.({ type: 'step-start', iteration: run.iterations + 1 });
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

const DEFAULTS = { maxIterations: 20, maxTextIterations: 5, maxRetries: 2, toolTimeoutMs: 120_000 } as const;

/** What has not happened in a run that begins. */
const NOTHING_YET = {
  ...{ failedOver: 0, providerRetries: 0, isAnswerAsked: false, isAskedAgain: false },
  ...{ offer: undefined, sentFirst: undefined },
};

/** Prepares a run; throws only what the author did wrong. */
function beginRun(
  given: ResumeConfig,
  start: RunStart,
  { scope, sink, hasReader, onStep, keeper, onUnknown, turnOf }: RunSurroundings,
): LoopRun {
  const lost = 'lost' in start ? start.lost : undefined;
  const resumed = 'suspended' in start ? start.suspended : lost;
  const before = 'progress' in start ? start.progress : resumed;
  const config = withModel(given, before?.model);
  const messages =
    'messages' in start ? givenHistory(start.messages, config.logger) : [...(before?.messages ?? [])];
  const { tools: offered = [] } = config;
  const registry = offered instanceof ToolRegistry ? offered : new ToolRegistry().register(...offered);
  const tools = before?.tools === undefined ? registry : onlyKnown(registry, before.tools);
  const signal = anySignal(config.signal, scope.signal);
  const hooks = tools.hooks.length > 0 || config.hooks ? RequestHooks.among(tools, config) : undefined;
  const budget =
    config.budget || surroundingBudget.getStore() ? budgetOf(config, { scope, before }) : undefined;
  const runId = resumed?.runId ?? config.runId ?? crypto.randomUUID();
  const owner = ownerOf(scope);
  const standing = config.store && standingLookup(config.store, { runId, owner });
  const keeping = config.store && keepingOf(config, tools);
  const options = callOptionsOf(keeping ? { ...config, ...keeping } : config, tools, { standing, budget });
  const { telemetry = tools.telemetry } = config;
  const invoke = tools.invoker(keeper ? { ...options, recordsKeys: true, onUnknown } : options);
  return {
    config,
    runId,
    ...{ owner, turnOf: before?.turnOf ?? turnOf },
    tools,
    offered: before?.tools ?? [],
    ...keeping,
    signal,
    sink,
    hasReader,
    onStep,
    keeper,
    scope: { ...scope, signal },
    retries: new RetryBudget({
      maxRetries: config.maxRetries ?? DEFAULTS.maxRetries,
      find: (name) => tools.offered(name),
      spent: before?.retries,
    }),
    guard: config.loopGuard === false ? undefined : new LoopGuard(config.loopGuard, before?.guard),
    numberCalls: createCallNumberer(messages),
    maxIterations: config.maxIterations ?? defaultIterations(config),
    fallback: (config.fallback ?? []).map((next) => ('chat' in next ? { provider: next } : next)),
    ...NOTHING_YET,
    trace: telemetry && traceOfRun(telemetry, { runId, config, scope, before: before?.trace }),
    budget,
    hooks: budget === undefined ? hooks : new BudgetedRequests(budget, hooks),
    invoke: budget === undefined ? invoke : invokerWithin(budget, invoke),
    synchronous: new Set(),
    resumed,
    messages,
    sent: new SentMessages(messages, config.logger),
    ...countedBefore(before),
    output: config.output === undefined ? undefined : new FinalAnswer(config.output),
  };
}

/** What a run has done before it goes on. */
function countedBefore(
  before: RunProgress | LostRun | undefined,
): Pick<LoopRun, 'toolCalls' | 'iterations' | 'usage'> {
  if (before === undefined) return { toolCalls: [], iterations: 0, usage: NO_USAGE };
  const { toolCalls, iterations, usage } = before;
  return { toolCalls: toolCalls.map(restoredRecord), iterations, usage };
}

/** Runs that a call begins spend from the budget of the run that makes it. */
function invokerWithin(budget: RunBudget, invoke: Invoker): Invoker {
  return (call, scope, attempt) => budget.within(() => invoke(call, scope, attempt));
}

/** Models without native calls get fewer requests. */
function defaultIterations({ provider }: ToolLoopConfig): number {
  return hasTextTools(provider) ? DEFAULTS.maxTextIterations : DEFAULTS.maxIterations;
}

/** Only what the run says: what it leaves out is the registry's. */
function callOptionsOf(
  config: ToolLoopConfig,
  tools: ToolRegistry,
  { standing, budget }: Pick<InvokeOptions, 'standing'> & { readonly budget: RunBudget | undefined },
): InvokeOptions {
  const hooks = budget === undefined ? config.hooks : [...(config.hooks ?? []), budget.hook];
  const { onAsyncResult, tasks, logger, policy, maxResultChars, engine, store, telemetry } = config;
  const { answerWithinMs } = config;
  const toolTimeoutMs = config.toolTimeoutMs ?? tools.toolTimeoutMs ?? DEFAULTS.toolTimeoutMs;
  const isPlain = !(onAsyncResult || tasks || logger || policy || hooks || engine || telemetry);
  const isUnlimited = answerWithinMs === undefined && maxResultChars === undefined;
  if (isPlain && isUnlimited && standing === undefined) return { toolTimeoutMs, innerWaits };
  return {
    toolTimeoutMs,
    innerWaits,
    ...(onAsyncResult ? { onAsyncResult, judgeCompletion } : {}),
    ...(tasks ? { tasks } : {}),
    ...(logger ? { logger } : {}),
    ...(telemetry ? { telemetry } : {}),
    ...(policy ? { policy } : {}),
    ...(hooks ? { hooks } : {}),
    ...(engine ? { jobs: jobsOf({ engine, store }, 'the loop’s config') } : {}),
    ...(maxResultChars === undefined ? {} : { maxResultChars }),
    ...(answerWithinMs === undefined ? {} : { answerWithinMs }),
    ...(standing === undefined ? {} : { standing }),
  };
}

/** Keeps a suspended run in the store. A store that fails ends the run; its state is still in the result. */
async function keepRun(result: ToolLoopResult, store: RunSurroundings['keep']): Promise<ToolLoopResult> {
  if (store === undefined || result.state === undefined) return result;
  try {
    await store.save(result.state);
    return result;
  } catch (cause) {
    const message = `The suspended run could not be kept: ${errorMessage(cause)}`;
    return { ...result, status: 'failed', error: new ToolwrightError('RunStoreFailed', message, { cause }) };
  }
}
