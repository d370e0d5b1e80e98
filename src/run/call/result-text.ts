import type { CallRecord } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { StoredResult } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { type Content, errorResult, type ToolResult } from '../../core/contract/tool-result.js';
import { type ErrorName, ToolwrightError } from '../../core/errors/toolwright-error.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { canonicalJson, parsedJson, plainJson, withoutUndefined } from '../../core/kernel/json.js';

/** What is kept of a result that was cut, for the application. */
export interface CutDetails {
  /** The whole text. */
  readonly full: string;
  /** The tool's own details, where it gave any. */
  readonly details?: unknown;
}

const BRAND = Symbol.for('toolwright.CutDetails');

/** Whether a result's details are what is kept of one that was cut, also by another copy of this package. */
export function isCutDetails(details: unknown): details is CutDetails {
  return typeof details === 'object' && details !== null && BRAND in details;
}

/** What is kept of a result that is told otherwise: the first whole text, and what the tool gave beside it. */
export function cutDetails({ forLLM, details }: ToolResult): CutDetails {
  if (isCutDetails(details)) return details;
  const full: CutDetails = withoutUndefined({ full: forLLM, details });
  // A mark that is not enumerable: it is in no JSON and no copy.
  return Object.defineProperty(full, BRAND, { value: true });
}

/** Providers send the parts, where there are any: their text becomes another one, and pictures stay. */
export function withText(content: Content, text: string): Content {
  return [{ type: 'text', content: text }, ...content.filter(({ type }) => type !== 'text')];
}

/** What the model gets of a result: `forLLM`, or the error's text where that is empty. */
export function resultText({ forLLM, error }: ToolResult): string {
  return forLLM !== '' || error === undefined || error === null ? forLLM : errorMessage(error);
}

/** Images and files without text: a model that gets only text should know of them. */
export function attachmentsText({ content = [] }: ToolResult): string {
  return content
    .flatMap((part) => (part.type === 'text' ? [] : [`[${part.type}: ${part.mimeType}]`]))
    .join('\n');
}

const MAX_IGNORED = 10;
const MAX_KEY = 64;

/** The text that answers a call: its result's, and what else there is to say of its arguments. */
export function answerText(record: CallRecord): string {
  return [resultText(record.result), ...notesOf(record)].join('\n\n');
}

/** What a tool message states below the result: which arguments were ignored, and which were edited. */
export function notesOf(record: CallRecord): readonly string[] {
  const { name, removed, edited } = record;
  const notes: string[] = [];
  // Without a note, a model takes `list({ status: 'paid' })` for a list of what is paid.
  if (removed.length > 0) {
    const keys = removed.slice(0, MAX_IGNORED).map(shown).join(', ');
    const more = removed.length > MAX_IGNORED ? ` and ${removed.length - MAX_IGNORED} more` : '';
    const are = removed.length === 1 ? 'is not an argument' : 'are not arguments';
    notes.push(`Ignored: ${keys}${more} ${are} of ${name}.`);
  }
  if (edited !== undefined) notes.push(editedText(edited.original, record.arguments));
  return notes;
}

const MAX_EDITS = 4_000;

/**
 * A line of the tool message where whoever approved the call changed its arguments: the history has those of the
 * model, and a model that is not told takes a result for one of what it had asked for.
 */
function editedText(original: JsonObject, args: JsonObject = {}): string {
  const isChanged = (key: string) => canonicalJson(args[key]) !== canonicalJson(original[key]);
  const changed = Object.entries(args).filter(([key]) => !Object.hasOwn(original, key) || isChanged(key));
  const left = Object.keys(original).filter((key) => !Object.hasOwn(args, key));
  const now = changed.length > 0 ? ` They are now ${JSON.stringify(Object.fromEntries(changed))}.` : '';
  const without = left.length > 0 ? ` Left out: ${left.map(shown).join(', ')}.` : '';
  const told = `Whoever approved this call changed its arguments first.${now}${without}`;
  if (told.length <= MAX_EDITS) return told;
  return `${withoutHalf(told.slice(0, MAX_EDITS))}… (${told.length - MAX_EDITS} more characters are not shown)`;
}

/** On one line, whatever a model takes for a key. */
function shown(key: string): string {
  const line = key.slice(0, 2 * MAX_KEY).replace(/\s+/g, ' ');
  return line.length > MAX_KEY ? `${line.slice(0, MAX_KEY).toWellFormed()}…` : line;
}

const NOBODY_KNOWS =
  'had begun, and nobody knows what of it was done: check that, or ask, before you call it again.';

/**
 * What a model is told of a call that ends without a result: one that had begun may have been done, so that it is not
 * simply to be made again. `asking`: its tool had stopped at a question.
 */
export function unendedText(
  { name, annotations }: Pick<ToolDefinition, 'name' | 'annotations'>,
  at: 'not-begun' | 'asking' | 'begun' | { readonly timeoutMs: number; readonly hasBegun?: boolean },
): string {
  if (at === 'not-begun') return `The tool '${name}' was not run.`;
  const mayRepeat = annotations?.readOnly || annotations?.idempotent;
  if (typeof at === 'object') {
    const unknown = at.hasBegun && !mayRepeat ? ` It ${NOBODY_KNOWS}` : '';
    return `The tool '${name}' timed out after ${at.timeoutMs} ms.${unknown}`;
  }
  if (at === 'asking' || mayRepeat) return `The tool '${name}' had not finished.`;
  return `The tool '${name}' ${NOBODY_KNOWS}`;
}

/** A failure of the framework's own: the message goes to the model, the coded error to whoever looks. */
export function failedResult(name: ErrorName, message: string, cause?: unknown): ToolResult {
  const options = cause === undefined ? undefined : { cause };
  return errorResult(message).withError(new ToolwrightError(name, message, options));
}

/** A result as it is kept: all of it that JSON can say. */
export function storedResult(result: ToolResult): StoredResult {
  const { forUser, silent, isError, async, content, details } = result;
  return withoutUndefined<StoredResult>({
    // An error that stands for an empty text is not kept, so its text is.
    forLLM: resultText(result),
    silent,
    isError,
    async,
    forUser,
    content,
    // Details are the application's own, and may be anything.
    details: plainJson(details),
  });
}

/** The text that the model receives for an error of a tool; default: its message. */
export type DescribeError = (thrown: unknown, tool: string) => string;

/** What a method threw, as a result: the model gets exactly its message, the log gets the cause. */
export function writeFailure(tool: string, thrown: unknown, describe?: DescribeError): ToolResult {
  const message = `The tool '${tool}' failed: ${errorMessage(thrown)}`;
  const error = new ToolwrightError('ToolExecutionFailed', message, { cause: thrown });
  return errorResult(describeThrown(tool, thrown, describe)).withError(error);
}

/** The text that the model receives for an error. If the description fails, it must not reveal what it should mask. */
export function describeThrown(tool: string, thrown: unknown, describe: DescribeError | undefined): string {
  if (describe === undefined) return errorMessage(thrown);
  try {
    return String(describe(thrown, tool));
  } catch {
    return `The tool '${tool}' failed.`;
  }
}

const DATA_URL = /data:([a-z]+\/[a-z0-9.+-]+)(?:;[a-z0-9=_.-]+)*;base64,/gi;
const SHORTEST_DATA = 200;
/** What no text has: a word of so many letters and digits. */
const LONGEST_WORD = 2_000;
const BASE64 = /[A-Za-z0-9+/_-]/;
const NO_BASE64 = /[^A-Za-z0-9+/_-]/g;

/** A text with a note in place of each file; `keep` may take it, and gives what the note is to begin with. */
export function withoutFiles(
  text: string,
  keep: (mimeType: string, data: string) => string = () => '',
): string {
  const named = withoutDataUrls(text, keep);
  let left = '';
  let from = 0;
  let seen = 0;
  // Whatever is longer has a character at one of these places. A pattern that repeats would run out of stack.
  for (let at = LONGEST_WORD - 1; at < named.length; at += LONGEST_WORD) {
    if (at < seen || !BASE64.test(named.charAt(at))) continue;
    let start = at;
    while (start > seen && BASE64.test(named.charAt(start - 1))) start -= 1;
    seen = endOfRun(named, at);
    const run = named.slice(start, seen);
    if (run.length < LONGEST_WORD || !isBase64(run)) continue;
    left += `${named.slice(from, start)}[${bytesOf(run)} bytes of Base64 left out]`;
    from = seen;
  }
  return left + named.slice(from);
}

function withoutDataUrls(text: string, keep: (mimeType: string, data: string) => string): string {
  let left = '';
  let from = 0;
  for (const { 0: head, 1: mimeType = '', index } of text.matchAll(DATA_URL)) {
    const end = endOfRun(text, index + head.length);
    const data = text.slice(index + head.length, end);
    if (data.length < SHORTEST_DATA || index < from) continue;
    const name = keep(mimeType.toLowerCase(), data);
    const note = `[${name}${mimeType}, ${bytesOf(data)} bytes${name === '' ? ' of Base64 left out' : ''}]`;
    left += text.slice(from, index) + note;
    from = end;
  }
  return left + text.slice(from);
}

/** Where a run of Base64 ends, with the signs that fill it up. */
function endOfRun(text: string, from: number): number {
  NO_BASE64.lastIndex = from;
  const end = NO_BASE64.exec(text)?.index ?? text.length;
  return end + (/^={0,2}/.exec(text.slice(end, end + 2))?.[0].length ?? 0);
}

/** Of the beginning: files have letters of both cases and digits in any part of them. */
function isBase64(run: string): boolean {
  const some = run.slice(0, 1_000);
  return /[A-Z]/.test(some) && /[a-z]/.test(some) && /\d/.test(some) && new Set(some).size > 30;
}

function bytesOf(base64: string): number {
  return Math.floor((base64.replace(/=+$/, '').length * 3) / 4);
}

/** The beginning of a text that is too long. */
interface Head {
  readonly head: string;
  /** How many characters of the text it stands for. */
  readonly shown: number;
}

/**
 * The beginning of a text, of at most so many characters: of JSON whole values only, closed as they were, of any other
 * text no half of a character.
 */
export function headOf(text: string, limit: number): Head {
  if (/^\s*[[{]/.test(text.slice(0, 100))) {
    const head = jsonHead(text, limit);
    if (head !== undefined && parsedJson(text) !== undefined) return head;
  }
  const head = withoutHalf(text.slice(0, limit));
  return { head, shown: head.length };
}

/** Without half a character at its end: lone surrogates are no valid text for an API. */
export function withoutHalf(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}

const CLOSING: Readonly<Record<string, string>> = { '[': ']', '{': '}' };

/** A list or an object that is open at some place of a text. */
interface Open {
  readonly closing: string;
  /** How many of its values have ended. */
  values: number;
}

/** By the text itself, so that no number changes its digits. Nothing where not even an empty list would fit. */
function jsonHead(text: string, limit: number): Head | undefined {
  const open: Open[] = [];
  let best: { readonly shown: number; readonly closing: string } | undefined;
  for (let index = 0; index < text.length && index + open.length <= limit; index += 1) {
    const character = text.charAt(index);
    if (character === '"') {
      index = endOfString(text, index, limit);
      continue;
    }
    const closing = CLOSING[character];
    const inner = open.at(-1);
    if (closing !== undefined) open.push({ closing, values: 0 });
    else if (inner !== undefined && (character === ',' || character === inner.closing)) inner.values += 1;
    else continue;
    const shown = closing === undefined ? index : index + 1;
    // No item of a list is shown in part, except for the first one, where there is nothing else to show.
    const isWhole = ({ closing: end, values }: Open, depth: number): boolean =>
      end !== ']' || values === 0 || depth === open.length - 1;
    if (shown + open.length <= limit && open.every(isWhole))
      best = {
        shown,
        closing: Array.from(open, (list) => list.closing)
          .reverse()
          .join(''),
      };
    if (closing === undefined && character !== ',') open.pop();
  }
  return best && { head: text.slice(0, best.shown) + best.closing, shown: best.shown };
}

/** Where a string ends, or behind the limit. */
function endOfString(text: string, start: number, limit: number): number {
  for (let index = start + 1; index <= limit; index += 1) {
    const character = text.charAt(index);
    if (character === '\\') index += 1;
    else if (character === '"') return index;
  }
  return limit + 1;
}

/** The completion of work that ended with its process: what the call gets in the next one. */
export function interruptedResult(tool: string): ToolResult {
  return failedResult(
    'TaskInterrupted',
    `The work of the tool '${tool}' was interrupted: the process ended before it was done. What it had done by then stays done.`,
  );
}
