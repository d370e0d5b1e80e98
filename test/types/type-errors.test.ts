import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { checkFiles } from '../processes/run-compiler.js';
import { ROOT, readText } from '../structure/repository.js';

const FIXTURE = 'test/packed/fixtures/wrong-types';

test('wrong uses of the package are refused by the compiler, each in its line and for its reason', () => {
  const expected = readText(`${FIXTURE}/wrong-types.ts`)
    .split('\n')
    .flatMap((line, index) => [...line.matchAll(/\bTS\d+/g)].map(([code]) => `${index + 1}: ${code}`));
  const found = checkFiles(join(ROOT, FIXTURE), ['wrong-types.ts']).map(
    ({ line, code }) => `${line}: ${code}`,
  );
  expect(expected.length).toBeGreaterThan(10);
  expect(found).toEqual(expected);
});
