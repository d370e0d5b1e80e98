import { expect, test } from '@jest/globals';
import { maySee, partOf } from './folders.js';
import { readManifest } from './repository.js';
import { localImports, readSource, type SourceFile, sourceTree } from './source-tree.js';

/** The MCP server and the MCP client share only their entry point. */
const OTHER_SIDE = [
  ['src/surfaces/mcp/server/', 'src/surfaces/mcp/client/'],
  ['src/surfaces/mcp/client/', 'src/surfaces/mcp/server/'],
] as const;

test('every source file is in a folder that is listed', () => {
  const homeless = sourceTree().filter(({ path }) => partOf(path) === undefined);
  expect(homeless.map(({ path }) => path)).toEqual([]);
});

test('a part imports only parts below it, types included', () => {
  expect(sourceTree().flatMap(wrongDirections)).toEqual([]);
});

test('an import between two parts of one line, or upwards, would be found', () => {
  const leaf = readSource('src/models/openai/a.ts', "import type { B } from '../offline/b.js';");
  const upwards = readSource('src/core/errors/a.ts', "type A = import('../../run/loop/b.js').B;");
  const declaring = readSource('decorators/a.ts', "export { b } from '../src/tools/schema/b.js';");
  expect([leaf, upwards, declaring].flatMap(wrongDirections)).toEqual([
    'src/models/openai/a.ts (models/openai) imports ../offline/b.js (models/offline)',
    'src/core/errors/a.ts (core/errors) imports ../../run/loop/b.js (run/loop)',
    'decorators/a.ts (decorators) imports ../src/tools/schema/b.js (tools/schema)',
  ]);
});

test('the two sides of MCP do not import each other', () => {
  expect(sourceTree().flatMap(crossings)).toEqual([]);
});

test('an import from one side of MCP into the other would be found', () => {
  const serving = readSource('src/surfaces/mcp/server/a.ts', "import type { B } from '../client/b.js';");
  const using = readSource('src/surfaces/mcp/client/a.ts', "export { b } from '../server/b.js';");
  const entryPoint = readSource('src/surfaces/mcp/index.ts', "export { b } from './server/b.js';");
  expect([serving, using, entryPoint].flatMap(crossings)).toEqual([
    'src/surfaces/mcp/server/a.ts imports ../client/b.js',
    'src/surfaces/mcp/client/a.ts imports ../server/b.js',
  ]);
});

test('relative imports end in .js or .cjs and name files that exist', () => {
  const wrong = sourceTree().flatMap((file) =>
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
  const wrong = sourceTree()
    .filter(({ path }) => path.startsWith('examples/'))
    .flatMap((file) => {
      const own = `${file.path.split('/').slice(0, 2).join('/')}/`;
      const strayed = localImports(file).filter(({ target }) => !target.startsWith(own));
      const unknown = file.imports.filter(
        ({ specifier = '' }) => /^toolwright(\/|$)/.test(specifier) && !names.has(specifier),
      );
      return [...strayed, ...unknown].map(({ specifier }) => `${file.path} imports ${specifier}`);
    });
  expect(wrong).toEqual([]);
});

test('the sources of the package never import the package by its name', () => {
  const wrong = sourceTree()
    .filter(({ path }) => !path.startsWith('examples/'))
    .filter(({ imports }) => imports.some(({ specifier = '' }) => /^toolwright(\/|$)/.test(specifier)));
  expect(wrong.map(({ path }) => path)).toEqual([]);
});

function wrongDirections(file: SourceFile): string[] {
  const from = partOf(file.path);
  return localImports(file).flatMap(({ specifier, target }) => {
    const to = partOf(target);
    if (from !== undefined && to !== undefined && maySee(from, to)) return [];
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
