/* Starts a measurement in a process of its own, so that nothing else is loaded there, and reads its answer. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What `children/<file>` prints as JSON. */
export async function measureApart(file, ...args) {
  const script = join(import.meta.dirname, file);
  const { stdout } = await run(process.execPath, ['--expose-gc', script, ...args.map(String)], {
    maxBuffer: 1 << 24,
  });
  return JSON.parse(stdout.trim().split('\n').at(-1));
}
