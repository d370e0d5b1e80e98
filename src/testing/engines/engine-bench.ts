import { deepStrictEqual } from 'node:assert';
import type { Job, JobAttempt, JobEngine, JobHandler, JobWorker } from '../../contract/job-engine.js';

/** A worker in a process of its own. */
export interface WorkerProcess {
  /** Ends it at once, as SIGKILL does; resolves when it has ended. */
  kill(): Promise<void>;
}

/** The engine to be held against the contract. */
export interface JobEngineBackend {
  /**
   * Connects to a queue that is empty the first time its name is given. Two calls with one name are two connections
   * to it, as of two processes; an engine of one process gives the same object.
   */
  open(queue: string): JobEngine | Promise<JobEngine>;
  /**
   * Starts a process that calls `holdJobs` with a connection to the queue; without it, the cases are left out
   * in which a worker dies.
   */
  startWorker?(queue: string): Promise<WorkerProcess>;
  /** How long a case waits for what has to happen, in milliseconds; default 60,000. */
  readonly patienceMs?: number;
}

/** One case before it is made for an engine. */
export interface EngineCase {
  readonly title: string;
  readonly needsProcess?: true;
  run(bench: EngineBench): Promise<void>;
}

/** What a handler was given, and when. */
interface Handled {
  readonly job: Job;
  readonly attempt: JobAttempt;
  readonly at: number;
}

const PATIENCE_MS = 60_000;

/** What a case works with: a queue of its own, and connections to it. */
export class EngineBench {
  readonly backend: JobEngineBackend;
  readonly queue = `conformance-${crypto.randomUUID()}`;
  /** Everything that handlers of {@link work} were given. */
  readonly handled: Handled[] = [];
  readonly #engines = new Set<JobEngine>();
  #ids = 0;

  constructor(backend: JobEngineBackend) {
    this.backend = backend;
  }

  /** Another connection to the queue of the case. */
  async open(): Promise<JobEngine> {
    const engine = await this.backend.open(this.queue);
    this.#engines.add(engine);
    return engine;
  }

  job(changes: Partial<Job> = {}): Job {
    this.#ids += 1;
    return {
      id: `task_${this.#ids}_${crypto.randomUUID()}`,
      tool: 'send_mail',
      arguments: { to: 'ada@example.org', copies: [1, 2] },
      scope: { channel: 'web', chatId: '7', owner: { user: 'u1' } },
      fingerprint: 'f1',
      idempotencyKey: `key-${this.#ids}`,
      callId: `call_${this.#ids}`,
      ...changes,
    };
  }

  /** Works, and notes what was given before it is handled. */
  async work(engine: JobEngine, handle: JobHandler, concurrency = 1): Promise<JobWorker> {
    return engine.work({
      concurrency,
      handle: async (job, attempt) => {
        this.handled.push({ job, attempt, at: performance.now() });
        await handle(job, attempt);
      },
    });
  }

  /** Does nothing but wait for what is promised, and no longer than the backend says. */
  async within<Value>(promise: Promise<Value>, what: string): Promise<Value> {
    const late = Promise.withResolvers<never>();
    const { patienceMs = PATIENCE_MS } = this.backend;
    const timer = setTimeout(
      () => late.reject(new Error(`${what}: not within ${patienceMs} ms`)),
      patienceMs,
    );
    try {
      return await Promise.race([promise, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#engines, (engine) => engine.close()));
  }
}

/** Resolves when it has been told a number of times. */
export class Countdown {
  readonly done: Promise<void>;
  readonly #resolve: () => void;
  #left: number;

  constructor(count: number) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#left = count;
    this.done = promise;
    this.#resolve = resolve;
  }

  tell(): void {
    this.#left -= 1;
    if (this.#left === 0) this.#resolve();
  }
}

/** Throws what differs from what the contract says. */
export function expectEqual(actual: unknown, expected: unknown, rule: string): void {
  deepStrictEqual(
    actual,
    expected,
    `${rule}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`,
  );
}

export function expectThat(holds: boolean, rule: string): void {
  if (!holds) throw new Error(rule);
}
