import { exactNumber } from './exact-json.js';

/** A stretch of text: from `start` up to, not including, `end`. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** What stood at a place that should hold a value. */
export type RelaxedReading =
  | {
      readonly kind: 'read';
      readonly value: unknown;
      readonly end: number;
      /** Where the values of an object's own keys stand. */
      readonly members: ReadonlyMap<string, Span>;
    }
  /** The text ends before the value does. */
  | { readonly kind: 'open' }
  | { readonly kind: 'broken' };

/** How far a reading may go. */
interface RelaxedOptions {
  /** No more text comes: brackets that are missing after a complete value are added. */
  readonly isWhole?: boolean;
  /**
   * Slips are mended: quotes within a text, words without quotes, missing or doubled commas, wrong closing
   * brackets. Nothing is added at the end then, as what is open there cannot be told.
   */
  readonly mends?: boolean;
}

const MOST_LEVELS = 100;
// A comment is bounded, so that many unclosed ones cannot make reading quadratic.
const LONGEST_COMMENT = 1000;
const SPACE = /[\s\u180e]*/y;
const WORD = /[\p{L}_$][\p{L}\p{N}_$-]*/uy;
const BARE_KEY = /[\p{L}\p{N}_$][\p{L}\p{N}_$-]*/uy;
const BARE_TEXT = /[^\s,:{}[\]()"'“”‘’`\\][^,{}[\]"'“”‘’`\\\n]*/y;
const NUMBER = /-?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])/y;
const DIGITS = /[-+.\w]*/y;
const AFTER_NUMBER = /[\s,}\])/]|$/y;
const CLOSERS = new Set(['}', ']', ')']);
const QUOTES = new Map([
  ['"', '"'],
  ["'", "'"],
  ['“', '”'],
  ['”', '”'],
  ['‘', '’'],
  ['’', '’'],
]);
const LITERALS = new Map<string, unknown>([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['null', null],
  ['None', null],
]);
const ESCAPES = new Map([
  ['n', '\n'],
  ['t', '\t'],
  ['r', '\r'],
  ['b', '\b'],
  ['f', '\f'],
]);
const BROKEN = Symbol('broken');

/** What may stand behind the quote that ends a text, where quotes within it are not escaped. */
interface TextEnd {
  readonly anywhere: RegExp;
  /** Where a comma was forgotten, only the line break tells that the next entry begins. */
  readonly onNextLine: RegExp;
}

// Apart from white space, which no two quotes look through, these look a bounded way ahead.
const KEY = String.raw`(?:"[^"\\\n]{0,100}"|'[^'\\\n]{0,100}'|“[^“”\n]{0,100}”|[\p{L}\p{N}_$][\p{L}\p{N}_$-]{0,100}"?)\s*:`;
const MEMBER_END: TextEnd = {
  anywhere: new RegExp(
    String.raw`$|[}\])]|/[/*]|,\s*(?:$|[,}\]]|\.\.\.|/[/*]|${KEY})|"[^"\\\n]{0,100}"\s*:`,
    'uy',
  ),
  onNextLine: new RegExp(KEY, 'uy'),
};
const ITEM_END: TextEnd = {
  anywhere: /$|[}\])]|\/[/*]|,\s*(?:$|[-,}\]{["'“‘\d]|\.\.\.|\/[/*]|(?:true|false|null|True|False|None)\b)/uy,
  onNextLine: /["{[\d-]/uy,
};
const ADDED = /"\s*\+\s*"/y;
const QUOTED_KEY = /"[^"\\\n]{0,100}"\s*:/y;

/**
 * Reads a value in the JSON dialects that models write: single and curly quotes, bare keys, comments, trailing
 * commas, raw line breaks in strings, and Python's literals and tuples. A string, number or word that the text
 * ends in is never completed. One pass; nesting is bounded.
 */
export function readRelaxedJson(text: string, start: number, options: RelaxedOptions = {}): RelaxedReading {
  const reader = new RelaxedReader(text, start, options);
  const value = reader.value(0);
  if (value !== BROKEN) return { kind: 'read', value, end: reader.at, members: reader.members };
  return { kind: reader.ranOut ? 'open' : 'broken' };
}

class RelaxedReader {
  at: number;
  ranOut = false;
  readonly members = new Map<string, Span>();
  readonly #text: string;
  readonly #isWhole: boolean;
  readonly #mends: boolean;

  constructor(text: string, at: number, { isWhole = false, mends = false }: RelaxedOptions) {
    this.#text = text;
    this.at = at;
    this.#isWhole = isWhole;
    this.#mends = mends;
  }

  value(level: number): unknown {
    if (level > MOST_LEVELS || !this.#skipSpace()) return BROKEN;
    const char = this.#text[this.at]!;
    if (char === '{') return this.#object(level);
    if (char === '[') return this.#list(level, ']');
    if (char === '(') return this.#list(level, ')');
    if (QUOTES.has(char)) return this.#string(ITEM_END);
    return /[-.\d]/.test(char) ? this.#number() : this.#literal();
  }

  #object(level: number): unknown {
    const entries: [string, unknown][] = [];
    this.at += 1;
    for (;;) {
      if (!this.#skipGaps()) return BROKEN;
      if (this.#takeCloser('}')) break;
      const key = this.#key();
      if (typeof key !== 'string' || !this.#skipSpace() || !this.#takeColon() || !this.#skipSpace())
        return BROKEN;
      const start = this.at;
      const value = QUOTES.has(this.#text[start]!) ? this.#string(MEMBER_END) : this.value(level + 1);
      if (value === BROKEN) return BROKEN;
      // fromEntries makes own properties, so that `__proto__` is data.
      entries.push([key, value]);
      if (level === 0) this.members.set(key, { start, end: this.at });
      const next = this.#next('}');
      if (next === 'broken') return BROKEN;
      if (next === 'end') break;
    }
    return Object.fromEntries(entries);
  }

  #list(level: number, closer: string): unknown {
    const items: unknown[] = [];
    this.at += 1;
    for (;;) {
      if (!this.#skipGaps()) return BROKEN;
      if (this.#takeCloser(closer)) return items;
      const item = this.value(level + 1);
      if (item === BROKEN) return BROKEN;
      items.push(item);
      const next = this.#next(closer);
      if (next === 'broken') return BROKEN;
      if (next === 'end') return items;
    }
  }

  /** What follows a complete entry of a container. */
  #next(closer: string): 'more' | 'end' | 'broken' {
    if (!this.#skipSpace())
      return this.#isWhole && !this.#mends && this.at >= this.#text.length ? 'end' : 'broken';
    if (this.#take(',')) return 'more';
    if (this.#takeCloser(closer)) return 'end';
    return this.#mends && /["'“‘{[\p{L}\p{N}-]/u.test(this.#text[this.at]!) ? 'more' : 'broken';
  }

  /** Space, and between mended entries also commas and dots that stand for nothing. */
  #skipGaps(): boolean {
    while (this.#skipSpace()) {
      if (!this.#mends) return true;
      if (this.#text.startsWith('...', this.at)) this.at += 3;
      else if (!this.#take(',')) return true;
    }
    return false;
  }

  /** Another closing bracket, where it is mended, closes this container and is left to those around it. */
  #takeCloser(closer: string): boolean {
    return this.#take(closer) || (this.#mends && CLOSERS.has(this.#text[this.at]!));
  }

  #takeColon(): boolean {
    return this.#take(':') || (this.#mends && QUOTES.has(this.#text[this.at]!));
  }

  #key(): unknown {
    if (QUOTES.has(this.#text[this.at]!)) return this.#string(undefined);
    const key = this.#run(BARE_KEY);
    // The quote before the key was forgotten.
    if (this.#mends && key !== undefined) this.#take('"');
    return key ?? BROKEN;
  }

  /** A text in quotes; where slips are mended, `end` tells the quote that ends it from those within it. */
  #string(end: TextEnd | undefined): unknown {
    const quote = QUOTES.get(this.#text[this.at]!);
    // Three quotes in a row are Python's, or an empty text beside another: neither is read.
    if (quote && this.#text.startsWith(quote.repeat(3), this.at)) return BROKEN;
    let content = '';
    let copied = this.at + 1;
    for (let at = copied; at < this.#text.length; at += 1) {
      const char = this.#text[at];
      if (char === quote) {
        if (!this.#mends || end === undefined || this.#isEnd(end, at + 1)) {
          this.at = at + 1;
          return content + this.#text.slice(copied, at);
        }
        // An apostrophe, or texts that are added up: what is meant cannot be told.
        if (quote !== '"' || matches(ADDED, this.#text, at)) return BROKEN;
        const forgotten = this.#forgottenEnd(at);
        if (forgotten === undefined) continue;
        this.at = forgotten;
        return content + this.#text.slice(copied, forgotten);
      }
      if (char !== '\\') continue;
      const [escaped, length] = readEscape(this.#text, at + 1);
      content += this.#text.slice(copied, at) + escaped;
      at += length;
      copied = at + 1;
    }
    this.ranOut = true;
    return BROKEN;
  }

  #isEnd({ anywhere, onNextLine }: TextEnd, at: number): boolean {
    SPACE.lastIndex = at;
    const space = SPACE.exec(this.#text)?.[0] ?? '';
    const behind = at + space.length;
    return (
      matches(anywhere, this.#text, behind) ||
      (space.includes('\n') && matches(onNextLine, this.#text, behind))
    );
  }

  /** Where a text ends whose closing quote was forgotten: at the comma before the next key, as in `"b,"key":`. */
  #forgottenEnd(quoteAt: number): number | undefined {
    let at = quoteAt - 1;
    while (/\s/.test(this.#text[at]!)) at -= 1;
    return this.#text[at] === ',' && matches(QUOTED_KEY, this.#text, quoteAt) ? at : undefined;
  }

  #number(): unknown {
    if (this.#runsOut(DIGITS)) return BROKEN;
    const start = this.at;
    const digits = this.#run(NUMBER);
    if (!this.#mends) return digits === undefined ? BROKEN : exactNumber(digits);
    if (digits !== undefined && matches(AFTER_NUMBER, this.#text, this.at)) return exactNumber(digits);
    this.at = start;
    return this.#bareText();
  }

  #literal(): unknown {
    const start = this.at;
    const word = this.#run(WORD);
    if (word !== undefined && LITERALS.has(word)) return LITERALS.get(word);
    if (!this.#mends || this.ranOut) return BROKEN;
    if (word === 'undefined') return null;
    this.at = start;
    return this.#bareText();
  }

  /** A text without quotes: up to a comma, bracket, quote, comment or line break. */
  #bareText(): unknown {
    const start = this.at;
    const run = this.#run(BARE_TEXT);
    if (run === undefined) return BROKEN;
    const comment = run.search(/\s\/[/*]/);
    const text = (comment < 0 ? run : run.slice(0, comment)).trimEnd();
    this.at = start + text.length;
    return text;
  }

  /** Text of the pattern here; nothing if it reaches the end of the text, where it might go on. */
  #run(pattern: RegExp): string | undefined {
    if (this.#runsOut(pattern)) return undefined;
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text)?.[0];
    this.at += found?.length ?? 0;
    return found;
  }

  #runsOut(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.#text) || pattern.lastIndex < this.#text.length) return false;
    this.ranOut = true;
    return true;
  }

  #take(char: string): boolean {
    const found = this.#text[this.at] === char;
    if (found) this.at += 1;
    return found;
  }

  /** Whether something follows the white space and comments. */
  #skipSpace(): boolean {
    for (;;) {
      SPACE.lastIndex = this.at;
      SPACE.test(this.#text);
      this.at = SPACE.lastIndex;
      if (this.at >= this.#text.length) this.ranOut = true;
      if (this.#text[this.at] !== '/') return !this.ranOut;
      if (!this.#skipComment()) return false;
    }
  }

  #skipComment(): boolean {
    const opener = this.#text.slice(this.at, this.at + 2);
    const closer = { '//': '\n', '/*': '*/' }[opener];
    if (closer === undefined) {
      this.ranOut ||= opener.length < 2;
      return false;
    }
    const length = this.#text.slice(this.at, this.at + LONGEST_COMMENT).indexOf(closer, 2);
    if (length >= 0) {
      this.at += length + closer.length;
      return true;
    }
    // What the comment hides may be more than a comment: nothing is added behind it.
    this.ranOut ||= this.#text.length - this.at < LONGEST_COMMENT;
    return false;
  }
}

function matches(pattern: RegExp, text: string, at: number): boolean {
  pattern.lastIndex = at;
  return pattern.test(text);
}

/** What stands behind a backslash, and how many characters it takes; an unknown escape is its character. */
function readEscape(text: string, at: number): readonly [string, number] {
  const char = text[at] ?? '';
  const hex = char === 'u' ? /^[0-9a-fA-F]{4}$/.exec(text.slice(at + 1, at + 5))?.[0] : undefined;
  if (hex !== undefined) return [String.fromCharCode(Number.parseInt(hex, 16)), 5];
  return [ESCAPES.get(char) ?? char, 1];
}
