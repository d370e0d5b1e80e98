import { expect, test } from '@jest/globals';
import { listFiles, readText } from './repository.js';
import { readSource, type SourceFile, sourceTree } from './source-tree.js';
import { walk } from './syntax.js';

/** As many as could not be avoided; a new one has to raise this number on purpose. */
const MOST_ANYS = 8;

test('nothing is exported by a star', () => {
  expect(pathsWhere(({ exports }) => exports.hasStar)).toEqual([]);
});

test('nothing is exported as default', () => {
  // Jest takes nothing else from the module that it is told to set up with.
  expect(pathsWhere(({ exports }) => exports.hasDefault)).toEqual(['src/dev/jest/index.ts']);
});

test('every any stands below a line that gives the reason for it', () => {
  expect(sourceTree().flatMap(unexplainedAnys)).toEqual([]);
});

test('there is a handful of anys at most', () => {
  expect(sourceTree().flatMap(anyLines).length).toBeLessThanOrEqual(MOST_ANYS);
});

test('no line switches the type checker off', () => {
  const switches = /@ts-(ignore|nocheck|expect-error)/;
  const files = ['src', 'decorators', 'examples', 'test']
    .flatMap(listFiles)
    .filter((path) => path.endsWith('.ts') && path !== 'test/structure/plain-code.test.ts');
  // A type test may expect an error: that is what it tests.
  const wrong = files.filter((path) => !path.startsWith('test/types/') && switches.test(readText(path)));
  expect(wrong).toEqual([]);
});

test('every rule that the linter is told to skip is skipped for a stated reason', () => {
  const bare = sourceTree().flatMap(({ path, lines }) =>
    lines.flatMap((line, index) =>
      /biome-ignore/.test(line) && !/biome-ignore(-\w+)? \S+: \S+ \S+/.test(line)
        ? [`${path}:${index + 1}`]
        : [],
    ),
  );
  expect(bare).toEqual([]);
});

test('stars, defaults and unexplained anys would be found, however they are written', () => {
  const star = readSource('src/run/loop/a.ts', "export * as b from './b.js';");
  const fallback = readSource('src/run/loop/b.ts', 'export { c as default };');
  const untyped = readSource(
    'src/run/loop/c.ts',
    'const a = <T>(b: T) => b as Map<string, any[]>;\n// any\nlet c: any;',
  );
  expect([star.exports.hasStar, fallback.exports.hasDefault]).toEqual([true, true]);
  expect(unexplainedAnys(untyped)).toEqual(['src/run/loop/c.ts:1', 'src/run/loop/c.ts:3']);
});

function pathsWhere(isWrong: (file: SourceFile) => boolean): string[] {
  return sourceTree()
    .filter(isWrong)
    .map(({ path }) => path);
}

function anyLines({ syntax }: SourceFile): number[] {
  return [...walk(syntax.body)]
    .filter(({ node }) => node.type === 'TsKeywordType' && node.kind === 'any')
    .map(({ node }) => syntax.linesOf(node)[0]);
}

function unexplainedAnys(file: SourceFile): string[] {
  const reason = /biome-ignore lint\/suspicious\/noExplicitAny: \S+ \S+/;
  return anyLines(file)
    .filter((line) => !reason.test(file.lines[line - 2] ?? ''))
    .map((line) => `${file.path}:${line}`);
}
