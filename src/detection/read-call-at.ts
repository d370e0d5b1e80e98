import type { DraftCall } from './draft-call.js';
import type { KnownTools } from './known-tools.js';
import type { FoundOpener } from './opener-index.js';
import { TextCursor } from './text-cursor.js';

/** What stands at an opener. */
export type CallReading =
  | { readonly kind: 'calls'; readonly calls: readonly DraftCall[]; readonly end: number }
  /** No call; the search goes on at `end`. */
  | { readonly kind: 'none'; readonly end: number }
  /** Perhaps a call: the text ends too early to tell. */
  | { readonly kind: 'open' };

/** What the outcome depends on besides the text. */
export interface CallReadingContext {
  readonly tools: KnownTools;
  /** Nothing but white space stands before it. */
  readonly isFirst: boolean;
  /** No more text comes. */
  readonly isFinal: boolean;
}

/** Asks the formats that begin with an opener, one after the other, what stands there. */
export function readCallAt(text: string, opener: FoundOpener, context: CallReadingContext): CallReading {
  const { tools, isFirst, isFinal } = context;
  const { start, literal } = opener;
  let reached = start + literal.length;
  for (const format of opener.formats) {
    const cursor = new TextCursor(text, start + literal.length);
    const found = format.read(cursor, { tools, isFirst, opener: literal, start }) ?? [];
    if (cursor.tailOpen && !isFinal) return { kind: 'open' };
    const calls = found.filter(({ name }) => tools.has(name));
    if (calls.length > 0) return { kind: 'calls', calls, end: cursor.at };
    if (found.length === 0 && cursor.ranOut) return { kind: 'open' };
    if (cursor.at > reached) reached = cursor.at;
  }
  return { kind: 'none', end: reached };
}
