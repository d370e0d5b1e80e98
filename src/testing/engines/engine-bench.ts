import { deepStrictEqual } from 'node:assert';
import type {
  Job,
  JobAttempt,
  JobEngine,
  JobHandler,
  JobWorker,
  WorkOptions,
} from '../../contract/job-engine.js';
import { expectThat } from '../conformance/expectations.js';

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
  async work(
    engine: JobEngine,
    handle: JobHandler,
    options: Omit<WorkOptions, 'handle'> = {},
  ): Promise<JobWorker> {
    return engine.work({
      ...options,
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

/** What becomes of jobs that fail. */
export const ATTEMPT_CASES: readonly EngineCase[] = [
  {
    title: 'tries a job again that failed, after the pause of `backoff`, and counts its attempts',
    async run(bench) {
      const engine = await bench.open();
      const all = new Countdown(3);
      await bench.work(engine, async (_job, { attempt }) => {
        all.tell();
        if (attempt < 3) throw new Error(`attempt ${attempt}`);
      });
      await engine.enqueue(bench.job(), { attempts: 4, backoff: { type: 'fixed', delay: 600 } });
      await bench.within(all.done, 'a job that failed is tried again');
      const attempts = bench.handled.map(({ attempt }) => [attempt.attempt, attempt.isLast]);
      expectEqual(
        attempts,
        [1, 2, 3].map((attempt) => [attempt, false]),
        'attempts',
      );
      const pauses = bench.handled.slice(1).map(({ at }, index) => at - (bench.handled[index]?.at ?? 0));
      expectThat(
        pauses.every((ms) => ms > 590),
        `pauses of 600 ms were ${pauses.join(' and ')} ms`,
      );
    },
  },
  {
    title: 'keeps a job whose attempts are used up, lists it with its error, and tries it no more',
    async run(bench) {
      const [engine, other] = [await bench.open(), await bench.open()];
      const all = new Countdown(3);
      const worker = await bench.work(engine, async ({ id }) => {
        all.tell();
        if (id !== 'fine') throw new Error(`the mail of ${id} is lost`);
      });
      const job = bench.job({ id: 'dead:1' });
      await engine.enqueue(job, { attempts: 2 });
      await engine.enqueue(bench.job({ id: 'fine' }));
      await bench.within(all.done, 'jobs are run');
      await worker.close();
      const dead = await other.deadJobs();
      expectEqual(dead.length, 1, 'dead jobs');
      expectEqual(dead[0]?.job, job, 'the dead job');
      expectEqual(dead[0]?.attempts, 2, 'its attempts');
      expectThat(
        dead[0]?.error.includes('the mail of dead:1 is lost') ?? false,
        `its error is ${dead[0]?.error}`,
      );
      expectEqual(await other.deadJobs({ limit: 0 }), [], 'no more dead jobs than were asked for');
      const isLast = bench.handled
        .filter(({ job: { id } }) => id === job.id)
        .map(({ attempt }) => attempt.isLast);
      expectEqual(isLast, [false, true], 'which attempt is the last');
    },
  },
  {
    title: 'tries a job once where nothing is said of attempts',
    async run(bench) {
      const engine = await bench.open();
      const all = new Countdown(2);
      await bench.work(engine, async ({ id }) => {
        all.tell();
        if (id === 'fails') throw new Error('It fails');
      });
      await engine.enqueue(bench.job({ id: 'fails' }));
      await engine.enqueue(bench.job({ id: 'other' }));
      await bench.within(all.done, 'jobs are run');
      expectEqual(
        bench.handled.map(({ job }) => job.id),
        ['fails', 'other'],
        'attempts',
      );
    },
  },
  {
    title: 'gives a job to a worker again whose handler gave it back, and uses up none of its attempts',
    async run(bench) {
      const [engine, other] = [await bench.open(), await bench.open()];
      const all = new Countdown(3);
      const handle: JobHandler = async (_job, { attempt, giveBack }) => {
        all.tell();
        if (attempt === 3) return;
        await giveBack();
        if (attempt === 1) throw new Error('how it ends counts for nothing');
      };
      const workers = [await bench.work(engine, handle), await bench.work(other, handle)];
      await engine.enqueue(bench.job());
      await bench.within(all.done, 'a job that was given back is given to a worker again');
      await Promise.all(workers.map((worker) => worker.close()));
      const attempts = bench.handled.map(({ attempt }) => [attempt.attempt, attempt.isLast]);
      expectEqual(
        attempts,
        [1, 2, 3].map((attempt) => [attempt, true]),
        'attempts',
      );
      expectEqual(await engine.deadJobs(), [], 'dead jobs');
    },
  },
  {
    title: 'returns a job with a `delay` no earlier than that, runs others meanwhile, and uses up no attempt',
    async run(bench) {
      const engine = await bench.open();
      const [all, many] = [new Countdown(4), 12];
      await bench.work(engine, async ({ id }, { attempt, giveBack }) => {
        all.tell();
        if (id === 'returned' && attempt === 1) await giveBack({ delay: 700 });
      });
      await engine.enqueue(bench.job({ id: 'returned' }));
      await engine.enqueue(bench.job({ id: 'other' }));
      await engine.enqueue(bench.job({ id: 'another' }));
      await bench.within(all.done, 'all jobs are run');
      const [first, , , last] = bench.handled;
      const order = ['returned', 'other', 'another', 'returned'];
      expectEqual(
        bench.handled.map(({ job }) => job.id),
        order,
        'the order of jobs',
      );
      expectEqual(
        [last?.attempt.attempt, last?.attempt.isLast],
        [2, true],
        'the attempt after it was returned',
      );
      const waited = (last?.at ?? 0) - (first?.at ?? 0);
      expectThat(waited > 690, `a delay of 700 ms was ${waited} ms`);
      const often = new Countdown(many);
      const handle: JobHandler = async (_job, { attempt, giveBack }) => {
        if (attempt < many) await giveBack({ delay: 1 });
        often.tell();
      };
      await bench.work(engine, handle, { queue: 'returned' });
      await engine.enqueue(bench.job(), { queue: 'returned' });
      await bench.within(often.done, 'a job that was returned often is run again');
      expectEqual(await engine.deadJobs(), [], 'dead jobs');
    },
  },
  {
    title: 'tries a dead job again that is revived, as often as a new one, and revives no other',
    async run(bench) {
      const [engine, other] = [await bench.open(), await bench.open()];
      const [all, again, fine] = [new Countdown(3), new Countdown(2), new Countdown(1)];
      let isRevived = false;
      const handle: JobHandler = async ({ id }) => {
        (isRevived ? again : all).tell();
        if (id === 'fine') return fine.tell();
        throw new Error(`the mail of ${id} is lost`);
      };
      const worker = await bench.work(engine, handle);
      const job = bench.job({ id: 'dead:1' });
      const [options, ended, waiting] = [{ attempts: 2 }, bench.job({ id: 'fine' }), bench.job()];
      await engine.enqueue(job, options);
      await engine.enqueue(ended);
      await bench.within(all.done, 'jobs are run');
      await worker.close();
      await engine.enqueue(waiting, { delay: 3_600_000 });
      for (const left of [ended, waiting, bench.job()])
        expectEqual(await other.revive(left), false, 'a job that is not dead is revived');
      const ids = [ended.id, waiting.id, job.id];
      const dead = await other.deadJobs({ jobIds: ids });
      expectEqual(
        dead.map(({ job: { id } }) => id),
        [job.id],
        'which of the ids are dead',
      );
      expectEqual(await other.deadJobs({ jobIds: [ended.id] }), [], 'whether a job is dead that is not');
      isRevived = true;
      const revived = { ...job, revivals: 1 };
      expectEqual(await other.revive(revived, options), true, 'a dead job is revived');
      expectEqual(await other.revive(job, options), false, 'a job is revived twice');
      expectEqual(await engine.deadJobs(), [], 'dead jobs after the last was revived');
      const reviver = await bench.work(other, handle);
      await bench.within(again.done, 'a job that was revived is tried as often as a new one');
      await reviver.close();
      const [lost] = await engine.deadJobs();
      expectEqual(lost?.job, revived, 'the job that is dead again, as it was revived');
      expectEqual((await engine.deadJobs()).length, 1, 'dead jobs');
    },
  },
];
