import type { CallScope } from '../contract/call-scope.js';
import type { Message } from '../contract/message.js';
import { hasTextTools } from '../detection/text-tools/has-text-tools.js';
import { type InvokeOptions, type Invoker, ToolRegistry } from '../registry/tool-registry.js';
import { checkConfig } from './check-config.js';
import type { ToolLoopConfig } from './loop-config.js';
import type { EventSink } from './loop-event.js';
import { LoopGuard } from './loop-guard.js';
import { beginState, type LoopState } from './loop-state.js';
import { type CallNumberer, createCallNumberer } from './number-calls.js';
import { RetryBudget } from './retry-budget.js';

/** Where a run takes place, and who watches it. */
export interface RunSurroundings {
  readonly scope: CallScope;
  readonly sink?: EventSink;
}

/** A run with all that its steps need. */
export interface LoopRun {
  readonly config: ToolLoopConfig;
  readonly state: LoopState;
  readonly tools: ToolRegistry;
  readonly scope: CallScope;
  readonly signal: AbortSignal | undefined;
  readonly sink: EventSink | undefined;
  readonly retries: RetryBudget;
  readonly guard: LoopGuard | undefined;
  readonly numberCalls: CallNumberer;
  readonly maxIterations: number;
  /** Makes the calls of the run. */
  readonly invoke: Invoker;
}

const DEFAULTS = { maxIterations: 20, maxTextIterations: 5, maxRetries: 2, toolTimeoutMs: 120_000 } as const;

/** Prepares a run; throws only what the author did wrong. */
export function beginRun(
  config: ToolLoopConfig,
  messages: readonly Message[],
  { scope, sink }: RunSurroundings,
): LoopRun {
  checkConfig(config, messages);
  const state = beginState(messages);
  const tools =
    config.tools instanceof ToolRegistry
      ? config.tools
      : new ToolRegistry().register(...(config.tools ?? []));
  const signal = joinSignals(config.signal, scope.signal);
  return {
    config,
    state,
    tools,
    signal,
    sink,
    scope: { ...scope, signal },
    retries: new RetryBudget(config.maxRetries ?? DEFAULTS.maxRetries, (name) => tools.offered(name)),
    guard: config.loopGuard === false ? undefined : new LoopGuard(config.loopGuard),
    numberCalls: createCallNumberer(state.messages),
    maxIterations: config.maxIterations ?? defaultIterations(config),
    invoke: tools.invoker(callOptionsOf(config, tools)),
  };
}

/** Models without native calls get fewer rounds (seed 4.7, design §4, limit). */
function defaultIterations({ provider }: ToolLoopConfig): number {
  return hasTextTools(provider) ? DEFAULTS.maxTextIterations : DEFAULTS.maxIterations;
}

function joinSignals(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one && other && one !== other ? AbortSignal.any([one, other]) : (one ?? other);
}

/** Only what the run says: what it leaves out is the registry's. */
function callOptionsOf(config: ToolLoopConfig, tools: ToolRegistry): InvokeOptions {
  const { onAsyncResult, logger, policy, maxResultChars } = config;
  const toolTimeoutMs = config.toolTimeoutMs ?? tools.toolTimeoutMs ?? DEFAULTS.toolTimeoutMs;
  return {
    toolTimeoutMs,
    ...(onAsyncResult ? { onAsyncResult } : {}),
    ...(logger ? { logger } : {}),
    ...(policy ? { policy } : {}),
    ...(maxResultChars === undefined ? {} : { maxResultChars }),
  };
}
