import { exactNumber } from '../../core/kernel/exact-json.js';

/** A range of a text: from `start` up to, not including, `end`. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The result of reading a value. */
export type RelaxedReading =
  | {
      readonly kind: 'read';
      readonly value: unknown;
      readonly end: number;
      /** The ranges of the values of an object's own keys. */
      readonly members: ReadonlyMap<string, Span>;
    }
  /** The text ends before the value does. */
  | { readonly kind: 'open' }
  /** `problem` describes what cannot be read, if the writer of the JSON can fix it. */
  | { readonly kind: 'broken'; readonly problem?: string };

/** Options of a reading. */
interface RelaxedOptions {
  /** The text is complete: brackets that are missing after a complete value are added. */
  readonly isWhole?: boolean;
  /** Repairs words without quotes, missing or doubled commas, and wrong closing brackets. */
  readonly repairs?: boolean;
  /** In addition to `repairs`: strings may contain unescaped quotes. Otherwise the next quote ends a string. */
  readonly hasInnerQuotes?: boolean;
}

const MOST_LEVELS = 100;
// A comment is bounded, so that many unclosed ones cannot make reading quadratic.
const LONGEST_COMMENT = 1000;
const SPACE = /[\s\u180e\u200b\u2060]*/y;
const WORD = /[\p{L}_$][\p{L}\p{N}_$-]*/uy;
const BARE_KEY = /[\p{L}\p{N}_$][\p{L}\p{N}_$-]*/uy;
const BARE_TEXT = /[^\s,:{}[\]()"'“”‘’`\\][^,{}[\]"'“”‘’`\\\n]*/y;
const NUMBER = /-?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])/y;
const DIGITS = /[-+.\w]*/y;
const AFTER_NUMBER = /[\s,}\])/]|$/y;
const CLOSERS = new Set(['}', ']', ')']);
/** Texts like numbers that could also be strings: a leading zero, a plus sign, or missing digits. */
const UNCLEAR_NUMBER =
  /^(?:[-+]?0\d+(?:\.\d*)?|[-+]?\d+_[\d_.]*|\+[\d.]+|[-+]?[\d.]+[eE][-+]?|[-+]?0[xXoObB][\da-fA-F]+|[-+])$/;
/** Literals of other languages, and those of JSON in other case, which could also be strings. */
const UNCLEAR_WORD = /^(?:true|false|null|none|nil|nan|[-+]?infinity)$/i;
const QUOTES = new Map([
  ['"', '"'],
  ["'", "'"],
  ['“', '”'],
  ['”', '”'],
  ['‘', '’'],
  ['’', '’'],
  ['`', '`'],
]);
const LITERALS = new Map<string, unknown>([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['null', null],
  ['None', null],
]);
/** A backslash before another character (`\d`) may be meant literally. */
const ESCAPES = new Map([
  ...['"', "'", '“', '”', '„', '‘', '’', '`', '\\', '/'].map((char) => [char, char] as const),
  ['n', '\n'],
  ['t', '\t'],
  ['r', '\r'],
  ['b', '\b'],
  ['f', '\f'],
]);
const BROKEN = Symbol('broken');

/** The end of the string; otherwise whether this quote starts quoted words inside it. */
type QuoteMeaning = number | 'opens' | 'stays' | typeof BROKEN;

/** A quote that is part of a string, or ends it. */
interface QuoteInText {
  readonly end: TextEnd;
  readonly quote: string | undefined;
  readonly start: number;
  readonly at: number;
  /** Whether quoted words have started before it, within the string. */
  readonly isQuoting: boolean;
}

/** What may follow the quote that ends a string, if strings may contain quotes. */
interface TextEnd {
  readonly anywhere: RegExp;
  /** After a line break, the next entry may start even though the comma is missing. */
  readonly onNextLine: RegExp;
  /** What may follow a quote that looks like an end, without any of these. */
  readonly unclear: RegExp;
}

// Lookahead is limited in length, except over white space. Two quotes never scan the same white space.
const KEY = String.raw`(?:"[^"\\\n]{0,100}"|'[^'\\\n]{0,100}'|“[^“”\n]{0,100}”|[\p{L}\p{N}_$][\p{L}\p{N}_$-]{0,100}"?)\s*:`;
const MEMBER_END: TextEnd = {
  anywhere: new RegExp(
    String.raw`$|[}\]]|/[/*]|,\s*(?:$|[,}\]]|\.\.\.|/[/*]|${KEY})|"[^"\\\n]{0,100}"\s*:`,
    'uy',
  ),
  onNextLine: new RegExp(KEY, 'uy'),
  unclear: /\s*[,:"}\]]/y,
};
const ITEM_END: TextEnd = {
  anywhere: /$|[}\])]|\/[/*]|,\s*(?:$|[-,}\]{["'“‘\d]|\.\.\.|\/[/*]|(?:true|false|null|True|False|None)\b)/uy,
  onNextLine: /["{[\d-]/uy,
  unclear: /\s|[,:"}\]]/y,
};
const KEY_END: TextEnd = { anywhere: /:/uy, onNextLine: /:/uy, unclear: /\s|[,"{}[\]=]/y };
const ADDED = /"\s*\+\s*"/y;
const LONGEST_KEY = 200;
const PLUS = /\s*\+\s*(?=["'])/y;
const QUOTED_KEY = /"[^"\\\n]{0,100}"\s*:/y;
/** Characters before a quote that starts quoted words inside a string. */
const BEFORE_INNER = /[\s([{<=:,;>]/;
const AFTER_BARE_TEXT = /"\s*(?:[,}\]\n]|$)/y;
const UNESCAPED = 'a quote within a string must be escaped as \\"';
const SEPARATE = 'values must be separated by commas, and strings must be in quotes';

/**
 * Reads a value in the JSON dialects that models write: single and curly quotes, bare keys, comments, trailing
 * commas, raw line breaks in strings, and Python's literals and tuples. A string, number or word at the end of the
 * text is never completed. One pass; nesting is limited.
 */
export function readRelaxedJson(text: string, start: number, options: RelaxedOptions = {}): RelaxedReading {
  const reader = new RelaxedReader(text, start, options);
  const value = reader.value(0);
  if (value !== BROKEN) return { kind: 'read', value, end: reader.at, members: reader.members };
  if (reader.ranOut) return { kind: 'open' };
  return reader.problem === undefined ? { kind: 'broken' } : { kind: 'broken', problem: reader.problem };
}

/**
 * A position in a text, which a reader advances as it recognizes parts. `ranOut` is set if a part is missing only
 * because the text ends.
 */
export class Cursor {
  ranOut = false;

  constructor(
    readonly text: string,
    public at: number,
  ) {}

  /** Skips a literal, if it is here. */
  take(literal: string): boolean {
    const found = this.text.startsWith(literal, this.at);
    if (found) this.at += literal.length;
    else this.ranOut ||= this.endsWithin(literal);
    return found;
  }

  /** The match of a sticky pattern here; `undefined` if it reaches the end of the text, where it might continue. */
  match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (this.at + (found?.length ?? 0) < this.text.length) {
      this.at += found?.length ?? 0;
      return found;
    }
    this.ranOut = true;
    return undefined;
  }

  /** Whether the rest of the text is the beginning of a literal. */
  endsWithin(literal: string): boolean {
    const left = this.text.length - this.at;
    return left < literal.length && literal.startsWith(this.text.slice(this.at));
  }
}

class RelaxedReader extends Cursor {
  problem: string | undefined;
  readonly members = new Map<string, Span>();
  readonly #isWhole: boolean;
  readonly #repairs: boolean;
  readonly #hasInnerQuotes: boolean;

  constructor(text: string, at: number, options: RelaxedOptions) {
    super(text, at);
    this.#isWhole = options.isWhole ?? false;
    this.#repairs = options.repairs ?? false;
    this.#hasInnerQuotes = options.hasInnerQuotes ?? false;
  }

  value(level: number): unknown {
    if (level > MOST_LEVELS || !this.#skipSpace()) return BROKEN;
    const char = this.text[this.at]!;
    if (char === '{') return this.#object(level);
    if (char === '[') return this.#list(level, ']');
    if (char === '(') return this.#list(level, ')');
    if (QUOTES.has(char)) return this.#texts(ITEM_END);
    return /[-.\d]/.test(char) ? this.#number() : this.#literal();
  }

  #object(level: number): unknown {
    const entries: [string, unknown][] = [];
    this.at += 1;
    for (;;) {
      if (!this.#skipGaps()) return BROKEN;
      if (this.#takeCloser('}')) break;
      const key = this.#key();
      if (typeof key !== 'string' || !this.#skipSpace()) return BROKEN;
      if (!this.#takeColon()) return this.#broken(`a colon must follow the key ${JSON.stringify(key)}`);
      if (!this.#skipSpace()) return BROKEN;
      const start = this.at;
      const value = this.#member(key, level);
      if (value === BROKEN) return BROKEN;
      // `fromEntries` creates own properties, so that `__proto__` is data.
      entries.push([key, value]);
      if (level === 0) this.members.set(key, { start, end: this.at });
      const next = this.#next('}', value);
      if (next === 'broken') return BROKEN;
      if (next === 'end') break;
    }
    return Object.fromEntries(entries);
  }

  #member(key: string, level: number): unknown {
    const char = this.text[this.at]!;
    if (QUOTES.has(char)) return this.#texts(MEMBER_END);
    if (char === ',' || CLOSERS.has(char))
      return this.#broken(`the value of ${JSON.stringify(key)} is missing`);
    return this.value(level + 1);
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
      const next = this.#next(closer, item);
      if (next === 'broken') return BROKEN;
      // Without a comma, round brackets group a value and are not a tuple.
      if (next === 'end') return closer === ')' && items.length === 1 ? item : items;
    }
  }

  /** Reads what follows a complete entry of a container. */
  #next(closer: string, value: unknown): 'more' | 'end' | 'broken' {
    const end = this.at;
    if (!this.#skipSpace()) return this.#isWhole && this.at >= this.text.length ? 'end' : 'broken';
    if (this.take(',')) return 'more';
    if (this.#takeCloser(closer)) return 'end';
    const char = this.text[this.at]!;
    if (!this.#repairs || !/["'“‘{[\p{L}\p{N}-]/u.test(char)) return 'broken';
    if (this.text.slice(end, this.at).includes('\n')) return 'more';
    if (typeof value === 'string' && closer !== '}') return this.#nextItem(end);
    const isClear =
      typeof value === 'number' ? !/[-\d]/.test(char) : end < this.at || !/[\p{L}\p{N}-]/u.test(char);
    if (!isClear) this.#broken(SEPARATE);
    return isClear ? 'more' : 'broken';
  }

  /**
   * Reads what follows a string of an array on its line: `["join with " " here"]` may be two strings, or one with
   * quotes.
   */
  #nextItem(end: number): 'more' | 'broken' {
    const [before, after] = [this.text[end - 2] ?? ' ', this.text[this.at + 1] ?? ' '];
    const isText = QUOTES.has(this.text[this.at]!);
    const isClear = isText ? !/[\s"']/.test(before + after) : /[-\d[{]/.test(this.text[this.at]!);
    if (end < this.at && isClear) return 'more';
    this.#broken(UNESCAPED);
    return 'broken';
  }

  /** Skips white space; with repairs, also extra commas and dots between entries. */
  #skipGaps(): boolean {
    while (this.#skipSpace()) {
      if (!this.#repairs) return true;
      if (this.text.startsWith('...', this.at)) this.at += 3;
      else if (!this.take(',')) return true;
    }
    return false;
  }

  /** With repairs, another closing bracket closes this container and is left for the outer ones. */
  #takeCloser(closer: string): boolean {
    return this.take(closer) || (this.#repairs && CLOSERS.has(this.text[this.at]!));
  }

  #takeColon(): boolean {
    const char = this.text[this.at]!;
    return this.take(':') || (this.#repairs && (QUOTES.has(char) || /[{[]/.test(char)));
  }

  #key(): unknown {
    if (QUOTES.has(this.text[this.at]!)) return this.#string(KEY_END);
    const key = this.match(BARE_KEY);
    // The opening quote of the key is missing.
    if (this.#repairs && key !== undefined) this.take('"');
    return key ?? BROKEN;
  }

  /** A quoted string, or several that a program would concatenate: `"a" + "b"`. */
  #texts(end: TextEnd): unknown {
    let all = this.#string(end);
    while (typeof all === 'string' && this.#repairs && matches(PLUS, this.text, this.at)) {
      this.at = PLUS.lastIndex;
      const more = this.#string(end);
      all = typeof more === 'string' ? all + more : BROKEN;
    }
    return all;
  }

  /** A quoted string. If it may contain quotes, `end` distinguishes the closing quote from inner ones. */
  #string(end: TextEnd): unknown {
    const quote = QUOTES.get(this.text[this.at]!);
    // Three quotes in a row are Python's, or an empty string next to another: neither is read.
    if (quote && this.text.startsWith(quote.repeat(3), this.at)) return this.#broken(UNESCAPED);
    const start = this.at + 1;
    let content = '';
    let copied = start;
    let isQuoting = false;
    let hasEscapedQuote = false;
    let hasInnerQuote = false;
    for (let at = start; at < this.text.length; at += 1) {
      const char = this.text[at];
      if (char === quote) {
        const found: QuoteMeaning = this.#hasInnerQuotes
          ? this.#textEnd({ end, quote, start, at, isQuoting })
          : at;
        if (found === BROKEN) return BROKEN;
        if (typeof found === 'number') {
          // If some inner quotes are escaped, the unescaped quotes are meant as ends.
          if (hasInnerQuote && hasEscapedQuote) return this.#broken(UNESCAPED);
          this.at = found === at ? at + 1 : found;
          return content + this.text.slice(copied, found);
        }
        isQuoting = found === 'opens';
        hasInnerQuote = true;
      }
      if (char !== '\\') continue;
      const escaped = readEscape(this.text, at + 1);
      if (escaped === undefined) {
        if (/^\\(?:$|u[\da-fA-F]{0,3}$)/.test(this.text.slice(at, at + 6))) break;
        const written = this.text.slice(at, at + 2);
        return this.#broken(`${written} is not a JSON escape; write a backslash within a string as \\\\`);
      }
      hasEscapedQuote ||= escaped[0] === quote;
      content += this.text.slice(copied, at) + escaped[0];
      at += escaped[1];
      copied = at + 1;
    }
    this.ranOut = true;
    return BROKEN;
  }

  /** The end of the string, or the meaning of a quote in it: it starts or ends quoted words, or is a single quote. */
  #textEnd(given: QuoteInText): QuoteMeaning {
    const { end, quote, start, at, isQuoting } = given;
    if (this.#isEnd(end, at + 1)) return isQuoting ? this.#broken(UNESCAPED) : at;
    // An apostrophe, or a concatenation of strings: the meaning is ambiguous.
    if (quote !== '"' || matches(ADDED, this.text, at)) return this.#broken(UNESCAPED);
    if (isQuoting) return 'stays';
    const forgotten = end === KEY_END ? undefined : this.#forgottenEnd(at);
    if (forgotten !== undefined) return forgotten;
    if (matches(end.unclear, this.text, at + 1)) return this.#broken(UNESCAPED);
    const before = this.text.slice(Math.max(0, at - LONGEST_KEY), at);
    if (at > start && !BEFORE_INNER.test(before.slice(-1))) return 'stays';
    if (end === ITEM_END && /,\s*$/.test(before)) return this.#broken(UNESCAPED);
    return /\s/.test(this.text[at + 1] ?? ' ') ? 'stays' : 'opens';
  }

  #isEnd({ anywhere, onNextLine }: TextEnd, at: number): boolean {
    SPACE.lastIndex = at;
    const space = SPACE.exec(this.text)?.[0] ?? '';
    const behind = at + space.length;
    return (
      matches(anywhere, this.text, behind) || (space.includes('\n') && matches(onNextLine, this.text, behind))
    );
  }

  /** The end of a string whose closing quote is missing: at the comma before the next key, as in `"b,"key":`. */
  #forgottenEnd(quoteAt: number): number | undefined {
    const before = this.text.slice(Math.max(0, quoteAt - LONGEST_KEY), quoteAt);
    const entry = matches(QUOTED_KEY, this.text, quoteAt)
      ? /,\s*$/
      : /,\s*[\p{L}_$][\p{L}\p{N}_$-]*\s*:\s*$/u;
    const at = before.search(entry);
    return at < 0 ? undefined : quoteAt - before.length + at;
  }

  #number(): unknown {
    const start = this.at;
    if (this.match(DIGITS) === undefined) return BROKEN;
    this.at = start;
    const digits = this.match(NUMBER);
    if (!this.#repairs) return digits === undefined ? BROKEN : exactNumber(digits);
    if (digits !== undefined && matches(AFTER_NUMBER, this.text, this.at)) return exactNumber(digits);
    this.at = start;
    return this.#bareText();
  }

  #literal(): unknown {
    const start = this.at;
    const word = this.match(WORD);
    if (word !== undefined && LITERALS.has(word)) return LITERALS.get(word);
    if (!this.#repairs || this.ranOut) return BROKEN;
    if (word === 'undefined') return null;
    this.at = start;
    return this.#bareText();
  }

  /** A string without quotes: up to a comma, bracket, quote, comment or line break. */
  #bareText(): unknown {
    const start = this.at;
    const run = this.match(BARE_TEXT);
    if (run === undefined) return BROKEN;
    const comment = run.search(/\s\/[/*]/);
    const text = (comment < 0 ? run : run.slice(0, comment)).trimEnd();
    this.at = start + text.length;
    // The opening quote of the string is missing.
    const hasQuote = matches(AFTER_BARE_TEXT, this.text, this.at);
    if (hasQuote) this.at += 1;
    const isUnclear = UNCLEAR_NUMBER.test(text) || UNCLEAR_WORD.test(text) || /:(?:\s|$)/.test(text);
    if (!isUnclear && !(hasQuote && /^-?[\d.]+$/.test(text))) return text;
    return this.#broken(`${text.slice(0, 50)} is not a JSON value; a string must be in quotes`);
  }

  #broken(problem: string): typeof BROKEN {
    this.problem ??= problem;
    return BROKEN;
  }

  /** Whether anything follows the white space and comments. */
  #skipSpace(): boolean {
    for (;;) {
      SPACE.lastIndex = this.at;
      SPACE.test(this.text);
      this.at = SPACE.lastIndex;
      if (this.at >= this.text.length) this.ranOut = true;
      if (this.text[this.at] !== '/') return !this.ranOut;
      if (!this.#skipComment()) return false;
    }
  }

  #skipComment(): boolean {
    const opener = this.text.slice(this.at, this.at + 2);
    const closer = { '//': '\n', '/*': '*/' }[opener];
    if (closer === undefined) {
      this.ranOut ||= opener.length < 2;
      return false;
    }
    const length = this.text.slice(this.at, this.at + LONGEST_COMMENT).indexOf(closer, 2);
    if (length >= 0) {
      this.at += length + closer.length;
      return true;
    }
    // The comment may hide more than a comment: nothing is added after it.
    this.ranOut ||= this.text.length - this.at < LONGEST_COMMENT;
    return false;
  }
}

function matches(pattern: RegExp, text: string, at: number): boolean {
  pattern.lastIndex = at;
  return pattern.test(text);
}

/** The value of an escape, and its length after the backslash; `undefined` for escapes that JSON does not have. */
function readEscape(text: string, at: number): readonly [string, number] | undefined {
  const char = text[at] ?? '';
  const hex = char === 'u' ? /^[0-9a-fA-F]{4}$/.exec(text.slice(at + 1, at + 5))?.[0] : undefined;
  if (hex !== undefined) return [String.fromCharCode(Number.parseInt(hex, 16)), 5];
  const meant = ESCAPES.get(char);
  return meant === undefined ? undefined : [meant, 1];
}
