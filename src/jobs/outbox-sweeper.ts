import { completeJob } from '../call/job-dispatch.js';
import { failedResult } from '../call/result-text.js';
import type { JobEngine } from '../contract/job-engine.js';
import type { JobStore, StoredJob } from '../contract/job-store.js';
import type { Logger } from '../contract/ports.js';

/** What is swept, and how often. */
interface Sweep {
  readonly engine: JobEngine;
  readonly jobs: JobStore;
  readonly sweepMs: number | undefined;
  readonly silentForMs: number | undefined;
  readonly logger: Logger | undefined;
}

const BATCH = 100;

/** Enqueues what the store holds and no engine has: its process died in between, or a broker lost it. */
export class OutboxSweeper {
  readonly #sweep: Sweep;
  readonly #sweepMs: number;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> = Promise.resolve();
  #isOpen = true;

  constructor(sweep: Sweep) {
    this.#sweep = sweep;
    this.#sweepMs = sweep.sweepMs ?? 5000;
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
        .catch((error) => this.#sweep.logger?.warn('Started work could not be looked through', { error }))
        .then(() => this.#schedule());
    }, this.#sweepMs);
  }

  async #run(): Promise<void> {
    const { jobs, silentForMs = 60_000 } = this.#sweep;
    for (;;) {
      const found = await jobs.unsentJobs({ olderThanMs: this.#sweepMs, silentForMs, limit: BATCH });
      if (found.some(({ attempt }) => attempt > 0)) await this.#buryDead(found);
      for (const stored of found) await this.#send(stored);
      if (found.length < BATCH || !this.#isOpen) return;
    }
  }

  async #send({ job, options }: StoredJob): Promise<void> {
    const { engine, jobs } = this.#sweep;
    await engine.enqueue(job, options);
    await jobs.jobSent(job.id);
  }

  /** Jobs that an engine has given up, because workers died of them, have nobody else who completes them. */
  async #buryDead(found: readonly StoredJob[]): Promise<void> {
    const { engine, jobs } = this.#sweep;
    const open = new Map(found.map(({ job }) => [job.id, job]));
    for (const { job, error } of await engine.deadJobs({ limit: 1000 })) {
      if (!open.has(job.id)) continue;
      const message = `The work of the tool '${job.tool}' was given up: ${error}`;
      if (await completeJob(jobs, job, failedResult('TaskInterrupted', message)))
        await engine.publish({ type: 'end', jobId: job.id });
    }
  }
}
