import { escapePattern } from '../../core/kernel/escape-pattern.js';
import { readExactJson } from '../../core/kernel/exact-json.js';
import { readRelaxedJson, type Span } from '../../tools/checking/relaxed-json.js';

/** A JSON value that was read; `members` only if it was not strict JSON. */
export interface ReadJson {
  readonly value: unknown;
  readonly members?: ReadonlyMap<string, Span>;
}

const SPACE = /\s*/y;

/**
 * A position in a text, which a format advances as it recognizes parts. `ranOut` is set if a part is missing only
 * because the text ends: more text could still make it a call.
 */
export class TextCursor {
  at: number;
  /** The wanted text may start with the last characters of the text. */
  ranOut = false;
  /** A call was read, but text that may belong to it reaches the end of the text. */
  tailOpen = false;

  constructor(
    readonly text: string,
    at: number,
  ) {
    this.at = at;
  }

  /** Skips white space. */
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

  /** Skips a literal, if it is here. */
  take(literal: string): boolean {
    const found = this.text.startsWith(literal, this.at);
    if (found) this.at += literal.length;
    else this.ranOut ||= this.#endsWithin(literal);
    return found;
  }

  /** The match of a sticky pattern here; `undefined` if it reaches the end of the text, where it might continue. */
  match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (this.at + (found?.length ?? 0) >= this.text.length) this.ranOut = true;
    else this.at += found?.length ?? 0;
    return this.ranOut ? undefined : found;
  }

  /** The text up to a literal, which is skipped too. */
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

  /** An object or array: strict JSON, or one of its dialects if `relaxed` allows them. */
  json({ relaxed }: { readonly relaxed: boolean }): ReadJson | undefined {
    if (!'{['.includes(this.peek()) || this.ranOut) return undefined;
    const span = jsonSpan(this.text, this.at);
    if (span.kind === 'closed') {
      const value = readExactJson(this.text.slice(this.at, span.end))?.value;
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
   * Skips the closing marks that are present, with the white space before them. If the text ends first, all of it is
   * skipped: a closing mark that is cut off is not text for people.
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

  /** The calls of a format: a call that was read, after its closing marks were skipped. */
  closed<Call>(call: Call | undefined, literals: readonly string[]): readonly Call[] | undefined {
    if (call === undefined) return undefined;
    this.closers(literals);
    return [call];
  }

  #endsWithin(literal: string): boolean {
    const left = this.text.length - this.at;
    return left < literal.length && literal.startsWith(this.text.slice(this.at));
  }
}

/** A found literal, and its start. */
export interface FoundLiteral {
  readonly literal: string;
  readonly start: number;
}

/** Finds the positions where one of many literals starts, or may start. Built for the first text. */
export class LiteralIndex {
  #built: Literals | undefined;

  constructor(private readonly all: Iterable<string>) {}

  get #literals(): Literals {
    this.#built ??= literalsOf(this.all);
    return this.#built;
  }

  /** The next literal at or after a position. */
  next(text: string, from: number): FoundLiteral | undefined {
    const { pattern } = this.#literals;
    pattern.lastIndex = from;
    const match = pattern.exec(text);
    return match === null ? undefined : { literal: match[0], start: match.index };
  }

  /** Whether the text from `start` on is only the beginning of a longer literal. */
  endsInside(text: string, start: number): boolean {
    const { longest, beginnings } = this.#literals;
    return text.length - start < longest && beginnings.has(text.slice(start));
  }

  /**
   * The position at which the end of the text may be the beginning of a literal; the text's length if there is none.
   */
  tailStart(text: string, from: number): number {
    let start = Math.max(from, text.length - this.#literals.longest);
    while (start < text.length && !this.endsInside(text, start)) start += 1;
    return start;
  }
}

/** One pattern for all literals, so that a text is searched once. */
interface Literals {
  readonly pattern: RegExp;
  readonly beginnings: ReadonlySet<string>;
  readonly longest: number;
}

/** If one literal is the beginning of another, the longer wins. */
function literalsOf(all: Iterable<string>): Literals {
  const literals = [...new Set(all)].sort((a, b) => b.length - a.length);
  return {
    pattern: new RegExp(literals.map(escapePattern).join('|'), 'g'),
    beginnings: new Set(literals.flatMap((literal) => beginningsOf(literal))),
    longest: literals[0]?.length ?? 0,
  };
}

function beginningsOf(literal: string): string[] {
  return Array.from({ length: literal.length - 1 }, (_, index) => literal.slice(0, index + 1));
}

/** The extent of a strict JSON object or array. */
type JsonSpan =
  | { readonly kind: 'closed'; readonly end: number }
  /** The text ends before the value does. */
  | { readonly kind: 'open' }
  /** Not JSON, with any continuation; a search continues at `resumeAt`. */
  | { readonly kind: 'broken'; readonly resumeAt: number };

type Expected = 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'comma or end';

/** One token: its end, and what may come next; `undefined` if the grammar does not allow it. */
type Step = { readonly end: number; readonly next: Expected } | 'open' | undefined;

const SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;
const SCALAR_LIKE = /[-+.\w]*/y;
const ESCAPE = /^(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/;
const JSON_SPACE = new Set([' ', '\n', '\r', '\t']);

/**
 * Finds the end of the object or array at `start` without building it, in one pass without recursion: the text comes
 * from a model and may be a megabyte of `{`.
 */
export function jsonSpan(text: string, start: number): JsonSpan {
  const closers: string[] = [];
  let expected: Expected = 'value';
  let at = start;
  let lastString = -1;
  for (;;) {
    while (JSON_SPACE.has(text[at] ?? '')) at += 1;
    if (at >= text.length) return { kind: 'open' };
    const step = takeToken({ text, at, expected, closers });
    if (step === 'open') return { kind: 'open' };
    if (step === undefined) return { kind: 'broken', resumeAt: resumeAt(start, at, lastString) };
    if (closers.length === 0) return { kind: 'closed', end: step.end };
    lastString = text[at] === '"' ? at : -1;
    at = step.end;
    expected = step.next;
  }
}

/** A string right before the error may contain the beginning of a call, so it is searched again. */
function resumeAt(start: number, at: number, lastString: number): number {
  const from = lastString >= 0 ? lastString + 1 : at;
  return from > start ? from : start + 1;
}

interface Token {
  readonly text: string;
  readonly at: number;
  readonly expected: Expected;
  readonly closers: string[];
}

function takeToken(token: Token): Step {
  const { text, at, expected, closers } = token;
  const isValue = expected === 'value' || expected === 'value or end';
  const isKey = expected === 'key' || expected === 'key or end';
  switch (text[at]) {
    case '"':
      if (!isValue && !isKey) return undefined;
      return then(endOfString(text, at), isKey ? 'colon' : 'comma or end');
    case '{':
      return isValue ? open(closers, '}', at) : undefined;
    case '[':
      return isValue ? open(closers, ']', at) : undefined;
    case '}':
    case ']':
      if (closers.at(-1) !== text[at] || !(expected.endsWith('or end') || closers.length === 0))
        return undefined;
      closers.pop();
      return { end: at + 1, next: 'comma or end' };
    case ':':
      return expected === 'colon' ? { end: at + 1, next: 'value' } : undefined;
    case ',':
      if (expected !== 'comma or end') return undefined;
      return { end: at + 1, next: closers.at(-1) === '}' ? 'key' : 'value' };
    default:
      return isValue ? then(endOfScalar(text, at), 'comma or end') : undefined;
  }
}

function open(closers: string[], closer: string, at: number): Step {
  closers.push(closer);
  return { end: at + 1, next: closer === '}' ? 'key or end' : 'value or end' };
}

function then(end: number | 'open' | undefined, next: Expected): Step {
  return typeof end === 'number' ? { end, next } : end;
}

function endOfString(text: string, start: number): number | 'open' | undefined {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return at + 1;
    if (code < 0x20) return undefined;
    if (code !== 0x5c) continue;
    const escaped = text.slice(at + 1, at + 6);
    if (!ESCAPE.test(escaped))
      return at + 1 + escaped.length === text.length ? unfinished(escaped) : undefined;
    at += 1;
  }
  return 'open';
}

function unfinished(escaped: string): 'open' | undefined {
  return /^(?:u[0-9a-fA-F]{0,3})?$/.test(escaped) ? 'open' : undefined;
}

function endOfScalar(text: string, start: number): number | 'open' | undefined {
  SCALAR_LIKE.lastIndex = start;
  // Incomplete tokens such as `tru` or `12`: the following text decides.
  if (SCALAR_LIKE.test(text) && SCALAR_LIKE.lastIndex === text.length) return 'open';
  SCALAR.lastIndex = start;
  return SCALAR.test(text) ? SCALAR.lastIndex : undefined;
}
