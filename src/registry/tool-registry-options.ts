import type { Logger } from '../contract/logger.js';
import type { ToolPolicy } from '../contract/tool-policy.js';
import type { DescribeError } from '../invocation/invocation.js';
import { TaskQueue } from '../invocation/task-queue.js';
import {
  BOOLEAN,
  FUNCTION,
  instanceOf,
  LIMIT,
  LOGGER,
  MILLISECONDS,
  protecting,
  TEXT,
} from '../kernel/option-rules.js';
import { listOf, optionTable, type RulesOf } from '../kernel/options.js';

/** Options of a `ToolRegistry`. */
export interface ToolRegistryOptions {
  readonly logger?: Logger;
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
  /** `false`: arguments are taken as they were sent, and types are not mended; default `true`. */
  readonly coerce?: boolean;
  /** Characters of a result that the model sees at most; the rest is kept in `details`; default: 100,000. */
  readonly maxResultChars?: number;
  /** What the work that tools start goes through; default: one without a limit. */
  readonly tasks?: TaskQueue;
}

/** What each of them may be. */
export const REGISTRY_RULES: RulesOf<ToolRegistryOptions> = {
  logger: LOGGER,
  logArguments: BOOLEAN,
  redact: protecting(listOf(TEXT, "an array of names: ['customerNo']")),
  toolTimeoutMs: MILLISECONDS,
  describeError: protecting(FUNCTION),
  policy: protecting(FUNCTION),
  coerce: BOOLEAN,
  maxResultChars: LIMIT,
  tasks: instanceOf(TaskQueue, 'new TaskQueue({ maxRunning: 4 })'),
};

export const REGISTRY_OPTIONS = optionTable<ToolRegistryOptions>('ToolRegistry', REGISTRY_RULES, {
  timeoutMs: 'toolTimeoutMs: …',
  tools: 'new ToolRegistry().register(...tools)',
});
