import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { WorkerProcess } from 'toolwright/testing';
import { buildProgram } from '../../processes/build-program.js';

/** The program of a worker, and its processes. */
export class WorkerProgram {
  readonly #program = buildProgram('test/parts/engines/worker-program.ts');
  readonly #running = new Set<ChildProcess>();

  /** Starts a worker, and waits until it takes jobs. */
  async start(args: readonly string[]): Promise<WorkerProcess> {
    const child = fork(this.#program.file, args, { execArgv: [], env: { ...process.env, NODE_OPTIONS: '' } });
    this.#running.add(child);
    const ended = once(child, 'exit');
    const tooEarly = ended.then(([code]) => Promise.reject(new Error(`It ended with ${code}`)));
    await Promise.race([once(child, 'message'), tooEarly]);
    tooEarly.catch(() => {});
    return {
      kill: async () => {
        child.kill('SIGKILL');
        await ended;
      },
    };
  }

  remove(): void {
    for (const child of this.#running) child.kill('SIGKILL');
    this.#program.remove();
  }
}
