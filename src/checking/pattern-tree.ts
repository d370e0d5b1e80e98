/** A pattern as far as it matters how many ways there are to match a text. */
export type PatternNode =
  /** One character: `a`, `\d`, `[^,]`. */
  | { readonly kind: 'character'; readonly source: string }
  /** What only looks: an anchor, a boundary, a look-around. */
  | { readonly kind: 'test' }
  | { readonly kind: 'sequence' | 'choice'; readonly parts: readonly PatternNode[] }
  | Repetition;

/** The same, some times in a row. */
export interface Repetition {
  readonly kind: 'repeat';
  readonly body: PatternNode;
  readonly least: number;
  readonly most: number;
}

/** A pattern, and those of its look-arounds, which are matched on their own. */
export interface PatternTree {
  readonly root: PatternNode;
  readonly aside: readonly PatternNode[];
}

/** The tree of a pattern that `RegExp` takes. */
export function readPattern(pattern: string): PatternTree {
  const reader = new PatternReader(pattern);
  return { root: reader.choice(), aside: reader.aside };
}

const TEST: PatternNode = { kind: 'test' };
const ANY: PatternNode = { kind: 'character', source: '[\\s\\S]' };

const OPENING = /\((?:\?(?:<?([=!])|<[^>]*>|[a-z-]*:))?/y;
const QUANTIFIER = /(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/y;
const CLASS = /\[(?:\\[\s\S]|[^\]\\])*\]/uy;
const ESCAPE =
  /\\(?:u\{[^}]*\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[a-zA-Z]|[pP]\{[^}]*\}|k<[^>]*>|[1-9]\d*|[\s\S])/uy;
const SYNTAX = /[{}\]/]/;

class PatternReader {
  readonly aside: PatternNode[] = [];
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  choice(): PatternNode {
    const parts = [this.#sequence()];
    while (this.#text[this.#at] === '|') {
      this.#at += 1;
      parts.push(this.#sequence());
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : { kind: 'choice', parts };
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = [];
    while (this.#at < this.#text.length && !/[|)]/.test(this.#text[this.#at] ?? '')) {
      const part = this.#atom();
      parts.push(this.#repeated(part));
    }
    return { kind: 'sequence', parts };
  }

  #repeated(body: PatternNode): PatternNode {
    const [quantifier, sign, from, comma, to] = this.#take(QUANTIFIER);
    if (quantifier === undefined) return body;
    if (sign !== undefined)
      return {
        kind: 'repeat',
        body,
        least: sign === '+' ? 1 : 0,
        most: sign === '?' ? 1 : Number.POSITIVE_INFINITY,
      };
    const least = Number(from);
    const upTo = to ? Number(to) : Number.POSITIVE_INFINITY;
    return { kind: 'repeat', body, least, most: comma === ',' ? upTo : least };
  }

  #atom(): PatternNode {
    const char = String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0);
    if (char === '(') return this.#group();
    const [found] = this.#take(char === '[' ? CLASS : ESCAPE);
    if (found === undefined) {
      this.#at += char.length;
      if (char === '^' || char === '$') return TEST;
      return { kind: 'character', source: SYNTAX.test(char) ? `\\${char}` : char };
    }
    if (found === '\\b' || found === '\\B') return TEST;
    return /^\\(?:k<|[1-9])/.test(found) ? ANY : { kind: 'character', source: found };
  }

  #group(): PatternNode {
    const [, looks] = this.#take(OPENING);
    const inner = this.choice();
    this.#at += 1;
    if (looks === undefined) return inner;
    this.aside.push(inner);
    return TEST;
  }

  #take(pattern: RegExp): readonly (string | undefined)[] {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text) ?? [];
    this.#at += found[0]?.length ?? 0;
    return found;
  }
}
