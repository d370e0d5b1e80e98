/** An integer that may have more digits than a number keeps; of fewer, every digit is kept. */
const LONG_INTEGER = /^-?\d{16,}$/;
const LONG_RUN = 16;

/** What a JSON text says, to the digit. */
export interface ExactJson {
  readonly value: unknown;
  /** An integer that a number would change is the text that it was written as. */
  readonly hasDigitsAsText: boolean;
}

/**
 * Reads JSON without losing digits: an integer that would be another one as a number is kept as text, for
 * whoever takes text; a check for numbers refuses it.
 *
 * @throws SyntaxError where the text is no JSON.
 */
export function readExactJson(text: string): ExactJson {
  const value: unknown = JSON.parse(text);
  return hasLongRun(text) ? readAgain(text, value) : { value, hasDigitsAsText: false };
}

/** The value alone of {@link readExactJson}. */
export function parseExactJson(text: string): unknown {
  return readExactJson(text).value;
}

/** With each such integer written as text; only few texts have one. */
function readAgain(text: string, value: unknown): ExactJson {
  const quoted = withQuotedIntegers(text);
  if (quoted === text) return { value, hasDigitsAsText: false };
  const exact: unknown = JSON.parse(quoted);
  // Of a key that is there twice, only the last value counts.
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

/** JSON text with quotes around the integers of which a number would lose digits. */
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

/** Where the strings end that begin between two places of JSON text, the first of which is in none. */
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
      if (typeof left === 'object' && left !== null) pairs.push([left, right]);
      else if (left !== right) return true;
    }
  return false;
}

type Fields = Readonly<Record<string, unknown>>;

/** The number that a literal stands for, or the literal where the number would be written with other digits. */
export function exactNumber(literal: string): number | string {
  const value = Number(literal);
  if (Number.isSafeInteger(value) || !LONG_INTEGER.test(literal) || String(value) === literal) return value;
  return Number.isFinite(value) && BigInt(value).toString() === literal ? value : literal;
}

/** Whether a text is an integer of which a number would lose digits. */
export function losesDigits(value: unknown): value is string {
  return typeof value === 'string' && LONG_INTEGER.test(value) && typeof exactNumber(value) === 'string';
}
