import type { ReviewFault } from '../contract/tool-definition.js';
import type { ValueFault } from './describe-errors.js';

/**
 * The schema's faults and those of the author's rules, in one list: where both speak of a place, the author's own
 * words come first, and what a rule says in its own is what the schema has said already.
 */
export function reviewedFaults(
  faults: readonly ValueFault[],
  found: readonly ReviewFault[],
): readonly ValueFault[] {
  const own = found.filter(({ isAuthored }) => isAuthored);
  const paths = new Set(faults.map(({ path }) => path));
  const told = new Set<string>();
  const worded = faults.flatMap((fault) => {
    if (told.has(fault.path)) return [fault];
    told.add(fault.path);
    return [...own.filter(({ path }) => path === fault.path), fault];
  });
  const isBelow = ({ path }: ReviewFault): boolean =>
    [...paths].some((known) => path.startsWith(`${known}.`));
  const isAbove = ({ path }: ReviewFault): boolean =>
    [...paths].some((known) => known.startsWith(`${path}.`));
  const others = found.filter(
    (fault) => !paths.has(fault.path) && !isBelow(fault) && (fault.isAuthored || !isAbove(fault)),
  );
  return [...worded, ...others];
}
