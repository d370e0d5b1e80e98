/* Runs a measurement in a separate process, in which nothing else is loaded. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Runs `children/<file>` and returns the JSON that it prints. */
export async function measureInChild(file, ...args) {
  const script = join(import.meta.dirname, file);
  const { stdout } = await run(process.execPath, ['--expose-gc', script, ...args.map(String)], {
    maxBuffer: 1 << 24,
  });
  return JSON.parse(stdout.trim().split('\n').at(-1));
}
