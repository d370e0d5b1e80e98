/* (A) What a DTO argument costs while more and more other DTO classes are loaded. */
import { measureApart } from '../children/child.mjs';
import { amount } from '../table.mjs';

const COUNTS = [10, 1_000, 10_000];

/** µs per call with a DTO class, ours beside class-validator's, by the number of other classes. */
export async function measureDtoGrowth({ quick }) {
  const rows = [];
  for (const count of COUNTS) {
    const times = await measureApart('dto-growth.mjs', count, quick ? 'quick' : 'full');
    rows.push([
      `${count.toLocaleString('en-US')} other DTO classes`,
      ...Object.values(times).flatMap(([ours, theirs]) => [
        amount(ours.time),
        amount(theirs.time),
        amount(theirs.ratio),
      ]),
    ]);
  }
  return {
    title: 'A DTO class as the argument, µs',
    head: ['', ...['W1', 'W2', 'W3'].flatMap((id) => [`${id} ours`, 'class-validator', '× faster'])],
    rows,
  };
}
