import type { LLMResponse, ToolCall } from '../../core/contract/llm-provider.js';
import type { RunState } from '../../core/contract/run-state.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import { refusedBegin } from '../../core/errors/store-checks.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { anySignal, onAbort } from '../../core/kernel/async.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { logFailure } from '../call/failure-log.js';
import type { InvokeOptions, MaybeLater } from '../call/invocation.js';
import { jobsOf } from '../call/job-dispatch.js';
import { registryOf, type ToolRegistry } from '../call/tool-registry.js';
import { TEXT_TOOLS } from '../text/text-tool-calls.js';
import { acceptCalls, answerOrSuspend, makeCalls } from './answer-calls.js';
import { detectCalls, numberCalls, type Reply } from './ask-model.js';
import { suspendedForBudget, takeGrant } from './budget-question.js';
import { childRuns, childWaits, finalizeCompletion } from './child-runs.js';
import type { LoopEnd, LoopEvent, ToolLoopResult } from './events.js';
import { FinalAnswer } from './final-answer.js';
import { givenHistory } from './given-history.js';
import { LoopGuard, RetryBudget } from './guard.js';
import {
  abortedRun,
  addUsage,
  endRun,
  type LoopRun,
  NO_USAGE,
  type RunDeps,
  type RunRecord,
  type RunStart,
  type RunWatcher,
} from './loop-run.js';
import { callLoopTools, resultStoreOf } from './loop-tools.js';
import { assistantMessage, type ParsedCall, parseCall, SentMessages, sharedMessages } from './messages.js';
import { OfferedTools, onlyKnown } from './offered-tools.js';
import type { ResumeConfig, ToolLoopConfig } from './options.js';
import { driveTraced, RequestHooks, requestReply, traceOfRun } from './request.js';
import { budgetOf } from './run-budget.js';
import { storeFailed, wrongConfig } from './run-errors.js';
import { ownerOfRun } from './run-owner.js';
import { standingLookup } from './standing-approvals.js';
import { restoredCall, restoredRecord, suspendRun } from './suspend.js';

/** The loop: send a request, execute the calls, answer them, send the next request. */
export function driveLoop(config: ResumeConfig, start: RunStart, deps: RunDeps): Promise<ToolLoopResult> {
  const begun = beginRun(config, start, deps);
  const { watcher } = begun.tools;
  const run =
    watcher !== undefined && 'aroundRun' in watcher ? watchedRun(begun, watcher as RunWatcher) : begun;
  const { trace } = run;
  return trace === undefined ? driveBegun(run, deps) : driveTraced(run, trace, () => driveBegun(run, deps));
}

async function driveBegun(run: LoopRun, deps: RunDeps): Promise<ToolLoopResult> {
  const { sink, record, checkpointer, signal, config } = run;
  if (record?.steps !== undefined) replaySteps(run, record);
  if (checkpointer !== undefined) await checkpointer.begin(run);
  else if (record === undefined && deps.save === undefined && config.runId !== undefined)
    if (await config.store?.load(config.runId)) throw refusedBegin(config.runId);
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
  if (run.budget !== undefined) await run.budget.close();
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
        error: storeFailed('The suspended run could not be kept', cause),
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

/** Adds the watcher of the run to its own sink. A watcher alone does not cause streaming. */
function watchedRun(run: LoopRun, watcher: RunWatcher): LoopRun {
  const { sink, hasReader } = run;
  const watch = watcher.aroundRun(run);
  return {
    ...run,
    hasReader: hasReader ?? (() => sink !== undefined),
    sink: (event) => {
      watch(event);
      return sink?.(event);
    },
  };
}

/** Applies the stored steps to guard, retries and budget after a crash. */
function replaySteps(
  { guard, retries, budget, tools }: LoopRun,
  { steps = [], uncounted = new Map() }: RunRecord,
): void {
  budget?.countSettled([...uncounted.values()], (name) => tools.offered(name));
  for (const step of steps) {
    const records = step.map(restoredRecord);
    guard?.watch(records);
    retries.spend(records);
  }
}

/** Sends requests until the run ends. A run without a sink and with synchronous tools awaits only the model. */
async function iterate(run: LoopRun): Promise<LoopEnd> {
  const { maxIterations, config, tools, sink, signal } = run;
  const { detector } = config;
  while (run.iterations < maxIterations) {
    const asked = await requestReply(run);
    const reply = detector === undefined ? asked : detectCalls(asked, { detector, tools });
    if (!reply.ok) return endWithoutReply(run, reply);
    const { response } = reply;
    addUsage(run, response.usage);
    // Most sinks are synchronous.
    const taken = sink?.(endedReply(run, response));
    if (taken !== undefined) await taken;
    let ending: MaybeLater<LoopEnd | undefined>;
    if (response.toolCalls.length === 0) ending = answeredInText(run, response);
    else {
      run.isAskedAgain = false;
      const { toolCalls, finishReason } = response;
      let calls = parseCalls(run, numberCalls(toolCalls, run));
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
  return signal?.aborted ? abortedRun(signal) : atLimit(run);
}

function parseCalls({ runId, iterations: step }: LoopRun, sent: readonly ToolCall[]): readonly ParsedCall[] {
  const calls: ParsedCall[] = [];
  for (const call of sent) calls.push(parseCall(call, { runId, step, index: calls.length }));
  return calls;
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
      'The run was not resumed; its answers cannot be kept as JSON.',
    );
  }
  const { runId, iterations: step } = run;
  const stored = await takeGrant(run, open.calls);
  if (stored.length === 0) return run.budget?.ended;
  const calls = stored.map((call, index) => restoredCall(call, { runId, step, index }));
  const message = acceptCalls(run, { reply: open, calls, finishReason: 'tool_calls' });
  await makeCalls(run, message);
  const end = (await answerOrSuspend(run, message)) ?? endOfOneCall(run);
  run.onStep?.(run, end);
  return end;
}

/** A run of one call ends with it, and asks no model. */
function endOfOneCall({ record, toolCalls: [call] }: LoopRun): LoopEnd | undefined {
  if (!record?.isOneCall) return undefined;
  const error = call && mcpErrorOf(call.result);
  return { status: error ? 'failed' : 'completed', ...(error && { error }) };
}

/** The error of MCP that a tool has thrown instead of a result; known by its name, as a worker may lack the SDK. */
export function mcpErrorOf({ error }: ToolResult): Error | undefined {
  return [error, Object(error).cause].find((one) => Object(one).name === 'ProtocolError');
}

/** A reply without calls ends the run. If it is empty, the model is asked again once. */
function answeredInText(run: LoopRun, response: LLMResponse): MaybeLater<LoopEnd | undefined> {
  const { content, finishReason } = response;
  if (content.trim() !== '' || hasSpoken(run)) {
    run.messages.push(assistantMessage(response, []));
    return run.output === undefined ? { status: 'completed', content } : run.output.endWithText(run, content);
  }
  if (!run.isAskedAgain && run.iterations < run.maxIterations) {
    run.isAskedAgain = true;
    return undefined;
  }
  const message = `The model replied with neither text nor calls (finish reason: ${finishReason}).`;
  return { status: 'failed', error: new ToolwrightError('EmptyReply', message) };
}

function hasSpoken({ toolCalls, tools }: LoopRun): boolean {
  return toolCalls.some(({ name, status, result }) => {
    const isShown = Boolean(result.forUser) && !result.silent;
    return isShown || (status === 'success' && tools.offered(name)?.returnDirect);
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
  const reply = await requestReply(run, false);
  if (!reply.ok) return endWithoutReply(run, reply);
  const { response } = reply;
  const { content } = response;
  addUsage(run, response.usage);
  await sink?.(endedReply(run, response));
  // Calls that arrive although none were offered are dropped, with the provider's items of them, because they are not
  // answered.
  const { providerItems: _, ...spoken } = response;
  run.messages.push(assistantMessage(response.toolCalls.length > 0 ? spoken : response, []));
  const end = { status: 'limit', content, error } as const;
  run.onStep?.(run, end);
  await sink?.(endedStep(run, response));
  return end;
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
  const tools = onlyKnown(registryOf(given.tools), record?.tools);
  const { logger = tools.logger } = given;
  const isReady = model === given.model && logger === given.logger;
  const config = (isReady ? given : { ...given, model, logger }) as ToolLoopConfig;
  const messages = isNew ? givenHistory(start, logger) : [...start.record.messages];
  const signal = scope.signal === undefined ? config.signal : anySignal(config.signal, scope.signal);
  const budget = budgetOf(config, { scope, parent: childRuns.getStore()?.run.budget, before: record });
  const runId = record?.runId ?? config.runId ?? crypto.randomUUID();
  const owner = ownerOfRun(scope, isNew ? tools : undefined);
  const storing = config.store && resultStoreOf(config, tools);
  const { maxResultChars } = storing ?? config;
  const options = callOptionsOf(config, tools, { runId, owner, budget, maxResultChars });
  const ofCalls = checkpointer ? { ...options, recordsKeys: true, onUnknown, followUntil } : options;
  return {
    config,
    runId,
    owner,
    turnOf: record?.turnOf ?? turnOf,
    tools,
    results: storing?.results,
    maxResultChars: storing?.maxResultChars,
    resultsOf: resultsOf ?? runId,
    signal,
    sink,
    hasReader,
    onStep,
    checkpointer,
    scope: { ...scope, signal },
    retries: new RetryBudget({ maxRetries: config.maxRetries, tools, spent: record?.retries }),
    guard: config.loopGuard === false ? undefined : new LoopGuard(config.loopGuard, record?.guard),
    maxIterations: config.maxIterations ?? (TEXT_TOOLS in config.provider ? TEXT_ITERATIONS : ITERATIONS),
    fallback: config.fallback?.map((next) => ('chat' in next ? { provider: next } : next)) ?? [],
    failedOver: 0,
    providerRetries: 0,
    lastNumber: undefined,
    isAnswerAsked: false,
    isAskedAgain: false,
    offer: new OfferedTools({ config, messages, results: storing?.results, record }),
    trace: traceOfRun(config.telemetry ?? tools.telemetry, { runId, config, scope, before: record?.trace }),
    budget,
    hooks: tools.hooks.length > 0 || config.hooks ? RequestHooks.among(tools, config) : undefined,
    invoke: tools.invoker(ofCalls),
    synchronous: new Set(),
    record,
    messages,
    sent: isNew && start.isShared ? sharedMessages(messages, logger) : new SentMessages(messages, logger),
    toolCalls: record?.toolCalls.map(restoredRecord) ?? [],
    iterations: record?.iterations ?? 0,
    usage: record?.usage ?? NO_USAGE,
    output: config.output === undefined ? undefined : new FinalAnswer(config.output),
  };
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
