import type { InvokeOptions, Invoker } from '../call/invocation.js';
import { jobsOf } from '../call/job-dispatch.js';
import { ToolRegistry } from '../call/tool-registry.js';
import { InvalidOptionsError } from '../errors/author-fault.js';
import { anySignal } from '../kernel/async.js';
import { TEXT_TOOLS } from '../text/with-text-tools.js';
import { BudgetedRequests } from './budgeted-requests.js';
import { FinalAnswer } from './final-answer.js';
import { givenHistory } from './given-history.js';
import { LoopGuard, RetryBudget } from './guard.js';
import { innerWaits, judgeCompletion } from './inner-runs.js';
import { keepingOf } from './kept-results.js';
import { type LoopRun, NO_USAGE, type RunHooks, type RunStart, type RunSurroundings } from './loop-run.js';
import { onlyKnown } from './offered-tools.js';
import type { ProviderTarget, ResumeConfig, ToolLoopConfig } from './options.js';
import { RequestHooks } from './request-hooks.js';
import { budgetOf, type RunBudget, surroundingBudget } from './run-budget.js';
import { ownerOf } from './run-owner.js';
import { SentMessages } from './sent-messages.js';
import { standingLookup } from './standing-approvals.js';
import { restoredRecord } from './suspend.js';
import { traceOfRun } from './trace-run.js';

const ITERATIONS = 20;
/** Models without native calls get fewer requests. */
const TEXT_ITERATIONS = 5;
const TOOL_TIMEOUT_MS = 120_000;

/**
 * Prepares a run; throws only what the author did wrong. No part of it is spread: it would be made key by key then, which
 * takes several times as long.
 */
export function beginRun(given: ResumeConfig, start: RunStart, surroundings: RunSurroundings): LoopRun {
  const { scope, sink, hasReader, onStep, keeper, onUnknown, turnOf } = surroundings;
  const lost = 'lost' in start ? start.lost : undefined;
  const resumed = 'suspended' in start ? start.suspended : lost;
  const before = 'progress' in start ? start.progress : resumed;
  const model = before?.model ?? given.model ?? missingModel();
  const config = (model === given.model ? given : { ...given, model }) as ToolLoopConfig;
  const messages =
    'messages' in start ? givenHistory(start.messages, config.logger) : [...(before?.messages ?? [])];
  const tools = toolsOf(config, before?.tools);
  const signal = scope.signal === undefined ? config.signal : anySignal(config.signal, scope.signal);
  const isLimited = (config.budget ?? surroundingBudget.getStore()) !== undefined;
  const budget = isLimited ? budgetOf(config, { scope, before }) : undefined;
  const runId = resumed?.runId ?? config.runId ?? crypto.randomUUID();
  const owner = scope.owner === undefined ? undefined : ownerOf(scope);
  const keeping = config.store && keepingOf(config, tools);
  const standing = config.store && standingLookup(config.store, { runId, owner });
  const options = callOptionsOf(keeping ? { ...config, ...keeping } : config, tools, { standing, budget });
  const { telemetry = tools.telemetry } = config;
  const invoke = tools.invoker(keeper ? { ...options, recordsKeys: true, onUnknown } : options);
  return {
    config,
    runId,
    owner,
    turnOf: before?.turnOf ?? turnOf,
    tools,
    offered: before?.tools ?? NO_NAMES,
    results: keeping?.results,
    maxResultChars: keeping?.maxResultChars,
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
    hooks: tools.hooks.length > 0 || config.hooks || budget ? hooksOf(tools, config, budget) : undefined,
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

function hooksOf(
  tools: ToolRegistry,
  config: ToolLoopConfig,
  budget: RunBudget | undefined,
): RunHooks | undefined {
  const hooks = RequestHooks.among(tools, config);
  return budget === undefined ? hooks : new BudgetedRequests(budget, hooks);
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

/** The tools that a run is given; of one that goes on, no others than it was offered before. */
function toolsOf({ tools = [] }: ToolLoopConfig, before: readonly string[] | undefined): ToolRegistry {
  const registry = tools instanceof ToolRegistry ? tools : new ToolRegistry().register(...tools);
  return before === undefined ? registry : onlyKnown(registry, before);
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
  const { onAsyncResult, tasks, logger, policy, maxResultChars, engine, store, telemetry } = config;
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
