import { patternOf } from './formats.js';

/** How the time of a pattern grows with a text that does not match. `unknown`: the analysis would take too long. */
type PatternGrowth = 'linear' | 'polynomial' | 'exponential' | 'unknown';

/** Longer patterns are not analyzed. */
const MAX_CHARACTERS = 1_000;
const MAX_POSITIONS = 300;
const MAX_STEPS = 100_000;
/** The most copies of `{n}` that are expanded, and the number from which it counts as unlimited. */
const MAX_COPIES = 8;
const ENDLESS = 1_000;
/** With more optional parts and alternatives that match the same text, there are too many ways to match. */
const MAX_BRANCHES = 16;

const known = new Map<string, PatternGrowth>();
const MAX_KNOWN = 1_000;

/**
 * Analyzes the automaton of a pattern. The time is exponential if the same text leads back to a position in two ways.
 * It is polynomial if a text can stay in one loop or move on to the next.
 */
export function patternGrowth(pattern: string, flags = 'u'): PatternGrowth {
  if (!/[*+?{|]/.test(pattern)) return 'linear';
  if (pattern.length > MAX_CHARACTERS) return 'unknown';
  const key = `${flags}/${pattern}`;
  const before = known.get(key);
  if (before !== undefined) return before;
  let growth = new Automaton(pattern, { flags }).growth();
  const isCrowded = (pattern.match(/[?|]/g)?.length ?? 0) > MAX_BRANCHES;
  if (growth === 'linear' && (isCrowded || pattern.includes('{'))) {
    // Many bounded repetitions of the same part are not a loop, but as slow as loops.
    const strict = new Automaton(pattern, { flags, isStrict: true, isCrowded }).growth();
    if (strict !== 'linear') growth = 'unknown';
  }
  if (known.size < MAX_KNOWN) known.set(key, growth);
  return growth;
}

interface AutomatonOptions {
  readonly flags: string;
  /** Bounded repetitions count as loops. */
  readonly isStrict?: boolean;
  /** Optional parts and alternatives count as loops, too. */
  readonly isCrowded?: boolean;
}

/** Where a part of a pattern can begin and end. */
interface Ends {
  readonly first: readonly number[];
  readonly last: readonly number[];
  readonly isNullable: boolean;
  /** It can match without a character, but only through a test: an anchor, a boundary, a look-around. */
  readonly isTest?: boolean;
  /** It always begins with `^`. */
  readonly isAnchored?: boolean;
}

const EMPTY: Ends = { first: [], last: [], isNullable: true };

const OPENING = /\((?:\?(?:(<?)[=!]|<[^>]*>|[a-z-]*:))?/y;
const LOOK = /^\(\?<?[=!]/;
const QUANTIFIER = /(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/y;
const CLASS = /\[(?:\\[\s\S]|[^\]\\])*\]/uy;
const ESCAPE =
  /\\(?:u\{[^}]*\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[a-zA-Z]|[pP]\{[^}]*\}|k<[^>]*>|[1-9]\d*|[\s\S])/uy;
const ANY = '[\\s\\S]';

/** The characters of a pattern as positions, with the possible next positions (Glushkov's automaton). */
class Automaton {
  readonly #text: string;
  readonly #options: AutomatonOptions;
  #at = 0;
  /** The source of each position: `a`, `\d`, `[^,]`. */
  readonly #sources: string[] = [];
  readonly #steps: number[][] = [];
  /** Positions where a round of a loop may begin. */
  readonly #rounds = new Set<number>();
  /** Positions before a test, where the match may still fail. */
  readonly #tested = new Set<number>();
  /** Last positions of look-arounds: engines do not try another way through a look-around later. */
  readonly #lookEnds: number[] = [];
  /** The pattern is too large, or has a part that is not supported. */
  #isUnclear = false;
  #stepsLeft = MAX_STEPS;

  constructor(text: string, options: AutomatonOptions) {
    this.#text = text;
    this.#options = options;
  }

  growth(): PatternGrowth {
    const root = this.#choice();
    if (this.#at < this.#text.length) this.#isUnclear = true;
    const free = root.last.filter((position) => !this.#tested.has(position));
    const takes = letterMasks(this.#sources, this.#text, this.#options.flags);
    const ends = new Set([...free, ...this.#lookEnds.filter((position) => !this.#tested.has(position))]);
    const loops = [...this.#rounds].filter((position) => !ends.has(position));
    if (loops.some((position) => this.#returnsTwice(position, takes))) return 'exponential';
    // The engine starts again at each character of the text.
    if (root.isAnchored !== true && this.#options.isStrict !== true) {
      const start = this.#place(ANY).first;
      this.#follow(start, [...start, ...root.first]);
      for (const position of start) takes[position] = -1n;
      loops.push(...start);
    }
    if (this.#movesOn(loops, takes, new Set(free))) return 'polynomial';
    return this.#isUnclear || this.#stepsLeft <= 0 ? 'unknown' : 'linear';
  }

  #choice(): Ends {
    const parts = [this.#sequence()];
    while (this.#text[this.#at] === '|') {
      this.#at += 1;
      parts.push(this.#sequence());
    }
    const [only] = parts;
    if (parts.length === 1 && only !== undefined) return only;
    const ends: Ends = {
      first: parts.flatMap(({ first }) => first),
      last: parts.flatMap(({ last }) => last),
      isNullable: parts.some(({ isNullable }) => isNullable),
      isTest: parts.some(({ isTest }) => isTest === true),
      isAnchored: parts.every(({ isAnchored }) => isAnchored === true),
    };
    return this.#options.isCrowded === true ? this.#loop(ends) : ends;
  }

  #sequence(): Ends {
    let ends = EMPTY;
    while (this.#at < this.#text.length && !/[|)]/.test(this.#text[this.#at] ?? ''))
      ends = this.#join(ends, this.#repeated());
    return ends;
  }

  #join(before: Ends, next: Ends): Ends {
    this.#follow(before.last, next.first);
    if (next.isTest === true) for (const position of before.last) this.#tested.add(position);
    const isNullable = before.isNullable && next.isNullable;
    return {
      first: before.isNullable ? [...before.first, ...next.first] : before.first,
      last: next.isNullable ? [...before.last, ...next.last] : next.last,
      isNullable,
      isTest: isNullable && (before.isTest === true || next.isTest === true),
      isAnchored: before.isAnchored === true || (before.first.length === 0 && next.isAnchored === true),
    };
  }

  /** A part with its quantifier: a loop, or the given number of copies. */
  #repeated(): Ends {
    const start = this.#at;
    const loopsBefore = this.#rounds.size;
    let part = this.#atom();
    const isCharacter = part.first.length === 1 && this.#text[start] !== '(';
    const [quantifier, sign, from, comma, to] = this.#take(QUANTIFIER);
    if (quantifier === undefined) return part;
    const end = this.#at;
    const least = sign === undefined ? Number(from) : sign === '+' ? 1 : 0;
    const most =
      sign === undefined ? (comma === '' ? least : to ? Number(to) : Infinity) : sign === '?' ? 1 : Infinity;
    if (most === 0) return EMPTY;
    // Each of the repetitions may be empty.
    if (part.isNullable && least > MAX_COPIES) this.#isUnclear = true;
    const isManifold =
      this.#rounds.size > loopsBefore ||
      (this.#options.isStrict === true && !(isCharacter && least === most));
    const isLoop =
      most > ENDLESS || (most > MAX_COPIES && isManifold) || (most === 1 && this.#options.isCrowded === true);
    const copies = Math.max(1, Math.min(isLoop ? least : most, MAX_COPIES));
    let row = EMPTY;
    const last: number[] = [];
    for (let copy = 1; ; copy += 1) {
      const isEnd = copy === copies || this.#isUnclear;
      row = this.#join(row, isEnd && isLoop ? this.#loop(part) : part);
      if (isEnd || copy >= least) last.push(...row.last);
      if (isEnd) break;
      this.#at = start;
      part = this.#atom();
    }
    this.#at = end;
    const isNullable = least === 0 || row.isNullable;
    return { ...row, last: [...new Set(last)], isNullable, isAnchored: least > 0 && row.isAnchored === true };
  }

  #loop(ends: Ends): Ends {
    this.#follow(ends.last, ends.first);
    for (const position of ends.first) this.#rounds.add(position);
    return ends;
  }

  #follow(from: readonly number[], to: readonly number[]): void {
    for (const position of from) this.#steps[position]?.push(...to);
  }

  #atom(): Ends {
    const char = String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0);
    if (char === '(') return this.#group();
    const [found] = this.#take(char === '[' ? CLASS : ESCAPE);
    if (found === undefined) {
      this.#at += char.length;
      if (char === '^' || char === '$') return { ...EMPTY, isTest: true, isAnchored: char === '^' };
      return this.#place(/[{}[\]/]/.test(char) ? `\\${char}` : char);
    }
    if (found === '\\b' || found === '\\B') return { ...EMPTY, isTest: true };
    // The match of a back reference depends on the text.
    const isReference = /^\\(?:k<|[1-9])/.test(found);
    this.#isUnclear ||= isReference;
    return this.#place(isReference ? ANY : found);
  }

  #group(): Ends {
    const [opening = '', behind] = this.#take(OPENING);
    const loopsBefore = this.#rounds.size;
    const inner = this.#choice();
    this.#at += 1;
    if (!LOOK.test(opening)) return inner;
    // A look-behind matches backwards.
    if (behind === '<' && this.#rounds.size > loopsBefore) this.#isUnclear = true;
    this.#lookEnds.push(...inner.last);
    return { first: inner.first, last: [], isNullable: true, isTest: true };
  }

  #take(pattern: RegExp): readonly (string | undefined)[] {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text) ?? [];
    this.#at += found[0]?.length ?? 0;
    return found;
  }

  #place(source: string): Ends {
    if (this.#sources.length >= MAX_POSITIONS) {
      this.#isUnclear = true;
      return EMPTY;
    }
    const position = this.#sources.push(source) - 1;
    this.#steps.push([]);
    return { first: [position], last: [position], isNullable: false };
  }

  /** Whether two walks over the same text lead from a position back to it on different ways. */
  #returnsTwice(start: number, takes: readonly bigint[]): boolean {
    const size = this.#sources.length;
    const seen = new Set<number>();
    const open: (readonly [one: number, other: number, isParted: boolean])[] = [[start, start, false]];
    for (const [one, other, wasParted] of open) {
      const [ones, others] = [this.#steps[one] ?? [], this.#steps[other] ?? []];
      for (const [i, a] of ones.entries())
        for (let j = one === other ? i : 0; j < others.length; j += 1) {
          const b = others[j] ?? 0;
          const isParted = wasParted || one !== other || i !== j;
          this.#stepsLeft -= 1;
          if (this.#stepsLeft <= 0) return false;
          if (((takes[a] ?? 0n) & (takes[b] ?? 0n)) === 0n) continue;
          if (isParted && a === start && b === start) return true;
          const key = (Math.min(a, b) * size + Math.max(a, b)) * 2 + (isParted ? 1 : 0);
          if (seen.has(key)) continue;
          seen.add(key);
          open.push([a, b, isParted]);
        }
    }
    return false;
  }

  /** Whether some text matches one loop, a later loop, and the way from the first to the second. */
  #movesOn(loops: readonly number[], takes: readonly bigint[], ends: ReadonlySet<number>): boolean {
    const reach = this.#steps.map((steps): ReadonlySet<number> => {
      const found = new Set(steps);
      for (const next of found) for (const each of this.#steps[next] ?? []) found.add(each);
      return found;
    });
    for (const first of loops)
      for (const second of reach[first] ?? []) {
        const isLoop = second !== first && !ends.has(second) && reach[second]?.has(second) === true;
        if (isLoop && this.#sharesWord(first, second, { takes, reach })) return true;
      }
    return false;
  }

  /** Three walks over the same text: a round at `first`, from `first` to `second`, and a round at `second`. */
  #sharesWord(
    first: number,
    second: number,
    { takes, reach }: { readonly takes: readonly bigint[]; readonly reach: readonly ReadonlySet<number>[] },
  ): boolean {
    const size = this.#sources.length;
    const next = (from: number, to: number): readonly number[] =>
      (this.#steps[from] ?? []).filter((position) => position === to || reach[position]?.has(to));
    const seen = new Set<number>();
    const open: (readonly [number, number, number])[] = [[first, first, second]];
    for (const [x, y, z] of open)
      for (const a of next(x, first))
        for (const b of next(y, second)) {
          const both = (takes[a] ?? 0n) & (takes[b] ?? 0n);
          if (both === 0n) continue;
          for (const c of next(z, second)) {
            this.#stepsLeft -= 1;
            if (this.#stepsLeft <= 0) return false;
            if ((both & (takes[c] ?? 0n)) === 0n) continue;
            if (a === first && b === second && c === second) return true;
            const key = (a * size + b) * size + c;
            if (seen.has(key)) continue;
            seen.add(key);
            open.push([a, b, c]);
          }
        }
    return false;
  }
}

const ASCII = Array.from({ length: 128 }, (_, code) => code);
/** Characters of most scripts and both cases, for classes such as `\p{Lu}`. */
const SCRIPTS = Array.from({ length: 0x700 }, (_, index) => (index < 0x250 ? index : (index - 0x200) * 7));

/** The letters that each source matches: a bit for each group of letters that all sources treat alike. */
function letterMasks(sources: readonly string[], pattern: string, flags: string): bigint[] {
  const written = Array.from(pattern, (letter) => letter.codePointAt(0) ?? 0);
  for (const [, hex = ''] of pattern.matchAll(/\\[ux]\{?([\da-fA-F]{2,6})/g))
    written.push(Number.parseInt(hex, 16));
  const codes = new Set(/\\p/i.test(pattern) ? SCRIPTS : ASCII);
  for (const code of written)
    for (const near of code > 127 ? [code - 1, code, code + 1] : [])
      if (near <= 0x10ffff && !(near >= 0xd800 && near <= 0xdfff)) codes.add(near);
  const letters = [
    ...Array.from(codes, (code) => String.fromCodePoint(code)),
    'é',
    'Я',
    '中',
    '\u00a0',
    '😀',
  ];
  const distinct = [...new Set(sources)];
  const tests = distinct.map((source) => patternOf(`^(?:${source})$`, flags));
  const groups = new Set(
    letters.map((letter) => tests.map((test) => (test.test(letter) ? '1' : '0')).join('')),
  );
  const masks = new Map(
    distinct.map((source, index) => [
      source,
      BigInt(`0b${Array.from(groups, (group) => group[index]).join('')}`),
    ]),
  );
  return sources.map((source) => masks.get(source) ?? 0n);
}
