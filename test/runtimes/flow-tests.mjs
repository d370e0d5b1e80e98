import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from '@swc/core';
import { build } from 'esbuild';
import { folderFor } from './processes.mjs';

const FLOW = join(import.meta.dirname, 'flow');
const SETUP = join(import.meta.dirname, '..', 'setup');

/** What `expect` is made of is CommonJS, and requires modules of Node. */
const REQUIRE =
  "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url ?? 'file:///');";

/** As the repository’s own tests are compiled: esbuild knows nothing of decorator metadata. */
const COMPILER = {
  swcrc: false,
  jsc: {
    target: 'es2022',
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
    keepClassNames: true,
  },
  module: { type: 'es6' },
};

/** Bundles the flow tests, the packed package and all that they need into one file of a folder of its own. */
export async function flowTests(folders, { name, file, format, entry = 'main.mjs', options = {} }) {
  const out = folderFor(folders, name);
  await build({
    entryPoints: [join(FLOW, entry)],
    outfile: join(out, file),
    bundle: true,
    keepNames: true,
    platform: 'node',
    format,
    logLevel: 'silent',
    define: { __dirname: '"/"' },
    banner: format === 'esm' ? { js: REQUIRE } : {},
    plugins: [tests(folders)],
    ...options,
  });
  return out;
}

const tests = ({ project }) => ({
  name: 'flow tests',
  setup(builder) {
    builder.onResolve({ filter: /^@jest\/globals$/ }, () => ({ path: join(FLOW, 'jest-globals.mjs') }));
    builder.onResolve({ filter: /^toolwright(\/|$)/ }, ({ path, kind, pluginData }) =>
      pluginData === 'packed'
        ? undefined
        : builder.resolve(path, { kind, resolveDir: project, pluginData: 'packed' }),
    );
    builder.onResolve({ filter: /^fast-check$/ }, () => ({ path: join(SETUP, 'fast-check.mjs') }));
    // The package.json of the repository says that they have no effects.
    builder.onResolve({ filter: /\.test\.ts$/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, path),
      sideEffects: true,
    }));
    builder.onLoad({ filter: /\.ts$/ }, ({ path }) => ({
      contents: transformSync(readFileSync(path, 'utf8'), { ...COMPILER, filename: path }).code,
      loader: 'js',
    }));
  },
});
