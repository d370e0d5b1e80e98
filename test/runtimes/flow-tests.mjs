import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from '@swc/core';
import { build } from 'esbuild';
import { folderFor } from './processes.mjs';

const FLOW = join(import.meta.dirname, 'flow');
const SETUP = join(import.meta.dirname, '..', 'setup');

/** The packages behind `expect` are CommonJS and require modules of Node. */
const REQUIRE =
  "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url ?? 'file:///');";

/** The compiler options of jest.config.js. esbuild cannot write decorator metadata. */
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

/** Bundles the flow tests, the packed package and all dependencies into one file in a new folder. */
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
    // Otherwise `sideEffects` in package.json would let esbuild remove them.
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
