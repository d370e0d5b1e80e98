import type { ToolPolicy } from '../contract/call.js';
import { HOOKS, type Hooks } from '../contract/hooks.js';
import { JOB_ENGINE, type JobEngine } from '../contract/job-engine.js';
import { keepsJobs, type StoreWithJobs } from '../contract/job-store.js';
import type { Logger } from '../contract/ports.js';
import { RUN_STORE, type RunStore } from '../contract/run-state.js';
import { TELEMETRY, type Telemetry } from '../contract/telemetry.js';
import {
  BOOLEAN,
  either,
  FUNCTION,
  instanceOf,
  LIMIT,
  LOGGER,
  listOf,
  MILLISECONDS,
  optionTable,
  protecting,
  type RulesOf,
  TEXT,
} from '../kernel/options.js';
import { bothPolicies } from './allow.js';
import type { DescribeError } from './result-text.js';
import { TaskQueue } from './task-queue.js';

/** Options of a `ToolRegistry`. */
export interface ToolRegistryOptions {
  readonly logger?: Logger;
  /** Records every call: `openTelemetry()`, from `toolwright/opentelemetry`. */
  readonly telemetry?: Telemetry;
  /** Whether arguments are logged, at level `debug`, with their secrets hidden; default: `true`. */
  readonly logArguments?: boolean;
  /** Keys of arguments that are hidden in the log as `password` and the like are: `['customerNo']`. */
  readonly redact?: readonly string[];
  /** Milliseconds for tools that set no `timeoutMs`; default: no limit (the loop brings its own). */
  readonly toolTimeoutMs?: number;
  /** What the model is told of something a tool threw; default: its message. Masks what it must not see. */
  readonly describeError?: DescribeError;
  /** Decides about every call; a run may bring another, and then both must allow it. */
  readonly policy?: ToolPolicy;
  /**
   * Surround every call, whoever makes it, and every request of a run that is given this registry; those of the run
   * come behind them.
   */
  readonly hooks?: readonly Hooks[];
  /** `false`: arguments are taken as they were sent, and types are not mended; default `true`. */
  readonly coerce?: boolean;
  /** Characters of a result that the model sees at most; the rest is kept in `details`; default: 100,000. */
  readonly maxResultChars?: number;
  /** What the work that tools start goes through; default: one without a limit. */
  readonly tasks?: TaskQueue;
  /** Where the work of background tools goes, in place of this process; needs a `store`. */
  readonly engine?: JobEngine;
  /** Keeps what was started, so that nothing of it is lost: a `SqliteRunStore`, for example. */
  readonly store?: RunStore | StoreWithJobs;
}

/** What each of them may be. */
export const REGISTRY_RULES: RulesOf<ToolRegistryOptions> = {
  logger: LOGGER,
  telemetry: TELEMETRY,
  logArguments: BOOLEAN,
  redact: protecting(listOf(TEXT, "an array of names: ['customerNo']")),
  toolTimeoutMs: MILLISECONDS,
  describeError: protecting(FUNCTION),
  policy: protecting(FUNCTION),
  hooks: HOOKS,
  coerce: BOOLEAN,
  maxResultChars: LIMIT,
  tasks: instanceOf(TaskQueue, 'new TaskQueue({ maxRunning: 4 })'),
  engine: JOB_ENGINE,
  store: either(RUN_STORE, { accepts: keepsJobs, fix: 'a store that keeps jobs' }),
};

export const REGISTRY_OPTIONS = optionTable<ToolRegistryOptions>('ToolRegistry', REGISTRY_RULES, {
  timeoutMs: 'toolTimeoutMs: …',
  tools: 'new ToolRegistry().register(...tools)',
});

/** The options of a registry whose tools are called within calls of another one: what that forbids and hides holds. */
export function optionsWithin(own: ToolRegistryOptions, outer: ToolRegistryOptions): ToolRegistryOptions {
  const { policy, hooks = [], redact = [], logArguments } = outer;
  const addsNothing = !policy && hooks.length + redact.length === 0 && logArguments !== false;
  if (own === outer || addsNothing) return own;
  const both = bothPolicies(policy, own.policy);
  return {
    ...own,
    ...(both ? { policy: both } : {}),
    hooks: [...new Set([...hooks, ...(own.hooks ?? [])])],
    redact: [...redact, ...(own.redact ?? [])],
    ...(logArguments === false ? { logArguments } : {}),
  };
}
