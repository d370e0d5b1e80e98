import type { CallScope } from '../contract/call-scope.js';
import type { Message } from '../contract/message.js';
import type { RunState, StoredCall } from '../contract/run-state.js';
import type { RunStore } from '../contract/run-store.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import { hasTextTools } from '../detection/text-tools/has-text-tools.js';
import { InvalidOptionsError } from '../errors/invalid-options.js';
import { SafeLog } from '../invocation/safe-log.js';
import { type InvokeOptions, type Invoker, ToolRegistry } from '../registry/tool-registry.js';
import { anySignal } from './any-signal.js';
import { judgeCompletion } from './inner-runs.js';
import type { ToolLoopConfig } from './loop-config.js';
import type { EventSink } from './loop-event.js';
import { LoopGuard } from './loop-guard.js';
import { beginState, type LoopEnd, type LoopState, type RunProgress, resumeState } from './loop-state.js';
import { type CallNumberer, createCallNumberer } from './number-calls.js';
import { readHistory } from './read-history.js';
import type { ResumeConfig } from './resume-options.js';
import { RetryBudget } from './retry-budget.js';
import { ownerOf } from './run-owner.js';

/** Where a run takes place, and who watches it. */
export interface RunSurroundings {
  readonly scope: CallScope;
  readonly sink?: EventSink;
  /** Keeps the run where it is suspended; default: the config's store. */
  readonly keep?: Pick<RunStore, 'save'>;
  /** Whether anybody reads the text while it is written, asked before each request; default: where there is a sink. */
  readonly hasReader?: () => boolean;
  /** Hears, at once, of every moment at which each call of the history has its answer. */
  readonly onStep?: StepListener;
}

/** Hears how far a run has come; `end` where that is all of it. */
export type StepListener = (run: LoopRun, end: LoopEnd | undefined) => void;

/** A suspended run that goes on, its answers already in its calls. */
export interface ResumedRun {
  readonly runId: string;
  readonly revision: number;
  readonly content: string;
  readonly calls: readonly StoredCall[];
}

/** A suspended run, and its calls with the answers that have come. */
export interface SuspendedStart {
  readonly suspended: RunState;
  readonly calls: readonly StoredCall[];
}

/** What a run begins with. */
export type RunStart =
  | { readonly messages: readonly Message[] }
  | { readonly progress: RunProgress }
  | SuspendedStart;

/** A run with all that its steps need. */
export interface LoopRun {
  readonly config: ToolLoopConfig;
  /** On whose behalf it takes place. */
  readonly owner: unknown;
  readonly state: LoopState;
  readonly tools: ToolRegistry;
  /** Names of the tools that it was offered before it was suspended. */
  readonly offered: readonly string[];
  readonly scope: CallScope;
  readonly signal: AbortSignal | undefined;
  readonly sink: EventSink | undefined;
  readonly hasReader: (() => boolean) | undefined;
  readonly onStep: StepListener | undefined;
  readonly retries: RetryBudget;
  readonly guard: LoopGuard | undefined;
  readonly numberCalls: CallNumberer;
  readonly maxIterations: number;
  /** Makes the calls of the run. */
  readonly invoke: Invoker;
  /** Names of tools that answered at once when they were last called. */
  readonly prompt: Set<string>;
  /** Where the run was suspended before. */
  readonly resumed: ResumedRun | undefined;
}

const DEFAULTS = { maxIterations: 20, maxTextIterations: 5, maxRetries: 2, toolTimeoutMs: 120_000 } as const;

/** Prepares a run; throws only what the author did wrong. */
export function beginRun(
  given: ResumeConfig,
  start: RunStart,
  { scope, sink, hasReader, onStep }: RunSurroundings,
): LoopRun {
  const before = 'suspended' in start ? start.suspended : 'progress' in start ? start.progress : undefined;
  const messages = 'messages' in start ? start.messages : before?.messages;
  const config = withModel(given, before?.model);
  const state = before === undefined ? beginState(readMessages(config, messages ?? [])) : resumeState(before);
  const registry =
    config.tools instanceof ToolRegistry
      ? config.tools
      : new ToolRegistry().register(...(config.tools ?? []));
  const tools = before?.tools === undefined ? registry : onlyKnown(registry, before.tools);
  const signal = anySignal(config.signal, scope.signal);
  const maxRetries = config.maxRetries ?? DEFAULTS.maxRetries;
  const find = (name: string): ToolDefinition | undefined => tools.offered(name);
  return {
    config,
    owner: ownerOf(scope),
    state,
    tools,
    offered: before?.tools ?? [],
    signal,
    sink,
    hasReader,
    onStep,
    scope: { ...scope, signal },
    retries: new RetryBudget({ maxRetries, find, spent: before?.retries }),
    guard: config.loopGuard === false ? undefined : new LoopGuard(config.loopGuard, before?.guard),
    numberCalls: createCallNumberer(state.messages),
    maxIterations: config.maxIterations ?? defaultIterations(config),
    invoke: tools.invoker(callOptionsOf(config, tools)),
    prompt: new Set(),
    resumed: 'suspended' in start ? resumedRun(start) : undefined,
  };
}

/** What the caller's history lacks is told in the log, too: the caller may have lost it. */
function readMessages({ logger }: ToolLoopConfig, given: readonly Message[]): readonly Message[] {
  const { messages, unanswered } = readHistory(given);
  if (unanswered.length > 0) {
    const what = 'Calls of the history had no answers, and were answered with an error';
    new SafeLog(logger).warn(what, { tools: unanswered });
  }
  return messages;
}

/** A run that goes on asks the model that it has asked so far. */
function withModel(config: ResumeConfig, model: string | undefined): ToolLoopConfig {
  const { model: given } = config ?? {};
  if (model === undefined && given === undefined)
    throw new InvalidOptionsError([
      { where: 'the loop’s config', option: 'model', problem: 'model is missing', fix: "model: 'gpt-5', …" },
    ]);
  return (model === undefined || model === given ? config : { ...config, model }) as ToolLoopConfig;
}

/** What a run was offered before, as far as it is given now; and what is registered from now on. */
function onlyKnown(given: ToolRegistry, names: readonly string[]): ToolRegistry {
  const known = new Set(names);
  const others = given.list().filter((name) => !known.has(name));
  return others.length === 0 ? given : given.view({ deny: others });
}

function resumedRun({ suspended, calls }: SuspendedStart): ResumedRun {
  const { runId, revision, open } = suspended;
  return { runId, revision, content: open.content, calls };
}

/** Models without native calls get fewer rounds. */
function defaultIterations({ provider }: ToolLoopConfig): number {
  return hasTextTools(provider) ? DEFAULTS.maxTextIterations : DEFAULTS.maxIterations;
}

/** Only what the run says: what it leaves out is the registry's. */
function callOptionsOf(config: ToolLoopConfig, tools: ToolRegistry): InvokeOptions {
  const { onAsyncResult, tasks, logger, policy, maxResultChars } = config;
  const toolTimeoutMs = config.toolTimeoutMs ?? tools.toolTimeoutMs ?? DEFAULTS.toolTimeoutMs;
  return {
    toolTimeoutMs,
    ...(onAsyncResult ? { onAsyncResult, judgeCompletion } : {}),
    ...(tasks ? { tasks } : {}),
    ...(logger ? { logger } : {}),
    ...(policy ? { policy } : {}),
    ...(maxResultChars === undefined ? {} : { maxResultChars }),
  };
}
