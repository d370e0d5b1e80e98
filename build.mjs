// Builds dist: the compiler emits modules and types, then the modules behind each door become one file and the
// chunks that doors share. A user's process opens a handful of files instead of two hundred, which is most of
// what importing costs.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
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
const { metafile } = await build({
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
  metafile: true,
  logLevel: 'warning',
});

// `var X = class _X` (or `X2`): the bundler renames what a class calls itself, and frameworks tell people that name.
// Its `keepNames` would mend it with a call for each function, also for those that a call of a tool makes.
const RENAMED_CLASS = /^var (\w+) = (?:\w+ = )?class (_\1|\1\d+)\b/gm;
for (const path of Object.keys(metafile.outputs).filter((output) => output.endsWith('.js'))) {
  const file = new URL(path, import.meta.url);
  const text = await readFile(file, 'utf8');
  const names = new Map([...text.matchAll(RENAMED_CLASS)].map(([, name, inner]) => [inner, name]));
  if (names.size === 0) continue;
  const inner = new RegExp(`\\b(?:${[...names.keys()].join('|')})\\b`, 'g');
  await writeFile(
    file,
    text.replace(inner, (name) => names.get(name)),
  );
}
