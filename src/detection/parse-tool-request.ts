import { parseExactJson } from '../checking/exact-json.js';
import type { JsonObject } from '../contract/json-schema.js';

/** What a strict `tool_request` message asks for. */
export interface ToolRequest {
  readonly name: string;
  /** `{}` where the message gave none. */
  readonly arguments: JsonObject;
}

/**
 * Reads the strict `tool_request` protocol: the whole message is one JSON object
 * `{"tool_request":{"name":"…","arguments":{…}}}`, white space around it allowed; without `arguments` there
 * are none. Anything else (embedded, fenced, cut off, further keys, arguments that are no object, no text at
 * all) is plain text and gives `undefined`; it never throws.
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
