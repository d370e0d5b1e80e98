import type { Logger } from '../contract/logger.js';
import type { ToolPolicy } from '../contract/tool-policy.js';
import { ToolDeclarationError } from '../errors/author-fault.js';
import type { DescribeError } from '../invocation/invocation.js';
import { TaskQueue } from '../invocation/task-queue.js';
import { type OptionRules, optionFaults } from '../metadata/option-faults.js';
import { BOOLEAN, FUNCTION, LIMIT, LOGGER, MILLISECONDS } from '../metadata/option-rule.js';

/** Options of a `ToolRegistry`. */
export interface ToolRegistryOptions {
  readonly logger?: Logger;
  /** Milliseconds for tools that set no `timeoutMs`; default: no limit (the loop brings its own). */
  readonly toolTimeoutMs?: number;
  /** What the model is told of something a tool threw; default: its message. Masks what it must not see. */
  readonly describeError?: DescribeError;
  /** Decides about every call; a run may bring another, and then both must allow it. */
  readonly policy?: ToolPolicy;
  /** `false`: arguments are taken as they were sent, and types are not mended; default `true`. */
  readonly coerce?: boolean;
  /** Characters of a result that the model sees at most; the rest is kept in `details` (default: no limit). */
  readonly maxResultChars?: number;
  /** What the work that tools start goes through; default: one without a limit. */
  readonly tasks?: TaskQueue;
}

const OPTIONS: OptionRules = {
  of: 'ToolRegistry',
  options: {
    logger: LOGGER,
    toolTimeoutMs: MILLISECONDS,
    describeError: FUNCTION,
    policy: FUNCTION,
    coerce: BOOLEAN,
    maxResultChars: LIMIT,
    tasks: { accepts: (value) => value instanceof TaskQueue, fix: 'new TaskQueue({ maxRunning: 4 })' },
  },
  meant: { timeoutMs: 'toolTimeoutMs: …', tools: 'new ToolRegistry().register(...tools)' },
};

/**
 * Checks what a registry is given.
 *
 * @throws ToolDeclarationError (502) naming everything that is wrong.
 */
export function checkOptions(options: ToolRegistryOptions): void {
  const faults = optionFaults(options, OPTIONS).map((fault) => ({ where: 'new ToolRegistry', ...fault }));
  if (faults.length > 0) throw new ToolDeclarationError(faults);
}
