import { expect, test } from '@jest/globals';
import { listFiles, readText } from './repository.js';
import { packageSources } from './source-files.js';

/** The words in code style in the last column of the glossary, matched with any ending. */
const REPLACED = readText('docs/internals/glossary.md')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .flatMap((line) => [...(line.split('|').at(-2) ?? '').matchAll(/`([^`]+)`/g)])
  .map(([, word = '']) => {
    const stem = word.replace(/e$/, '');
    const capital = stem.charAt(0).toUpperCase() + stem.slice(1);
    return { word, pattern: new RegExp(`(?<![A-Za-z])(?:${stem}|${capital})|(?<=[a-z])${capital}`) };
  });

test('the glossary has fewer than 60 entries and lists replaced words', () => {
  const entries = readText('docs/internals/glossary.md')
    .split('\n')
    .filter((line) => /^\| (?!word \||---)/.test(line));
  expect(entries.length).toBeLessThan(60);
  expect(REPLACED.length).toBeGreaterThan(6);
});

test('the sources and the documentation do not use the words that the glossary replaces', () => {
  const pages = [...listFiles('docs'), 'README.md', 'CONTRIBUTING.md']
    .filter((path) => path.endsWith('.md') && !/^docs\/internals\/(glossary|decisions)/.test(path))
    .map((path) => ({ path, lines: readText(path).split('\n') }));
  const found = [...packageSources(), ...pages]
    // Its list of English stop words is data.
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
