import types from 'node:util/types';
import type { ToolDefinition } from '../contract/tool.js';
import type { ToolResult } from '../contract/tool-result.js';
import { unreadableResult } from '../kernel/error-message.js';
import { isPlainData } from '../kernel/json.js';
import { drain, drainNow, type Reporter } from './drain.js';
import type { CallEnvironment } from './invocation.js';
import { isToolResultLike, writeResult } from './result.js';
import { formOf, streamOf } from './result-form.js';
import { describeThrown, writeFailure } from './result-text.js';

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
    return writeResult(tool, await runWork(work, { tool, environment, context }), describeError);
  } catch (error) {
    return writeFailure(tool.name, error, describeError);
  }
}

/** What work gives, settled; what a generator yields meanwhile is progress, as where it is the tool's own body. */
export async function runWork(work: () => unknown, of: WorkOf): Promise<unknown> {
  return settled(await work(), of);
}

/**
 * What a tool returned, ready to be written: what is still to come of it has been awaited, generators have been
 * drained, and what JSON does not show has a form that it does. Most results are ready as they are.
 */
export function settled(value: unknown, of: WorkOf): unknown {
  if (typeof value !== 'object' || value === null || isReady(value, of.tool)) return value;
  const { tool, environment } = of;
  if ('next' in value && typeof value.next === 'function' && Symbol.iterator in value)
    return settled(drainNow(value as unknown as Iterable<unknown>, of.context), of);
  if (Symbol.asyncIterator in value && streamOf(value) === undefined)
    return drain(value as AsyncIterable<unknown>, of.context).then((last) => settled(last, of));
  return formOf(value, {
    reporter: of.context,
    describe: (error) => describeThrown(tool.name, error, environment.describeError),
  });
}

function isReady(value: object, tool: ToolDefinition): boolean {
  try {
    return (
      isPlainData(value) ||
      isToolResultLike(value, tool) ||
      value instanceof Error ||
      types.isNativeError(value)
    );
  } catch (error) {
    throw unreadableResult(error);
  }
}
