import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { checkFiles } from '../processes/run-compiler.js';
import { ROOT, readText } from '../structure/repository.js';

const FIXTURE = 'test/packed/fixtures/wrong-types';

test('the compiler reports each wrong use of the package with the expected error in its line', () => {
  const expected = readText(`${FIXTURE}/wrong-types.ts`)
    .split('\n')
    .flatMap((line, index) => [...line.matchAll(/\bTS\d+/g)].map(([code]) => `${index + 1}: ${code}`));
  const found = checkFiles(join(ROOT, FIXTURE), ['wrong-types.ts']).map(
    ({ line, code }) => `${line}: ${code}`,
  );
  expect(expected.length).toBeGreaterThan(10);
  expect(found).toEqual(expected);
});
