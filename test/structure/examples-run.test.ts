import { expect, test } from '@jest/globals';
import { isThere, listFiles, listFolders, readText } from './repository.js';

const FLOWS = listFiles('test/flow').filter((path) => path.endsWith('.test.ts'));

test('there is an example, and each has a main.ts', () => {
  const examples = listFolders('examples');
  expect(examples).toContain('assistant');
  expect(examples.filter((name) => !isThere(`examples/${name}/main.ts`))).toEqual([]);
});

test('every example is run by a test in test/flow', () => {
  const idle = listFolders('examples').filter(
    (name) => !FLOWS.some((path) => mentions(readText(path), name)),
  );
  expect(idle).toEqual([]);
});

function mentions(text: string, example: string): boolean {
  return new RegExp(`examples/${example}\\b|'examples', '${example}'`).test(text);
}
