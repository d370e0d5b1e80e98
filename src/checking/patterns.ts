import { patternOf } from './formats.js';
import { loadRedosDetector } from './load-redos-detector.cjs';

/** Repetitions of a group that may itself be matched in several ways: without one, time grows as a power. */
const REPEATED_GROUP = /\)(?:[*+]|\{\d)/;
/** How often what is repeated is written out. */
const MOST_COPIES = 8;
const MOST_POSITIONS = 300;
const MOST_STEPS = 300_000;

const endless = new Map<string, boolean>();
const MOST_KNOWN = 1_000;

/**
 * Whether a text of some ten characters can keep a pattern busy for ever: a repetition within which the same
 * characters can be matched in two ways, as in `^(a+)+$`. Where it cannot be told, it does not say so.
 */
export function isExponentialPattern(pattern: string): boolean {
  if (!REPEATED_GROUP.test(pattern)) return false;
  const before = endless.get(pattern);
  if (before !== undefined) return before;
  const { root, aside } = readPattern(pattern);
  const found = [root, ...aside].some((part) => new Positions(pattern).loopsInTwoWays(withoutTail(part)));
  if (endless.size < MOST_KNOWN) endless.set(pattern, found);
  return found;
}

/** Without repetitions at its end: what comes last and cannot fail is never tried in another way. */
function withoutTail(node: PatternNode): PatternNode {
  if (node.kind === 'repeat') return { ...node, most: node.least };
  if (node.kind === 'choice') return { ...node, parts: node.parts.map(withoutTail) };
  if (node.kind !== 'sequence') return node;
  const parts = [...node.parts];
  for (let last = parts.pop(); last !== undefined; last = parts.pop()) {
    const left = withoutTail(last);
    if (left.kind === 'repeat' && left.most === 0) continue;
    return { kind: 'sequence', parts: [...parts, left] };
  }
  return { kind: 'sequence', parts };
}

/** Where a part of a pattern can begin and end, and whether it can be nothing. */
interface Ends {
  readonly first: readonly number[];
  readonly last: readonly number[];
  readonly isNullable: boolean;
}

const NOTHING: Ends = { first: [], last: [], isNullable: true };

/**
 * The characters of a pattern, and which may follow which. A step that is there twice can be made in two ways:
 * within a repetition, and by its next round.
 */
class Positions {
  readonly #sources: string[] = [];
  readonly #steps: number[][] = [];
  /** Where a round of a repetition may begin. */
  readonly #rounds = new Set<number>();
  readonly #letters: readonly string[];
  readonly #taken = new Map<string, ReadonlySet<string>>();

  constructor(pattern: string) {
    this.#letters = lettersOf(pattern);
  }

  /** Whether some text leads from the beginning of a round back to it in two ways. */
  loopsInTwoWays(node: PatternNode): boolean {
    this.#place(node);
    if (this.#sources.length > MOST_POSITIONS) return false;
    return [...this.#rounds].some((start) => this.#comesBackTwice(start));
  }

  #place(node: PatternNode): Ends {
    if (this.#sources.length > MOST_POSITIONS || node.kind === 'test') return NOTHING;
    if (node.kind === 'repeat') return this.#repeat(node);
    if (node.kind === 'character') {
      const position = this.#sources.push(node.source) - 1;
      this.#steps.push([]);
      return { first: [position], last: [position], isNullable: false };
    }
    if (node.kind === 'sequence') return this.#inRow(node.parts.map((part) => () => this.#place(part)));
    const parts = node.parts.map((part) => this.#place(part));
    return {
      first: parts.flatMap(({ first }) => first),
      last: parts.flatMap(({ last }) => last),
      isNullable: parts.some(({ isNullable }) => isNullable),
    };
  }

  #inRow(parts: readonly (() => Ends)[]): Ends {
    return parts.reduce<Ends>((before, place) => {
      const next = place();
      this.#join(before.last, next.first);
      return {
        first: before.isNullable ? [...before.first, ...next.first] : before.first,
        last: next.isNullable ? [...before.last, ...next.last] : next.last,
        isNullable: before.isNullable && next.isNullable,
      };
    }, NOTHING);
  }

  /** So many that a loop within makes a high power count as endless. */
  #repeat({ body, least, most }: Repetition): Ends {
    const isEndless = most === Number.POSITIVE_INFINITY || (most > MOST_COPIES && hasLoop(body));
    const place = () => this.#place(body);
    const before = Math.max(0, Math.min(isEndless ? least - 1 : least, MOST_COPIES));
    const musts = Array<() => Ends>(before).fill(place);
    if (isEndless) return this.#inRow([...musts, () => this.#loop(body, least === 0)]);
    const optional = (left: number): Ends =>
      left <= 0 ? NOTHING : { ...this.#inRow([place, () => optional(left - 1)]), isNullable: true };
    return this.#inRow([...musts, () => optional(Math.min(most - least, MOST_COPIES))]);
  }

  #loop(body: PatternNode, isOptional: boolean): Ends {
    const ends = this.#place(body);
    this.#join(ends.last, ends.first);
    for (const position of ends.first) this.#rounds.add(position);
    return { ...ends, isNullable: isOptional || ends.isNullable };
  }

  #join(from: readonly number[], to: readonly number[]): void {
    for (const position of from) this.#steps[position]?.push(...to);
  }

  /** Two walks over the same text, from the same place back to it, that part on their way. */
  #comesBackTwice(start: number): boolean {
    const size = this.#sources.length;
    const seen = new Set<number>();
    const open: (readonly [one: number, other: number, parted: boolean])[] = [[start, start, false]];
    let steps = 0;
    for (const [one, other, parted] of open) {
      const [ones, others] = [this.#steps[one] ?? [], this.#steps[other] ?? []];
      for (let i = 0; i < ones.length; i += 1)
        for (let j = one === other ? i : 0; j < others.length; j += 1) {
          const [a = 0, b = 0] = [ones[i], others[j]];
          const isParted = parted || one !== other || i !== j;
          steps += 1;
          if (steps > MOST_STEPS) return false;
          if (!this.#meet(a, b)) continue;
          if (isParted && a === start && b === start) return true;
          const key = (Math.min(a, b) * size + Math.max(a, b)) * 2 + (isParted ? 1 : 0);
          if (seen.has(key)) continue;
          seen.add(key);
          open.push([a, b, isParted]);
        }
    }
    return false;
  }

  /** Whether a character is there that both positions take. */
  #meet(one: number, other: number): boolean {
    const [a = '', b = ''] = [this.#sources[one], this.#sources[other]];
    if (a === b) return true;
    const taken = this.#lettersAt(b);
    for (const letter of this.#lettersAt(a)) if (taken.has(letter)) return true;
    return false;
  }

  #lettersAt(source: string): ReadonlySet<string> {
    const before = this.#taken.get(source);
    if (before !== undefined) return before;
    const test = patternOf(`^(?:${source})$`);
    const taken = new Set(this.#letters.filter((letter) => test.test(letter)));
    this.#taken.set(source, taken);
    return taken;
  }
}

function hasLoop(node: PatternNode): boolean {
  if (node.kind === 'repeat') return node.most === Number.POSITIVE_INFINITY || hasLoop(node.body);
  return (node.kind === 'sequence' || node.kind === 'choice') && node.parts.some(hasLoop);
}

const ASCII = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));

/** Letters that tell what the parts of a pattern have in common: its own, their neighbours, and those of every day. */
function lettersOf(pattern: string): readonly string[] {
  const escaped = Array.from(pattern.matchAll(/\\[ux]\{?([\da-fA-F]{2,6})/g), ([, hex = '']) =>
    Number.parseInt(hex, 16),
  );
  const own = Array.from(pattern, (letter) => letter.codePointAt(0) ?? 0);
  const near = [...own, ...escaped]
    .filter((code) => code > 127)
    .flatMap((code) => [code - 1, code, code + 1]);
  const valid = near.filter((code) => code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff));
  return [...ASCII, 'é', 'Я', '中', '\u00a0', '😀', ...valid.map((code) => String.fromCodePoint(code))];
}

/** A pattern as far as it matters how many ways there are to match a text. */
type PatternNode =
  /** One character: `a`, `\d`, `[^,]`. */
  | { readonly kind: 'character'; readonly source: string }
  /** What only looks: an anchor, a boundary, a look-around. */
  | { readonly kind: 'test' }
  | { readonly kind: 'sequence' | 'choice'; readonly parts: readonly PatternNode[] }
  | Repetition;

/** The same, some times in a row. */
interface Repetition {
  readonly kind: 'repeat';
  readonly body: PatternNode;
  readonly least: number;
  readonly most: number;
}

/** A pattern, and those of its look-arounds, which are matched on their own. */
interface PatternTree {
  readonly root: PatternNode;
  readonly aside: readonly PatternNode[];
}

/** The tree of a pattern that `RegExp` takes. */
function readPattern(pattern: string): PatternTree {
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

/** Longer ones are no patterns that somebody reads. */
const MOST_CHARACTERS = 1_000;
/** Beyond that a pattern counts as unsafe; it keeps the look at it short. */
const MOST_LOOKS = 400;
/** How many ways there may be to match the same text. */
const MOST_WAYS = 20;
const MOST_REMEMBERED = 1_000;

const judged = new Map<string, boolean>();

/**
 * Whether a pattern takes time in proportion to a text, whatever the text is: nobody can make it try ever more
 * ways to match. Where it cannot be told, it does not. Counted in steps, so that it does not depend on the machine.
 */
export function isSafePattern(pattern: string): boolean {
  // Without repetition there is only one way.
  if (!/[*+{]/.test(pattern)) return true;
  if (pattern.length > MOST_CHARACTERS) return false;
  const before = judged.get(pattern);
  if (before !== undefined) return before;
  const isSafe = looksSafe(pattern);
  if (judged.size < MOST_REMEMBERED) judged.set(pattern, isSafe);
  return isSafe;
}

function looksSafe(pattern: string): boolean {
  const detector = loadRedosDetector();
  try {
    return detector.isSafePattern(pattern, { unicode: true, maxSteps: MOST_LOOKS, maxScore: MOST_WAYS }).safe;
  } catch {
    return false;
  }
}
