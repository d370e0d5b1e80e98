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

const MOST_LEVELS = 100;
// A comment is bounded, so that many unclosed ones cannot make reading quadratic.
const LONGEST_COMMENT = 1000;
const SPACE = /\s*/y;
const WORD = /[\p{L}_$][\p{L}\p{N}_$-]*/uy;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])/y;
const DIGITS = /[-+.\w]*/y;
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

/**
 * Reads a value in the JSON dialects that models write: single quotes, bare keys, comments, trailing
 * commas, raw line breaks in strings, and Python's literals and tuples. What is cut off is never completed.
 */
export function readRelaxed(text: string, start: number): RelaxedReading {
  const reader = new RelaxedReader(text, start);
  const value = reader.value(0);
  if (value !== BROKEN) return { kind: 'read', value, end: reader.at, members: reader.members };
  return { kind: reader.ranOut ? 'open' : 'broken' };
}

class RelaxedReader {
  at: number;
  ranOut = false;
  readonly members = new Map<string, Span>();
  readonly #text: string;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  value(level: number): unknown {
    if (level > MOST_LEVELS || !this.#skipSpace()) return BROKEN;
    const char = this.#text[this.at]!;
    if (char === '{') return this.#object(level);
    if (char === '[') return this.#list(level, ']');
    if (char === '(') return this.#list(level, ')');
    if (char === '"' || char === "'") return this.#string(char);
    return /[-\d]/.test(char) ? this.#number() : this.#literal();
  }

  #object(level: number): unknown {
    const entries: [string, unknown][] = [];
    this.at += 1;
    for (;;) {
      if (!this.#skipSpace()) return BROKEN;
      if (this.#take('}')) return Object.fromEntries(entries);
      const key = this.#key();
      if (typeof key !== 'string' || !this.#skipSpace() || !this.#take(':') || !this.#skipSpace())
        return BROKEN;
      const start = this.at;
      const value = this.value(level + 1);
      if (value === BROKEN) return BROKEN;
      // fromEntries makes own properties, so that `__proto__` is data.
      entries.push([key, value]);
      if (level === 0) this.members.set(key, { start, end: this.at });
      if (!this.#separator('}')) return BROKEN;
    }
  }

  #list(level: number, closer: string): unknown {
    const items: unknown[] = [];
    this.at += 1;
    for (;;) {
      if (!this.#skipSpace()) return BROKEN;
      if (this.#take(closer)) return items;
      const item = this.value(level + 1);
      if (item === BROKEN) return BROKEN;
      items.push(item);
      if (!this.#separator(closer)) return BROKEN;
    }
  }

  #separator(closer: string): boolean {
    return this.#skipSpace() && (this.#take(',') || this.#text[this.at] === closer);
  }

  #key(): unknown {
    const char = this.#text[this.at]!;
    return char === '"' || char === "'" ? this.#string(char) : (this.#run(WORD) ?? BROKEN);
  }

  #string(quote: string): unknown {
    let content = '';
    let copied = this.at + 1;
    for (let at = copied; at < this.#text.length; at += 1) {
      const char = this.#text[at];
      if (char === quote) {
        this.at = at + 1;
        return content + this.#text.slice(copied, at);
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

  #number(): unknown {
    if (this.#runsOut(DIGITS)) return BROKEN;
    const digits = this.#run(NUMBER);
    return digits === undefined ? BROKEN : Number(digits);
  }

  #literal(): unknown {
    const word = this.#run(WORD);
    return word !== undefined && LITERALS.has(word) ? LITERALS.get(word) : BROKEN;
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
    if (length < 0) this.ranOut ||= this.#text.length - this.at < LONGEST_COMMENT;
    else this.at += length + closer.length;
    return length >= 0;
  }
}

/** What stands behind a backslash, and how many characters it takes; an unknown escape is its character. */
function readEscape(text: string, at: number): readonly [string, number] {
  const char = text[at] ?? '';
  const hex = char === 'u' ? /^[0-9a-fA-F]{4}$/.exec(text.slice(at + 1, at + 5))?.[0] : undefined;
  if (hex !== undefined) return [String.fromCharCode(Number.parseInt(hex, 16)), 5];
  return [ESCAPES.get(char) ?? char, 1];
}
