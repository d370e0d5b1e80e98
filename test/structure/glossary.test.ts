import { expect, test } from '@jest/globals';
import { listFiles, readText } from './repository.js';
import { packageSources } from './source-tree.js';

/** The words in code style in the last column of the glossary, with all their endings. */
const REPLACED = readText('docs/internals/glossary.md')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .flatMap((line) => [...(line.split('|').at(-2) ?? '').matchAll(/`([^`]+)`/g)])
  .map(([, word = '']) => {
    const stem = word.replace(/e$/, '');
    const capital = stem.charAt(0).toUpperCase() + stem.slice(1);
    return { word, pattern: new RegExp(`(?<![A-Za-z])(?:${stem}|${capital})|(?<=[a-z])${capital}`) };
  });

test('the glossary has fewer than 60 entries and names words that are not used', () => {
  const entries = readText('docs/internals/glossary.md')
    .split('\n')
    .filter((line) => /^\| (?!word \||---)/.test(line));
  expect(entries.length).toBeLessThan(60);
  expect(REPLACED.length).toBeGreaterThan(6);
});

test('words that the glossary replaces are not used in the source and the documentation', () => {
  const pages = [...listFiles('docs'), 'README.md', 'CONTRIBUTING.md']
    .filter((path) => path.endsWith('.md') && !/^docs\/internals\/(glossary|decisions)/.test(path))
    .map((path) => ({ path, lines: readText(path).split('\n') }));
  const found = [...packageSources(), ...pages]
    // The stop words of its language are data.
    .filter(({ path }) => path !== 'src/tools/search/tool-index.ts')
    .flatMap(({ path, lines }) =>
      lines.flatMap((line, index) =>
        REPLACED.filter(({ pattern }) => pattern.test(line)).map(
          ({ word }) => `${path}:${index + 1} ${word}`,
        ),
      ),
    );
  expect(found).toEqual([]);
});
