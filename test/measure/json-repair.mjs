// Compares the repair of broken JSON with the result of most repair libraries. JSON that was cut off inside a value
// must be rejected.
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
    return { input, outcome: read.message.includes('cut off') ? 'rejected as cut off' : 'rejected' };
  return { input, outcome: isDeepStrictEqual(asNumbers(read.value), value) ? 'correct' : 'different' };
});
// We read integers beyond the safe range as text; most libraries round them.
function asNumbers(value) {
  return JSON.parse(JSON.stringify(value), (_key, part) => (losesDigits(part) ? Number(part) : part));
}
const count = (wanted) => outcomes.filter(({ outcome }) => outcome === wanted).length;
const complete = outcomes.length - count('rejected as cut off');
for (const { input, outcome } of outcomes)
  if (outcome !== 'correct') console.log(`${outcome}: ${JSON.stringify(input).slice(0, 100)}`);
console.log(
  `${rows.length} rows, ${objects.length} with an object, ${count('rejected as cut off')} rejected as cut off inside a value`,
);
console.log(
  `${count('correct')} of the other ${complete} correct (${((100 * count('correct')) / complete).toFixed(1)} %)`,
);
