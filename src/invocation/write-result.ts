import { types } from 'node:util';
import type { Content, ContentPart } from '../contract/content-part.js';
import { errorResult, ToolResult, type ToolResultFields, toolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from './error-message.js';
import type { DescribeError } from './invocation.js';

/** What a method returned, as a result. Never throws. */
export function writeResult(tool: string, value: unknown, describe?: DescribeError): ToolResult {
  try {
    return write(tool, value, describe);
  } catch (error) {
    // Proxies and getters of a returned object are the tool's own code.
    return writeFailure(tool, error, describe);
  }
}

function write(tool: string, value: unknown, describe: DescribeError | undefined): ToolResult {
  if (typeof value === 'string') return toolResult(value);
  if (typeof value === 'number' && Number.isFinite(value)) return toolResult(`${value === 0 ? 0 : value}`);
  if (value === undefined || value === null) return toolResult('ok');
  if (ToolResult.is(value)) return typeof value.forLLM === 'string' ? value : withText(value);
  if (value instanceof Error || types.isNativeError(value)) return writeFailure(tool, value, describe);
  if (isResultFields(value)) return new ToolResult(value);
  if (hasContent(value))
    return new ToolResult({ forLLM: textOf(value.content), content: value.content, details: value.details });
  return writeJson(tool, value, describe);
}

/** What a method threw, as a result: the model gets exactly its message, the log gets the cause. */
export function writeFailure(tool: string, thrown: unknown, describe?: DescribeError): ToolResult {
  const message = `The tool '${tool}' failed: ${errorMessage(thrown)}`;
  const error = new ToolwrightError('ToolExecutionFailed', message, { cause: thrown });
  return errorResult(described(tool, thrown, describe)).withError(error);
}

/** A description that fails must not let out what it was to mask. */
function described(tool: string, thrown: unknown, describe: DescribeError | undefined): string {
  if (describe === undefined) return errorMessage(thrown);
  try {
    return String(describe(thrown, tool));
  } catch {
    return `The tool '${tool}' failed.`;
  }
}

/** Whether a method worded its result for the model, instead of returning plain data. */
export function isWorded(value: unknown): boolean {
  return ToolResult.is(value) || isResultFields(value) || hasContent(value);
}

/** A result whose author's types were not checked: a message's content must be text. */
function withText(result: ToolResult): ToolResult {
  const forLLM: unknown = result.forLLM;
  return new ToolResult({ ...result, forLLM: forLLM === undefined || forLLM === null ? '' : String(forLLM) });
}

/** The text of parts, one line for each. */
export function textOf(content: Content): string {
  return content.flatMap((part) => (part.type === 'text' ? [part.content] : [])).join('\n');
}

function writeJson(tool: string, value: unknown, describe: DescribeError | undefined): ToolResult {
  try {
    return toolResult(toJson(value) ?? 'ok');
  } catch (cause) {
    const message = `the result cannot be written as JSON: ${errorMessage(cause)}`;
    return writeFailure(tool, new TypeError(message, { cause }), describe);
  }
}

/** JSON has no big integers; their digits lose nothing. Looked at only where plain writing failed. */
function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return JSON.stringify(value, (_key, field) => (typeof field === 'bigint' ? field.toString() : field));
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
