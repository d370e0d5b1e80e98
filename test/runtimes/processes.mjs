import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of the programs of installed packages. */
export const BIN = join(import.meta.dirname, 'node_modules', '.bin', '/');

/** The output of a program; throws with its error output if it fails. */
export function run(folder, program, args) {
  const env = { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1' };
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: folder, env, encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(`${args.join(' ')} failed with ${error?.message ?? status}\n${stdout}${stderr}`);
}

/** Runs the same version of Node. */
export function node(folder, args) {
  return run(folder, process.execPath, args);
}

/** A new folder for a bundle, with no `node_modules` in it or above it. */
export function folderFor({ alone }, name) {
  const folder = join(alone, name);
  mkdirSync(folder, { recursive: true });
  return folder;
}
