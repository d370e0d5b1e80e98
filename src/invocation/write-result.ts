import type { Content, ContentPart } from '../contract/content-part.js';
import { errorResult, ToolResult, type ToolResultFields, toolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from './error-message.js';
import type { DescribeError } from './invocation.js';

/** What a method returned, as a result (design §4, what a method returns). */
export function writeResult(tool: string, value: unknown): ToolResult {
  if (typeof value === 'string') return toolResult(value);
  if (value === undefined || value === null) return toolResult('ok');
  if (ToolResult.is(value)) return value;
  if (value instanceof Error) return writeFailure(tool, value);
  if (isResultFields(value)) return new ToolResult(value);
  if (hasContent(value))
    return new ToolResult({ forLLM: textOf(value.content), content: value.content, details: value.details });
  return writeJson(tool, value);
}

/** What a method threw, as a result: the model gets exactly its message, the log gets the cause. */
export function writeFailure(tool: string, thrown: unknown, describe?: DescribeError): ToolResult {
  const message = describe ? describe(thrown, tool) : errorMessage(thrown);
  const error = new ToolwrightError(
    'ToolExecutionFailed',
    `The tool '${tool}' failed: ${errorMessage(thrown)}`,
    {
      cause: thrown,
    },
  );
  return errorResult(message).withError(error);
}

/** The text of parts, one line for each (design §4). */
export function textOf(content: Content): string {
  return content.flatMap((part) => (part.type === 'text' ? [part.content] : [])).join('\n');
}

function writeJson(tool: string, value: unknown): ToolResult {
  try {
    const json = JSON.stringify(value, (_key, field) =>
      typeof field === 'bigint' ? field.toString() : field,
    );
    return toolResult(json ?? 'ok');
  } catch (error) {
    return writeFailure(
      tool,
      new TypeError(`the result cannot be written as JSON: ${errorMessage(error)}`, { cause: error }),
    );
  }
}

function isResultFields(value: unknown): value is ToolResultFields {
  return typeof value === 'object' && value !== null && 'forLLM' in value && typeof value.forLLM === 'string';
}

function hasContent(value: unknown): value is { readonly content: Content; readonly details?: unknown } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'content' in value &&
    Array.isArray(value.content) &&
    value.content.every(isPart)
  );
}

function isPart(part: unknown): part is ContentPart {
  if (typeof part !== 'object' || part === null || !('type' in part)) return false;
  if (part.type === 'text') return 'content' in part && typeof part.content === 'string';
  return (part.type === 'image' || part.type === 'file') && 'data' in part && typeof part.data === 'string';
}
