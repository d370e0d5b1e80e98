import type { GiveBackOptions, JobHandler, JobWorker } from '../contract/job-engine.js';
import { LOST_DELAY_MS, type RunEnd, type RunningJobs } from '../jobs/running-jobs.js';
import { errorMessage } from '../kernel/error-message.js';
import type { BossQueue, ReturnedJob, TakenJob } from './boss-queue.js';

/** What a worker works with. */
interface BossWork {
  readonly queue: BossQueue;
  /** The only queue that jobs are taken from, by the name that pg-boss has of it. */
  readonly name: string;
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
  readonly #taken = new Set<TakenJob>();
  readonly #attempts = new Set<Promise<void>>();
  /** Jobs on their way back to the queue. */
  readonly #leaving = new Set<Promise<void>>();
  readonly #heartbeat: NodeJS.Timeout;
  readonly #ended: Promise<void>;
  #isOpen = true;
  #isWoken = false;
  #rouse: (() => void) | undefined;
  readonly #completed: Batch<TakenJob>;
  readonly #returned: Batch<ReturnedJob>;

  constructor(work: BossWork) {
    this.#work = work;
    this.#completed = new Batch((jobs) => work.queue.complete(work.name, jobs));
    this.#returned = new Batch((jobs) => work.queue.giveBack(work.name, jobs));
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
    await Promise.all(this.#leaving);
    clearInterval(this.#heartbeat);
  }

  async #run(): Promise<void> {
    const { queue, name, concurrency, onError } = this.#work;
    while (this.#isOpen) {
      const free = concurrency - this.#attempts.size;
      this.#isWoken = false;
      try {
        const taken = free > 0 ? await queue.take(name, free) : [];
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
    this.#taken.add(taken);
    const attempt = this.#attempt(taken)
      .catch(this.#work.onError)
      .finally(() => {
        this.#taken.delete(taken);
        this.#attempts.delete(attempt);
        this.wake();
      });
    this.#attempts.add(attempt);
  }

  async #attempt(taken: TakenJob): Promise<void> {
    const { queue, running, handle, transactional } = this.#work;
    const { job, begun, failed, attempts } = taken;
    const isLast = failed + 1 >= attempts;
    let hasLeft = false;
    const commit: Parameters<JobHandler>[1]['commit'] = async (write) => {
      await queue.commit(taken, write);
      hasLeft = true;
    };
    const giveBack = async ({ delay = 0 }: GiveBackOptions = {}) => {
      const returning = this.#returned.add({ taken, delay });
      if (delay === 0) await returning;
      // The slot takes its next job meanwhile. A job that could not be returned comes again when its heartbeat has ended.
      else this.#leave(returning);
      hasLeft = true;
    };
    let end: RunEnd;
    try {
      end = await running.run(job, (signal) =>
        handle(job, {
          signal,
          attempt: begun + 1,
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
    if (hasLeft) return;
    if (end === 'lost') await giveBack({ delay: LOST_DELAY_MS });
    else await this.#completed.add(taken);
  }

  #leave(returning: Promise<void>): void {
    const left = returning.catch(this.#work.onError).finally(() => this.#leaving.delete(left));
    this.#leaving.add(left);
  }

  async #touch(): Promise<void> {
    const { queue, name, running } = this.#work;
    const jobs = [...this.#taken];
    if (jobs.length === 0) return;
    try {
      const held = await queue.touch(name, jobs);
      // One that has ended meanwhile is held no more either.
      for (const taken of jobs) if (!held.has(taken.id) && this.#taken.has(taken)) running.lose(taken.job.id);
    } catch (error) {
      this.#work.onError(error);
    }
  }
}

/** Does the same with many jobs in one go: with those that come in the same turn of the event loop. */
class Batch<Entry> {
  readonly #work: (entries: readonly Entry[]) => Promise<void>;
  #open: { readonly entries: Entry[]; readonly done: Promise<void> } | undefined;

  constructor(work: (entries: readonly Entry[]) => Promise<void>) {
    this.#work = work;
  }

  add(entry: Entry): Promise<void> {
    if (this.#open === undefined) {
      const entries: Entry[] = [];
      const done = new Promise((resolve) => setImmediate(resolve)).then(() => {
        this.#open = undefined;
        return this.#work(entries);
      });
      this.#open = { entries, done };
    }
    this.#open.entries.push(entry);
    return this.#open.done;
  }
}
