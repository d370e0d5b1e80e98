import type { JsonObject } from '../../core/contract/json-schema.js';
import { readExactJson } from '../../core/kernel/exact-json.js';
import { isRecord } from '../../core/kernel/json.js';
import { type RelaxedReading, readRelaxedJson } from './relaxed-json.js';

const NO_REPAIRS: readonly string[] = [];

/** The repair of an integer with more digits than a number can store. */
export const KEPT_DIGITS = 'preserved a long integer as a string';
const KEPT: readonly string[] = [KEPT_DIGITS];
const DECODED = 'decoded JSON that was encoded twice';

/** Arguments as an object, or why they cannot be read. */
export type ReadArguments =
  | {
      readonly ok: true;
      readonly value: JsonObject;
      /** The repairs that made them an object. */
      readonly repairs: readonly string[];
    }
  | { readonly ok: false; readonly message: string };

/**
 * Reads the arguments of a call, which arrive as an object, as JSON text, or not at all: models send `""` and `null`
 * for "no arguments", and encode objects twice.
 */
export function readArguments(raw: unknown): ReadArguments {
  if (raw === undefined || raw === null) return none();
  if (typeof raw !== 'string') return readObject(raw, NO_REPAIRS);
  const text = raw.trim();
  if (text === '') return none();
  const parsed = readExactJson(text);
  if (parsed !== undefined) {
    const { value, hasDigitsAsText } = parsed;
    if (typeof value !== 'string') return readObject(value ?? {}, hasDigitsAsText ? KEPT : NO_REPAIRS);
    if (value.trim() === '') return none();
    const inner = readExactJson(value);
    if (inner === undefined) return readObject(value, NO_REPAIRS);
    return readObject(inner.value ?? {}, [DECODED, ...(inner.hasDigitsAsText ? KEPT : NO_REPAIRS)]);
  }
  const repaired = repairJson(text);
  return repaired.ok
    ? readObject(repaired.value, [repaired.repair])
    : { ok: false, message: repaired.problem };
}

/** Reads arguments that are plain JSON; `undefined` for all others. */
export function readPlainArguments(raw: unknown): JsonObject | undefined {
  const read = typeof raw === 'string' ? readExactJson(raw) : undefined;
  const value = read === undefined ? raw : read.value;
  return isRecord(value) && !read?.hasDigitsAsText ? value : undefined;
}

function readObject(value: unknown, repairs: readonly string[]): ReadArguments {
  if (isRecord(value)) return { ok: true, value, repairs };
  const found = Array.isArray(value) ? 'an array' : typeof value;
  return { ok: false, message: `the arguments must be a JSON object, not ${found}` };
}

function none(): ReadArguments {
  return { ok: true, value: {}, repairs: NO_REPAIRS };
}

/** The meaning of broken JSON text, or why it cannot be repaired. */
type RepairedJson =
  | { readonly ok: true; readonly value: unknown; readonly repair: string }
  | { readonly ok: false; readonly problem: string };

/** Longer texts are not repaired: repair is for typos, not for hostile input. */
const MAX_LENGTH = 200_000;

const CUT_OFF = 'the arguments are cut off in the middle of a value; send them again, complete';
const SEVERAL = 'the arguments must be one JSON object, but the text contains several';
const BROKEN = 'the arguments are not valid JSON';
const AMBIGUOUS =
  'the arguments are not valid JSON, and their meaning is ambiguous; separate values with commas, and escape quotes within strings as \\"';

/**
 * Repairs unambiguous mistakes of models in JSON: code fences, text around the object, comments, missing and trailing
 * commas, quotes, missing closing brackets. A text with two possible meanings is refused. If the JSON was cut off
 * inside a value or before one, the rest is never guessed: a shortened path or amount has another meaning.
 */
function repairJson(text: string): RepairedJson {
  if (text.length > MAX_LENGTH) return refused(`${BROKEN}, and too long to repair`);
  const body = text.endsWith('```') ? text.slice(0, -3).trimEnd() : text;
  const start = startOfJson(body);
  if (start < 0) return refused('the arguments must be a JSON object, not plain text');
  const plain = readRelaxedJson(body, start, { isWhole: true });
  if (plain.kind === 'open') return refused(CUT_OFF);
  // Another non-empty object, or an array directly after the value.
  if (plain.kind === 'read' && /^[\s,]*\[\s*[^\s\]]|\{\s*[^\s}]/.test(body.slice(plain.end)))
    return refused(SEVERAL);
  if (plain.kind === 'read') {
    // A quote and a brace follow the object: it may have ended inside a string with unescaped quotes.
    const quote = body.slice(plain.end).search(/["'“”‘’]/);
    const hidesQuotes = quote >= 0 && body.lastIndexOf('}') > plain.end + quote;
    if (!hidesQuotes) return accepted(body, start, plain);
  }
  const readings = [
    readRelaxedJson(body, start, { isWhole: true, repairs: true }),
    readRelaxedJson(body, start, { repairs: true, hasInnerQuotes: true }),
  ];
  // Only closing brackets and similar characters may follow the value.
  const [read, other] = readings.filter(
    (reading): reading is ReadValue =>
      reading.kind === 'read' && /^[\s}\]),;.`]*$/.test(body.slice(reading.end)),
  );
  if (read === undefined) {
    const decoded = unescaped(body);
    if (decoded !== undefined) return decoded;
    if (readings.some(({ kind }) => kind === 'open')) return refused(CUT_OFF);
    const problem = readings.map((reading) => reading.kind === 'broken' && reading.problem).find(Boolean);
    return refused(problem ? `${BROKEN}: ${problem}` : BROKEN);
  }
  if (other !== undefined && JSON.stringify(read.value) !== JSON.stringify(other.value))
    return refused(AMBIGUOUS);
  return accepted(body, start, read);
}

type ReadValue = Extract<RelaxedReading, { kind: 'read' }>;

function refused(problem: string): RepairedJson {
  return { ok: false, problem };
}

function accepted(body: string, start: number, { value, end }: ReadValue): RepairedJson {
  const isStrict = readExactJson(body.slice(start, end)) !== undefined;
  const repair = isStrict ? 'removed the text around the JSON object' : 'repaired the JSON';
  return { ok: true, value, repair };
}

/** The start of the value: in a code fence before any quote, or at the first brace. */
function startOfJson(text: string): number {
  const fenced = /^[^"'“”‘’`]*```[\w-]*\s*(?=\{)/.exec(text)?.[0].length;
  if (fenced !== undefined) return fenced;
  return /^\s*\[\s*(?:[[{"'“‘\d-]|$)/.test(text) ? text.indexOf('[') : text.indexOf('{');
}

/** `{\"a\": 1}`: JSON that was encoded twice, and lost its outer quotes and perhaps some backslashes. */
function unescaped(text: string): RepairedJson | undefined {
  if (!/^\{(?:\s|\\[nrt])*\\"/.test(text) || /[^\\]"/.test(text)) return undefined;
  const quoted = text.replace(/(?<!\\)((?:\\\\)*)"/g, '$1\\"').replace(/\n/g, '\\n');
  const inner = readExactJson(`"${quoted}"`)?.value;
  const parsed = typeof inner === 'string' ? readExactJson(inner) : undefined;
  return parsed && { ok: true, value: parsed.value, repair: DECODED };
}
