import { AsyncLocalStorage } from 'node:async_hooks';
import type {
  DeadJob,
  DeadJobQuery,
  EngineCloseOptions,
  GiveBackOptions,
  Job,
  JobEngine,
  JobHandler,
  JobNews,
  JobNewsListener,
  JobOptions,
  JobWorker,
  WorkOptions,
} from '../../core/contract/job-engine.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { closeWithin, MAX_TIMER_MS } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import { Listeners } from '../../core/kernel/listeners.js';

interface Entry {
  readonly job: Job;
  readonly options: JobOptions;
  state: 'delayed' | 'waiting' | 'running';
  /** Attempts that have begun. */
  begun: number;
  /** Attempts that are used up. */
  failed: number;
  timer?: NodeJS.Timeout;
  readonly controller: AbortController;
}

interface Worker {
  readonly queue: string | undefined;
  readonly handle: JobHandler;
  /** A job runs in the async context of its worker, not in that of the call that started it. */
  readonly inContext: <Value>(work: () => Value) => Value;
  free: number;
  isOpen: boolean;
  readonly running: Set<Promise<void>>;
}

/** The most remembered ids of ended jobs, and listed dead jobs: the latest. */
const REMEMBERED = 10_000;

/**
 * Runs jobs in this process, as long as it lives: for tests, and for a single process whose started work need not
 * outlive it. It behaves like the engines with a broker, with the same order of events.
 *
 * @example
 * ```ts
 * const engine = new MemoryJobEngine();
 * const dead = await engine.deadJobs();
 * ```
 */
export class MemoryJobEngine implements JobEngine {
  /** Waiting and running jobs, in order of arrival. */
  readonly #entries = new Map<string, Entry>();
  readonly #ended = new Set<string>();
  readonly #dead = new Map<string, DeadJob>();
  readonly #workers = new Set<Worker>();
  /** They receive JSON, as from any other engine. */
  readonly #listeners = new Listeners<string>();

  async enqueue(job: Job, options: JobOptions = {}): Promise<void> {
    const { id } = job;
    if (this.#entries.has(id) || this.#ended.has(id)) return;
    // A copy, as from any other engine.
    const entry: Entry = {
      job: JSON.parse(JSON.stringify(job)),
      options,
      state: 'waiting',
      begun: 0,
      failed: 0,
      controller: new AbortController(),
    };
    this.#entries.set(id, entry);
    this.#wait(entry, options.delay ?? 0);
  }

  async work({ concurrency = 1, queue, handle }: WorkOptions): Promise<JobWorker> {
    const worker: Worker = {
      queue,
      handle,
      inContext: AsyncLocalStorage.snapshot(),
      free: concurrency,
      isOpen: true,
      running: new Set(),
    };
    this.#workers.add(worker);
    this.#serve();
    return { close: () => this.#drain(worker) };
  }

  async cancel(jobId: string, reason?: string): Promise<boolean> {
    const entry = this.#entries.get(jobId);
    if (entry === undefined || entry.controller.signal.aborted) return false;
    if (entry.state !== 'running') this.#end(entry);
    entry.controller.abort(new ToolwrightError('TaskCancelled', reason ?? 'The job was cancelled.'));
    return true;
  }

  async publish(news: JobNews): Promise<void> {
    this.#listeners.notify(JSON.stringify(news), () => {});
  }

  async subscribe(listener: JobNewsListener): Promise<() => Promise<void>> {
    const unsubscribe = this.#listeners.add((text) => listener(JSON.parse(text)));
    return async () => unsubscribe();
  }

  async deadJobs({ limit = 100, jobIds }: DeadJobQuery = {}): Promise<readonly DeadJob[]> {
    if (jobIds === undefined) return [...this.#dead.values()].reverse().slice(0, limit);
    return jobIds.flatMap((id) => this.#dead.get(id) ?? []);
  }

  async revive(job: Job, options: JobOptions = {}): Promise<boolean> {
    if (!this.#dead.delete(job.id)) return false;
    this.#ended.delete(job.id);
    await this.enqueue(job, options);
    return true;
  }

  async close({ timeoutMs }: EngineCloseOptions = {}): Promise<void> {
    const drained = Promise.all(Array.from(this.#workers, (worker) => this.#drain(worker)));
    await closeWithin(drained, { timeoutMs }, () => {});
    for (const { timer } of this.#entries.values()) clearTimeout(timer);
    this.#listeners.clear();
  }

  async #drain(worker: Worker): Promise<void> {
    worker.isOpen = false;
    await Promise.all(worker.running);
    this.#workers.delete(worker);
  }

  #wait(entry: Entry, delayMs: number): void {
    entry.state = delayMs > 0 ? 'delayed' : 'waiting';
    if (delayMs === 0) this.#serve();
    else entry.timer = setTimeout(() => this.#wait(entry, 0), Math.min(delayMs, MAX_TIMER_MS));
  }

  /** Gives waiting jobs to free workers. */
  #serve(): void {
    for (const worker of this.#workers) {
      while (worker.isOpen && worker.free > 0) {
        const entry = this.#next(worker.queue);
        if (entry === undefined) break;
        entry.state = 'running';
        entry.begun += 1;
        worker.free -= 1;
        // Moves the worker to the end, so that a job it returns does not always come back to it.
        this.#workers.delete(worker);
        this.#workers.add(worker);
        const running = worker
          .inContext(() => this.#attempt(worker.handle, entry))
          .finally(() => {
            worker.free += 1;
            worker.running.delete(running);
            this.#serve();
          });
        worker.running.add(running);
      }
    }
  }

  #next(queue: string | undefined): Entry | undefined {
    let first: Entry | undefined;
    let best = Number.POSITIVE_INFINITY;
    for (const entry of this.#entries.values()) {
      const { queue: own, priority = 0 } = entry.options;
      if (entry.state !== 'waiting' || own !== queue || priority >= best) continue;
      first = entry;
      best = priority;
      if (priority === 0) break;
    }
    return first;
  }

  async #attempt(handle: JobHandler, entry: Entry): Promise<void> {
    const { job, options, begun, controller } = entry;
    const { signal } = controller;
    const { attempts = 1, backoff = { type: 'fixed', delay: 0 } } = options;
    let givenBack: Required<GiveBackOptions> | undefined;
    let failure: { readonly error: unknown } | undefined;
    try {
      await handle(job, {
        signal,
        attempt: begun,
        isLast: entry.failed + 1 >= attempts,
        heartbeat: async () => {},
        giveBack: async ({ delay = 0 } = {}) => {
          givenBack = { delay };
        },
      });
    } catch (error) {
      failure = { error };
    }
    if (signal.aborted) return this.#end(entry);
    if (givenBack !== undefined) return this.#wait(entry, givenBack.delay);
    if (failure === undefined) return this.#end(entry);
    entry.failed += 1;
    if (entry.failed < attempts) {
      const { type, delay } = backoff;
      return this.#wait(entry, type === 'fixed' ? delay : delay * 2 ** (entry.failed - 1));
    }
    this.#end(entry);
    this.#dead.set(job.id, { job, error: errorMessage(failure.error), attempts: begun });
    forgetOldest(this.#dead, REMEMBERED);
  }

  #end({ job: { id }, timer }: Entry): void {
    clearTimeout(timer);
    this.#entries.delete(id);
    this.#ended.add(id);
    forgetOldest(this.#ended, REMEMBERED);
  }
}
