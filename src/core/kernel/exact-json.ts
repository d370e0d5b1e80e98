import { type Fields, isObject, parsedJson } from './json.js';

/** An integer that may have more digits than a number can store; shorter integers are always exact. */
const LONG_INTEGER = /^-?\d{16,}$/;
const LONG_RUN = 16;

/** The value of a JSON text, without lost digits. */
interface ExactJson {
  readonly value: unknown;
  /** Integers that a number cannot represent are strings with the original digits. */
  readonly hasDigitsAsText: boolean;
}

/**
 * Reads JSON without losing digits: an integer that a number cannot represent becomes a string. Schemas for strings
 * accept it; schemas for numbers reject it. Returns `undefined` if the text is not JSON.
 */
export function readExactJson(text: string): ExactJson | undefined {
  const value = parsedJson(text);
  if (value === undefined) return undefined;
  // Few texts need to be parsed again, with each such integer as a string.
  const quoted = hasLongRun(text) ? withQuotedIntegers(text) : text;
  if (quoted === text) return { value, hasDigitsAsText: false };
  const exact: unknown = JSON.parse(quoted);
  // If a key occurs twice, only the last value counts.
  return { value: exact, hasDigitsAsText: differ(value, exact) };
}

function hasLongRun(text: string): boolean {
  for (let at = LONG_RUN - 1; at < text.length; at += LONG_RUN) {
    if (!isDigit(text, at)) continue;
    let [start, end] = [at, at];
    while (isDigit(text, start - 1)) start -= 1;
    while (isDigit(text, end + 1)) end += 1;
    if (end - start >= LONG_RUN - 1) return true;
  }
  return false;
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 48 && code <= 57;
}

/** JSON text with quotes around integers that a number cannot represent. */
function withQuotedIntegers(text: string): string {
  const integers = /(?<=^|[\s,:[])-?\d{16,}(?=$|[\s,\]}])/g;
  let quoted = '';
  let copied = 0;
  let outside = 0;
  for (let found = integers.exec(text); found !== null; found = integers.exec(text)) {
    outside = endOfStrings(text, outside, found.index);
    if (outside > found.index) {
      integers.lastIndex = outside;
      continue;
    }
    const [digits] = found;
    if (typeof exactNumber(digits) === 'number') continue;
    quoted += `${text.slice(copied, found.index)}"${digits}"`;
    copied = integers.lastIndex;
  }
  return quoted + text.slice(copied);
}

/** The end of the strings between two positions of JSON text; the first position is outside strings. */
function endOfStrings(text: string, from: number, to: number): number {
  let at = from;
  while (at <= to) {
    const start = text.indexOf('"', at);
    if (start < 0 || start > to) return to;
    at = text.indexOf('"', start + 1);
    while (isEscaped(text, at)) at = text.indexOf('"', at + 1);
    at += 1;
  }
  return at;
}

function isEscaped(text: string, at: number): boolean {
  let start = at;
  while (text[start - 1] === '\\') start -= 1;
  return (at - start) % 2 === 1;
}

function differ(one: unknown, other: unknown): boolean {
  const pairs: [unknown, unknown][] = [[[one], [other]]];
  for (const [a, b] of pairs)
    for (const key of Object.keys(a as Fields)) {
      const [left, right] = [(a as Fields)[key], (b as Fields)[key]];
      if (isObject(left)) pairs.push([left, right]);
      else if (left !== right) return true;
    }
  return false;
}

/** The number of a literal, or the literal itself if the number would have other digits. */
export function exactNumber(literal: string): number | string {
  const value = Number(literal);
  if (Number.isSafeInteger(value) || !LONG_INTEGER.test(literal) || String(value) === literal) return value;
  return Number.isFinite(value) && BigInt(value).toString() === literal ? value : literal;
}

/** Whether a text is an integer that a number cannot represent. */
export function losesDigits(value: unknown): value is string {
  return typeof value === 'string' && LONG_INTEGER.test(value) && typeof exactNumber(value) === 'string';
}
