import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { ROOT } from '../structure/repository.js';
import { play } from './recorded/case.js';
import { recordedCases } from './recorded/recorded-cases.js';

const FIXTURE = join(ROOT, 'test/flow/recorded/recorded-calls.txt');

test('every recorded call, run and definition still has exactly the recorded outcome', async () => {
  const now: (readonly [string, string])[] = [];
  for (const recorded of recordedCases()) now.push([recorded.name, await play(recorded)]);
  // Only update the recording on purpose, with `npm run record`.
  if (process.env.RECORD_CALLS) writeFileSync(FIXTURE, now.map(lineOf).join('\n').concat('\n'));
  const before = new Map(readFileSync(FIXTURE, 'utf8').trimEnd().split('\n').map(partsOf));
  const different = now.filter(([name, text]) => before.get(name) !== text);
  const [first] = different;
  if (first !== undefined) {
    const [name, text] = first;
    const others = different.slice(1, 20).map(([other]) => other);
    // Shows the first case that differs with both texts, and the number of other differences.
    expect({ name, text, differing: different.length, others }).toEqual({
      name,
      text: before.get(name),
      differing: 0,
      others: [],
    });
  }
  expect(now.map(([name]) => name)).toEqual([...before.keys()]);
});

test('at least 2,000 cases are recorded under unique names', () => {
  const lines = readFileSync(FIXTURE, 'utf8').trimEnd().split('\n').map(partsOf);
  expect(lines.length).toBeGreaterThanOrEqual(2000);
  expect(new Set(lines.map(([name]) => name)).size).toBe(lines.length);
});

/** A line is the name, a tab, and the outcome as JSON. */
function lineOf([name, text]: readonly [string, string]): string {
  return `${name}\t${text}`;
}

function partsOf(line: string): [string, string] {
  const cut = line.indexOf('\t');
  return [line.slice(0, cut), line.slice(cut + 1)];
}
