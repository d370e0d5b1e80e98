import type { ToolDefinition } from '../contract/tool-definition.js';
import type { ToolResult } from '../contract/tool-result.js';
import { drain, type Reporter } from './drain.js';
import type { CallEnvironment } from './invocation.js';
import { writeFailure, writeResult } from './write-result.js';

/** Whose work it is. */
export interface WorkOf {
  readonly tool: ToolDefinition;
  readonly environment: CallEnvironment;
  readonly context: Reporter;
}

/** Runs work of a tool and writes whatever comes of it; never rejects. */
export async function settleWork(
  { tool, environment, context }: WorkOf,
  work: () => unknown,
): Promise<ToolResult> {
  const { describeError } = environment;
  try {
    return writeResult(tool.name, await runWork(work, context), describeError);
  } catch (error) {
    return writeFailure(tool.name, error, describeError);
  }
}

/** What work gives; what a generator yields meanwhile is progress, as where it is the tool's own body. */
export async function runWork(work: () => unknown, context: Reporter): Promise<unknown> {
  const value = await work();
  const isStream = typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
  return isStream ? drain(value as AsyncIterable<unknown>, context) : value;
}
