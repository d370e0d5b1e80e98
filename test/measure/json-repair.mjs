// How much broken JSON is read as most repairers read it, and that nothing is completed that was cut in a value.
// npm run measure:json -- <folder with json-repair.jsonl>
import { isDeepStrictEqual } from 'node:util';
import { losesDigits } from '../../dist/src/core/kernel/exact-json.js';
import { readArguments } from '../../dist/src/tools/checking/read-arguments.js';
import { readSuite } from './read-suite.mjs';

const rows = readSuite('json-repair.jsonl');
const objects = rows.filter(
  ({ value }) => typeof value === 'object' && value !== null && !Array.isArray(value),
);
const outcomes = objects.map(({ input, value }) => {
  const read = readArguments(input);
  if (!read.ok)
    return { input, outcome: read.message.includes('cut off') ? 'refused as cut off' : 'refused' };
  return { input, outcome: isDeepStrictEqual(asNumbers(read.value), value) ? 'right' : 'different' };
});
// Long integers are kept as text; most repairers round them.
function asNumbers(value) {
  return JSON.parse(JSON.stringify(value), (_key, part) => (losesDigits(part) ? Number(part) : part));
}
const count = (wanted) => outcomes.filter(({ outcome }) => outcome === wanted).length;
const whole = outcomes.length - count('refused as cut off');
for (const { input, outcome } of outcomes)
  if (outcome !== 'right') console.log(`${outcome}: ${JSON.stringify(input).slice(0, 100)}`);
console.log(
  `${rows.length} rows, ${objects.length} with an object, ${count('refused as cut off')} refused as cut inside a value`,
);
console.log(`${count('right')} of ${whole} others right (${((100 * count('right')) / whole).toFixed(1)} %)`);
