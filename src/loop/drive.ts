import { logFailure } from '../call/failure-log.js';
import type { InvokeOptions, Invoker } from '../call/invocation.js';
import { jobsOf } from '../call/job-dispatch.js';
import { registryOf, ToolRegistry } from '../call/tool-registry.js';
import type { LLMResponse } from '../contract/llm-provider.js';
import type { RunState } from '../contract/run-state.js';
import { InvalidOptionsError } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { anySignal, onAbort } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { TEXT_TOOLS } from '../text/with-text-tools.js';
import { answerCalls } from './answer-calls.js';
import { hooksAround } from './around-requests.js';
import { detectCalls, numberCalls, type Reply } from './ask-model.js';
import { suspendedForBudget, takeGrant, withoutQuestion } from './budget-question.js';
import { resolveCalls } from './deferred-calls.js';
import type { LoopEvent, ToolLoopResult } from './events.js';
import { answerFromText, endWithAnswer, FinalAnswer } from './final-answer.js';
import { givenHistory } from './given-history.js';
import { LoopGuard, RetryBudget } from './guard.js';
import { innerRuns, innerWaits, judgeCompletion } from './inner-runs.js';
import { keepingOf } from './kept-results.js';
import {
  abortedRun,
  addUsage,
  endRun,
  type LoopEnd,
  type LoopRun,
  type LostRun,
  NO_USAGE,
  type RunStart,
  type RunSurroundings,
  watchedRun,
} from './loop-run.js';
import { assistantMessage, parseCall, SentMessages } from './messages.js';
import { onlyKnown } from './offered-tools.js';
import type { ProviderTarget, ResumeConfig, ToolLoopConfig } from './options.js';
import { requestReply } from './request.js';
import { budgetOf, type RunBudget } from './run-budget.js';
import { ownerOfRun } from './run-owner.js';
import { standingLookup } from './standing-approvals.js';
import { restoredCall, restoredRecord, suspendRun } from './suspend.js';
import { driveTraced, traceOfRun } from './trace-run.js';

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
  if (result.state !== undefined || resumed !== undefined) innerRuns.getStore()?.note(result, resumed?.runId);
  let kept = result;
  if (keeper !== undefined) kept = await keeper.end(run, result);
  else if (result.state !== undefined)
    kept = await keepRun(result, result.state, surroundings.keep ?? config.store);
  if (kept.status === 'failed') logFailedRun(run, kept.error);
  await sink?.({ type: 'run-end', result: kept });
  return kept;
}

/** Whoever has the result may show its user nothing of why. */
function logFailedRun({ config, runId, scope }: LoopRun, error: unknown): void {
  const { conversationId } = scope;
  const { model, logger } = config;
  const at = { runId, ...(conversationId === undefined ? {} : { conversationId }), model };
  logFailure(logger, { what: 'Run failed', error, at });
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
    const asked = await requestReply(run);
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
  const reply = await requestReply(run, { withTools: false });
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

const ITERATIONS = 20;
/** Models without native calls get fewer requests. */
const TEXT_ITERATIONS = 5;
const TOOL_TIMEOUT_MS = 120_000;

/**
 * Prepares a run; throws only what the author did wrong. No part of it is spread: it would be made key by key then, which
 * takes several times as long.
 */
function beginRun(given: ResumeConfig, start: RunStart, surroundings: RunSurroundings): LoopRun {
  const { scope, sink, hasReader, onStep, keeper, onUnknown, turnOf, followUntil, resultsOf } = surroundings;
  const lost = 'lost' in start ? start.lost : undefined;
  const resumed = 'suspended' in start ? start.suspended : lost;
  const before = 'progress' in start ? start.progress : resumed;
  const model = before?.model ?? given.model ?? missingModel();
  const tools = before?.tools ? onlyKnown(registryOf(given.tools), before.tools) : registryOf(given.tools);
  const config = withDefaults(given, model, tools);
  const messages =
    'messages' in start ? givenHistory(start.messages, config.logger) : [...(before?.messages ?? [])];
  const signal = scope.signal === undefined ? config.signal : anySignal(config.signal, scope.signal);
  const budget = budgetOf(config, { scope, before });
  const runId = resumed?.runId ?? config.runId ?? crypto.randomUUID();
  const owner = ownerOfRun(scope, 'messages' in start ? tools : undefined);
  const keeping = config.store && keepingOf(config, tools);
  const standing = config.store && standingLookup(config.store, { runId, owner });
  const options = callOptionsOf(keeping ? { ...config, ...keeping } : config, tools, { standing, budget });
  const { telemetry = tools.telemetry } = config;
  const invoke = tools.invoker(keeper ? { ...options, recordsKeys: true, onUnknown, followUntil } : options);
  return {
    config,
    runId,
    owner,
    turnOf: before?.turnOf ?? turnOf,
    tools,
    offered: before?.tools ?? NO_NAMES,
    results: keeping?.results,
    maxResultChars: keeping?.maxResultChars,
    resultsOf: resultsOf ?? runId,
    signal,
    sink,
    hasReader,
    onStep,
    keeper,
    scope: { ...scope, signal },
    retries: new RetryBudget({ maxRetries: config.maxRetries, tools, spent: before?.retries }),
    guard: config.loopGuard === false ? undefined : new LoopGuard(config.loopGuard, before?.guard),
    maxIterations: config.maxIterations ?? (TEXT_TOOLS in config.provider ? TEXT_ITERATIONS : ITERATIONS),
    fallback: config.fallback?.map((next) => ('chat' in next ? { provider: next } : next)) ?? NO_FALLBACK,
    failedOver: 0,
    providerRetries: 0,
    lastNumber: undefined,
    isAnswerAsked: false,
    isAskedAgain: false,
    offer: undefined,
    sentFirst: undefined,
    trace: telemetry && traceOfRun(telemetry, { runId, config, scope, before: before?.trace }),
    budget,
    hooks: tools.hooks.length > 0 || config.hooks || budget ? hooksAround(tools, config, budget) : undefined,
    invoke: budget === undefined ? invoke : invokerWithin(budget, invoke),
    synchronous: new Set(),
    resumed,
    messages,
    sent: new SentMessages(messages, config.logger),
    toolCalls: before?.toolCalls.map(restoredRecord) ?? [],
    iterations: before?.iterations ?? 0,
    usage: before?.usage ?? NO_USAGE,
    output: config.output === undefined ? undefined : new FinalAnswer(config.output),
  };
}

/** The config with the model that the run asks, and where it logs. */
function withDefaults(given: ResumeConfig, model: string, tools: ToolRegistry): ToolLoopConfig {
  const { logger = tools.logger } = given;
  const isReady = model === given.model && logger === given.logger;
  return (isReady ? given : { ...given, model, logger }) as ToolLoopConfig;
}

function missingModel(): never {
  throw new InvalidOptionsError([
    { where: 'the loop’s config', option: 'model', problem: 'model is missing', fix: "model: 'gpt-5', …" },
  ]);
}

const NO_NAMES: readonly string[] = [];
const NO_FALLBACK: readonly ProviderTarget[] = [];

/** Runs that a call begins spend from the budget of the run that makes it. */
function invokerWithin(budget: RunBudget, invoke: Invoker): Invoker {
  return (call, scope, attempt) => budget.within(() => invoke(call, scope, attempt));
}

/** What most runs say: always the same object, so that a registry makes one invoker for all of them. */
const PLAIN_OPTIONS: InvokeOptions = Object.freeze({ toolTimeoutMs: TOOL_TIMEOUT_MS, innerWaits });

/** Only what the run says: what it leaves out is the registry's. */
function callOptionsOf(
  config: ToolLoopConfig,
  tools: ToolRegistry,
  { standing, budget }: Pick<InvokeOptions, 'standing'> & { readonly budget: RunBudget | undefined },
): InvokeOptions {
  const hooks = budget === undefined ? config.hooks : [...(config.hooks ?? []), budget.hook];
  const { onAsyncResult, tasks, policy, maxResultChars, engine, store, telemetry } = config;
  const logger = config.logger === tools.logger ? undefined : config.logger;
  const { answerWithinMs } = config;
  const toolTimeoutMs = config.toolTimeoutMs ?? tools.toolTimeoutMs ?? TOOL_TIMEOUT_MS;
  const isPlain = !(onAsyncResult || tasks || logger || policy || hooks || engine || telemetry);
  const isUnlimited = answerWithinMs === undefined && maxResultChars === undefined;
  if (isPlain && isUnlimited && standing === undefined)
    return toolTimeoutMs === TOOL_TIMEOUT_MS ? PLAIN_OPTIONS : { toolTimeoutMs, innerWaits };
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
