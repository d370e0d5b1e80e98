import type { JobHandler, JobWorker } from '../contract/job-engine.js';
import type { RunningJobs } from '../jobs/running-jobs.js';
import { errorMessage } from '../kernel/error-message.js';
import type { BossQueue, TakenJob } from './boss-queue.js';

/** What a worker works with. */
interface BossWork {
  readonly queue: BossQueue;
  readonly running: RunningJobs;
  readonly concurrency: number;
  readonly handle: JobHandler;
  readonly transactional: boolean;
  readonly onError: (error: unknown) => void;
}

/** How often a worker looks for jobs of which it heard nothing: delayed ones, and others whose word was lost. */
const LOOK_EVERY_MS = 500;
/** After a database that did not answer. */
const RECOVER_MS = 1000;

/**
 * Takes jobs of a queue of pg-boss as slots become free, several at once. pg-boss has workers of its own, which pause
 * after each batch, and for the transaction of a batch keep one open while tools work.
 */
export class BossWorker implements JobWorker {
  readonly #work: BossWork;
  readonly #taken = new Map<string, TakenJob>();
  readonly #attempts = new Set<Promise<void>>();
  readonly #heartbeat: NodeJS.Timeout;
  readonly #ended: Promise<void>;
  #isOpen = true;
  #isWoken = false;
  #rouse: (() => void) | undefined;
  #completing: { readonly jobs: TakenJob[]; readonly done: Promise<void> } | undefined;

  constructor(work: BossWork) {
    this.#work = work;
    const beats = (work.queue.heartbeatSeconds * 1000) / 3;
    this.#heartbeat = setInterval(() => void this.#touch(), beats);
    this.#ended = this.#run();
  }

  /** There may be something to do. */
  wake(): void {
    this.#isWoken = true;
    this.#rouse?.();
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    this.wake();
    await this.#ended;
    await Promise.all(this.#attempts);
    clearInterval(this.#heartbeat);
  }

  async #run(): Promise<void> {
    const { queue, concurrency, onError } = this.#work;
    while (this.#isOpen) {
      const free = concurrency - this.#attempts.size;
      this.#isWoken = false;
      try {
        const taken = free > 0 ? await queue.take(free) : [];
        for (const job of taken) this.#start(job);
        // There may be more than fitted: the next free slot looks again.
        if (free === 0 || taken.length < free) await this.#pause(LOOK_EVERY_MS);
      } catch (error) {
        onError(error);
        await this.#pause(RECOVER_MS);
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    if (this.#isWoken) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#rouse = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#rouse = undefined;
  }

  #start(taken: TakenJob): void {
    this.#taken.set(taken.id, taken);
    const attempt = this.#attempt(taken)
      .catch(this.#work.onError)
      .finally(() => {
        this.#taken.delete(taken.id);
        this.#attempts.delete(attempt);
        this.wake();
      });
    this.#attempts.add(attempt);
  }

  async #attempt(taken: TakenJob): Promise<void> {
    const { queue, running, handle, transactional } = this.#work;
    const { job, retryCount, failed, attempts } = taken;
    const isLast = failed + 1 >= attempts;
    let hasLeft = false;
    const commit: Parameters<JobHandler>[1]['commit'] = async (write) => {
      await queue.commit(taken, write);
      hasLeft = true;
    };
    const giveBack = async () => {
      await queue.giveBack(taken);
      hasLeft = true;
    };
    try {
      await running.run(job, (signal) =>
        handle(job, {
          signal,
          attempt: retryCount + 1,
          isLast,
          heartbeat: () => this.#touch(),
          giveBack,
          ...(transactional ? { commit } : {}),
        }),
      );
    } catch (error) {
      if (hasLeft) return;
      return isLast ? queue.bury(taken, errorMessage(error)) : queue.retry(taken, errorMessage(error));
    }
    if (!hasLeft) await this.#complete(taken);
  }

  /** Jobs that end in the same turn of the event loop are completed together. */
  #complete(taken: TakenJob): Promise<void> {
    if (this.#completing === undefined) {
      const jobs: TakenJob[] = [];
      const done = new Promise((resolve) => setImmediate(resolve)).then(() => {
        this.#completing = undefined;
        return this.#work.queue.complete(jobs);
      });
      this.#completing = { jobs, done };
    }
    this.#completing.jobs.push(taken);
    return this.#completing.done;
  }

  async #touch(): Promise<void> {
    const jobs = [...this.#taken.values()];
    if (jobs.length === 0) return;
    try {
      const held = await this.#work.queue.touch(jobs);
      // One that has ended meanwhile is held no more either.
      for (const { id, job } of jobs)
        if (!held.has(id) && this.#taken.has(id)) this.#work.running.lose(job.id);
    } catch (error) {
      this.#work.onError(error);
    }
  }
}
