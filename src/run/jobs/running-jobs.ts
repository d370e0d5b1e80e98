import type { Job } from '../../core/contract/job-engine.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';

/** The most remembered cancelled jobs that have not started here but may be about to. */
const REMEMBERED = 1000;

interface Running {
  readonly controller: AbortController;
  isCancelled: boolean;
  isLost: boolean;
}

/**
 * How the run of a job ended. `lost`: the engine gave it to another worker, so that the result of its work does not
 * count.
 */
export type RunEnd = 'ended' | 'lost';

/**
 * How long a lost job is returned to its queue, if it still belongs to this process: the earlier attempt ends
 * meanwhile.
 */
export const LOST_DELAY_MS = 1_000;

/** The jobs that run in this process, so that they can be stopped. */
export class RunningJobs {
  readonly #running = new Map<string, Running>();
  readonly #cancelled = new Map<string, string | undefined>();

  /** Runs a job. A cancelled job has ended, whatever the result of its work; other errors of the work are thrown. */
  async run({ id }: Job, work: (signal: AbortSignal) => Promise<void>): Promise<RunEnd> {
    // Its lease expired while this process was overloaded, and the earlier attempt has not noticed it yet.
    if (this.#running.has(id)) {
      this.lose(id);
      return 'lost';
    }
    const running: Running = { controller: new AbortController(), isCancelled: false, isLost: false };
    this.#running.set(id, running);
    // The cancellation came before the job.
    if (this.#cancelled.has(id)) this.cancel(id, this.#cancelled.get(id));
    this.#cancelled.delete(id);
    try {
      await work(running.controller.signal);
    } catch (error) {
      if (running.isLost) return 'lost';
      if (!running.isCancelled) throw error;
    } finally {
      this.#running.delete(id);
    }
    return 'ended';
  }

  cancel(jobId: string, reason: string | undefined): void {
    const running = this.#running.get(jobId);
    if (running === undefined) {
      this.#cancelled.set(jobId, reason);
      forgetOldest(this.#cancelled, REMEMBERED);
      return;
    }
    running.isCancelled = true;
    running.controller.abort(new ToolwrightError('TaskCancelled', reason ?? 'The job was cancelled.'));
  }

  /** Another worker has the job now. */
  lose(jobId: string): void {
    const running = this.#running.get(jobId);
    if (running === undefined) return;
    running.isLost = true;
    running.controller.abort(new DOMException('Another worker has taken the job over', 'AbortError'));
  }
}
