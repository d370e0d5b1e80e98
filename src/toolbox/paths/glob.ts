/** Whether a path with `/` fits a pattern. */
type PathMatcher = (path: string) => boolean;

const MOST_CHARACTERS = 500;
const MOST_ALTERNATIVES = 256;

/** Any number of characters in a name, or of names in a path. */
const STAR = Symbol('*');
type Fits = (item: string) => boolean;
type Pattern = readonly (Fits | typeof STAR)[];

/**
 * Reads a pattern of paths: `*` and `?` within a name, `**` for any number of folders, `[a-z]`, `[!a]`, `{a,b}`
 * and `\` before a character that is meant. Names that begin with a dot are like others. Matching takes time in
 * proportion to path and pattern, which regular expressions do not: patterns come from models.
 *
 * @throws Error if the pattern is too long or has too many alternatives.
 *
 * @example
 * ```ts
 * globMatcher('src/**\/*.{ts,tsx}')('src/a/b.ts'); // true
 * ```
 */
export function globMatcher(pattern: string): PathMatcher {
  if (pattern.length > MOST_CHARACTERS)
    throw new Error(`The pattern is too long: ${pattern.length} characters, at most ${MOST_CHARACTERS}.`);
  const alternatives = alternativesOf(pattern);
  return (path) => alternatives.some((parts) => fitsAll(parts, namesOf(path)));
}

/** Whether a folder, or something that may be in it, fits a pattern. */
export function globReaches(pattern: string): PathMatcher {
  const alternatives = alternativesOf(pattern);
  return (path) => alternatives.some((parts) => placesAfter(parts, namesOf(path)).size > 0);
}

function namesOf(path: string): readonly string[] {
  return path === '.' ? [] : path.split('/');
}

/** Only the last star is tried again: what comes before it has fitted. */
function fitsAll(pattern: Pattern, items: readonly string[]): boolean {
  let [place, at] = [0, 0];
  let star: { readonly place: number; at: number } | undefined;
  while (at < items.length) {
    const wanted = pattern[place];
    if (wanted === STAR) {
      place += 1;
      star = { place, at };
    } else if (wanted?.(items[at] ?? '')) {
      place += 1;
      at += 1;
    } else if (star !== undefined) {
      star.at += 1;
      [place, at] = [star.place, star.at];
    } else return false;
  }
  return pattern.slice(place).every((rest) => rest === STAR);
}

/** All places in a pattern that can be reached with some items. */
function placesAfter(pattern: Pattern, items: readonly string[]): ReadonlySet<number> {
  let places = withStars(pattern, new Set([0]));
  for (const item of items) {
    const next = new Set<number>();
    for (const place of places) {
      const wanted = pattern[place];
      if (wanted === STAR) next.add(place);
      else if (wanted?.(item)) next.add(place + 1);
    }
    places = withStars(pattern, next);
  }
  return places;
}

/** A star may also stand for nothing. */
function withStars(pattern: Pattern, places: Set<number>): Set<number> {
  for (const place of places) if (pattern[place] === STAR) places.add(place + 1);
  return places;
}

/** The innermost braces with a comma in them. */
const BRACES = /(?<before>(?:\\.|[^\\])*?)\{(?<choices>(?:\\.|[^\\{},])*(?:,(?:\\.|[^\\{},])*)+)\}/suy;
const COMMA = /(?<=(?:^|[^\\])(?:\\\\)*),/su;

function alternativesOf(pattern: string): readonly Pattern[] {
  const open: string[] = [pattern];
  const done: string[] = [];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    BRACES.lastIndex = 0;
    const { before = '', choices } = BRACES.exec(one)?.groups ?? {};
    if (choices === undefined) done.push(one);
    else
      for (const choice of choices.split(COMMA))
        open.push(before + choice + one.slice(before.length + choices.length + 2));
    if (open.length + done.length > MOST_ALTERNATIVES)
      throw new Error(`The pattern has more than ${MOST_ALTERNATIVES} alternatives.`);
  }
  return done.map((one) =>
    one
      .split('/')
      .filter((name) => name !== '' && name !== '.')
      .map((name) => (name === '**' ? STAR : nameMatcher(name))),
  );
}

/** Whether a text fits a pattern in which only `*` and `\` mean something. */
export function textMatcher(pattern: string): Fits {
  return nameMatcher(pattern.replace(/\\.|[?[]/gsu, (text) => (text.length > 1 ? text : `\\${text}`)));
}

function nameMatcher(name: string): Fits {
  const pattern = placesOf(name);
  return (text) => fitsAll(pattern, Array.from(text));
}

/** A character behind `\`, a set, stars, or any other character; a `[` without `]` means itself. */
const PLACES = /\\(?<meant>.)|\[(?<not>[!^]|(?![!^]))(?<set>.[^\]]*)\]|\*+|./gsu;
const RANGES = /(.)-(.)|./gsu;

function placesOf(name: string): Pattern {
  return Array.from(name.matchAll(PLACES), ({ 0: text, groups = {} }) => {
    if (text.startsWith('*')) return STAR;
    if (groups.set !== undefined) return setMatcher(groups.set, groups.not !== '');
    return text === '?' ? () => true : (character) => character === (groups.meant ?? text);
  });
}

function setMatcher(set: string, isNot: boolean): Fits {
  const ranges = Array.from(set.matchAll(RANGES), ([one, from = one, to = one]) => [from, to] as const);
  return (character) => isNot !== ranges.some(([from, to]) => from <= character && character <= to);
}
