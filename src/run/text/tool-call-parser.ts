import type { JsonObject } from '../../core/contract/json-schema.js';
import type { ToolCall } from '../../core/contract/llm-provider.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { readExactJson } from '../../core/kernel/exact-json.js';
import { isRecord } from '../../core/kernel/json.js';
import { either, LIST, optionTable, withMethods } from '../../core/kernel/options.js';
import { withoutHalf } from '../call/result-text.js';
import { ALL_FORMATS, type DraftCall } from './call-formats.js';
import { type KnownToolSource, type KnownTools, knownTools, type UnknownTools } from './known-tools.js';
import {
  REASONING_CLOSERS,
  REASONING_MARKS,
  REASONING_OPENERS,
  type ReasoningMark,
} from './reasoning-marks.js';
import { LiteralIndex, TextCursor } from './text-cursor.js';

/** The calls and text of a parsed text. */
export interface ParsedText {
  /** The first call. */
  readonly toolCall?: ToolCall;
  /** All calls, in the order of the text. */
  readonly toolCalls: readonly ToolCall[];
  /** The text before the first call, untrimmed; the whole text if it has no call. */
  readonly textBefore: string;
}

/** Options of {@link ToolCallParser}. */
export interface ToolCallParserOptions {
  /** Names, tools, or a registry: only these can be called. Without it, any name can. */
  readonly tools?: KnownToolSource;
}

const OPTIONS = optionTable<ToolCallParserOptions>('ToolCallParser', {
  tools: { ...either(LIST, withMethods(['list'], '')), fix: "a ToolRegistry, or ['add', …]" },
});

/**
 * Finds tool calls in the text of a model without native calling: JSON objects with `name` and `arguments`, bare,
 * fenced or between the marks of the common model families. It never throws, and a call that is cut off is not a
 * call. Tools with `parameters` give untyped formats their types.
 *
 * @example
 * ```ts
 * const parser = new ToolCallParser({ tools: ['add'] });
 * const { toolCall, textBefore } = parser.parse('Let me see. {"name": "add", "arguments": {"a": 42, "b": 58}}');
 * // toolCall: { id: 'call_1', name: 'add', arguments: { a: 42, b: 58 } }, textBefore: 'Let me see. '
 * ```
 */
export class ToolCallParser {
  readonly #tools: KnownToolSource | undefined;

  constructor(options: ToolCallParserOptions = {}) {
    checkOptions(options, OPTIONS);
    this.#tools = options.tools;
  }

  parse(text: string): ParsedText {
    // Callers in JavaScript may pass on missing content of a provider.
    if (typeof text !== 'string') return { toolCalls: [], textBefore: '' };
    const { calls, textBefore } = scanText(text, this.#tools);
    const toolCalls = numberDrafts(calls);
    return { toolCall: toolCalls[0], toolCalls, textBefore };
  }
}

/** The request in a strict `tool_request` message. */
export interface ToolRequest {
  readonly name: string;
  /** `{}` if the message contains none. */
  readonly arguments: JsonObject;
}

/**
 * Reads the strict `tool_request` protocol: the whole message is one JSON object
 * `{"tool_request":{"name":"…","arguments":{…}}}`, optionally with white space around it and without `arguments`.
 * Everything else (embedded, fenced, cut off, further keys, arguments that are not an object, no text at all) is
 * plain text and returns `undefined`; it never throws.
 *
 * @example
 * ```ts
 * parseToolRequest('{"tool_request":{"name":"lookup_weather","arguments":{"city":"Lisbon"}}}');
 * // { name: 'lookup_weather', arguments: { city: 'Lisbon' } }
 * ```
 */
export function parseToolRequest(text: unknown): ToolRequest | undefined {
  if (typeof text !== 'string') return undefined;
  const message = objectOf(readExactJson(text.trim())?.value, ['tool_request']);
  const request = objectOf(message?.tool_request, ['name', 'arguments']);
  if (request === undefined) return undefined;
  const { name, arguments: args = {} } = request;
  if (typeof name !== 'string' || name.trim() === '' || !isRecord(args)) return undefined;
  return { name, arguments: args };
}

/** The value, if it is an object without any other keys. */
function objectOf(value: unknown, keys: readonly string[]): JsonObject | undefined {
  return isRecord(value) && Object.keys(value).every((key) => keys.includes(key)) ? value : undefined;
}

/** A part of the scanned text: plain text, or calls. */
export type ScannedPiece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'calls'; readonly calls: readonly DraftCall[] };

/** The text before calls, which may make them an example. */
interface CallContextText {
  /** Only white space comes before them in their line. */
  readonly startsLine: boolean;
  readonly isFenced: boolean;
  /** The closing mark of the quotation or inline code around their line. */
  readonly quotation: string | undefined;
  /** The closing mark of the quotation that starts right before them. */
  readonly quote: string | undefined;
}

const QUOTE_CLOSERS: ReadonlyMap<string, string> = new Map([
  ...(['`', '"', "'"].map((mark) => [mark, mark]) as [string, string][]),
  ['“', '”'],
  ['«', '»'],
]);
const FENCE = '```';
/** Line ends and quotation marks; `'` is omitted, because it is usually an apostrophe. */
const MARKS = /```|[\n`"“”«»]/g;

/** Follows the decided text in one pass, with the context for the next calls. */
class ContextReader {
  readonly now: { -readonly [Key in keyof CallContextText]: CallContextText[Key] } = {
    startsLine: true,
    isFenced: false,
    quotation: undefined,
    quote: undefined,
  };

  /** Adds text that is not empty and that does not cut a fence in two. */
  addText(text: string): void {
    for (const [mark] of text.matchAll(MARKS)) {
      if (mark === FENCE) this.now.isFenced = !this.now.isFenced;
      if (mark === FENCE || mark === '\n' || mark === this.now.quotation) this.now.quotation = undefined;
      else if (!this.now.isFenced) this.now.quotation ??= QUOTE_CLOSERS.get(mark);
    }
    const blank = text.slice(text.trimEnd().length);
    this.now.startsLine = blank.includes('\n') || (this.now.startsLine && blank.length === text.length);
    // Two and more are a fence.
    this.now.quote = text.endsWith('``') ? undefined : QUOTE_CLOSERS.get(text.at(-1) ?? '');
  }

  /** Adds calls as they were written. */
  addCalls(written: string): void {
    if (written.startsWith(FENCE)) this.now.isFenced = !written.endsWith(FENCE);
    this.now.startsLine = false;
    this.now.quote = undefined;
  }
}

/** A piece that depends only on the following text, with its original text. */
interface KeptPiece {
  readonly piece: ScannedPiece;
  readonly written: string;
  readonly place?: CallPlace;
}

/** The facts that make calls an example, depending on the following text. */
interface CallPlace extends CallContextText, Pick<CallsReading, 'looksLikeProse' | 'mustEnd'> {}

/** The formats by opener, in order. */
const FORMATS = new Map(
  ALL_FORMATS.flatMap(({ openers }) =>
    openers.map((opener) => [opener, ALL_FORMATS.filter((format) => format.openers.includes(opener))]),
  ),
);
const LITERALS = new LiteralIndex(
  [...FORMATS.keys(), ...REASONING_OPENERS.keys(), ...REASONING_CLOSERS].filter((literal) => literal !== ''),
);
const CLOSERS = new Map(REASONING_MARKS.map((mark) => [mark, new LiteralIndex(mark.closes)]));
/** White space and closing marks: `</answer>`, `<|im_end|>`. */
const ONLY_MARKS = /^\s*(?:<[/|][^<>\s]{1,30}>\s*)*$/;
const END_OF_LINE = /^[ \t]*\r?\n/;
const OFTEN_UP_TO = 4096;
const GROWTH = 1.125;

/**
 * Splits a text that arrives in pieces of any size into plain text and calls. The result does not depend on the cuts
 * between the pieces: text that may still become (part of) a call is held back until that is decided.
 *
 * Text inside reasoning is never a call. If its opening mark was part of the prompt, only the closing mark shows that
 * all earlier text was reasoning: from the first call on, nothing is returned before the text ends.
 */
export class CallScanner {
  #held = '';
  #half = '';
  #scanFrom = 0;
  /** Only white space and reasoning so far. */
  #isBlankSoFar = true;
  #reasoning: ReasoningMark | undefined;
  #context = new ContextReader();
  #kept: KeptPiece[] = [];
  #pieces: ScannedPiece[] = [];

  readonly #tools: KnownTools;

  constructor(tools: KnownToolSource | undefined, unknown?: UnknownTools) {
    this.#tools = knownTools(tools, unknown);
  }

  /** Adds text; returns the pieces that are now decided. */
  push(text: string): readonly ScannedPiece[] {
    const come = this.#half + text;
    // Half of a surrogate pair is neither checked nor returned.
    const whole = withoutHalf(come);
    this.#half = come.slice(whole.length);
    this.#held += whole;
    // A long call is not read again for every new piece, because that would be quadratic.
    if (this.#held.length >= this.#scanFrom) this.#scan(false);
    return this.#takePieces();
  }

  /** Ends the text; returns the rest. */
  end(): readonly ScannedPiece[] {
    this.#held += this.#half;
    this.#scan(true);
    this.#pieces.push(...withoutExamples(this.#kept));
    return this.#takePieces();
  }

  #takePieces(): readonly ScannedPiece[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    return pieces;
  }

  #scan(isFinal: boolean): void {
    const text = this.#held;
    let decided = 0;
    let at = 0;
    let firstAt = this.#firstAt(0);
    let isAtStart = firstAt >= 0 && this.#reasoning === undefined;
    // A call that is cut off at the end is not a call; but reasoning may still end there.
    let isOver = false;
    for (;;) {
      const found = isAtStart ? { literal: '', start: firstAt } : this.#literals.next(text, at);
      isAtStart = false;
      if (found === undefined || (!isFinal && !this.#reasoning && LITERALS.endsInside(text, found.start)))
        break;
      const { literal, start } = found;
      at = start + literal.length;
      const mark = REASONING_OPENERS.get(literal);
      if (this.#reasoning !== undefined || REASONING_CLOSERS.has(literal)) {
        this.#endReasoning(text.slice(decided, at));
        decided = at;
        firstAt = this.#firstAt(at);
        isAtStart = firstAt >= 0;
      } else if (mark !== undefined) {
        if (mark.isFirst && start !== firstAt) continue;
        this.#addAnswer(text.slice(decided, start));
        this.#reasoning = mark;
        decided = start;
      } else if (!isOver) {
        const isFirst = start === firstAt;
        const reading = readCallAt(text, found, { tools: this.#tools, isFirst, isFinal });
        if (reading.kind === 'open' && !isFinal) {
          this.#holdBack(decided, start);
          return;
        }
        isOver = reading.kind === 'open';
        if (reading.kind !== 'open') at = reading.end;
        if (reading.kind !== 'calls') continue;
        this.#addAnswer(text.slice(decided, start));
        const written = text.slice(start, at);
        const { calls, looksLikeProse, mustEnd } = reading;
        const place = { ...this.#context.now, looksLikeProse, mustEnd };
        this.#kept.push({ piece: { kind: 'calls', calls }, written, place });
        this.#context.addCalls(written);
        this.#isBlankSoFar = false;
        decided = at;
      }
    }
    this.#holdBack(decided, isFinal ? text.length : this.#literals.tailStart(text, at));
  }

  /** The literals that count here: in reasoning, only its closing marks. */
  get #literals(): LiteralIndex {
    return (this.#reasoning && CLOSERS.get(this.#reasoning)) ?? LITERALS;
  }

  /** The start of the answer, if all text before it is blank. */
  #firstAt(from: number): number {
    if (!this.#isBlankSoFar) return -1;
    return this.#held.length - this.#held.slice(from).trimStart().length;
  }

  /** Handles the text up to a closing mark; without an opening mark, all earlier text was reasoning too. */
  #endReasoning(text: string): void {
    if (this.#reasoning === undefined) {
      const written = this.#kept.map((kept) => kept.written).join('');
      this.#kept = [];
      this.#addText(written);
      this.#isBlankSoFar = true;
    }
    this.#reasoning = undefined;
    this.#addText(text);
    this.#context = new ContextReader();
  }

  /** Returns the text up to `from`; holds back the rest. */
  #holdBack(decided: number, from: number): void {
    const text = this.#held.slice(decided, from);
    if (this.#reasoning === undefined) this.#addAnswer(text);
    else this.#addText(text);
    this.#held = this.#held.slice(from);
    this.#scanFrom = this.#held.length < OFTEN_UP_TO ? 0 : this.#held.length * GROWTH;
  }

  #addAnswer(text: string): void {
    this.#isBlankSoFar &&= text.trim() === '';
    this.#addText(text);
  }

  #addText(text: string): void {
    if (text === '') return;
    const piece = { kind: 'text', text } as const;
    this.#context.addText(text);
    if (this.#kept.length > 0) this.#kept.push({ piece, written: text });
    else this.#pieces.push(piece);
  }
}

/** Turns calls that are examples into text. */
function withoutExamples(kept: readonly KeptPiece[]): readonly ScannedPiece[] {
  let behind = '';
  let isFollowed = false;
  const pieces = kept.toReversed().map(({ piece, written, place }): ScannedPiece => {
    if (place === undefined) {
      behind = written + behind;
      return piece;
    }
    const isQuoted = place.quote !== undefined && behind.startsWith(place.quote);
    isFollowed ||= !ONLY_MARKS.test(isQuoted ? behind.slice(1) : behind);
    const { mustEnd, startsLine, isFenced, quotation } = place;
    // A model that calls a tool stops there.
    const mayBeFollowed =
      mustEnd === undefined || (mustEnd === 'line' && startsLine && END_OF_LINE.test(behind));
    const [line = ''] = behind.split('\n', 1);
    // In a code fence, in a quotation on their line, or the text of a Markdown link.
    const isCited =
      isFenced || behind.startsWith('(') || (quotation !== undefined && line.includes(quotation));
    const isExample =
      (isFollowed && (isQuoted || !mayBeFollowed)) || (place.looksLikeProse && (isQuoted || isCited));
    behind = '';
    return isExample ? { kind: 'text', text: written } : piece;
  });
  return pieces.reverse();
}

/**
 * Gives each call an id: the model's own if it is new, otherwise `call_1`, `call_2`, …, continuing after the highest
 * number among existing ids.
 */
export function numberDrafts(
  drafts: readonly DraftCall[],
  taken: Iterable<string> = [],
): readonly ToolCall[] {
  const used = new Set(taken);
  let last = 0;
  for (const id of used) last = Math.max(last, Number(/^call_(\d{1,9})$/.exec(id)?.[1] ?? 0));
  const kept = drafts.map(({ id }) => {
    if (id === undefined || used.has(id)) return undefined;
    used.add(id);
    return id;
  });
  const next = (): string => {
    do last += 1;
    while (used.has(`call_${last}`));
    return `call_${last}`;
  };
  return drafts.map(({ name, arguments: args }, index) => ({
    id: kept[index] ?? next(),
    name,
    arguments: args,
  }));
}

/** Finds the calls of known tools in a text, without tools of any name, and the text before the first call. */
export function scanText(
  text: string,
  tools: KnownToolSource | undefined,
  { unknown }: { readonly unknown?: UnknownTools } = {},
): { readonly calls: readonly DraftCall[]; readonly textBefore: string } {
  const scanner = new CallScanner(tools, unknown);
  const calls: DraftCall[] = [];
  let textBefore = '';
  for (const piece of [...scanner.push(text), ...scanner.end()]) {
    if (piece.kind === 'calls') calls.push(...piece.calls);
    else if (calls.length === 0) textBefore += piece.text;
  }
  return { calls, textBefore };
}

/** The result of reading at an opener. */
type CallReading =
  | CallsReading
  /** No call; the search continues at `end`. */
  | { readonly kind: 'none'; readonly end: number }
  /** Possibly a call: the text ends too early to decide. */
  | { readonly kind: 'open' };

interface CallsReading {
  readonly kind: 'calls';
  readonly calls: readonly DraftCall[];
  readonly end: number;
  readonly looksLikeProse: boolean;
  /** They must end the message, or fill their line, to count as calls; nothing else shows that they are meant. */
  readonly mustEnd: 'message' | 'line' | undefined;
}

/**
 * Tries the formats with an opener, one after the other. `isFirst`: only white space and reasoning come before it;
 * `isFinal`: the text is complete.
 */
function readCallAt(
  text: string,
  { start, literal }: { readonly start: number; readonly literal: string },
  context: { readonly tools: KnownTools; readonly isFirst: boolean; readonly isFinal: boolean },
): CallReading {
  const { tools, isFirst, isFinal } = context;
  let reached = start + literal.length;
  let unknown: CallsReading | undefined;
  for (const format of FORMATS.get(literal) ?? []) {
    const cursor = new TextCursor(text, start + literal.length);
    const found = format.read(cursor, { tools, opener: literal, start }) ?? [];
    if (cursor.tailOpen && !isFinal) return { kind: 'open' };
    const isReported = tools.reportsUnknown && format.looksLike === undefined;
    const known = found.filter(({ name }) => tools.has(name));
    const looksLikeProse = format.looksLike === 'prose';
    // Prose has brackets too. Calls are recognized by the name of a known tool, or if nothing comes before them.
    const isSure = !looksLikeProse || (literal !== '' && (isFirst || !tools.any));
    const mustEnd = isSure ? undefined : literal === '[' ? 'line' : 'message';
    if (known.length > 0)
      return { kind: 'calls', calls: isReported ? found : known, looksLikeProse, mustEnd, end: cursor.at };
    if (found.length === 0 && cursor.ranOut) return { kind: 'open' };
    if (found.length > 0 && isReported)
      unknown ??= { kind: 'calls', calls: found, looksLikeProse, mustEnd: 'message', end: cursor.at };
    if (cursor.at > reached) reached = cursor.at;
  }
  return unknown ?? { kind: 'none', end: reached };
}
