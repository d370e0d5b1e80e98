import { expect, test } from '@jest/globals';
import { listFiles, listFolders, pathExists, readText } from './repository.js';

const FLOWS = listFiles('test/flow').filter((path) => path.endsWith('.test.ts'));

test('each example has a main.ts', () => {
  const examples = listFolders('examples');
  expect(examples).toContain('assistant');
  expect(examples.filter((name) => !pathExists(`examples/${name}/main.ts`))).toEqual([]);
});

test('every example is named by a test in test/flow', () => {
  const untested = listFolders('examples').filter(
    (name) => !FLOWS.some((path) => mentions(readText(path), name)),
  );
  expect(untested).toEqual([]);
});

function mentions(text: string, example: string): boolean {
  return new RegExp(`examples/${example}\\b|'examples', '${example}'`).test(text);
}
