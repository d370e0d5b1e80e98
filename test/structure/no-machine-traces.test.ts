import { expect, test } from '@jest/globals';
import { listFiles, readText } from './repository.js';

/** Absolute paths of a developer's machine. Composed from parts, so that this file contains no such path. */
const MACHINE_PATH = new RegExp(
  `(?<![\\w.:>~})-])/(?:${['home', 'root', 'work', 'tmp', 'Users'].join('|')})/`,
);

/** A path in recorded sample calls. */
const SAMPLE_PATH = new RegExp(`/${'tmp'}/foo\\b`, 'g');

const FILES = listFiles('').filter((path) => !/\.(png|jpg|gif|ico|db|sqlite)$/.test(path));

test('no file contains an absolute path of a machine', () => {
  const traces = FILES.flatMap((path) =>
    readText(path)
      .replace(SAMPLE_PATH, 'foo')
      .split('\n')
      .flatMap((line, index) => (MACHINE_PATH.test(line) ? [`${path}:${index + 1}`] : [])),
  );
  expect(traces).toEqual([]);
});

/** References to documents that readers do not have. A random seed has no number after the word. */
const CITATION = /\bseeds?[’'s]*\s+\d|\bdesign,?\s+(§|\d|invariant)|'[1-5]\.\d+b?: /i;

test('no file cites a document outside the repository', () => {
  const shown = FILES.filter((path) => !path.endsWith('package-lock.json'));
  const citations = shown.flatMap((path) => (CITATION.test(unwrapped(readText(path))) ? [path] : []));
  expect(citations).toEqual([]);
});

/** Without the line breaks and asterisks of comments, so that a wrapped citation is found too. */
function unwrapped(text: string): string {
  return text.replace(/\n\s*(?:\*|\/\/)?\s*/g, ' ');
}

test('a citation is detected, even across lines, and a random seed is not a citation', () => {
  const isCited = (text: string) => CITATION.test(unwrapped(text));
  const [seed, design] = ['seed', 'design'];
  const cited = [`(${seed} 1.6)`, `the ${seed}s\n * 3 and 4`, `(${design}\n// §4, limit)`];
  expect(cited.map(isCited)).toEqual([true, true, true]);
  expect(['{ seed: 1 }', 'design:paramtypes', 'seed ${SEED}'].map(isCited)).toEqual([false, false, false]);
});

test('package-lock.json names no registry, so that npm uses the configured registry', () => {
  const lock = readText('package-lock.json');
  expect(lock.includes('"resolved"')).toBe(false);
  expect(lock.match(/https?:\/\/[^"]*registry[^"]*/g)).toBeNull();
});

test('an absolute path of a machine is detected, and a path within the project is not', () => {
  const at = (folder: string) => MACHINE_PATH.test(`see '/${folder}/x/y.ts'`);
  expect(['home', 'tmp', 'src'].map(at)).toEqual([true, true, false]);
  expect(
    ['https://example.org/home/x', './work/x', 'src/tmp/x'].some((text) => MACHINE_PATH.test(text)),
  ).toBe(false);
});
