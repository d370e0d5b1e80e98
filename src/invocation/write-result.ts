import types from 'node:util/types';
import type { Content, ContentPart } from '../contract/content-part.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import { errorResult, ToolResult, type ToolResultFields, toolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage, unreadableResult } from './error-message.js';
import { failedResult } from './failed-result.js';
import type { DescribeError } from './invocation.js';
import { ResultForm } from './result-form.js';

/** What a method returned, settled (`settled`), as a result. Never throws. */
export function writeResult(tool: WritingTool, value: unknown, describe?: DescribeError): ToolResult {
  try {
    const result = write(tool, value, describe);
    const lack = result.content?.map(lackOf).find((one) => one !== undefined);
    return lack === undefined ? result : unsendable(lack);
  } catch (error) {
    return writeFailure(tool.name, unreadableResult(error), describe);
  }
}

/** What the wording of a result depends on. */
export type WritingTool = Pick<ToolDefinition, 'name' | 'returnsContent'>;

function write(tool: WritingTool, value: unknown, describe: DescribeError | undefined): ToolResult {
  if (typeof value === 'string') return toolResult(value);
  if (typeof value === 'number') return toolResult(`${value === 0 ? 0 : value}`);
  if (value === undefined || value === null) return toolResult('ok');
  if (typeof value === 'function' || typeof value === 'symbol')
    return unwritable(`it is a ${typeof value}. Return data`);
  const made =
    Object.getPrototypeOf(value) === Object.prototype ? undefined : writeInstance(tool, value, describe);
  if (made !== undefined) return made;
  if (isResultFields(value)) return saneResult(value);
  if (hasContent(value, tool))
    return new ToolResult({ forLLM: textOf(value.content), content: value.content, details: value.details });
  return writeJson(tool.name, value, describe);
}

/** What is known by its class. Plain objects, which most results are, need not be asked. */
function writeInstance(
  tool: WritingTool,
  value: unknown,
  describe: DescribeError | undefined,
): ToolResult | undefined {
  if (ToolResult.is(value)) return isSane(value) ? value : saneResult(value);
  if (value instanceof ResultForm) return writeForm(value);
  if (value instanceof Error || types.isNativeError(value)) return writeFailure(tool.name, value, describe);
  return undefined;
}

function writeForm({ json, files, problem }: ResultForm): ToolResult {
  if (problem !== undefined) return unwritable(problem);
  const text = typeof json === 'string' ? json : (JSON.stringify(json) ?? 'ok');
  if (files.length === 0) return toolResult(text);
  return new ToolResult({ forLLM: text, content: [{ type: 'text', content: text }, ...files] });
}

function unwritable(problem: string): ToolResult {
  return failedResult(
    'ToolExecutionFailed',
    `The tool ran, but its result cannot be written as JSON: ${problem}.`,
  );
}

function unsendable(lack: string): ToolResult {
  return failedResult('ToolExecutionFailed', `The tool ran, but its result cannot be sent: ${lack}.`);
}

/** What a method threw, as a result: the model gets exactly its message, the log gets the cause. */
export function writeFailure(tool: string, thrown: unknown, describe?: DescribeError): ToolResult {
  const message = `The tool '${tool}' failed: ${errorMessage(thrown)}`;
  const error = new ToolwrightError('ToolExecutionFailed', message, { cause: thrown });
  return errorResult(describeThrown(tool, thrown, describe)).withError(error);
}

/** What the model is told of an error. A description that fails must not let out what it was to mask. */
export function describeThrown(tool: string, thrown: unknown, describe: DescribeError | undefined): string {
  if (describe === undefined) return errorMessage(thrown);
  try {
    return String(describe(thrown, tool));
  } catch {
    return `The tool '${tool}' failed.`;
  }
}

/** Whether a method worded its result for the model, instead of returning plain data. */
export function isWorded(value: unknown, tool?: WritingTool): boolean {
  return ToolResult.is(value) || isResultFields(value) || hasContent(value, tool);
}

/** Types of results are not checked where their authors write no TypeScript. */
function isSane({ forLLM, forUser, silent, isError, async, content }: ToolResult): boolean {
  return (
    typeof forLLM === 'string' &&
    (forUser === undefined || typeof forUser === 'string') &&
    typeof silent === 'boolean' &&
    typeof isError === 'boolean' &&
    typeof async === 'boolean' &&
    (content === undefined || (Array.isArray(content) && content.every(isPart)))
  );
}

/** A message's content must be text, parts are parts, and a flag is set or not. */
function saneResult(result: ToolResultFields): ToolResult {
  const { forLLM, forUser } = result as { readonly forLLM: unknown; readonly forUser: unknown };
  const { error, content: given, details } = result;
  const content = Array.isArray(given) ? given.filter(isPart) : undefined;
  return new ToolResult({
    ...{ error, content, details },
    forLLM: forLLM === undefined || forLLM === null ? '' : String(forLLM),
    forUser: forUser === undefined || forUser === null ? undefined : String(forUser),
    silent: Boolean(result.silent),
    isError: Boolean(result.isError),
    async: Boolean(result.async),
  });
}

/** The text of parts, one line for each. */
export function textOf(content: Content): string {
  return content.flatMap((part) => (part.type === 'text' ? [part.content] : [])).join('\n');
}

function writeJson(tool: string, value: unknown, describe: DescribeError | undefined): ToolResult {
  try {
    return toolResult(toJson(value));
  } catch (cause) {
    return writeFailure(tool, unreadableResult(cause), describe);
  }
}

/** JSON has no big integers; their digits lose nothing. Looked at only where plain writing failed. */
function toJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return JSON.stringify(value, (_key, field) => (typeof field === 'bigint' ? field.toString() : field));
  }
}

const RESULT_FIELDS: ReadonlySet<string> = new Set<keyof ToolResultFields>([
  ...(['forLLM', 'forUser', 'silent', 'isError', 'async', 'error', 'content', 'details'] as const),
]);

/** Anything else beside them would be lost: then it is data. */
function isResultFields(value: unknown): value is ToolResultFields {
  return (
    typeof value === 'object' &&
    value !== null &&
    'forLLM' in value &&
    typeof value.forLLM === 'string' &&
    Object.keys(value).every((key) => RESULT_FIELDS.has(key))
  );
}

/** Parts, where nothing is lost by taking them for the result, or where the tool's form says that they are it. */
function hasContent(
  value: unknown,
  tool: WritingTool | undefined,
): value is { readonly content: Content; readonly details?: unknown } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'content' in value &&
    Array.isArray(value.content) &&
    value.content.every(isPart) &&
    (tool?.returnsContent === true || isOnlyContent(value))
  );
}

function isOnlyContent(value: { readonly content: unknown }): boolean {
  const isFilled = Array.isArray(value.content) && value.content.length > 0;
  return isFilled && Object.keys(value).every((key) => key === 'content' || key === 'details');
}

/** What a part lacks without which no model and no client can be sent it. */
function lackOf(part: ContentPart): string | undefined {
  if (part.type === 'text') return undefined;
  const [what, needed] = part.type === 'image' ? ['an image', IMAGE_FIELDS] : ['a file', FILE_FIELDS];
  const fields: Readonly<Record<string, unknown>> = { ...part };
  const lacking = needed.find((name) => typeof fields[name] !== 'string');
  return lacking === undefined ? undefined : `${what} part needs \`${lacking}\``;
}

const IMAGE_FIELDS = ['mimeType'] as const;
const FILE_FIELDS = ['mimeType', 'filename'] as const;

function isPart(part: unknown): part is ContentPart {
  if (typeof part !== 'object' || part === null || !('type' in part)) return false;
  if (part.type === 'text') return 'content' in part && typeof part.content === 'string';
  return (part.type === 'image' || part.type === 'file') && 'data' in part && typeof part.data === 'string';
}
