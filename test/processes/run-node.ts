import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from '../structure/repository.js';

/** How long a process may run, on whatever machine this is: only one that hangs runs so long. */
export const PROCESS_LIMIT_MS = 120_000;

/** What each process is started with beside its own environment: modules are compiled once for all of them. */
export const PROCESS_ENVIRONMENT: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: join(ROOT, 'node_modules', '.cache', 'toolwright-compiled'),
};

/** Where a process runs, and in what environment. */
export interface NodePlace {
  readonly folder: string;
  /** This process's own environment by default, without the flags that Jest needs. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** How long it may run; default {@link PROCESS_LIMIT_MS}. */
  readonly limitMs?: number;
}

/** What a process that has ended said. */
export interface NodeRun {
  /** Nothing if a signal ended it. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs this very Node to its end; throws if it does not end. */
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

/** Runs this very Node to its end, which has to be a good one, and gives what it said. */
export function outputOfNode(args: readonly string[], place: NodePlace): string {
  const { exitCode, stdout, stderr } = runNode(args, place);
  if (exitCode !== 0) throw new Error(`${args.join(' ')} ended with ${exitCode}:\n${stdout}${stderr}`);
  return stdout;
}
