import { parseExactJson } from '../checking/exact-json.js';
import { readRelaxedJson, type Span } from '../checking/relaxed-json.js';
import { jsonSpan } from './json-span.js';

/** A JSON value that was read; `members` only where it was no strict JSON. */
export interface ReadJson {
  readonly value: unknown;
  readonly members?: ReadonlyMap<string, Span>;
}

const SPACE = /\s*/y;

/**
 * A place in a text, moved on by a format as it recognises what stands there. Where something was missing
 * only because the text ends, `ranOut` is set: more text could still make it a call.
 */
export class TextCursor {
  at: number;
  /** What was looked for may begin with the last characters of the text. */
  ranOut = false;
  /** A call was read, but what may belong to it reaches the end of the text. */
  tailOpen = false;

  constructor(
    readonly text: string,
    at: number,
  ) {
    this.at = at;
  }

  /** Passes over white space. */
  space(): void {
    SPACE.lastIndex = this.at;
    SPACE.test(this.text);
    this.at = SPACE.lastIndex;
  }

  /** The next character; `''` at the end of the text. */
  peek(): string {
    if (this.at >= this.text.length) this.ranOut = true;
    return this.text[this.at] ?? '';
  }

  /** Passes over a literal, if it stands here. */
  take(literal: string): boolean {
    const found = this.text.startsWith(literal, this.at);
    if (found) this.at += literal.length;
    else this.ranOut ||= this.#endsWithin(literal);
    return found;
  }

  /** What a sticky pattern matches here; nothing if it reaches the end of the text, where it might go on. */
  match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (this.at + (found?.length ?? 0) >= this.text.length) this.ranOut = true;
    else this.at += found?.length ?? 0;
    return this.ranOut ? undefined : found;
  }

  /** The text up to a literal, which is passed over too. */
  until(literal: string): string | undefined {
    const end = this.text.indexOf(literal, this.at);
    if (end < 0) {
      this.ranOut = true;
      return undefined;
    }
    const found = this.text.slice(this.at, end);
    this.at = end + literal.length;
    return found;
  }

  /** An object or array: strict JSON, or one of its dialects where `relaxed` allows them. */
  json({ relaxed }: { readonly relaxed: boolean }): ReadJson | undefined {
    if (!'{['.includes(this.peek()) || this.ranOut) return undefined;
    const span = jsonSpan(this.text, this.at);
    if (span.kind === 'closed') {
      const value = parseExactJson(this.text.slice(this.at, span.end));
      this.at = span.end;
      return { value };
    }
    if (span.kind === 'open') this.ranOut = true;
    return span.kind === 'broken' && relaxed ? this.relaxed() : undefined;
  }

  /** A value in one of the dialects of JSON, or a Python literal. */
  relaxed(): Required<ReadJson> | undefined {
    const reading = readRelaxedJson(this.text, this.at);
    if (reading.kind === 'open') this.ranOut = true;
    if (reading.kind !== 'read') return undefined;
    this.at = reading.end;
    return reading;
  }

  /**
   * Passes over closing marks as far as they are there, with the white space before them. Where the text
   * ends first, all of it is passed over: a closing mark that is cut off is no text for people.
   */
  closers(literals: readonly string[]): void {
    for (;;) {
      const before = this.at;
      this.space();
      const found = literals.find((literal) => this.text.startsWith(literal, this.at));
      if (found === undefined) {
        this.tailOpen = this.at >= this.text.length || literals.some((literal) => this.#endsWithin(literal));
        this.at = this.tailOpen ? this.text.length : before;
        return;
      }
      this.at += found.length;
    }
  }

  #endsWithin(literal: string): boolean {
    const left = this.text.length - this.at;
    return left < literal.length && literal.startsWith(this.text.slice(this.at));
  }
}

/** A literal that was found, and where it begins. */
export interface FoundLiteral {
  readonly literal: string;
  readonly start: number;
}

/** Finds where one of many literals stands, or may begin. */
interface LiteralIndex {
  /** The next one at or after a place. */
  next(text: string, from: number): FoundLiteral | undefined;
  /** Whether the text from `start` on is only the beginning of some longer literal. */
  endsInside(text: string, start: number): boolean;
  /** Where the end of the text may be the beginning of a literal; its length if it is not. */
  tailStart(text: string, from: number): number;
}

/** The index, built with the first text: one pattern, so that a text is searched once. */
export function createLiteralIndex(all: Iterable<string>): LiteralIndex {
  let built: Literals | undefined;
  const literals = (): Literals => {
    built ??= literalsOf(all);
    return built;
  };
  const endsInside = (text: string, start: number): boolean =>
    text.length - start < literals().longest && literals().beginnings.has(text.slice(start));

  return {
    endsInside,
    next(text, from) {
      const { pattern } = literals();
      pattern.lastIndex = from;
      const match = pattern.exec(text);
      return match === null ? undefined : { literal: match[0], start: match.index };
    },
    tailStart(text, from) {
      let start = Math.max(from, text.length - literals().longest);
      while (start < text.length && !endsInside(text, start)) start += 1;
      return start;
    },
  };
}

interface Literals {
  readonly pattern: RegExp;
  readonly beginnings: ReadonlySet<string>;
  readonly longest: number;
}

/** Of two that begin alike, the longer wins. */
function literalsOf(all: Iterable<string>): Literals {
  const literals = [...new Set(all)].sort((a, b) => b.length - a.length);
  return {
    pattern: new RegExp(literals.map(escapePattern).join('|'), 'g'),
    beginnings: new Set(literals.flatMap((literal) => beginningsOf(literal))),
    longest: literals[0]?.length ?? 0,
  };
}

/** A literal as part of a pattern. */
export function escapePattern(literal: string): string {
  return literal.replace(/[^\w\s]/gu, '\\$&');
}

function beginningsOf(literal: string): string[] {
  return Array.from({ length: literal.length - 1 }, (_, index) => literal.slice(0, index + 1));
}
