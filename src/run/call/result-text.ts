import type { CallRecord } from '../../core/contract/call.js';
import type { StoredResult } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { type Content, errorResult, type ToolResult } from '../../core/contract/tool-result.js';
import { type ErrorName, ToolwrightError } from '../../core/errors/toolwright-error.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { canonicalJson, isObject, parsedJson, plainJson, withoutUndefined } from '../../core/kernel/json.js';

/** The parts of a cut result that are stored for the application. */
export interface CutDetails {
  /** The whole text. */
  readonly full: string;
  /** The tool's own details, if there are any. */
  readonly details?: unknown;
}

const BRAND = Symbol.for('toolwright.CutDetails');

/** Whether a result's details are those of a cut result, including results of another copy of this package. */
export function isCutDetails(details: unknown): details is CutDetails {
  return isObject(details) && BRAND in details;
}

/** The stored parts of a result whose text is replaced: its first whole text, and the tool's details. */
export function cutDetails({ forLLM, details }: ToolResult): CutDetails {
  if (isCutDetails(details)) return details;
  const full: CutDetails = withoutUndefined({ full: forLLM, details });
  // A marker that is not enumerable: it is absent from JSON and copies.
  return Object.defineProperty(full, BRAND, { value: true });
}

/** Providers send the parts, if there are any: their text is replaced, and images stay. */
export function withText(content: Content, text: string): Content {
  return [{ type: 'text', content: text }, ...content.filter(({ type }) => type !== 'text')];
}

/** The text of a result for the model: `forLLM`, or the error's message if that is empty. */
export function resultText({ forLLM, error }: ToolResult): string {
  return forLLM !== '' || error === undefined || error === null ? forLLM : errorMessage(error);
}

/** A text about images and files, for models that receive only text. */
export function attachmentsText({ content = [] }: ToolResult): string {
  return content
    .flatMap((part) => (part.type === 'text' ? [] : [`[${part.type}: ${part.mimeType}]`]))
    .join('\n');
}

const MAX_IGNORED = 10;
const MAX_KEY = 64;

/** The text that answers a call: its result, and notes about its arguments. */
export function answerText(record: CallRecord): string {
  return [resultText(record.result), ...notesOf(record)].join('\n\n');
}

/** The notes below the result in a tool message: ignored and edited arguments. */
export function notesOf(record: CallRecord): readonly string[] {
  const { name, removed, edited } = record;
  const notes: string[] = [];
  // Without a note, a model reads the result of `list({ status: 'paid' })` as a list of paid orders.
  if (removed.length > 0) {
    const keys = removed.slice(0, MAX_IGNORED).map(shown).join(', ');
    const more = removed.length > MAX_IGNORED ? ` and ${removed.length - MAX_IGNORED} more` : '';
    const are = removed.length === 1 ? 'is not an argument' : 'are not arguments';
    notes.push(`Ignored: ${keys}${more} ${are} of ${name}.`);
  }
  if (edited !== undefined) {
    // The history has the model's arguments; without a note, it would assume that the result belongs to them.
    const { original } = edited;
    const args = record.arguments ?? {};
    const isChanged = (key: string) => canonicalJson(args[key]) !== canonicalJson(original[key]);
    const changed = Object.entries(args).filter(([key]) => !Object.hasOwn(original, key) || isChanged(key));
    const left = Object.keys(original).filter((key) => !Object.hasOwn(args, key));
    const now = changed.length > 0 ? ` They are now ${JSON.stringify(Object.fromEntries(changed))}.` : '';
    const without = left.length > 0 ? ` Left out: ${left.map(shown).join(', ')}.` : '';
    const note = `The user who approved this call changed its arguments.${now}${without}`;
    const missing = note.length - MAX_EDITS;
    notes.push(
      missing <= 0
        ? note
        : `${withoutHalf(note.slice(0, MAX_EDITS))}… (${missing} more characters are not shown)`,
    );
  }
  return notes;
}

const MAX_EDITS = 4_000;

/** A key on one line. */
function shown(key: string): string {
  const line = key.slice(0, 2 * MAX_KEY).replace(/\s+/g, ' ');
  return line.length > MAX_KEY ? `${line.slice(0, MAX_KEY).toWellFormed()}…` : line;
}

const EFFECTS_UNKNOWN = 'had begun, and its effects are unknown: find out, or ask, before you call it again.';

/**
 * The text for the model about a call that ended without a result: a call that had begun may have had an effect, so
 * it should not simply be repeated. `asking`: its tool had stopped at a question.
 */
export function unendedText(
  { name, annotations }: Pick<ToolDefinition, 'name' | 'annotations'>,
  at: 'not-begun' | 'asking' | 'begun' | { readonly timeoutMs: number; readonly hasBegun?: boolean },
): string {
  if (at === 'not-begun') return `The tool '${name}' was not run.`;
  const mayRepeat = annotations?.readOnly || annotations?.idempotent;
  if (typeof at === 'object') {
    const unknown = at.hasBegun && !mayRepeat ? ` It ${EFFECTS_UNKNOWN}` : '';
    return `The tool '${name}' timed out after ${at.timeoutMs} ms.${unknown}`;
  }
  if (at === 'asking' || mayRepeat) return `The tool '${name}' had not finished.`;
  return `The tool '${name}' ${EFFECTS_UNKNOWN}`;
}

/** A failure of the framework itself: the message is for the model, the coded error for the application. */
export function failedResult(name: ErrorName, message: string, cause?: unknown): ToolResult {
  const options = cause === undefined ? undefined : { cause };
  return errorResult(message).withError(new ToolwrightError(name, message, options));
}

/** The form of a result that stores save: everything that JSON can represent. */
export function storedResult(result: ToolResult): StoredResult {
  const { forUser, silent, isError, async, content } = result;
  // Details belong to the application and may have any type.
  const details = result.details === undefined ? undefined : plainJson(result.details);
  // An error that replaces an empty text is not stored, so its message is.
  const stored = { forLLM: resultText(result), silent, isError, async };
  // Most results are only a text.
  if (forUser === undefined && content === undefined && details === undefined) return stored;
  return { ...stored, ...withoutUndefined({ forUser, content, details }) };
}

/** The text that the model receives for an error of a tool; default: its message. */
export type DescribeError = (thrown: unknown, tool: string) => string;

/** Writes an error of a method as a result: the model receives its message, the log its cause. */
export function writeFailure(tool: string, thrown: unknown, describe?: DescribeError): ToolResult {
  const message = `The tool '${tool}' failed: ${errorMessage(thrown)}`;
  const error = new ToolwrightError('ToolExecutionFailed', message, { cause: thrown });
  return errorResult(describeThrown(tool, thrown, describe)).withError(error);
}

/** The text that the model receives for an error. If the description fails, the error must stay hidden. */
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
/** Longer words of letters and digits do not occur in texts. */
const LONGEST_WORD = 2_000;
const BASE64 = /[A-Za-z0-9+/_-]/;
const NO_BASE64 = /[^A-Za-z0-9+/_-]/g;

/** Replaces each file in a text by a note; `keep` may take the file, and returns the start of the note. */
export function withoutFiles(
  text: string,
  keep: (mimeType: string, data: string) => string = () => '',
): string {
  const named = withoutDataUrls(text, keep);
  let left = '';
  let from = 0;
  let seen = 0;
  // Every longer word has a character at one of these positions. A repeating pattern could overflow the stack.
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

/** The end of a Base64 run, including its padding. */
function endOfRun(text: string, from: number): number {
  NO_BASE64.lastIndex = from;
  const end = NO_BASE64.exec(text)?.index ?? text.length;
  return end + (/^={0,2}/.exec(text.slice(end, end + 2))?.[0].length ?? 0);
}

/** Checks the beginning: all parts of files contain letters of both cases and digits. */
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
  /** The number of characters of the original text that it represents. */
  readonly shown: number;
}

/**
 * The beginning of a text, limited in characters. JSON keeps only whole values and is closed; other texts are not cut
 * inside a character.
 */
export function headOf(text: string, limit: number): Head {
  if (/^\s*[[{]/.test(text.slice(0, 100))) {
    const head = jsonHead(text, limit);
    if (head !== undefined && parsedJson(text) !== undefined) return head;
  }
  const head = withoutHalf(text.slice(0, limit));
  return { head, shown: head.length };
}

/** Removes half a character at the end: APIs refuse lone surrogates. */
export function withoutHalf(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}

const CLOSING: Readonly<Record<string, string>> = { '[': ']', '{': '}' };

/** An open array or object at a position of a text. */
interface Open {
  readonly closing: string;
  /** The number of its complete values. */
  values: number;
}

/** Works on the text, so that numbers keep their digits. Returns `undefined` if not even an empty array would fit. */
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
    // Items of arrays are not shown in part, except for the first item, if there is nothing else to show.
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

/** The end of a string, or a position after the limit. */
function endOfString(text: string, start: number, limit: number): number {
  for (let index = start + 1; index <= limit; index += 1) {
    const character = text.charAt(index);
    if (character === '\\') index += 1;
    else if (character === '"') return index;
  }
  return limit + 1;
}

/** The completion of work that ended with its process, for the call in the next process. */
export function interruptedResult(tool: string): ToolResult {
  return failedResult(
    'TaskInterrupted',
    `The work of the tool '${tool}' was interrupted: the process ended before it was done. Its effects until then remain.`,
  );
}
