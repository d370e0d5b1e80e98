/** How far a strict JSON object or array reaches. */
type JsonSpan =
  | { readonly kind: 'closed'; readonly end: number }
  /** The text ends before the value does. */
  | { readonly kind: 'open' }
  /** No JSON, whatever may follow; a search goes on at `resumeAt`. */
  | { readonly kind: 'broken'; readonly resumeAt: number };

type Expected = 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'comma or end';

/** One token: where it ends and what may come next; `undefined` where the grammar does not allow it. */
type Step = { readonly end: number; readonly next: Expected } | 'open' | undefined;

const SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;
const SCALAR_LIKE = /[-+.\w]*/y;
const ESCAPE = /^(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/;
const SPACE = new Set([' ', '\n', '\r', '\t']);

/**
 * Finds the end of the object or array at `start` without building it, in one pass without recursion: the
 * text comes from a model and may be a megabyte of `{`.
 */
export function jsonSpan(text: string, start: number): JsonSpan {
  const closers: string[] = [];
  let expected: Expected = 'value';
  let at = start;
  let lastString = -1;
  for (;;) {
    while (SPACE.has(text[at] ?? '')) at += 1;
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

/** A string right before the fault may have swallowed the beginning of a call: it is looked through again. */
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
  // Such as `tru` or `12`: what follows decides.
  if (SCALAR_LIKE.test(text) && SCALAR_LIKE.lastIndex === text.length) return 'open';
  SCALAR.lastIndex = start;
  return SCALAR.test(text) ? SCALAR.lastIndex : undefined;
}
