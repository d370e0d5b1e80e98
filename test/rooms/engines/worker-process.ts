import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { WorkerProcess } from 'toolwright/testing';

const CACHE = 'node_modules/.cache';

/** The program of a worker as one file, beside the packages that it imports. */
export class WorkerProgram {
  readonly #folder: string;
  readonly #file: string;
  readonly #running = new Set<ChildProcess>();

  constructor() {
    mkdirSync(CACHE, { recursive: true });
    this.#folder = mkdtempSync(join(CACHE, 'toolwright-worker-'));
    this.#file = resolve(this.#folder, 'program.mjs');
    const flags = ['--bundle', '--platform=node', '--format=esm', '--packages=external', '--target=node22'];
    const program = 'test/rooms/engines/worker-program.ts';
    execFileSync('node_modules/.bin/esbuild', [
      program,
      ...flags,
      '--log-level=warning',
      `--outfile=${this.#file}`,
    ]);
  }

  /** Starts one, and waits until it takes jobs. */
  async start(args: readonly string[]): Promise<WorkerProcess> {
    const child = fork(this.#file, args, { execArgv: [], env: { ...process.env, NODE_OPTIONS: '' } });
    this.#running.add(child);
    const ended = once(child, 'exit');
    await Promise.race([
      once(child, 'message'),
      ended.then(([code]) => Promise.reject(new Error(`ended: ${code}`))),
    ]);
    return {
      kill: async () => {
        child.kill('SIGKILL');
        await ended;
      },
    };
  }

  remove(): void {
    for (const child of this.#running) child.kill('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
