/** Whether a path with `/` fits a pattern. */
type PathMatcher = (path: string) => boolean;

const MOST_CHARACTERS = 500;
const MOST_ALTERNATIVES = 256;

/** One place in a name: a character, any one, some of a set, or `*`. */
type Place =
  | { readonly kind: 'character'; readonly character: string }
  | { readonly kind: 'any' }
  | { readonly kind: 'set'; readonly isNot: boolean; readonly ranges: readonly (readonly [string, string])[] }
  | { readonly kind: 'star' };

/** A name of a path, or any number of them (`**`). */
type Part = '**' | readonly Place[];

/**
 * Reads a pattern of paths: `*` and `?` within a name, `**` for any number of folders, `[a-z]`, `[!a]`, `{a,b}`
 * and `\` before a character that is meant. Names that begin with a dot are like others. Matching takes time in
 * proportion to path and pattern, whatever either is: patterns come from models.
 *
 * @throws Error where the pattern is too long or has too many alternatives.
 *
 * @example
 * ```ts
 * globMatcher('src/**\/*.{ts,tsx}')('src/a/b.ts'); // true
 * ```
 */
export function globMatcher(pattern: string): PathMatcher {
  if (pattern.length > MOST_CHARACTERS)
    throw new Error(`The pattern is too long: ${pattern.length} characters, at most ${MOST_CHARACTERS}.`);
  const alternatives = expandBraces(pattern).map((one) => partsOf(one));
  return (path) => {
    const names = path === '.' ? [] : path.split('/').map((name) => Array.from(name));
    return alternatives.some((parts) => fits(parts, names));
  };
}

/** Whether something in a folder may fit a pattern, or the folder itself: what goes through it would come there. */
export function globReaches(pattern: string): PathMatcher {
  const alternatives = expandBraces(pattern).map((one) => partsOf(one));
  return (path) => {
    const names = path === '.' ? [] : path.split('/').map((name) => Array.from(name));
    return alternatives.some((parts) => placesAfter(parts, names).size > 0);
  };
}

/** All places of a pattern at which one may be after some names; at any of them it may go on to a path below. */
function placesAfter(parts: readonly Part[], names: readonly (readonly string[])[]): ReadonlySet<number> {
  let places = reached(parts, new Set([0]));
  for (const name of names) {
    const next = new Set<number>();
    for (const place of places) {
      const part = parts[place];
      if (part === '**') next.add(place);
      else if (part !== undefined && fitsName(part, name)) next.add(place + 1);
    }
    places = reached(parts, next);
  }
  return places;
}

function reached(parts: readonly Part[], places: Set<number>): Set<number> {
  for (const place of places) if (parts[place] === '**') places.add(place + 1);
  return places;
}

function expandBraces(pattern: string): readonly string[] {
  const open: string[] = [pattern];
  const done: string[] = [];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const braces = innerBraces(one);
    if (braces === undefined) done.push(one);
    else for (const choice of braces.choices) open.push(braces.before + choice + braces.after);
    if (open.length + done.length > MOST_ALTERNATIVES)
      throw new Error(`The pattern has more than ${MOST_ALTERNATIVES} alternatives.`);
  }
  return done;
}

interface Braces {
  readonly before: string;
  readonly choices: readonly string[];
  readonly after: string;
}

/** The first pair of braces with a comma in it and no further braces. */
function innerBraces(pattern: string): Braces | undefined {
  let start = -1;
  let commas: number[] = [];
  for (let index = 0; index < pattern.length; index += 1) {
    const character = pattern[index];
    if (character === '\\') index += 1;
    else if (character === '{') [start, commas] = [index, []];
    else if (character === ',' && start >= 0) commas.push(index);
    else if (character === '}' && start >= 0) {
      if (commas.length === 0) start = -1;
      else return cut(pattern, [start, ...commas, index]);
    }
  }
  return undefined;
}

function cut(pattern: string, places: readonly number[]): Braces {
  const choices = places.slice(1).map((end, index) => pattern.slice((places[index] ?? 0) + 1, end));
  return { before: pattern.slice(0, places[0]), choices, after: pattern.slice((places.at(-1) ?? 0) + 1) };
}

function partsOf(pattern: string): readonly Part[] {
  const names = pattern.split('/').filter((name) => name !== '' && name !== '.');
  return names.map((name) => (name === '**' ? name : placesOf(Array.from(name))));
}

function placesOf(characters: readonly string[]): readonly Place[] {
  const places: Place[] = [];
  for (let index = 0; index < characters.length; index += 1) {
    const character = characters[index] ?? '';
    const end = character === '[' ? endOfSet(characters, index) : -1;
    if (character === '*') {
      if (places.at(-1)?.kind !== 'star') places.push({ kind: 'star' });
    } else if (character === '?') places.push({ kind: 'any' });
    else if (end > 0) {
      places.push(setOf(characters.slice(index + 1, end)));
      index = end;
    } else if (character === '\\' && index + 1 < characters.length) {
      index += 1;
      places.push({ kind: 'character', character: characters[index] ?? '' });
    } else places.push({ kind: 'character', character });
  }
  return places;
}

/** Where the `]` of a set is; a `[` without one is a character. */
function endOfSet(characters: readonly string[], start: number): number {
  const first = ['!', '^'].includes(characters[start + 1] ?? '') ? start + 2 : start + 1;
  return characters.indexOf(']', first + 1);
}

function setOf(inner: readonly string[]): Place {
  const isNot = inner[0] === '!' || inner[0] === '^';
  const members = isNot ? inner.slice(1) : inner;
  const ranges: (readonly [string, string])[] = [];
  for (let index = 0; index < members.length; index += 1) {
    const from = members[index] ?? '';
    const isRange = members[index + 1] === '-' && index + 2 < members.length;
    ranges.push([from, isRange ? (members[index + 2] ?? from) : from]);
    if (isRange) index += 2;
  }
  return { kind: 'set', isNot, ranges };
}

/** Stars are tried from the last one on: what came before it has fitted, and need not be tried again. */
function fits(parts: readonly Part[], names: readonly (readonly string[])[]): boolean {
  let [part, name] = [0, 0];
  let retry: { readonly part: number; name: number } | undefined;
  while (name < names.length) {
    const wanted = parts[part];
    if (wanted === '**') {
      retry = { part: part + 1, name };
      part += 1;
    } else if (wanted !== undefined && fitsName(wanted, names[name] ?? [])) {
      part += 1;
      name += 1;
    } else if (retry !== undefined) {
      retry = { part: retry.part, name: retry.name + 1 };
      [part, name] = [retry.part, retry.name];
    } else return false;
  }
  return parts.slice(part).every((rest) => rest === '**');
}

function fitsName(places: readonly Place[], characters: readonly string[]): boolean {
  let [place, at] = [0, 0];
  let retry: { readonly place: number; readonly at: number } | undefined;
  while (at < characters.length) {
    const wanted = places[place];
    if (wanted?.kind === 'star') {
      retry = { place: place + 1, at };
      place += 1;
    } else if (wanted !== undefined && fitsCharacter(wanted, characters[at] ?? '')) {
      place += 1;
      at += 1;
    } else if (retry !== undefined) {
      retry = { place: retry.place, at: retry.at + 1 };
      [place, at] = [retry.place, retry.at];
    } else return false;
  }
  return places.slice(place).every(({ kind }) => kind === 'star');
}

function fitsCharacter(place: Place, character: string): boolean {
  if (place.kind === 'character') return place.character === character;
  if (place.kind !== 'set') return true;
  return place.isNot !== place.ranges.some(([from, to]) => from <= character && character <= to);
}
