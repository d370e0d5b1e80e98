import type { ToolDefinition } from '../contract/tool-definition.js';
import type { ToolResult } from '../contract/tool-result.js';
import type { CallEnvironment } from './invocation.js';
import { writeFailure, writeResult } from './write-result.js';

/** Runs work of a tool and writes whatever comes of it; never rejects. */
export async function settleWork(
  of: { readonly tool: ToolDefinition; readonly environment: CallEnvironment },
  work: () => unknown,
): Promise<ToolResult> {
  const { name } = of.tool;
  const { describeError } = of.environment;
  try {
    return writeResult(name, await work(), describeError);
  } catch (error) {
    return writeFailure(name, error, describeError);
  }
}
