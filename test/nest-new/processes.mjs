import { spawnSync } from 'node:child_process';

/** Returns the output of a program; throws it as an error if the program fails. */
export function run(folder, program, args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1', CI: 'true' },
    input: '',
    encoding: 'utf8',
  });
  if (status === 0) return stdout + stderr;
  throw new Error(`${program} ${args.join(' ')} ended with ${error?.message ?? status}\n${stdout}${stderr}`);
}

export const npm = (folder, args) => run(folder, 'npm', args);
