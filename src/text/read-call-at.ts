import type { DraftCall, TextCallFormat } from './formats/text-call-format.js';
import type { KnownTools } from './known-tools.js';
import { type FoundLiteral, TextCursor } from './text-cursor.js';

/** A place where a call may begin. */
interface FoundOpener extends FoundLiteral {
  /** The formats that begin so, in the order in which they are tried. */
  readonly formats: readonly TextCallFormat[];
}

/** What stands at an opener. */
type CallReading =
  | {
      readonly kind: 'calls';
      readonly calls: readonly DraftCall[];
      /** None of them is of a known tool. */
      readonly isUnknown: boolean;
      readonly end: number;
    }
  /** No call; the search goes on at `end`. */
  | { readonly kind: 'none'; readonly end: number }
  /** Perhaps a call: the text ends too early to tell. */
  | { readonly kind: 'open' };

/** What the outcome depends on besides the text. */
interface CallReadingContext {
  readonly tools: KnownTools;
  /** Nothing but white space and reasoning stands before it. */
  readonly isFirst: boolean;
  /** No more text comes. */
  readonly isFinal: boolean;
}

/** The formats by what they begin with, in their order. */
export function formatsByOpener(
  formats: readonly TextCallFormat[],
): ReadonlyMap<string, readonly TextCallFormat[]> {
  const byLiteral = new Map<string, TextCallFormat[]>();
  for (const format of formats) {
    for (const literal of format.openers) byLiteral.set(literal, [...(byLiteral.get(literal) ?? []), format]);
  }
  return byLiteral;
}

/** Asks the formats that begin with an opener, one after the other, what stands there. */
export function readCallAt(text: string, opener: FoundOpener, context: CallReadingContext): CallReading {
  const { tools, isFirst, isFinal } = context;
  const { start, literal } = opener;
  let reached = start + literal.length;
  let unknown: Extract<CallReading, { kind: 'calls' }> | undefined;
  for (const format of opener.formats) {
    const cursor = new TextCursor(text, start + literal.length);
    const found = format.read(cursor, { tools, isFirst, opener: literal, start }) ?? [];
    if (cursor.tailOpen && !isFinal) return { kind: 'open' };
    const tells = tools.tellsUnknown && !isPlain(literal);
    const known = found.filter(({ name }) => tools.has(name));
    if (known.length > 0)
      return { kind: 'calls', calls: tells ? found : known, isUnknown: false, end: cursor.at };
    if (found.length === 0 && cursor.ranOut) return { kind: 'open' };
    if (found.length > 0 && tells)
      unknown ??= { kind: 'calls', calls: found, isUnknown: true, end: cursor.at };
    if (cursor.at > reached) reached = cursor.at;
  }
  return unknown ?? { kind: 'none', end: reached };
}

/** What also begins other things than calls: only the name of a known tool tells. */
function isPlain(opener: string): boolean {
  return opener === '{' || opener === '[' || opener === '```';
}
