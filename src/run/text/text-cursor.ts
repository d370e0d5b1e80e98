import { readExactJson } from '../../core/kernel/exact-json.js';
import { Cursor, readRelaxedJson, type Span } from '../../tools/checking/relaxed-json.js';

/** A JSON value that was read; `members` only if it was not strict JSON. */
export interface ReadJson {
  readonly value: unknown;
  readonly members?: ReadonlyMap<string, Span>;
}

const SPACE = /\s*/y;

/** The position of a format in a text. More text could still make it a call if `ranOut` is set. */
export class TextCursor extends Cursor {
  /** A call was read, but text that may belong to it reaches the end of the text. */
  tailOpen = false;

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
        this.tailOpen = this.at >= this.text.length || literals.some((literal) => this.endsWithin(literal));
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
}

/** The extent of a strict JSON object or array. */
type JsonSpan =
  | { readonly kind: 'closed'; readonly end: number }
  /** The text ends before the value does. */
  | { readonly kind: 'open' }
  /** Not JSON, with any continuation; a search continues at `resumeAt`. */
  | { readonly kind: 'broken'; readonly resumeAt: number };

/** What may come next; after a complete value, the closing bracket of its container. */
type Expected = 'value' | 'first item' | 'key' | 'first key' | 'colon' | ']' | '}';

const DONE = 'done';
const VALUE = { '{': 'first key', '[': 'first item', '"': DONE, scalar: DONE } as const;

/** By the next token: what may follow it, or that it ends a value. Other tokens are not JSON. */
const GRAMMAR: Readonly<Record<Expected, Readonly<Record<string, Expected | typeof DONE>>>> = {
  value: VALUE,
  'first item': { ...VALUE, ']': DONE },
  key: { '"': 'colon' },
  'first key': { '"': 'colon', '}': DONE },
  colon: { ':': 'value' },
  ']': { ',': 'value', ']': DONE },
  '}': { ',': 'key', '}': DONE },
};

const MARKS = '{}[]:,"';
const JSON_SPACE = new Set([' ', '\n', '\r', '\t']);
const SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![-+.\w]|$)/y;
/** Incomplete tokens such as `tru` or `12`: the following text decides. */
const CUT_SCALAR = /[-+.\w]*$/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const CUT_ESCAPE = /\\(?:u[0-9a-fA-F]{0,3})?$/y;

/**
 * Finds the end of the object or array at `start` without building it, in one pass without recursion: the text comes
 * from a model and may be a megabyte of `{`.
 */
export function jsonSpan(text: string, start: number): JsonSpan {
  const closers: ('}' | ']')[] = [];
  let expected: Expected = 'value';
  let lastString = -1;
  for (let at = start; at < text.length; ) {
    const char = text.charAt(at);
    if (JSON_SPACE.has(char)) {
      at += 1;
      continue;
    }
    const next: Expected | typeof DONE | undefined =
      GRAMMAR[expected][MARKS.includes(char) ? char : 'scalar'];
    const end = next && endOfToken(text, at);
    if (end === 'open') return { kind: 'open' };
    if (next === undefined || end === undefined)
      return { kind: 'broken', resumeAt: resumeAt(start, at, lastString) };
    if (next === 'first key') closers.push('}');
    if (next === 'first item') closers.push(']');
    if (char === '}' || char === ']') closers.pop();
    const container = closers.at(-1);
    if (container === undefined) return { kind: 'closed', end };
    expected = next === DONE ? container : next;
    lastString = char === '"' ? at : -1;
    at = end;
  }
  return { kind: 'open' };
}

/** A string right before the error may contain the beginning of a call, so it is searched again. */
function resumeAt(start: number, at: number, lastString: number): number {
  const from = lastString >= 0 ? lastString + 1 : at;
  return from > start ? from : start + 1;
}

function endOfToken(text: string, at: number): number | 'open' | undefined {
  const char = text.charAt(at);
  if (char === '"') return endOfString(text, at);
  if (MARKS.includes(char)) return at + 1;
  return endOf(SCALAR, text, at) ?? (endOf(CUT_SCALAR, text, at) && 'open');
}

function endOfString(text: string, start: number): number | 'open' | undefined {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return at + 1;
    if (code < 0x20) return undefined;
    if (code !== 0x5c) continue;
    const end = endOf(ESCAPE, text, at);
    if (end === undefined) return endOf(CUT_ESCAPE, text, at) && 'open';
    at = end - 1;
  }
  return 'open';
}

function endOf(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}
