import { readExactJson } from '../../checking/exact-json.js';
import type { ReplyOrigin, ToolCall } from '../../contract/llm-provider.js';
import { isRecord } from '../../kernel/json.js';

/** An object as it stands on the wire. */
export type WireRecord = Readonly<Record<string, unknown>>;

/*
 * Compatible servers leave fields out or send null, so nothing of a reply may be trusted to have the type
 * that the client's declarations give it. These readers are total: every JSON value is fine.
 */

/** The value if it is an object that is no array, otherwise an empty object. */
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

/** The object that a text is the JSON of, or `undefined` where it is the JSON of something else or of nothing. */
export function parseJsonRecord(text: string): WireRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The text of arguments, whether a server sends it or, as some do, the JSON itself. */
export function inputText(input: unknown): string {
  if (typeof input === 'string') return input;
  return input === undefined || input === null ? '' : JSON.stringify(input);
}

/** As text where there is no object, or one whose long integers whoever reads the arguments is to decide on. */
export function argumentsOf(input: string): ToolCall['arguments'] {
  const record = parseJsonRecord(input);
  return record === undefined || readExactJson(input).hasDigitsAsText ? input : record;
}

/** Whether a text of arguments is a whole JSON object. The look at its end spares parsing most pieces. */
export function isWholeInput(input: string): boolean {
  return input.trimEnd().endsWith('}') && parseJsonRecord(input) !== undefined;
}

/** Where a reply came from, as far as its server says. */
export function originOf(id: unknown, model: unknown): ReplyOrigin | undefined {
  const told = {
    ...(jsonText(id) === '' ? {} : { id: jsonText(id) }),
    ...(jsonText(model) === '' ? {} : { model: jsonText(model) }),
  };
  return Object.keys(told).length > 0 ? told : undefined;
}
