// Builds dist: the compiler emits modules and types, then the modules behind each door become one file and the
// chunks that doors share. A user's process opens a handful of files instead of two hundred, which is most of
// what importing costs.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
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
await build({
  absWorkingDir: root,
  entryPoints: doors,
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
