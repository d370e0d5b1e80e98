// Builds dist: the compiler emits modules and types, then the modules behind each door become one file and the
// chunks that doors share. A user's process opens a handful of files instead of two hundred, which is most of
// what importing costs.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('.', import.meta.url));
const { exports, bin, engines } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
const doors = [...Object.values(exports), ...Object.values(bin)].filter((path) => path.endsWith('.js'));

rmSync(new URL('dist', import.meta.url), { recursive: true, force: true });
try {
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  });
} catch {
  // The compiler has said what is wrong.
  process.exit(1);
}
// Modules that the same doors need share a chunk, so that what the root is made of would lie in two dozen of them,
// and a file costs more than its bytes. Whoever imports one of these imports the root too: they load all of it.
const besideRoot = {
  name: 'beside-root',
  setup({ onLoad }) {
    const door = JSON.stringify(fileURLToPath(new URL('dist/src/index.js', import.meta.url)));
    const filter = /[\\/](?:testing|builtin|mcp|nestjs)[\\/]index\.js$|[\\/](?:list|mcp)-command\.js$/;
    // On the first line: the lines of the source map stay what they are.
    onLoad({ filter }, async ({ path }) => ({ contents: `import ${door}; ${await readFile(path, 'utf8')}` }));
  },
};
await build({
  absWorkingDir: root,
  entryPoints: doors,
  plugins: [besideRoot],
  outbase: 'dist',
  outdir: 'dist',
  allowOverwrite: true,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  packages: 'external',
  target: `node${engines.node.replace(/[^\d.]/g, '')}`,
  chunkNames: 'chunks/[name]-[hash]',
  sourcemap: true,
  logLevel: 'warning',
});
