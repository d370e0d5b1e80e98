import { posix } from 'node:path';
import { expect, test } from '@jest/globals';
import { readSource, type SourceFile, sourceTree } from './source-tree.js';

/** Entry points and programs are named after their part, these files after a topic that no export repeats. */
const NAMED_BY_PART = new Set(['index', 'main', 'async', 'declaration', 'ports']);

const NAMELESS = /^(utils?|common|helpers?|misc|shared|lib|stuff)$/;

test('no file or folder is called utils, common, helpers or misc', () => {
  const nameless = sourceTree().filter(({ path }) =>
    path
      .replace(/\.c?ts$/, '')
      .split('/')
      .some((part) => NAMELESS.test(part)),
  );
  expect(nameless.map(({ path }) => path)).toEqual([]);
});

test('files and folders are written in kebab-case', () => {
  const odd = sourceTree().filter(({ path }) => !/^[a-z0-9]+([-/][a-z0-9]+)*\.c?ts$/.test(path));
  expect(odd.map(({ path }) => path)).toEqual([]);
});

test('a file is named after its topic: a word of its name stands in a name that it exports', () => {
  expect(sourceTree().filter(isMisnamed).map(describeNames)).toEqual([]);
});

test('a file named after nothing in it would be found', () => {
  const files = [
    readSource('src/run/loop/run-tool-loop.ts', 'export function runToolLoop() {} export const other = 1;'),
    readSource('src/core/errors/error-table.ts', 'export const ERRORS = {};'),
    readSource('src/run/loop/read-text.ts', 'export const readWords = 1; export const other = 1;'),
    readSource('src/run/loop/things.ts', 'export function runToolLoop() {}'),
    readSource('src/run/loop/nothing.ts', 'const nothing = 1;'),
  ];
  expect(files.filter(isMisnamed).map(({ path }) => path)).toEqual([
    'src/run/loop/things.ts',
    'src/run/loop/nothing.ts',
  ]);
});

function isMisnamed(file: SourceFile): boolean {
  const name = posix.basename(file.path).replace(/\.c?ts$/, '');
  if (NAMED_BY_PART.has(name)) return false;
  const words = stemsOf(name);
  return !exportedNames(file).some((exported) => stemsOf(exported).some((stem) => words.includes(stem)));
}

function exportedNames({ exports }: SourceFile): string[] {
  return exports.names.map(({ name }) => kebabCase(name));
}

/** Words of a name, cut so that `rules` is `rule` and `compiler` is `compile`. */
function stemsOf(name: string): string[] {
  return name.split('-').map((word) => word.slice(0, 6).replace(/(ie[rs]|es|er|s|e|y)$/, ''));
}

function describeNames(file: SourceFile): string {
  return `${file.path} exports ${exportedNames(file).join(', ') || 'nothing'}`;
}

/** `OpenAIProvider` → `open-ai-provider`, but the brand is one word: `openai-provider`. */
function kebabCase(name: string): string {
  return name
    .replace('OpenAI', 'Openai')
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1-$2')
    .replaceAll('_', '-')
    .toLowerCase();
}
