import { expect, test } from '@jest/globals';
import { localImports, readSource, type SourceFile, sourceFiles } from './source-files.js';

test('imports have no cycles, types included', () => {
  expect(cyclesOf(sourceFiles())).toEqual([]);
});

test('a cycle of three files is detected', () => {
  const files = [
    readSource('src/run/loop/a.ts', "import { b } from './b.ts';"),
    readSource('src/run/loop/b.ts', "import type { C } from './c.ts';"),
    readSource('src/run/loop/c.ts', "export { a } from './a.ts';"),
  ];
  expect(cyclesOf(files)).toEqual([
    'src/run/loop/a.ts → src/run/loop/b.ts → src/run/loop/c.ts → src/run/loop/a.ts',
  ]);
});

/** One line for each back edge of a depth-first search. */
function cyclesOf(files: readonly SourceFile[]): string[] {
  const graph = new Map(files.map((file) => [file.path, localImports(file).map(({ target }) => target)]));
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) cycles.push([...trail.slice(start), path].join(' → '));
    if (start >= 0 || done.has(path)) return;
    for (const target of graph.get(path) ?? []) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return cycles;
}
