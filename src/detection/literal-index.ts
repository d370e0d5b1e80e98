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

/** Builds the index: one pattern, so that a text is searched once. Of two that begin alike, the longer wins. */
export function createLiteralIndex(all: Iterable<string>): LiteralIndex {
  const literals = [...new Set(all)].sort((one, other) => other.length - one.length);
  const pattern = new RegExp(literals.map(escapePattern).join('|'), 'g');
  const beginnings = new Set(literals.flatMap((literal) => beginningsOf(literal)));
  const longest = literals[0]?.length ?? 0;
  const endsInside = (text: string, start: number): boolean =>
    text.length - start < longest && beginnings.has(text.slice(start));

  return {
    endsInside,
    next(text, from) {
      pattern.lastIndex = from;
      const match = pattern.exec(text);
      return match === null ? undefined : { literal: match[0], start: match.index };
    },
    tailStart(text, from) {
      let start = Math.max(from, text.length - longest);
      while (start < text.length && !endsInside(text, start)) start += 1;
      return start;
    },
  };
}

/** A literal as part of a pattern. */
export function escapePattern(literal: string): string {
  return literal.replace(/[^\w\s]/gu, '\\$&');
}

function beginningsOf(literal: string): string[] {
  return Array.from({ length: literal.length - 1 }, (_, index) => literal.slice(0, index + 1));
}
