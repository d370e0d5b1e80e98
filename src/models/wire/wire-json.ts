import type { LLMRequest, ReplyOrigin, ToolCall } from '../../core/contract/llm-provider.js';
import { readExactJson } from '../../core/kernel/exact-json.js';
import { isRecord, parsedJson, withoutUndefined } from '../../core/kernel/json.js';

/** An object of a request or reply. */
export type WireRecord = Readonly<Record<string, unknown>>;

/*
 * Compatible servers omit fields or send null, so the types that the client declares cannot be trusted. These readers
 * accept every JSON value.
 */

/** The value if it is an object that is not an array, otherwise an empty object. */
export function jsonRecord(value: unknown): WireRecord {
  return isRecord(value) ? value : {};
}

/** The value if it is an array, otherwise an empty array. */
export function jsonList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value if it is text, otherwise an empty text. */
export function jsonText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Parses a JSON object; `undefined` for other texts. */
export function parseJsonRecord(text: string): WireRecord | undefined {
  const value = parsedJson(text);
  return isRecord(value) ? value : undefined;
}

/** The text of arguments, even if a server sends the JSON itself. */
export function inputText(input: unknown): string {
  if (typeof input === 'string') return input;
  return input === undefined || input === null ? '' : JSON.stringify(input);
}

/** Text if it is not a JSON object, or if it contains long integers, which the reader of the arguments must handle. */
export function argumentsOf(input: string): ToolCall['arguments'] {
  const record = parseJsonRecord(input);
  return record === undefined || readExactJson(input)?.hasDigitsAsText ? input : record;
}

/**
 * The arguments of an earlier call as an object, for APIs that accept only objects: `{}` for other texts, because the
 * answer to the call states that they were invalid. Long integers are strings.
 */
export function argumentsAsObject(text: string): WireRecord {
  return jsonRecord(readExactJson(text)?.value);
}

/**
 * The token limit of a reply, under the first of these names, or under those in the options; limits in the options
 * are lowered and never raised.
 */
export function outputLimit(
  { maxOutputTokens, options = {} }: LLMRequest,
  names: readonly [string, ...string[]],
): WireRecord {
  if (maxOutputTokens === undefined) return {};
  const limits: Record<string, number> = {};
  for (const name of names) {
    const given = options[name];
    if (typeof given === 'number') limits[name] = Math.min(maxOutputTokens, given);
  }
  return Object.keys(limits).length > 0 ? limits : { [names[0]]: maxOutputTokens };
}

/** The origin of a reply, as far as its server states it. */
export function originOf(id: unknown, model: unknown): ReplyOrigin | undefined {
  const origin = { id: jsonText(id) || undefined, model: jsonText(model) || undefined };
  return origin.id || origin.model ? withoutUndefined(origin) : undefined;
}
