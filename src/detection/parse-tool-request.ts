import type { JsonObject } from '../contract/json-schema.js';

/** What a strict `tool_request` message asks for (seed 5.1). */
export interface ToolRequest {
  readonly name: string;
  readonly arguments: JsonObject;
}

/**
 * Reads the strict protocol of seed 5: the whole message is one JSON object
 * `{"tool_request":{"name":"…","arguments":{…}}}`, white space around it allowed. Anything else (embedded,
 * fenced, cut off, further keys, no text at all) is plain text and gives `undefined`; it never throws.
 *
 * @example
 * ```ts
 * parseToolRequest('{"tool_request":{"name":"lookup_weather","arguments":{"city":"Lisbon"}}}');
 * // { name: 'lookup_weather', arguments: { city: 'Lisbon' } }
 * ```
 */
export function parseToolRequest(text: unknown): ToolRequest | undefined {
  if (typeof text !== 'string') return undefined;
  const message = exactObject(parse(text.trim()), ['tool_request']);
  const request = exactObject(message?.tool_request, ['name', 'arguments']);
  if (request === undefined || !isObject(request.arguments)) return undefined;
  const { name } = request;
  if (typeof name !== 'string' || name.trim() === '') return undefined;
  return { name, arguments: request.arguments };
}

function exactObject(value: unknown, keys: readonly string[]): JsonObject | undefined {
  if (!isObject(value)) return undefined;
  const exact = Object.keys(value).length === keys.length && keys.every((key) => Object.hasOwn(value, key));
  return exact ? value : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
