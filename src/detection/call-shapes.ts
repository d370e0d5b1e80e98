import { parseExactJson } from '../checking/exact-json.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { DraftCall } from './draft-call.js';
import type { ReadJson } from './text-cursor.js';

/** How a JSON value is looked at. */
export interface ShapeOptions {
  readonly text: string;
  /** A call may leave its arguments out: it stands between marks, so it is meant as one. */
  readonly marked: boolean;
}

/**
 * The calls that a JSON value is: `{ name, arguments }`, Llama's `parameters`, Command R's `tool_name`,
 * the OpenAI shapes with `function` and `tool_calls`, or an array of those.
 */
export function callsInJson(json: ReadJson, { text, marked }: ShapeOptions): readonly DraftCall[] {
  const calls = callsInValue(json.value, marked);
  if (json.members === undefined) return calls;
  // No strict JSON: the raw text goes on, so that the read step mends it, records that it did so, and
  // tools that refuse repaired arguments can.
  const span = json.members.get('arguments') ?? json.members.get('parameters');
  const [call, ...others] = calls;
  if (call === undefined || others.length > 0 || Array.isArray(json.value)) return [];
  if (span === undefined) return marked && isEmpty(call.arguments) ? [call] : [];
  const raw = text.slice(span.start, span.end);
  return [{ ...call, arguments: parseObject(raw) ?? raw }];
}

function callsInValue(value: unknown, marked: boolean): readonly DraftCall[] {
  if (Array.isArray(value))
    return value.flatMap((item) => (isObject(item) ? callsInObject(item, marked) : []));
  return isObject(value) ? callsInObject(value, marked) : [];
}

function callsInObject(value: JsonObject, marked: boolean): readonly DraftCall[] {
  const list = own(value, 'tool_calls');
  if (Array.isArray(list)) return list.flatMap((item) => (isObject(item) ? callsInObject(item, false) : []));
  const wrapped = own(value, 'function');
  const call = isObject(wrapped) ? toCall(wrapped, false) : toCall(value, marked);
  if (call === undefined) return [];
  const id = own(value, 'id') ?? own(value, 'tool_call_id');
  return [typeof id === 'string' && id !== '' ? { ...call, id } : call];
}

function toCall(value: JsonObject, marked: boolean): DraftCall | undefined {
  const name = own(value, 'name') ?? own(value, 'tool_name');
  const key = ['arguments', 'parameters'].find((candidate) => Object.hasOwn(value, candidate));
  if (typeof name !== 'string' || (key === undefined && !marked)) return undefined;
  const sent = key === undefined ? {} : value[key];
  if (key === 'parameters' && isSchema(sent)) return undefined;
  return { name, arguments: tidyArguments(sent) };
}

/** A model that quotes a tool's definition does not call it. */
function isSchema(value: unknown): boolean {
  return isObject(value) && own(value, 'type') === 'object' && isObject(own(value, 'properties'));
}

function tidyArguments(sent: unknown): JsonObject | string {
  if (isObject(sent)) return sent;
  if (typeof sent === 'string') return parseObject(sent) ?? sent;
  return sent === null ? {} : JSON.stringify(sent);
}

function own(value: JsonObject, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

function isEmpty(value: JsonObject | string): boolean {
  return typeof value === 'object' && Object.keys(value).length === 0;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parseObject(text: string): JsonObject | undefined {
  try {
    const value = parseExactJson(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
