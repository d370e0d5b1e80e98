/** The known name that was most likely meant; `undefined` if there is no similar name. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  return nearestNames(name, known)[0];
}

/**
 * The known names that were most likely meant, all with the best rating. A typo of one letter is best, then a name
 * that contains the other (`path` for `file_path`), then other typos. Empty if there is no similar name.
 */
export function nearestNames(name: string, known: readonly string[]): readonly string[] {
  const rated = byRating(name, known, rate);
  return rated.filter(({ rating }) => rating === rated[0]?.rating).map(({ candidate }) => candidate);
}

/** The similar known names, nearest first. */
export function namesByNearness(name: string, known: readonly string[]): readonly string[] {
  // Names of one letter all differ by one typo.
  const most = plain(name).length / 2;
  return byRating(name, known, rate).flatMap(({ candidate, rating }) => (rating <= most ? candidate : []));
}

/** The known names that are not far from a name, nearest first. */
function byRating(name: string, known: readonly string[], rate: (wanted: string, other: string) => number) {
  const wanted = plain(name);
  return known
    .map((candidate) => ({ candidate, rating: rate(wanted, plain(candidate)) }))
    .filter(({ rating }) => rating < FAR)
    .sort((a, b) => a.rating - b.rating);
}

const FAR = Number.POSITIVE_INFINITY;

/**
 * The known name of which this is almost certainly a typo: at most a quarter of the longer name's letters differ, as
 * in `tag` for `tags`. Case and separators are ignored.
 */
export function misspeltName(name: string, known: readonly string[]): string | undefined {
  return byRating(name, known, (wanted, other) => {
    const most = Math.floor(Math.max(wanted.length, other.length) / LETTERS_PER_SLIP);
    const slips = Math.abs(other.length - wanted.length) > most ? FAR : distance(wanted, other);
    return slips > most ? FAR : slips;
  })[0]?.candidate;
}

const LETTERS_PER_SLIP = 4;

const LONGEST = 64;
/** Shorter names are contained in others by chance. */
const SHORTEST_HELD = 3;

/** Callers confuse case and separators more often than letters. */
function plain(name: string): string {
  return name
    .slice(0, LONGEST)
    .toLowerCase()
    .replace(/[_\s-]/g, '');
}

/** Lower is nearer; `FAR` if not similar. */
function rate(wanted: string, candidate: string): number {
  const isHeld = holds(wanted, candidate) || holds(candidate, wanted);
  const most = Math.max(1, wanted.length / 3);
  // Most names differ too much in length to compare their letters.
  if (!isHeld && Math.abs(wanted.length - candidate.length) > most) return FAR;
  const slips = distance(wanted, candidate);
  if (slips <= 1) return slips;
  if (isHeld) return 1 + slips / (2 * LONGEST);
  return slips <= most ? slips : FAR;
}

function holds(longer: string, shorter: string): boolean {
  return shorter.length >= SHORTEST_HELD && longer.includes(shorter);
}

/** The number of letters to add, remove, replace, or swap with a neighbour. */
function distance(wanted: string, candidate: string): number {
  let twoBefore: number[] = [];
  let before = Array.from({ length: candidate.length + 1 }, (_, index) => index);
  for (let i = 1; i <= wanted.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= candidate.length; j += 1) {
      const isSame = wanted[i - 1] === candidate[j - 1];
      const isSwapped = wanted[i - 1] === candidate[j - 2] && wanted[i - 2] === candidate[j - 1];
      row[j] = Math.min(
        at(before, j - 1) + (isSame ? 0 : 1),
        at(before, j) + 1,
        at(row, j - 1) + 1,
        i > 1 && j > 1 && isSwapped ? at(twoBefore, j - 2) + 1 : FAR,
      );
    }
    twoBefore = before;
    before = row;
  }
  return at(before, candidate.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? 0;
}
