import type { JsonObject } from '../../core/contract/json-schema.js';
import type { ToolCall } from '../../core/contract/llm-provider.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { parseExactJson } from '../../core/kernel/exact-json.js';
import { either, LIST, optionTable, withMethods } from '../../core/kernel/options.js';
import { numberDrafts, scanText } from './call-scanner.js';
import type { KnownToolSource } from './known-tools.js';

/** The calls and text of a parsed text. */
export interface ParsedText {
  /** The first call. */
  readonly toolCall?: ToolCall;
  /** All calls, in the order of the text. */
  readonly toolCalls: readonly ToolCall[];
  /** The text before the first call, untrimmed; the whole text if there is none. */
  readonly textBefore: string;
}

/** Options of {@link ToolCallParser}. */
export interface ToolCallParserOptions {
  /** Names, tools, or a registry: only these can be called. Without it, any name can. */
  readonly tools?: KnownToolSource;
}

const OPTIONS = optionTable<ToolCallParserOptions>('ToolCallParser', {
  tools: { ...either(LIST, withMethods(['list'], '')), fix: "a ToolRegistry, or ['add', …]" },
});

/**
 * Finds tool calls in the text of a model without native calling: JSON objects with `name` and `arguments`, bare,
 * fenced or between the marks of the common model families. It never throws, and a call that is cut off is not a
 * call. Tools with `parameters` give untyped formats their types.
 *
 * @example
 * ```ts
 * const parser = new ToolCallParser({ tools: ['add'] });
 * const { toolCall, textBefore } = parser.parse('Let me see. {"name": "add", "arguments": {"a": 42, "b": 58}}');
 * // toolCall: { id: 'call_1', name: 'add', arguments: { a: 42, b: 58 } }, textBefore: 'Let me see. '
 * ```
 */
export class ToolCallParser {
  readonly #tools: KnownToolSource | undefined;

  constructor(options: ToolCallParserOptions = {}) {
    checkOptions(options, OPTIONS);
    this.#tools = options.tools;
  }

  parse(text: string): ParsedText {
    // Callers in JavaScript may pass on missing content of a provider.
    if (typeof text !== 'string') return { toolCalls: [], textBefore: '' };
    const { calls, textBefore } = scanText(text, this.#tools);
    const toolCalls = numberDrafts(calls);
    return { toolCall: toolCalls[0], toolCalls, textBefore };
  }
}

/** The request in a strict `tool_request` message. */
export interface ToolRequest {
  readonly name: string;
  /** `{}` if the message contains none. */
  readonly arguments: JsonObject;
}

/**
 * Reads the strict `tool_request` protocol: the whole message is one JSON object
 * `{"tool_request":{"name":"…","arguments":{…}}}`, optionally with white space around it and without `arguments`.
 * Everything else (embedded, fenced, cut off, further keys, arguments that are not an object, no text at all) is
 * plain text and returns `undefined`; it never throws.
 *
 * @example
 * ```ts
 * parseToolRequest('{"tool_request":{"name":"lookup_weather","arguments":{"city":"Lisbon"}}}');
 * // { name: 'lookup_weather', arguments: { city: 'Lisbon' } }
 * ```
 */
export function parseToolRequest(text: unknown): ToolRequest | undefined {
  if (typeof text !== 'string') return undefined;
  const message = objectOf(parse(text.trim()), ['tool_request']);
  const request = objectOf(message?.tool_request, ['name', 'arguments']);
  if (request === undefined) return undefined;
  const { name, arguments: args = {} } = request;
  if (typeof name !== 'string' || name.trim() === '' || !isObject(args)) return undefined;
  return { name, arguments: args };
}

/** The value, if it is an object without any other keys. */
function objectOf(value: unknown, keys: readonly string[]): JsonObject | undefined {
  return isObject(value) && Object.keys(value).every((key) => keys.includes(key)) ? value : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parse(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    return undefined;
  }
}
