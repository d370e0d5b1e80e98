import type { JsonObject } from '../contract/json-schema.js';

/** Arguments as an object, or why there is none. */
export type ReadArguments =
  | { readonly ok: true; readonly value: JsonObject }
  | { readonly ok: false; readonly message: string };

/**
 * Reads the arguments of a call, which arrive as an object, as JSON text, or not at all: models send `""`
 * and `null` for "no arguments", and encode objects twice (design §5).
 */
export function readArguments(raw: unknown): ReadArguments {
  if (raw === undefined || raw === null) return { ok: true, value: {} };
  if (typeof raw !== 'string') return readObject(raw);
  const text = raw.trim();
  if (text === '') return { ok: true, value: {} };
  const parsed = parse(text);
  if (parsed === undefined) return { ok: false, message: 'the arguments are no valid JSON' };
  return readParsed(parsed.value);
}

function readParsed(value: unknown): ReadArguments {
  if (typeof value === 'string' && value.trim() === '') return { ok: true, value: {} };
  const inner = typeof value === 'string' ? parse(value) : undefined;
  return inner === undefined ? readObject(value ?? {}) : readObject(inner.value ?? {});
}

function readObject(value: unknown): ReadArguments {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return { ok: true, value: value as JsonObject };
  return {
    ok: false,
    message: `the arguments must be a JSON object, not ${Array.isArray(value) ? 'an array' : typeof value}`,
  };
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
