import { completeJob } from '../call/job-dispatch.js';
import { SafeLog } from '../call/log.js';
import { failedResult } from '../call/result-text.js';
import type { DeadJob, JobEngine } from '../contract/job-engine.js';
import type { JobStore, StoredJob } from '../contract/job-store.js';
import type { Logger } from '../contract/ports.js';
import { MAX_TIMER_MS } from '../kernel/async.js';
import type { QueueWorkers } from './queue-workers.js';

/** What is swept, and how often. */
interface Sweep {
  readonly engine: JobEngine;
  readonly jobs: JobStore;
  readonly workers: QueueWorkers;
  readonly sweepMs: number | undefined;
  readonly silentForMs: number | undefined;
  readonly logger: Logger | undefined;
}

const BATCH = 100;
const LONGEST_PAUSE_MS = 3_600_000;
/** Each means more than ten deaths: it may be the work that workers die of. */
const MOST_REVIVALS = 5;

/** Enqueues what the store holds and no engine has: its process died in between, or a broker lost it. */
export class OutboxSweeper {
  readonly #sweep: Sweep;
  readonly #log: SafeLog;
  readonly #sweepMs: number;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> = Promise.resolve();
  #isOpen = true;

  constructor(sweep: Sweep) {
    this.#sweep = sweep;
    this.#log = new SafeLog(sweep.logger);
    this.#sweepMs = Math.min(sweep.sweepMs ?? 5000, MAX_TIMER_MS);
    this.#schedule();
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    clearTimeout(this.#timer);
    await this.#sweeping;
  }

  #schedule(): void {
    if (!this.#isOpen) return;
    this.#timer = setTimeout(() => {
      this.#sweeping = this.#run()
        .catch((error) => this.#log.warn('Started work could not be looked through', { error }))
        .then(() => this.#schedule());
    }, this.#sweepMs);
  }

  async #run(): Promise<void> {
    const { jobs, workers, silentForMs = 60_000 } = this.#sweep;
    for (;;) {
      const found = await jobs.unsentJobs({ olderThanMs: this.#sweepMs, silentForMs, limit: BATCH });
      for (const stored of found) workers.serve(stored);
      const dead = await this.#deadOf(found);
      const failed = await this.#settleAll(found, dead);
      if (failed > 0 || found.length < BATCH || !this.#isOpen) return;
    }
  }

  /** One after the other, and each for itself: a job that the engine cannot take keeps no others waiting. */
  async #settleAll(found: readonly StoredJob[], dead: ReadonlyMap<string, DeadJob>): Promise<number> {
    let failed = 0;
    for (const stored of found) {
      const { id: jobId, tool } = stored.job;
      await this.#settle(stored, dead.get(jobId)).catch((error) => {
        failed += 1;
        this.#log.warn('A job could not be given to the engine', { jobId, tool, error });
      });
    }
    return failed;
  }

  async #settle(stored: StoredJob, dead: DeadJob | undefined): Promise<void> {
    const workersDied = dead?.workersDied === true;
    // Its last failure could not be recorded, so that it has nobody else who completes it.
    if (dead !== undefined && stored.attempt > 0 && !workersDied) return this.#bury(dead);
    const { engine, jobs } = this.#sweep;
    const { job, options } = stored;
    const { revivals = 0 } = dead?.job ?? {};
    if (workersDied && revivals >= (options.revivals ?? MOST_REVIVALS)) return this.#bury(dead);
    if (dead === undefined) await engine.enqueue(job, options);
    else {
      const delay = workersDied ? pauseBefore(stored) : 0;
      const revived = workersDied ? { ...job, revivals: revivals + 1 } : job;
      if (await engine.revive(revived, { ...options, delay }))
        this.#log.warn('A job that was given up before its attempts were used up is tried again', {
          jobId: job.id,
          error: dead.error,
          delay,
        });
    }
    await jobs.jobSent(job.id);
  }

  async #deadOf(found: readonly StoredJob[]): Promise<ReadonlyMap<string, DeadJob>> {
    const dead = await this.#sweep.engine.deadJobs({ jobIds: found.map(({ job }) => job.id) });
    return new Map(dead.map((entry) => [entry.job.id, entry]));
  }

  async #bury({ job, error, workersDied = false }: DeadJob): Promise<void> {
    const { engine, jobs } = this.#sweep;
    const times = (job.revivals ?? 0) + 1;
    const why = workersDied
      ? `more workers died of it than its engine lets, ${times === 1 ? 'once' : `${times} times`} (${error})`
      : error;
    const message = `The work of the tool '${job.tool}' was given up: ${why}`;
    if (await completeJob(jobs, job, failedResult('TaskInterrupted', message)))
      await engine.publish({ type: 'end', jobId: job.id });
  }
}

/**
 * As long as the job has been tried: what its workers die of comes ever more seldom, and where they died of something
 * else, no work is lost.
 */
function pauseBefore({ addedAt, changedAt, options: { delay = 0 } }: StoredJob): number {
  return Math.min(Math.max(0, changedAt - addedAt - delay), LONGEST_PAUSE_MS);
}
