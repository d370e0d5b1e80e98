import { expect, test } from '@jest/globals';
import { mayImport, partOf } from './folders.js';
import { readManifest } from './repository.js';
import { localImports, readSource, type SourceFile, sourceFiles } from './source-files.js';

/** The MCP server and the MCP client share only their entry point. */
const OTHER_SIDE = [
  ['src/surfaces/mcp/server/', 'src/surfaces/mcp/client/'],
  ['src/surfaces/mcp/client/', 'src/surfaces/mcp/server/'],
] as const;

test('every source file belongs to a listed part', () => {
  const unlisted = sourceFiles().filter(({ path }) => partOf(path) === undefined);
  expect(unlisted.map(({ path }) => path)).toEqual([]);
});

test('a part imports only lower parts, types included', () => {
  expect(sourceFiles().flatMap(wrongDirections)).toEqual([]);
});

test('an import of a higher part, or of a part on the same level, is detected', () => {
  const leaf = readSource('src/models/openai/a.ts', "import type { B } from '../offline/b.js';");
  const upwards = readSource('src/core/errors/a.ts', "type A = import('../../run/loop/b.js').B;");
  const declaring = readSource('decorators/a.ts', "export { b } from '../src/tools/schema/b.js';");
  expect([leaf, upwards, declaring].flatMap(wrongDirections)).toEqual([
    'src/models/openai/a.ts (models/openai) imports ../offline/b.js (models/offline)',
    'src/core/errors/a.ts (core/errors) imports ../../run/loop/b.js (run/loop)',
    'decorators/a.ts (decorators) imports ../src/tools/schema/b.js (tools/schema)',
  ]);
});

test('the MCP server and the MCP client do not import each other', () => {
  expect(sourceFiles().flatMap(crossings)).toEqual([]);
});

test('an import between the MCP server and the MCP client is detected', () => {
  const serving = readSource('src/surfaces/mcp/server/a.ts', "import type { B } from '../client/b.js';");
  const using = readSource('src/surfaces/mcp/client/a.ts', "export { b } from '../server/b.js';");
  const entryPoint = readSource('src/surfaces/mcp/index.ts', "export { b } from './server/b.js';");
  expect([serving, using, entryPoint].flatMap(crossings)).toEqual([
    'src/surfaces/mcp/server/a.ts imports ../client/b.js',
    'src/surfaces/mcp/client/a.ts imports ../server/b.js',
  ]);
});

test('relative imports end in .js or .cjs and resolve to existing files', () => {
  const wrong = sourceFiles().flatMap((file) =>
    localImports(file)
      .filter(({ specifier, target }) => !/\.c?js$/.test(specifier) || !/\.c?ts$/.test(target))
      .map(({ specifier }) => `${file.path} imports ${specifier}`),
  );
  expect(wrong).toEqual([]);
});

test('examples import only public names of the package and files of their own folder', () => {
  const names = new Set(
    Object.keys(readManifest().exports).map((subpath) => subpath.replace(/^\./, 'toolwright')),
  );
  const wrong = sourceFiles()
    .filter(({ path }) => path.startsWith('examples/'))
    .flatMap((file) => {
      const own = `${file.path.split('/').slice(0, 2).join('/')}/`;
      const foreign = localImports(file).filter(({ target }) => !target.startsWith(own));
      const unknown = file.imports.filter(
        ({ specifier = '' }) => /^toolwright(\/|$)/.test(specifier) && !names.has(specifier),
      );
      return [...foreign, ...unknown].map(({ specifier }) => `${file.path} imports ${specifier}`);
    });
  expect(wrong).toEqual([]);
});

test('the sources of the package do not import the package by its name', () => {
  const wrong = sourceFiles()
    .filter(({ path }) => !path.startsWith('examples/'))
    .filter(({ imports }) => imports.some(({ specifier = '' }) => /^toolwright(\/|$)/.test(specifier)));
  expect(wrong.map(({ path }) => path)).toEqual([]);
});

function wrongDirections(file: SourceFile): string[] {
  const from = partOf(file.path);
  return localImports(file).flatMap(({ specifier, target }) => {
    const to = partOf(target);
    if (from !== undefined && to !== undefined && mayImport(from, to)) return [];
    return [`${file.path} (${from?.name}) imports ${specifier} (${to?.name})`];
  });
}

function crossings(file: SourceFile): string[] {
  const other = OTHER_SIDE.find(([side]) => file.path.startsWith(side))?.[1];
  if (other === undefined) return [];
  return localImports(file)
    .filter(({ target }) => target.startsWith(other))
    .map(({ specifier }) => `${file.path} imports ${specifier}`);
}
