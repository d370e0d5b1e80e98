import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';

const CACHE = 'node_modules/.cache';

/** A program bundled into one file; packages stay imports. */
export interface BuiltProgram {
  readonly file: string;
  remove(): void;
}

/** Bundles a program from the sources, so that its tests need no build of the package. */
export function buildProgram(path: `test/${string}.ts`): BuiltProgram {
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(CACHE, `toolwright-${basename(path, '.ts')}-`));
  const file = resolve(folder, 'program.mjs');
  const flags = [
    '--bundle',
    '--ignore-annotations',
    '--platform=node',
    '--format=esm',
    '--packages=external',
    '--target=node22',
  ];
  execFileSync('node_modules/.bin/esbuild', [path, ...flags, '--log-level=warning', `--outfile=${file}`]);
  return { file, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
