import { expect, test } from '@jest/globals';
import { listFiles, readText } from './repository.js';
import { readSource, type SourceFile, sourceFiles } from './source-files.js';
import { walk } from './syntax.js';

/** The current number. Raise it only if a new `any` cannot be avoided. */
const MAX_ANYS = 8;

test('no file has a star export', () => {
  expect(pathsWhere(({ exports }) => exports.hasStar)).toEqual([]);
});

test('no file has a default export, except for Jest', () => {
  // Jest calls only the default export of a `globalSetup` module.
  expect(pathsWhere(({ exports }) => exports.hasDefault)).toEqual(['src/dev/jest/index.ts']);
});

test('every any has a comment with the reason in the line before', () => {
  expect(sourceFiles().flatMap(anysWithoutReason)).toEqual([]);
});

test('the sources contain at most 8 anys', () => {
  expect(sourceFiles().flatMap(anyLines).length).toBeLessThanOrEqual(MAX_ANYS);
});

test('no comment disables the type checker', () => {
  const directives = /@ts-(ignore|nocheck|expect-error)/;
  const files = ['src', 'decorators', 'examples', 'test']
    .flatMap(listFiles)
    .filter((path) => path.endsWith('.ts') && path !== 'test/structure/plain-code.test.ts');
  // A type test may test for an error.
  const wrong = files.filter((path) => !path.startsWith('test/types/') && directives.test(readText(path)));
  expect(wrong).toEqual([]);
});

test('every biome-ignore comment gives a reason', () => {
  const bare = sourceFiles().flatMap(({ path, lines }) =>
    lines.flatMap((line, index) =>
      /biome-ignore/.test(line) && !/biome-ignore(-\w+)? \S+: \S+ \S+/.test(line)
        ? [`${path}:${index + 1}`]
        : [],
    ),
  );
  expect(bare).toEqual([]);
});

test('star exports, default exports and anys without a reason are detected in every form', () => {
  const star = readSource('src/run/loop/a.ts', "export * as b from './b.js';");
  const fallback = readSource('src/run/loop/b.ts', 'export { c as default };');
  const untyped = readSource(
    'src/run/loop/c.ts',
    'const a = <T>(b: T) => b as Map<string, any[]>;\n// any\nlet c: any;',
  );
  expect([star.exports.hasStar, fallback.exports.hasDefault]).toEqual([true, true]);
  expect(anysWithoutReason(untyped)).toEqual(['src/run/loop/c.ts:1', 'src/run/loop/c.ts:3']);
});

function pathsWhere(isWrong: (file: SourceFile) => boolean): string[] {
  return sourceFiles()
    .filter(isWrong)
    .map(({ path }) => path);
}

function anyLines({ syntax }: SourceFile): number[] {
  return [...walk(syntax.body)]
    .filter(({ node }) => node.type === 'TsKeywordType' && node.kind === 'any')
    .map(({ node }) => syntax.linesOf(node)[0]);
}

function anysWithoutReason(file: SourceFile): string[] {
  const reason = /biome-ignore lint\/suspicious\/noExplicitAny: \S+ \S+/;
  return anyLines(file)
    .filter((line) => !reason.test(file.lines[line - 2] ?? ''))
    .map((line) => `${file.path}:${line}`);
}
