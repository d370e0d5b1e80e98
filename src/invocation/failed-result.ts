import { errorResult, type ToolResult } from '../contract/tool-result.js';
import type { ErrorName } from '../errors/error-table.js';
import { ToolwrightError } from '../errors/toolwright-error.js';

/** A failure of the framework's own: the message goes to the model, the coded error to whoever looks. */
export function failedResult(name: ErrorName, message: string, cause?: unknown): ToolResult {
  const options = cause === undefined ? undefined : { cause };
  return errorResult(message).withError(new ToolwrightError(name, message, options));
}
