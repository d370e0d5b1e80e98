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
  const literals = [...new Set(all)].sort((one, other) => other.length - one.length);
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
