import { posix } from 'node:path';
import { expect, test } from '@jest/globals';
import { readSource, type SourceFile, sourceFiles } from './source-files.js';

/** Entry points and programs have fixed names, and these files a topic that is not the name of an export. */
const EXCEPTIONS = new Set(['index', 'main', 'async', 'declaration', 'ports']);

const MEANINGLESS = /^(utils?|common|helpers?|misc|shared|lib|stuff)$/;

test('no file or folder has a name without meaning, such as utils or common', () => {
  const meaningless = sourceFiles().filter(({ path }) =>
    path
      .replace(/\.c?ts$/, '')
      .split('/')
      .some((part) => MEANINGLESS.test(part)),
  );
  expect(meaningless.map(({ path }) => path)).toEqual([]);
});

test('the names of files and folders are in kebab-case', () => {
  const odd = sourceFiles().filter(({ path }) => !/^[a-z0-9]+([-/][a-z0-9]+)*\.c?ts$/.test(path));
  expect(odd.map(({ path }) => path)).toEqual([]);
});

test('the name of each file shares a word with one of its exports', () => {
  expect(sourceFiles().filter(isMisnamed).map(describeFile)).toEqual([]);
});

test('a file whose name shares no word with its exports is detected', () => {
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
  if (EXCEPTIONS.has(name)) return false;
  const words = stemsOf(name);
  return !exportedNames(file).some((exported) => stemsOf(exported).some((stem) => words.includes(stem)));
}

function exportedNames({ exports }: SourceFile): string[] {
  return exports.names.map(({ name }) => kebabCase(name));
}

/** The words of a name, shortened so that `rules` equals `rule` and `compiler` equals `compile`. */
function stemsOf(name: string): string[] {
  return name.split('-').map((word) => word.slice(0, 6).replace(/(ie[rs]|es|er|s|e|y)$/, ''));
}

function describeFile(file: SourceFile): string {
  return `${file.path} exports ${exportedNames(file).join(', ') || 'nothing'}`;
}

/** OpenAI is one word: `OpenAIProvider` becomes `openai-provider`. */
function kebabCase(name: string): string {
  return name
    .replace('OpenAI', 'Openai')
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1-$2')
    .replaceAll('_', '-')
    .toLowerCase();
}
