import { expect, test } from '@jest/globals';
import { packageSources } from './source-tree.js';

/** Words that docs/glossary.md gave up, and what is said instead. */
const GIVEN_UP: readonly (readonly [RegExp, string])[] = [
  [/\bclimb\w*/i, 'make a call, step'],
  [/\bgoRound\b|\bgoOn\b/, 'step, iteration'],
  [/\bdeaf\b/i, 'silent, without listeners'],
  [/\bisWorded\b|\bworded (result|value)/, 'content'],
  [/Standing\b/, 'status, state'],
  [/\bTurn(Taker|Slot)\b/, 'turn'],
  [/how-manieth/, 'attempt'],
  [/nobody wants to know/, 'not measured'],
  [/that is none\b/, 'that is not one'],
];

/** As many as are left; one is an error text of `src/run/loop/given-history.ts`, the others are to be renamed. */
const MOST_LEFT = 12;

test('words that the glossary gave up do not come back', () => {
  const found = packageSources().flatMap(({ path, lines }) =>
    lines.flatMap((line, index) =>
      GIVEN_UP.filter(([word]) => word.test(line)).map(
        ([word, instead]) => `${path}:${index + 1} ${word}: ${instead}`,
      ),
    ),
  );
  expect(found.length > MOST_LEFT ? found : []).toEqual([]);
});
