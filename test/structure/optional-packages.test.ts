import { posix } from 'node:path';
import { expect, test } from '@jest/globals';
import { entryPoints } from './entry-points.js';
import { readManifest, readText } from './repository.js';
import { packageImports, readSource, sourceFiles } from './source-files.js';

/** The only files that may import each third-party package. */
const IMPORTERS: Readonly<Record<string, RegExp>> = {
  'class-validator': /^src\/tools\/(validators|dto)\//,
  'class-transformer': /^src\/tools\/(validators|dto)\//,
  tsyringe: /^src\/tools\/(discovery\/containers|tsyringe)\//,
  acorn: /^src\/(tools\/discovery|dev\/cli)\//,
  'expr-eval-fork': /^src\/toolbox\/builtin\//,
  openai: /^src\/models\/openai\//,
  '@modelcontextprotocol/server': /^src\/surfaces\/mcp\//,
  '@modelcontextprotocol/client': /^src\/surfaces\/mcp\/client\//,
  jose: /^src\/surfaces\/mcp\/server\//,
  '@ai-sdk/provider': /^src\/models\/ai-sdk\//,
  '@opentelemetry/api': /^src\/observe\/opentelemetry\//,
  bullmq: /^src\/durable\/bullmq\//,
  'pg-boss': /^src\/durable\/pg-boss\//,
  pg: /^src\/durable\/postgres\//,
  'just-bash': /^src\/toolbox\/virtual-shell\//,
  unbash: /^src\/toolbox\/shell\//,
  croner: /^src\/run\/schedules\//,
  diff: /^src\/(toolbox\/files|dev\/cli)\//,
  yaml: /^src\/toolbox\/skills\//,
  'ipaddr.js': /^src\/toolbox\/network\//,
  '@mdream/js': /^src\/toolbox\/web\//,
  ignore: /^src\/toolbox\/files\//,
  winston: /^src\/observe\/winston\//,
  typescript: /^src\/dev\/typegen\/load-compiler\.ts$/,
  '@nestjs/common': /^src\/surfaces\/nestjs\//,
  '@nestjs/core': /^src\/surfaces\/nestjs\//,
  rxjs: /^src\/surfaces\/nestjs\//,
  // Classes are decorated when they load, so the entry point that is imported first must load it.
  'reflect-metadata': /^(src|decorators)\/(.+\/)?index\.ts$/,
};

/** Packages that applications of users import too. */
const OPEN_TO_EXAMPLES = new Set([
  'class-validator',
  'class-transformer',
  'tsyringe',
  '@nestjs/common',
  '@nestjs/core',
  'rxjs',
  'zod',
  '@sinclair/typebox',
  '@modelcontextprotocol/client',
  'oidc-provider',
  'pg',
  'esbuild',
]);

/** They load the module that a user names and the compiler of the user's project. */
const DYNAMIC_LOADERS = ['src/dev/cli/open-module.ts', 'src/dev/typegen/load-compiler.ts'];

test('third-party packages are imported only by the files listed for them', () => {
  const wrong = sourceFiles().flatMap((file) =>
    packageImports(file)
      .filter((name) => !mayImport(file.path, name))
      .map((name) => `${file.path} imports ${name}`),
  );
  expect(wrong).toEqual([]);
});

test('the packages that the sources import are declared in package.json', () => {
  const { dependencies = {}, peerDependencies = {}, devDependencies = {} } = readManifest();
  const undeclared = sourceFiles().flatMap((file) => {
    const declared = { ...dependencies, ...peerDependencies };
    const allowed = file.path.startsWith('examples/') ? { ...declared, ...devDependencies } : declared;
    return packageImports(file).filter((name) => !Object.hasOwn(allowed, name));
  });
  expect([...new Set(undeclared)]).toEqual([]);
});

test('every dependency and peer dependency is imported by the sources', () => {
  const { dependencies = {}, peerDependencies = {} } = readManifest();
  const imported = new Set(sourceFiles().flatMap(packageImports));
  const unused = Object.keys({ ...dependencies, ...peerDependencies }).filter((name) => !imported.has(name));
  expect(unused).toEqual([]);
});

test('docs/reference/entry-points.md lists the optional packages of each entry point', () => {
  const optional = Object.keys(readManifest().peerDependencies ?? {});
  const rows = readText('docs/reference/entry-points.md').match(/^\| `toolwright.*$/gm) ?? [];
  const listed = rows.map((row) => {
    const [, names = '', , packages = ''] = row.split('|');
    return { names, packages: optional.filter((name) => packages.includes(`\`${name}\``)) };
  });
  const wrong = entryPoints()
    .filter(({ name }) => name !== 'toolwright')
    .flatMap(({ name, path }) => {
      const own = sourceFiles().filter((file) => file.path.startsWith(`${posix.dirname(path)}/`));
      const needed = new Set(own.flatMap(packageImports).filter((imported) => optional.includes(imported)));
      const row = listed.find(({ names }) => names.includes(`\`${name}\``));
      const missing = [...needed].filter((imported) => !row?.packages.includes(imported));
      return missing.length === 0 && row !== undefined ? [] : [`${name}: ${missing}`];
    });
  expect(wrong).toEqual([]);
  expect(listed.flatMap(({ packages }) => packages).sort()).toEqual(optional.sort());
});

test('sideEffects lists every entry point that loads reflect-metadata', () => {
  const { sideEffects } = readManifest();
  const entryPoints = sourceFiles().filter((file) => packageImports(file).includes('reflect-metadata'));
  const listed = entryPoints.map(({ path }) => `./dist/${path.replace(/\.ts$/, '.js')}`);
  // Entry points share chunks, and extensible-reflect.js must run before reflect-metadata.
  const others = [
    './dist/chunks/*.js',
    './dist/src/tools/dto/index.js',
    './dist/src/core/metadata/extensible-reflect.js',
  ];
  expect([...sideEffects].sort()).toEqual([...listed, ...others].sort());
});

test('only the listed files import modules whose name is computed', () => {
  const computed = sourceFiles().filter(({ imports }) =>
    imports.some(({ specifier }) => specifier === undefined),
  );
  expect(computed.map(({ path }) => path)).toEqual(DYNAMIC_LOADERS);
});

test('packageImports finds every kind of import', () => {
  const text = `
    import a from 'a';
    import type { B } from 'b/deep';
    export { c } from '@scope/c/deep';
    type D = import('d').D;
    const e = await import('e');
    const load = createRequire(import.meta.url);
    const f = load('f').default;
    const g = load.resolve('g');
    const h = require('h') as H;
    const i = createRequire(import.meta.url)('i');
    const j = loadedCopies('j');
    import k = require('k');
  `;
  const names = packageImports(readSource('src/run/loop/x.ts', text));
  expect(names.sort()).toEqual(['@scope/c', 'a', 'b', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k']);
});

function mayImport(path: string, name: string): boolean {
  if (path.startsWith('examples/') && OPEN_TO_EXAMPLES.has(name)) return true;
  return IMPORTERS[name]?.test(path) ?? false;
}
