import type { JsonObject } from '../contract/json-schema.js';
import { type ExactJson, readExactJson } from './exact-json.js';
import { repairJson } from './repair-json.js';

const NONE: readonly string[] = [];

/** The repair of an integer that has more digits than a number keeps. */
export const KEPT_DIGITS = 'kept an integer of many digits as text';
const KEPT: readonly string[] = [KEPT_DIGITS];
const DECODED = 'decoded JSON that was encoded twice';

/** Arguments as an object, or why there is none. */
export type ReadArguments =
  | {
      readonly ok: true;
      readonly value: JsonObject;
      /** What had to be mended before there was an object. */
      readonly repairs: readonly string[];
    }
  | { readonly ok: false; readonly message: string };

/**
 * Reads the arguments of a call, which arrive as an object, as JSON text, or not at all: models send `""`
 * and `null` for "no arguments", and encode objects twice.
 */
export function readArguments(raw: unknown): ReadArguments {
  if (raw === undefined || raw === null) return none();
  if (typeof raw !== 'string') return readObject(raw, NONE);
  const text = raw.trim();
  if (text === '') return none();
  const parsed = parse(text);
  if (parsed !== undefined) return readParsed(parsed);
  const repaired = repairJson(text);
  return repaired.ok
    ? readObject(repaired.value, [repaired.repair])
    : { ok: false, message: repaired.problem };
}

function readParsed({ value, hasDigitsAsText }: ExactJson): ReadArguments {
  if (typeof value !== 'string') return readObject(value ?? {}, hasDigitsAsText ? KEPT : NONE);
  if (value.trim() === '') return none();
  const inner = parse(value);
  return inner === undefined
    ? readObject(value, NONE)
    : readObject(inner.value ?? {}, [DECODED, ...(inner.hasDigitsAsText ? KEPT : NONE)]);
}

function readObject(value: unknown, repairs: readonly string[]): ReadArguments {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return { ok: true, value: value as JsonObject, repairs };
  return {
    ok: false,
    message: `the arguments must be a JSON object, not ${Array.isArray(value) ? 'an array' : typeof value}`,
  };
}

function none(): ReadArguments {
  return { ok: true, value: {}, repairs: NONE };
}

function parse(text: string): ExactJson | undefined {
  try {
    return readExactJson(text);
  } catch {
    return undefined;
  }
}
