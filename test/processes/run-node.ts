import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from '../structure/repository.js';

/** Long enough for slow machines: only a process that hangs runs so long. */
export const PROCESS_LIMIT_MS = 120_000;

/** Added to the environment of each process, so that modules are compiled only once. */
export const PROCESS_ENVIRONMENT: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: join(ROOT, 'node_modules', '.cache', 'toolwright-compiled'),
};

/** The folder, environment and time limit of a process. */
export interface NodePlace {
  readonly folder: string;
  /** Default: the environment of this process, without the flags that Jest needs. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Default: {@link PROCESS_LIMIT_MS}. */
  readonly limitMs?: number;
}

/** The exit code and the output of a process that has ended. */
export interface NodeRun {
  /** `null` if a signal ended it. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the same version of Node until it ends; throws after the time limit. */
export function runNode(args: readonly string[], place: NodePlace): NodeRun {
  const { folder, environment, limitMs = PROCESS_LIMIT_MS } = place;
  const { status, stdout, stderr, error } = spawnSync(process.execPath, args, {
    cwd: folder,
    env: { ...(environment ?? { ...process.env, NODE_OPTIONS: '' }), ...PROCESS_ENVIRONMENT },
    encoding: 'utf8',
    timeout: limitMs,
    maxBuffer: Number.POSITIVE_INFINITY,
  });
  if (error !== undefined) throw new Error(`${args.join(' ')}: ${error.message}\n${stdout}${stderr}`);
  return { exitCode: status, stdout, stderr };
}

/** Runs the same version of Node and returns its output; throws if it fails. */
export function outputOfNode(args: readonly string[], place: NodePlace): string {
  const { exitCode, stdout, stderr } = runNode(args, place);
  if (exitCode !== 0) throw new Error(`${args.join(' ')} exited with ${exitCode}:\n${stdout}${stderr}`);
  return stdout;
}
