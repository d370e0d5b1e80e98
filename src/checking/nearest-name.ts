/** The known name that was most likely meant by another one; `undefined` where none is near. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const wanted = plain(name);
  const rated = known.map((candidate) => ({ candidate, distance: distance(wanted, plain(candidate)) }));
  const [nearest] = rated.sort((one, other) => one.distance - other.distance);
  return nearest !== undefined && nearest.distance <= Math.max(1, wanted.length / 3)
    ? nearest.candidate
    : undefined;
}

/** Models mix up cases and separators more than letters. */
function plain(name: string): string {
  return name
    .slice(0, 64)
    .toLowerCase()
    .replace(/[_\s-]/g, '');
}

/** How many letters have to be added, taken away or replaced (Levenshtein). */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
