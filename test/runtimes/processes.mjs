import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** The programs that this folder's packages bring. */
export const BIN = join(import.meta.dirname, 'node_modules', '.bin', '/');

/** What a program prints; throws what it complains of where it fails. */
export function run(folder, program, args) {
  const env = { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1' };
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: folder, env, encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(`${args.join(' ')} ended with ${error?.message ?? status}\n${stdout}${stderr}`);
}

/** Runs this very Node. */
export function node(folder, args) {
  return run(folder, process.execPath, args);
}

/** A new folder for one bundle; there is no `node_modules` in it or above it. */
export function folderFor({ alone }, name) {
  const folder = join(alone, name);
  mkdirSync(folder, { recursive: true });
  return folder;
}
