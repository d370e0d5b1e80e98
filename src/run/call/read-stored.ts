import { escapePattern } from '../../core/kernel/escape-pattern.js';
import { readExactJson } from '../../core/kernel/exact-json.js';
import { isObject, isRecord } from '../../core/kernel/json.js';
import { headOf, withoutFiles, withoutHalf } from './result-text.js';

/** Selects a part of a stored result. */
export interface StoredPart {
  /** The first character. */
  readonly from?: number;
  /** The first line, from 1. */
  readonly line?: number;
  /** A path in JSON: `orders[0].lines`. */
  readonly path?: string;
  /** The text to find, without regard to case. */
  readonly search?: string;
  /** The most characters, lines, items or matches. */
  readonly count?: number;
}

/** A part of a stored result, limited in characters, with a line that describes it. */
export function readStored(text: string, part: StoredPart, limit: number): string {
  if (part.search !== undefined) return found(text, part, limit);
  if (part.path !== undefined) return fromJson(text, part, limit);
  return part.line === undefined ? characters(text, part, limit) : lines(text, part, limit);
}

function characters(text: string, { from = 0, count = Infinity }: StoredPart, limit: number): string {
  // Not in the middle of a character.
  const start = isLow(text, from) ? from - 1 : from;
  const piece = withoutHalf(text.slice(start, start + Math.min(count, limit)));
  const end = start + piece.length;
  if (start >= text.length) return `The result has ${text.length} characters; there is no character ${from}.`;
  const more = end < text.length ? `; continue with "from": ${end}` : '';
  return `${withoutFiles(piece)}\n[characters ${start} to ${end} of ${text.length}${more}]`;
}

function isLow(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  return code >= 0xdc00 && code <= 0xdfff;
}

function lines(text: string, { line = 1, count = 200 }: StoredPart, limit: number): string {
  const all = text.split('\n');
  const wanted = all.slice(line - 1, line - 1 + count);
  const [first] = wanted;
  if (first === undefined) return `The result has ${all.length} lines; there is no line ${line}.`;
  const shown = fitting(wanted, limit);
  if (shown.length === 0) {
    const offset = all.slice(0, line - 1).reduce((sum, before) => sum + before.length + 1, 0);
    return `Line ${line} has ${first.length} characters; read it with "from": ${offset}.`;
  }
  const end = line + shown.length - 1;
  const more = end < all.length ? `; continue with "line": ${end + 1}` : '';
  return `${withoutFiles(shown.join('\n'))}\n[lines ${line} to ${end} of ${all.length}${more}]`;
}

/** The first texts that fit within a number of characters, with one character after each. */
function fitting(texts: Iterable<string>, limit: number): readonly string[] {
  const shown: string[] = [];
  let left = limit;
  for (const text of texts) {
    left -= text.length + 1;
    if (left < 0) break;
    shown.push(text);
  }
  return shown;
}

const AROUND = 120;
const MATCHES = 20;
const MOST_COUNTED = 10_000;

function found(text: string, { search = '', from = 0, count = MATCHES }: StoredPart, limit: number): string {
  if (search === '') return '"search" is empty.';
  const pattern = new RegExp(escapePattern(search), 'gi');
  pattern.lastIndex = from;
  const parts: string[] = [];
  let size = 0;
  let last = from;
  let total = 0;
  for (let match = pattern.exec(text); match !== null && total < MOST_COUNTED; match = pattern.exec(text)) {
    total += 1;
    const { index } = match;
    const end = index + match[0].length;
    let start = Math.max(0, index - AROUND);
    if (isLow(text, start)) start += 1;
    const piece = withoutHalf(text.slice(start, end + AROUND)).replace(/\s+/g, ' ');
    const shown = `${start > 0 ? '…' : ''}${piece}${end + AROUND < text.length ? '…' : ''}`;
    const entry = `${index}: ${withoutFiles(shown)}`;
    if (parts.length >= count || size + entry.length + 1 > limit) continue;
    parts.push(entry);
    size += entry.length + 1;
    last = end;
  }
  if (total === 0)
    return `${JSON.stringify(search.toWellFormed())} was not found in the result${from > 0 ? ` from character ${from} on` : ''}.`;
  const more = parts.length < total ? `; continue with "from": ${last}` : '';
  const counted = total >= MOST_COUNTED ? `at least ${total}` : String(total);
  return `${parts.join('\n')}\n[${parts.length} of ${counted} matches, each with the position of its first character${more}]`;
}

function fromJson(
  text: string,
  { path = '', from = 0, count = Infinity }: StoredPart,
  limit: number,
): string {
  const read = readExactJson(text);
  if (read === undefined) return 'The result is not JSON: use "from", "line" or "search".';
  const whole = read.value;
  const value = valueAt(whole, path);
  if (value === undefined) return `There is nothing at ${path}. The result is ${shapeOf(whole)}.`;
  if (Array.isArray(value)) return items(value, { from, count, limit });
  const full = shownJson(value);
  const { head, shown } = headOf(full, limit);
  return shown < full.length && head !== full
    ? `${head}\n[cut; it is ${shapeOf(value)}: use a longer path]`
    : head;
}

function items(
  all: readonly unknown[],
  { from, count, limit }: { readonly from: number; readonly count: number; readonly limit: number },
): string {
  // The brackets take two characters; items that do not fit are not written.
  const texts = Iterator.from(all.slice(from, from + count)).map(shownJson);
  const parts = fitting(texts, limit - 2);
  const end = from + parts.length;
  const next = all[end];
  if (parts.length === 0 && next !== undefined)
    return `[]\n[item ${end} of ${all.length} alone has more than ${limit} characters; it is ${shapeOf(next)}: use a longer path]`;
  const more = end < all.length ? `; continue with "from": ${end}` : '';
  return `[${parts.join(',')}]\n[items ${from} to ${end} of ${all.length}${more}]`;
}

function shownJson(value: unknown): string {
  return withoutFiles(JSON.stringify(value) ?? 'null');
}

/** The value at `orders[0].lines`, or `$.orders[0]["lines"]`. */
function valueAt(value: unknown, path: string): unknown {
  let current = value;
  for (const [step] of path.replace(/^\$\.?/, '').matchAll(/[^.[\]"']+/g)) {
    if (!isObject(current) || !Object.hasOwn(current, step)) return undefined;
    current = (current as Readonly<Record<string, unknown>>)[step];
  }
  return current;
}

const KEYS = 20;
const DEPTH = 4;
const LONG_TEXT = 200;

/** The structure of JSON without its values: `{ orders: 5000 × { id: number, … }, total: number }`. */
export function shapeOf(value: unknown, depth = 0): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return 'an empty list';
    return `a list of ${value.length} × ${depth >= DEPTH ? '…' : shapeOf(value[0], depth + 1)}`;
  }
  if (isRecord(value)) {
    const entries = Object.entries(value);
    if (depth >= DEPTH) return `an object of ${entries.length} fields`;
    const parts = entries
      .slice(0, KEYS)
      .map(([key, field]) => `${key.slice(0, 60).toWellFormed()}: ${shapeOf(field, depth + 1)}`);
    const more = entries.length > KEYS ? `, and ${entries.length - KEYS} more` : '';
    return `{ ${parts.join(', ')}${more} }`;
  }
  if (typeof value === 'string' && value.length > LONG_TEXT) return `a string of ${value.length} characters`;
  return value === null ? 'null' : typeof value;
}
