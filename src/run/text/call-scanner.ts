import type { ToolCall } from '../../core/contract/llm-provider.js';
import { MARKED_JSON, PLAIN_JSON } from './formats/json-formats.js';
import { LITERAL_CALLS } from './formats/literal-calls.js';
import { TAG_FORMATS } from './formats/tag-formats.js';
import {
  type DraftCall,
  type KnownToolSource,
  type KnownTools,
  knownTools,
  type TextCallFormat,
  type UnknownTools,
} from './known-tools.js';
import {
  REASONING_CLOSERS,
  REASONING_MARKS,
  REASONING_OPENERS,
  type ReasoningMark,
} from './reasoning-marks.js';
import { createLiteralIndex, type FoundLiteral, TextCursor } from './text-cursor.js';

/** Every format, in the order in which those with the same opener are tried. */
const ALL_FORMATS: readonly TextCallFormat[] = [
  ...MARKED_JSON,
  ...TAG_FORMATS,
  ...LITERAL_CALLS,
  ...PLAIN_JSON,
];

/** A stretch of the scanned text: plain text as it stood there, or the calls that stood there. */
export type ScannedPiece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'calls'; readonly calls: readonly DraftCall[] };

/** What stands before calls and may make them an example. */
interface CallContextText {
  /** Nothing but white space stands before them in their line. */
  readonly startsLine: boolean;
  readonly isFenced: boolean;
  /** What closes the quotation or inline code that their line is within. */
  readonly quotation: string | undefined;
  /** What closes the quotation that begins right before them. */
  readonly quote: string | undefined;
}

const QUOTE_CLOSERS: ReadonlyMap<string, string> = new Map([
  ...(['`', '"', "'"].map((mark) => [mark, mark]) as [string, string][]),
  ['“', '”'],
  ['«', '»'],
]);
const FENCE = '```';
/** What ends a line or stands around a quotation; `'` is left out, as it is mostly an apostrophe. */
const MARKS = /```|[\n`"“”«»]/g;

/** Follows a text as it is decided, in one pass, and remembers where in it calls would stand. */
class ContextReader {
  #startsLine = true;
  #isFenced = false;
  #quotation: string | undefined;
  #quote: string | undefined;

  get now(): CallContextText {
    return {
      startsLine: this.#startsLine,
      isFenced: this.#isFenced,
      quotation: this.#quotation,
      quote: this.#quote,
    };
  }

  /** Takes text that is not empty, and in which no fence is cut in two. */
  addText(text: string): void {
    for (const [mark] of text.matchAll(MARKS)) this.#addMark(mark);
    const blank = text.slice(text.trimEnd().length);
    this.#startsLine = blank.includes('\n') || (this.#startsLine && blank.length === text.length);
    // Two and more are a fence.
    this.#quote = text.endsWith('``') ? undefined : QUOTE_CLOSERS.get(text.at(-1) ?? '');
  }

  /** Takes calls as they were written. */
  addCalls(written: string): void {
    if (written.startsWith(FENCE)) this.#isFenced = !written.endsWith(FENCE);
    this.#startsLine = false;
    this.#quote = undefined;
  }

  #addMark(mark: string): void {
    if (mark === FENCE) this.#isFenced = !this.#isFenced;
    if (mark === FENCE || mark === '\n' || mark === this.#quotation) this.#quotation = undefined;
    else if (!this.#isFenced) this.#quotation ??= QUOTE_CLOSERS.get(mark);
  }
}

/** A piece that is decided but for what comes behind it, and how it was written. */
interface KeptPiece {
  readonly piece: ScannedPiece;
  readonly written: string;
  readonly place?: CallPlace;
}

/** What makes calls an example, depending on what follows. */
interface CallPlace extends CallContextText, Pick<CallsReading, 'looksLikeProse' | 'mustEnd'> {}

const FORMATS = formatsByOpener(ALL_FORMATS);
const LITERALS = createLiteralIndex(
  [...FORMATS.keys(), ...REASONING_OPENERS.keys(), ...REASONING_CLOSERS].filter((literal) => literal !== ''),
);
const CLOSERS = new Map(REASONING_MARKS.map((mark) => [mark, createLiteralIndex(mark.closes)]));
/** White space and marks that end something: `</answer>`, `<|im_end|>`. */
const ONLY_MARKS = /^\s*(?:<[/|][^<>\s]{1,30}>\s*)*$/;
const END_OF_LINE = /^[ \t]*\r?\n/;
const OFTEN_UP_TO = 4096;
const GROWTH = 1.125;

/**
 * Splits a text that comes in pieces of any size into plain text and calls. The outcome does not depend on
 * where the pieces were cut: what may still become (part of) a call is held back until that is decided.
 *
 * Nothing inside reasoning is a call. Where its opening mark stood in the prompt, only its closing mark tells
 * that all before it was reasoning: from the first call on, nothing is handed on before the text ends.
 */
export class CallScanner {
  readonly #tools: KnownTools;
  #held = '';
  #half = '';
  #scanFrom = 0;
  /** Nothing but white space and reasoning came so far. */
  #isBlankSoFar = true;
  #reasoning: ReasoningMark | undefined;
  #context = new ContextReader();
  #kept: KeptPiece[] = [];
  #pieces: ScannedPiece[] = [];

  constructor(tools: KnownTools) {
    this.#tools = tools;
  }

  /** Takes more text; gives what is now decided. */
  push(text: string): readonly ScannedPiece[] {
    const come = this.#half + text;
    // Half of a surrogate pair is no character yet: neither to look at nor to hand on.
    this.#half = /[\ud800-\udbff]$/.test(come) ? come.slice(-1) : '';
    this.#held += come.slice(0, come.length - this.#half.length);
    // A long call is not read again for every piece that comes: that would be quadratic.
    if (this.#held.length >= this.#scanFrom) this.#scan(false);
    return this.#takePieces();
  }

  /** Ends the text; gives the rest. */
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
    // No call comes from a part of what the text ends in; but reasoning may still end there.
    let isOver = false;
    for (;;) {
      const found = isAtStart ? { literal: '', start: firstAt } : this.#nextLiteral(at);
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
        const context = { tools: this.#tools, isFirst: start === firstAt, isFinal };
        const reading = readCallAt(text, { literal, start, formats: FORMATS.get(literal) ?? [] }, context);
        if (reading.kind === 'open' && !isFinal) {
          this.#holdBack(decided, start);
          return;
        }
        isOver = reading.kind === 'open';
        if (reading.kind !== 'open') at = reading.end;
        if (reading.kind !== 'calls') continue;
        this.#addAnswer(text.slice(decided, start));
        this.#addCalls(reading, text.slice(start, at));
        decided = at;
      }
    }
    this.#holdBack(decided, isFinal ? text.length : this.#tailStart(at));
  }

  #nextLiteral(from: number): ReturnType<typeof LITERALS.next> {
    return (CLOSERS.get(this.#reasoning!) ?? LITERALS).next(this.#held, from);
  }

  #tailStart(from: number): number {
    return (CLOSERS.get(this.#reasoning!) ?? LITERALS).tailStart(this.#held, from);
  }

  /** Where the answer begins, if all before it is blank. */
  #firstAt(from: number): number {
    if (!this.#isBlankSoFar) return -1;
    return this.#held.length - this.#held.slice(from).trimStart().length;
  }

  /** What comes up to a closing mark; without an opening one, all that came before was reasoning too. */
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

  /** Gives the text up to `from`; keeps the rest. */
  #holdBack(decided: number, from: number): void {
    const text = this.#held.slice(decided, from);
    if (this.#reasoning === undefined) this.#addAnswer(text);
    else this.#addText(text);
    this.#held = this.#held.slice(from);
    this.#scanFrom = this.#held.length < OFTEN_UP_TO ? 0 : this.#held.length * GROWTH;
  }

  #addCalls({ calls, looksLikeProse, mustEnd }: CallsReading, written: string): void {
    const place = { ...this.#context.now, looksLikeProse, mustEnd };
    this.#kept.push({ piece: { kind: 'calls', calls }, written, place });
    this.#context.addCalls(written);
    this.#isBlankSoFar = false;
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

/** Calls that are examples are text. */
function withoutExamples(kept: readonly KeptPiece[]): readonly ScannedPiece[] {
  let behind = '';
  let isFollowed = false;
  const pieces = [...kept].reverse().map(({ piece, written, place }): ScannedPiece => {
    if (place === undefined) {
      behind = written + behind;
      return piece;
    }
    const isQuoted = place.quote !== undefined && behind.startsWith(place.quote);
    isFollowed ||= !ONLY_MARKS.test(isQuoted ? behind.slice(1) : behind);
    // A model that calls a tool stops there.
    const isExample =
      (isFollowed && (isQuoted || !endsAsItMust(place, behind))) ||
      (place.looksLikeProse && (isQuoted || isCited(place, behind)));
    behind = '';
    return isExample ? { kind: 'text', text: written } : piece;
  });
  return pieces.reverse();
}

/** Whether calls that text follows may still be meant. */
function endsAsItMust({ mustEnd, startsLine }: CallPlace, behind: string): boolean {
  return mustEnd === undefined || (mustEnd === 'line' && startsLine && END_OF_LINE.test(behind));
}

/** Whether something stands in a code fence, within a quotation of its line, or as the text of a link in Markdown. */
function isCited({ isFenced, quotation }: CallPlace, behind: string): boolean {
  if (isFenced || behind.startsWith('(')) return true;
  const [line = ''] = behind.split('\n', 1);
  return quotation !== undefined && line.includes(quotation);
}

/**
 * Gives each call an id: the model's own if it is new, otherwise `call_1`, `call_2`, …,
 * continuing after the highest number among the ids that are taken.
 */
export function numberDrafts(
  drafts: readonly DraftCall[],
  taken: Iterable<string> = [],
): readonly ToolCall[] {
  const used = new Set(taken);
  let last = highestNumber(used);
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

function highestNumber(ids: Iterable<string>): number {
  let highest = 0;
  for (const id of ids) highest = Math.max(highest, Number(/^call_(\d{1,9})$/.exec(id)?.[1] ?? 0));
  return highest;
}

/** What stands in a text. */
interface ScannedText {
  readonly calls: readonly DraftCall[];
  /** The text before the first call, untrimmed; the whole text if there is none. */
  readonly textBefore: string;
}

/** Finds the calls of known tools in a text; without tools, of any name. */
export function scanText(
  text: string,
  tools: KnownToolSource | undefined,
  unknown: UnknownTools = {},
): ScannedText {
  const scanner = new CallScanner(knownTools(tools, unknown));
  const calls: DraftCall[] = [];
  let textBefore = '';
  for (const piece of [...scanner.push(text), ...scanner.end()]) {
    if (piece.kind === 'calls') calls.push(...piece.calls);
    else if (calls.length === 0) textBefore += piece.text;
  }
  return { calls, textBefore };
}

/** A place where a call may begin. */
interface FoundOpener extends FoundLiteral {
  /** The formats that begin so, in the order in which they are tried. */
  readonly formats: readonly TextCallFormat[];
}

/** What stands at an opener. */
type CallReading =
  | CallsReading
  /** No call; the search goes on at `end`. */
  | { readonly kind: 'none'; readonly end: number }
  /** Perhaps a call: the text ends too early to decide. */
  | { readonly kind: 'open' };

interface CallsReading {
  readonly kind: 'calls';
  readonly calls: readonly DraftCall[];
  readonly end: number;
  readonly looksLikeProse: boolean;
  /** What they must end, or the line that they must fill, to be calls: nothing else tells that they are meant. */
  readonly mustEnd: 'message' | 'line' | undefined;
}

/** What the outcome depends on besides the text. */
interface CallReadingContext {
  readonly tools: KnownTools;
  /** Nothing but white space and reasoning stands before it. */
  readonly isFirst: boolean;
  /** No more text comes. */
  readonly isFinal: boolean;
}

/** The formats by what they begin with, in their order. */
function formatsByOpener(formats: readonly TextCallFormat[]): ReadonlyMap<string, readonly TextCallFormat[]> {
  const byLiteral = new Map<string, TextCallFormat[]>();
  for (const format of formats) {
    for (const literal of format.openers) byLiteral.set(literal, [...(byLiteral.get(literal) ?? []), format]);
  }
  return byLiteral;
}

/** Asks the formats that begin with an opener, one after the other, what stands there. */
function readCallAt(text: string, opener: FoundOpener, context: CallReadingContext): CallReading {
  const { tools, isFirst, isFinal } = context;
  const { start, literal } = opener;
  let reached = start + literal.length;
  let unknown: CallsReading | undefined;
  for (const format of opener.formats) {
    const cursor = new TextCursor(text, start + literal.length);
    const found = format.read(cursor, { tools, opener: literal, start }) ?? [];
    if (cursor.tailOpen && !isFinal) return { kind: 'open' };
    const tells = tools.tellsUnknown && format.looksLike === undefined;
    const known = found.filter(({ name }) => tools.has(name));
    const looksLikeProse = format.looksLike === 'prose';
    // Prose has brackets too. What tells is the name of a known tool, or that nothing stands before them.
    const isSure = !looksLikeProse || (literal !== '' && (isFirst || !tools.any));
    const mustEnd = isSure ? undefined : literal === '[' ? 'line' : 'message';
    if (known.length > 0)
      return { kind: 'calls', calls: tells ? found : known, looksLikeProse, mustEnd, end: cursor.at };
    if (found.length === 0 && cursor.ranOut) return { kind: 'open' };
    if (found.length > 0 && tells)
      unknown ??= { kind: 'calls', calls: found, looksLikeProse, mustEnd: 'message', end: cursor.at };
    if (cursor.at > reached) reached = cursor.at;
  }
  return unknown ?? { kind: 'none', end: reached };
}
