import type { JsonSchema } from '../contract/json-schema.js';
import { BIGINT_DIGITS } from '../schema/value-type.js';
import { parseExactJson } from './exact-json.js';
import { isOfType } from './is-of-type.js';

/** The digits of a whole number, where a schema asks for those of a `bigint`; nothing is lost below 2^53. */
export function digitsOf(value: unknown, { type, pattern }: JsonSchema): string | undefined {
  if (pattern !== BIGINT_DIGITS || !Number.isSafeInteger(value)) return undefined;
  const isText = [type].flat().every((one) => one === 'string' || one === 'null');
  return isText ? String(value) : undefined;
}

/**
 * The value in a type that is wanted, where that loses nothing; otherwise the value itself:
 * text → number, integer, boolean; one value → array of one; JSON text → object or array. Never number →
 * string (but the digits of a `bigint`), never `null` → `""` or `0`, never `true` → `1`.
 */
export function coerceValue(value: unknown, types: readonly string[]): unknown {
  if (types.length === 0 || value === null || types.some((type) => isOfType(value, type))) return value;
  if (typeof value === 'string') {
    const fromText = coerceText(value, types);
    if (fromText !== undefined) return fromText;
  }
  // Where something else would do as well, it is not said that a list was meant.
  const wantsList = types.includes('array') && types.every((type) => type === 'array' || type === 'null');
  return wantsList ? [value] : value;
}

function coerceText(text: string, types: readonly string[]): unknown {
  const trimmed = text.trim();
  if (types.includes('number') || types.includes('integer')) {
    const number = readNumber(trimmed);
    if (number !== undefined && (types.includes('number') || Number.isInteger(number))) return number;
  }
  if (types.includes('boolean') && (trimmed === 'true' || trimmed === 'false')) return trimmed === 'true';
  if (types.includes('object') && trimmed.startsWith('{')) return readJson(trimmed, 'object');
  if (types.includes('array') && trimmed.startsWith('[')) return readJson(trimmed, 'array');
  return undefined;
}

/** No double needs more to be written down. */
const MAX_DIGITS = 400;
const DECIMAL = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The number a text spells, if no digit of it is lost. */
function readNumber(text: string): number | undefined {
  if (text.length > MAX_DIGITS || !DECIMAL.test(text)) return undefined;
  const number = Number(text);
  const digits = text
    .replace(/[eE].*$/, '')
    .replace(/[^\d]/g, '')
    .replace(/^0+/, '')
    .replace(/0+$/, '');
  return Number.isFinite(number) && digits.length <= 15 ? number : undefined;
}

function readJson(text: string, type: string): unknown {
  try {
    const value: unknown = parseExactJson(text);
    return isOfType(value, type) ? value : undefined;
  } catch {
    return undefined;
  }
}
