import type { TextCallFormat } from './formats/text-call-format.js';

/** A place where a call may begin. */
export interface FoundOpener {
  readonly literal: string;
  readonly start: number;
  /** The formats that begin so, in the order in which they are tried. */
  readonly formats: readonly TextCallFormat[];
}

/** Finds the places where a call of any format may begin. */
export interface OpenerIndex {
  /** The next opener at or after a place. */
  next(text: string, from: number): FoundOpener | undefined;
  /** Whether the text from `start` on is only the beginning of some longer opener. */
  endsInside(text: string, start: number): boolean;
  /** Where the end of the text may be the beginning of an opener; its length if it is not. */
  tailStart(text: string, from: number): number;
}

/** Builds the index over the openers of all formats: one pattern, so that a text is searched once. */
export function createOpenerIndex(formats: readonly TextCallFormat[]): OpenerIndex {
  const byLiteral = new Map<string, TextCallFormat[]>();
  for (const format of formats) {
    for (const literal of format.openers) byLiteral.set(literal, [...(byLiteral.get(literal) ?? []), format]);
  }
  const literals = [...byLiteral.keys()].sort((one, other) => other.length - one.length);
  const pattern = new RegExp(literals.map((literal) => literal.replace(/[^\w\s]/gu, '\\$&')).join('|'), 'g');
  const beginnings = new Set(literals.flatMap((literal) => beginningsOf(literal)));
  const longest = literals[0]?.length ?? 0;
  const endsInside = (text: string, start: number): boolean =>
    text.length - start < longest && beginnings.has(text.slice(start));

  return {
    endsInside,
    next(text, from) {
      pattern.lastIndex = from;
      const match = pattern.exec(text);
      if (match === null) return undefined;
      const [literal] = match;
      return { literal, start: match.index, formats: byLiteral.get(literal) ?? [] };
    },
    tailStart(text, from) {
      let start = Math.max(from, text.length - longest);
      while (start < text.length && !endsInside(text, start)) start += 1;
      return start;
    },
  };
}

function beginningsOf(literal: string): string[] {
  return Array.from({ length: literal.length - 1 }, (_, index) => literal.slice(0, index + 1));
}
