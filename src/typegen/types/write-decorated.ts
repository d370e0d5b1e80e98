import type { Decoration, TypePlace, TypeWalk, Written } from './type-walk.js';

/**
 * The schema of a value whose decorator may say its type. Then that comes first, and nothing is wrong with
 * what TypeScript says, whatever it is.
 */
export function writeDecorated(
  place: TypePlace,
  walk: TypeWalk,
  decoration: Decoration | undefined,
): Written {
  const before = { faults: walk.faults.length, warnings: walk.warnings.length };
  const written = walk.write(place);
  if (decoration !== 'typed') return written;
  const isSayable = walk.faults.length === before.faults;
  walk.faults.length = before.faults;
  walk.warnings.length = before.warnings;
  return isSayable ? written : { schema: {} };
}
