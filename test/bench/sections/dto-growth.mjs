/* The cost of a DTO argument by the number of other loaded DTO classes. */
import { measureInChild } from '../children/child.mjs';
import { formatNumber } from '../table.mjs';

const COUNTS = [10, 1_000, 10_000];

/** µs per call with a DTO class of toolwright and class-validator, by the number of other classes. */
export async function measureDtoGrowth({ quick }) {
  const rows = [];
  for (const count of COUNTS) {
    const times = await measureInChild('dto-growth.mjs', count, quick ? 'quick' : 'full');
    rows.push([
      `${count.toLocaleString('en-US')} other DTO classes`,
      ...Object.values(times).flatMap(([ours, theirs]) => [
        formatNumber(ours.time),
        formatNumber(theirs.time),
        formatNumber(theirs.ratio),
      ]),
    ]);
  }
  return {
    title: 'A DTO class as the argument, µs',
    head: ['', ...['W1', 'W2', 'W3'].flatMap((id) => [`${id} toolwright`, 'class-validator', '× faster'])],
    rows,
  };
}
