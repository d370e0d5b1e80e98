import { setTimeout as pause } from 'node:timers/promises';
import type {
  Job,
  JobAttempt,
  JobEngine,
  JobHandler,
  JobWorker,
  WorkOptions,
} from '../../../core/contract/job-engine.js';
import { checkOptions } from '../../../core/errors/author-fault.js';
import { errorMessage } from '../../../core/kernel/error-message.js';
import { FUNCTION, MILLISECONDS, optionTable, required } from '../../../core/kernel/options.js';
import { expectSame, expectThat } from '../conformance/expectations.js';

/** A worker in a separate process. */
export interface WorkerProcess {
  /** Kills it as SIGKILL does; resolves when it has ended. */
  kill(): Promise<void>;
}

/** The engine under test. */
export interface JobEngineBackend {
  /**
   * Connects to a queue, which is empty when its name is first used. Two calls with the same name are two connections,
   * as from two processes; an engine within one process returns the same object.
   */
  open(queue: string): JobEngine | Promise<JobEngine>;
  /**
   * Starts a process that calls `holdJobs` with a connection to the queue. Without it, the cases about crashed workers
   * are omitted.
   */
  startWorker?(queue: string): Promise<WorkerProcess>;
  /** Milliseconds that a case waits for an expected event; default 60,000. */
  readonly patienceMs?: number;
}

/** Cases before they are bound to an engine, by title. */
type EngineCases = Readonly<Record<string, (bench: EngineBench) => Promise<void>>>;

/** A job that a handler received, and when. */
interface Handled {
  readonly job: Job;
  readonly attempt: JobAttempt;
  readonly at: number;
}

const PATIENCE_MS = 60_000;
const POLL_MS = 5;

/** The environment of a case: its own queue, and connections to it. */
class EngineBench {
  readonly backend: JobEngineBackend;
  readonly queue = `conformance-${crypto.randomUUID()}`;
  /** Everything that handlers of {@link work} received. */
  readonly handled: Handled[] = [];
  readonly #engines = new Set<JobEngine>();
  #ids = 0;

  constructor(backend: JobEngineBackend) {
    this.backend = backend;
  }

  /** Opens another connection to the case's queue. */
  async open(): Promise<JobEngine> {
    const engine = await this.backend.open(this.queue);
    this.#engines.add(engine);
    return engine;
  }

  async openTwo(): Promise<readonly [JobEngine, JobEngine]> {
    return [await this.open(), await this.open()];
  }

  async openThree(): Promise<readonly [JobEngine, JobEngine, JobEngine]> {
    return [...(await this.openTwo()), await this.open()];
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

  /** Starts a worker that records each job before it is handled. */
  async work(
    engine: JobEngine,
    handle: JobHandler = async () => {},
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

  /** Waits until handlers of {@link work} have received this many jobs in all. */
  async received(count: number, what: string): Promise<void> {
    await this.until(() => this.handled.length >= count, what);
  }

  /** Waits for a condition, at most as long as the backend allows. */
  async until(isMet: () => boolean, what: string): Promise<void> {
    const { patienceMs = PATIENCE_MS } = this.backend;
    for (const since = performance.now(); !isMet(); await pause(POLL_MS))
      expectThat(performance.now() - since <= patienceMs, `expected within ${patienceMs} ms: ${what}`);
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#engines, (engine) => engine.close()));
  }
}

function idsOf({ handled }: EngineBench): string[] {
  return handled.map(({ job }) => job.id);
}

/** The number of each attempt, and whether it is the last. */
function attemptsOf({ handled }: EngineBench): readonly unknown[] {
  return handled.map(({ attempt }) => [attempt.attempt, attempt.isLast]);
}

/** Cases about failing jobs. */
const ATTEMPT_CASES: EngineCases = {
  'retries a failed job after the pause of `backoff`, and counts its attempts': async (bench) => {
    const engine = await bench.open();
    await bench.work(engine, async (_job, { attempt }) => {
      if (attempt < 3) throw new Error(`attempt ${attempt}`);
    });
    await engine.enqueue(bench.job(), { attempts: 4, backoff: { type: 'fixed', delay: 600 } });
    await bench.received(3, 'a failed job is retried');
    expectSame(
      'attempts',
      attemptsOf(bench),
      [1, 2, 3].map((attempt) => [attempt, false]),
    );
    const pauses = bench.handled.slice(1).map(({ at }, index) => at - (bench.handled[index]?.at ?? 0));
    expectThat(
      pauses.every((ms) => ms > 590),
      `pauses of 600 ms were ${pauses.join(' and ')} ms`,
    );
  },
  'stores a job without further attempts as dead, lists it with its error, and does not retry it': async (
    bench,
  ) => {
    const [engine, other] = await bench.openTwo();
    const worker = await bench.work(engine, async ({ id }, { isLast }) => {
      if (id === 'fine') return;
      if (!isLast) throw undefined;
      throw new Error(`the mail of ${id} is lost \u0000 \ud800`);
    });
    const job = bench.job({ id: 'dead:1' });
    await engine.enqueue(job, { attempts: 2 });
    await engine.enqueue(bench.job({ id: 'fine' }));
    await bench.received(3, 'jobs are run');
    await worker.close();
    const dead = await other.deadJobs();
    expectSame('dead jobs', dead.length, 1);
    expectSame('the dead job', dead[0]?.job, job);
    expectSame('its attempts', dead[0]?.attempts, 2);
    expectThat(
      dead[0]?.error.includes('the mail of dead:1 is lost') ?? false,
      `its error is ${dead[0]?.error}`,
    );
    expectSame('dead jobs up to the limit', await other.deadJobs({ limit: 0 }), []);
    const isLast = bench.handled
      .filter(({ job: { id } }) => id === job.id)
      .map(({ attempt }) => attempt.isLast);
    expectSame('isLast of the attempts', isLast, [false, true]);
  },
  'runs a job once if `attempts` is not set': async (bench) => {
    const engine = await bench.open();
    await bench.work(engine, async ({ id }) => {
      if (id === 'fails') throw new Error('It fails');
    });
    await engine.enqueue(bench.job({ id: 'fails' }));
    await engine.enqueue(bench.job({ id: 'other' }));
    await bench.received(2, 'jobs are run');
    expectSame('attempts', idsOf(bench), ['fails', 'other']);
  },
  'runs a job again if its handler returned it, without using an attempt': async (bench) => {
    const [engine, other] = await bench.openTwo();
    const handle: JobHandler = async (_job, { attempt, giveBack }) => {
      if (attempt === 3) return;
      await giveBack();
      if (attempt === 1) throw new Error('its outcome is ignored');
    };
    const workers = [await bench.work(engine, handle), await bench.work(other, handle)];
    await engine.enqueue(bench.job());
    await bench.received(3, 'a returned job is run again');
    await Promise.all(workers.map((worker) => worker.close()));
    expectSame(
      'attempts',
      attemptsOf(bench),
      [1, 2, 3].map((attempt) => [attempt, true]),
    );
    expectSame('dead jobs', await engine.deadJobs(), []);
  },
  'runs a job that was returned with a `delay` after the delay, runs other jobs meanwhile, and uses no attempt':
    async (bench) => {
      const engine = await bench.open();
      const many = 12;
      await bench.work(engine, async ({ id }, { attempt, giveBack }) => {
        if (id === 'returned' && attempt === 1) await giveBack({ delay: 700 });
      });
      await engine.enqueue(bench.job({ id: 'returned' }));
      await engine.enqueue(bench.job({ id: 'other' }));
      await engine.enqueue(bench.job({ id: 'another' }));
      await bench.received(4, 'all jobs are run');
      const [first, , , last] = bench.handled;
      const order = ['returned', 'other', 'another', 'returned'];
      expectSame('the order of jobs', idsOf(bench), order);
      expectSame('the attempt after the return', [last?.attempt.attempt, last?.attempt.isLast], [2, true]);
      const waited = (last?.at ?? 0) - (first?.at ?? 0);
      expectThat(waited > 690, `a delay of 700 ms was ${waited} ms`);
      let often = 0;
      const handle: JobHandler = async (_job, { attempt, giveBack }) => {
        if (attempt < many) await giveBack({ delay: 1 });
        often += 1;
      };
      await bench.work(engine, handle, { queue: 'returned' });
      await engine.enqueue(bench.job(), { queue: 'returned' });
      await bench.until(() => often === many, 'a job that was returned many times is run again');
      expectSame('dead jobs', await engine.deadJobs(), []);
    },
  'runs a revived dead job with as many attempts as a new job, and revives only dead jobs': async (bench) => {
    const [engine, other] = await bench.openTwo();
    const handle: JobHandler = async ({ id }) => {
      if (id !== 'fine') throw new Error(`the mail of ${id} is lost`);
    };
    const worker = await bench.work(engine, handle);
    const job = bench.job({ id: 'dead:1' });
    const [options, ended, waiting] = [{ attempts: 2 }, bench.job({ id: 'fine' }), bench.job()];
    await engine.enqueue(job, options);
    await engine.enqueue(ended);
    await bench.received(3, 'jobs are run');
    await worker.close();
    await engine.enqueue(waiting, { delay: 3_600_000 });
    for (const left of [ended, waiting, bench.job()])
      expectSame('revive of a job that is not dead', await other.revive(left), false);
    const ids = [ended.id, waiting.id, job.id];
    const dead = await other.deadJobs({ jobIds: ids });
    expectSame(
      'the dead jobs of the ids',
      dead.map(({ job: { id } }) => id),
      [job.id],
    );
    expectSame('deadJobs with the id of another job', await other.deadJobs({ jobIds: [ended.id] }), []);
    const revived = { ...job, revivals: 1 };
    expectSame('revive of a dead job', await other.revive(revived, options), true);
    expectSame('a second revive', await other.revive(job, options), false);
    expectSame('dead jobs after the revive', await engine.deadJobs(), []);
    const reviver = await bench.work(other, handle);
    await bench.received(5, 'a revived job has as many attempts as a new job');
    await reviver.close();
    const [lost] = await engine.deadJobs();
    expectSame('the revived job, dead again', lost?.job, revived);
    expectSame('dead jobs', (await engine.deadJobs()).length, 1);
  },
};

const BACKEND = optionTable<JobEngineBackend>('jobEngineConformance', {
  open: required(FUNCTION),
  startWorker: FUNCTION,
  patienceMs: MILLISECONDS,
});

/** A case for any test runner. */
export interface JobEngineCase {
  readonly title: string;
  /** Resolves if the engine fulfils the contract; otherwise rejects with the difference. */
  run(): Promise<void>;
}

/**
 * The contract of `JobEngine` as cases for any test runner.
 *
 * @example
 * ```ts
 * const connection = { host: '127.0.0.1', port: 6379 };
 * const cases = jobEngineConformance({ open: (queue) => bullmqEngine({ connection, queue }) });
 * for (const { run } of cases) await run();
 * ```
 */
export function jobEngineConformance(backend: JobEngineBackend): readonly JobEngineCase[] {
  checkOptions(backend, BACKEND);
  const cases = {
    ...DELIVERY_CASES,
    ...(backend.startWorker && PROCESS_CASES),
    ...{ ...QUEUE_CASES, ...ATTEMPT_CASES, ...CANCEL_CASES },
  };
  return Object.entries(cases).map(([title, run]) => ({
    title,
    run: async () => {
      const bench = new EngineBench(backend);
      try {
        await run(bench);
      } finally {
        await bench.close();
      }
    },
  }));
}

/**
 * The work of a worker process of {@link JobEngineBackend}: takes jobs, reports that it has them, and never ends them.
 *
 * @example
 * ```ts
 * const connection = { host: '127.0.0.1', port: 6379 };
 * await holdJobs(bullmqEngine({ connection, queue: process.argv[2] ?? '' }));
 * process.send?.('ready');
 * ```
 */
export async function holdJobs(engine: JobEngine): Promise<void> {
  await engine.work({
    concurrency: 5,
    handle: async ({ id }) => {
      await engine.publish({ type: 'progress', jobId: id, update: 'held' });
      await new Promise(() => {});
    },
  });
}

/** Cases about which jobs run, on which worker, in which order, and when. */
const DELIVERY_CASES: EngineCases = {
  'delivers a job unchanged to a worker on another connection': async (bench) => {
    const [sender, receiver] = await bench.openTwo();
    const job = bench.job({
      runId: 'run:1',
      arguments: { text: 'äö "quoted" 😀 \u0000 \ud800', empty: null },
    });
    await sender.enqueue(job);
    await bench.work(receiver);
    await bench.received(1, 'a waiting job is run');
    expectSame('the job', bench.handled[0]?.job, job);
  },
  'runs a job once if it is enqueued several times with the same id, even after its end': async (bench) => {
    const [sender, other] = await bench.openTwo();
    const job = bench.job();
    const last = bench.job({ id: 'last' });
    await Promise.all([sender.enqueue(job), other.enqueue(job), sender.enqueue(job)]);
    const worker = await bench.work(other);
    await bench.received(1, 'a job is run');
    // `close` resolves after the worker has reported the end of its job.
    await worker.close();
    await bench.work(other);
    await other.enqueue(job);
    await sender.enqueue(last);
    await bench.received(2, 'a job is run');
    expectSame('jobs that were run', idsOf(bench), [job.id, last.id]);
  },
  'accepts any text as an id': async (bench) => {
    const [sender, receiver] = await bench.openTwo();
    const ids = ['7', 'a:b:c', 'äö/%?', 'x'.repeat(200), crypto.randomUUID()];
    for (const id of ids) await sender.enqueue(bench.job({ id }));
    await bench.work(receiver);
    await bench.received(ids.length, 'jobs with any id are run');
    expectSame('ids of the jobs that were run', idsOf(bench).sort(), [...ids].sort());
  },
  'distributes jobs among workers, each job to one worker': async (bench) => {
    const [sender, one, other] = await bench.openThree();
    const jobs = Array.from({ length: 40 }, () => bench.job());
    // On a slow machine, a worker may lose its lease, and the job starts again: ignore later attempts.
    const first = () => bench.handled.filter(({ attempt }) => attempt.attempt === 1);
    for (const engine of [one, other]) await bench.work(engine, undefined, { concurrency: 3 });
    await Promise.all(jobs.map((job) => sender.enqueue(job)));
    await bench.until(() => first().length >= jobs.length, 'all jobs are run');
    expectSame(
      'jobs that were run',
      first()
        .map(({ job }) => job.id)
        .sort(),
      jobs.map(({ id }) => id).sort(),
    );
  },
  'runs up to `concurrency` jobs at the same time': async (bench) => {
    const engine = await bench.open();
    let [running, most, ended] = [0, 0, 0];
    await bench.work(
      engine,
      async () => {
        running += 1;
        most = Math.max(most, running);
        await bench.until(() => most >= 3, 'three jobs run at the same time');
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        ended += 1;
      },
      { concurrency: 3 },
    );
    for (let count = 0; count < 7; count += 1) await engine.enqueue(bench.job());
    await bench.until(() => ended === 7, 'all jobs are run');
    expectSame('jobs at the same time', most, 3);
  },
  'runs jobs with a lower number as `priority` first': async (bench) => {
    const engine = await bench.open();
    const order: readonly [string, number | undefined][] = [
      ['late', 9],
      ['middle', 3],
      ['first', undefined],
      ['soon', 1],
    ];
    for (const [id, priority] of order)
      await engine.enqueue(bench.job({ id }), priority === undefined ? {} : { priority });
    await bench.work(engine);
    await bench.received(4, 'all jobs are run');
    expectSame('the order of jobs', idsOf(bench), ['first', 'soon', 'middle', 'late']);
  },
  'runs a job with a `delay` after the delay, and other jobs before it': async (bench) => {
    const engine = await bench.open();
    await bench.work(engine);
    const since = performance.now();
    await engine.enqueue(bench.job({ id: 'later' }), { delay: 700 });
    await engine.enqueue(bench.job({ id: 'now' }));
    await bench.received(2, 'all jobs are run');
    expectSame('the order of jobs', idsOf(bench), ['now', 'later']);
    const waited = (bench.handled[1]?.at ?? 0) - since;
    // Clocks have a resolution of a millisecond.
    expectThat(waited > 690, `a delay of 700 ms was ${waited} ms`);
  },
  'completes the running jobs of a closed worker, and leaves waiting jobs to other workers': async (
    bench,
  ) => {
    const [sender, one, other] = await bench.openThree();
    const gate = Promise.withResolvers<void>();
    let hasEnded = false;
    const worker = await bench.work(one, async () => {
      await gate.promise;
      hasEnded = true;
    });
    await sender.enqueue(bench.job());
    await bench.received(1, 'a job is run');
    const closed = worker.close().then(() => hasEnded);
    const left: Job = bench.job({ id: 'left' });
    await sender.enqueue(left);
    gate.resolve();
    expectThat(await closed, 'close of the worker resolved before the end of its job');
    await bench.work(other);
    await bench.received(2, 'the waiting job is run by another worker');
    expectSame('the waiting job', bench.handled.at(-1)?.job, left);
  },
  'delivers messages to other connections, complete and in order, until they unsubscribe': async (bench) => {
    const [sender, listener] = await bench.openTwo();
    const received: unknown[] = [];
    const endBroken = await listener.subscribe(() => {
      throw new Error('a listener that throws');
    });
    const end = await listener.subscribe((news) => {
      received.push(news);
    });
    const updates = [{ percent: 10 }, 'ä'.repeat(20_000), null];
    for (const update of updates) await sender.publish({ type: 'progress', jobId: 'a:b', update });
    await bench.until(() => received.length === 3, 'the messages arrive');
    const expected = updates.map((update) => ({ type: 'progress', jobId: 'a:b', update }));
    expectSame('the received messages', received, expected);
    await end();
    await endBroken();
    let isHeard = false;
    await listener.subscribe(() => {
      isHeard = true;
    });
    await sender.publish({ type: 'end', jobId: 'a:b' });
    await bench.until(() => isHeard, 'the messages arrive');
    expectSame('the number of messages after unsubscribing', received.length, 3);
  },
};

/** Cases about crashed workers. */
const PROCESS_CASES: EngineCases = {
  'gives the job of a killed worker to another worker': async (bench) => {
    const engine = await bench.open();
    let isHeld = false;
    await engine.subscribe((news) => {
      isHeld ||= news.type === 'progress' && news.update === 'held';
    });
    const process = await bench.backend.startWorker?.(bench.queue);
    const job = bench.job();
    await engine.enqueue(job);
    await bench.until(() => isHeld, 'the process takes the job');
    await process?.kill();
    await bench.work(engine);
    await bench.received(1, 'the job is given to another worker');
    expectSame('jobs that were run', idsOf(bench), [job.id]);
    expectSame('the number of the attempt', bench.handled[0]?.attempt.attempt, 2);
    expectSame('dead jobs', await engine.deadJobs(), []);
  },
};

/** Cases about separate queues. */
const QUEUE_CASES: EngineCases = {
  'gives jobs of a `queue` only to workers of that queue': async (bench) => {
    const [sender, plain, mail] = await bench.openThree();
    const ids = ['plain-1', 'mail-1', 'plain-2', 'mail-2'];
    const taken: string[] = [];
    const noting = (queue: string) => async (job: Job) => {
      taken.push(`${job.id} in ${queue}`);
    };
    for (const id of ids)
      await sender.enqueue(bench.job({ id }), id.startsWith('mail') ? { queue: 'mail' } : {});
    await bench.work(plain, noting('plain'));
    await bench.work(mail, noting('mail'), { queue: 'mail' });
    await bench.received(ids.length, 'all jobs are run');
    expectSame(
      'the jobs and the workers that ran them',
      taken.sort(),
      ids.map((id) => `${id} in ${id.split('-')[0]}`).sort(),
    );
  },
  'cancels, lists and revives jobs of a `queue` on connections that never used the queue, and closes its workers':
    async (bench) => {
      const [sender, worker, other] = await bench.openThree();
      const [waiting, dead, running] = [bench.job(), bench.job(), bench.job()];
      const options = { queue: 'mail' };
      await sender.enqueue(waiting, { ...options, delay: 3_600_000 });
      expectSame('cancel of a waiting job in a queue', await other.cancel(waiting.id), true);
      const handle: JobHandler = async ({ id }, { signal }) => {
        if (id === dead.id) throw new Error('no paper');
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        throw signal.reason;
      };
      await bench.work(worker, handle, options);
      await sender.enqueue(running, options);
      await bench.received(1, 'a job is run');
      expectSame('cancel of a running job', await other.cancel(running.id), true);
      await sender.enqueue(dead, options);
      await bench.received(2, 'a job is run after a cancelled job');
      await worker.close();
      for (const query of [{}, { jobIds: [waiting.id, dead.id, running.id] }])
        expectSame(
          `dead jobs (${JSON.stringify(query)})`,
          (await other.deadJobs(query)).map(({ job }) => job.id),
          [dead.id],
        );
      expectSame('revive of a dead job', await other.revive(dead, options), true);
      expectSame('dead jobs after the revive', await sender.deadJobs(), []);
      await bench.work(other, undefined, options);
      await bench.received(3, 'the revived job is run');
      expectSame('the run job', bench.handled.at(-1)?.job.id, dead.id);
    },
};

/** Cases about cancelled jobs in every state. */
const CANCEL_CASES: EngineCases = {
  'removes a waiting job that is cancelled on another connection': async (bench) => {
    const [sender, other] = await bench.openTwo();
    const [waiting, delayed] = [bench.job(), bench.job()];
    await sender.enqueue(waiting);
    await sender.enqueue(delayed, { delay: 300 });
    expectSame('cancel of a waiting job', await other.cancel(waiting.id), true);
    expectSame('cancel of a delayed job', await other.cancel(delayed.id, 'no more'), true);
    expectSame('a second cancel of a job', await sender.cancel(waiting.id), false);
    await bench.work(sender);
    // Later than the cancelled job would have run.
    await other.enqueue(bench.job({ id: 'last' }), { delay: 600 });
    await bench.received(1, 'a job is run');
    expectSame('jobs that were run', idsOf(bench), ['last']);
    expectSame('dead jobs', await sender.deadJobs(), []);
  },
  'aborts the signal of a running job that is cancelled on another connection, and does not retry it': async (
    bench,
  ) => {
    const [worker, other] = await bench.openTwo();
    let reason: unknown;
    await bench.work(worker, async ({ id }, { signal }) => {
      if (id === 'next') return;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      reason = signal.reason;
      throw reason;
    });
    const job = bench.job();
    await other.enqueue(job, { attempts: 3 });
    await bench.received(1, 'a job is run');
    expectSame('cancel of a running job', await other.cancel(job.id, 'the shop is closed'), true);
    await bench.until(() => reason !== undefined, 'the signal is aborted');
    expectSame('the reason of the signal', errorMessage(reason), 'the shop is closed');
    await other.enqueue(bench.job({ id: 'next' }));
    await bench.received(2, 'the next job is run');
    expectSame('jobs that were run', idsOf(bench), [job.id, 'next']);
    expectSame('dead jobs', await other.deadJobs(), []);
    expectSame('cancel of an ended job', await other.cancel(job.id), false);
  },
  'returns false for the cancel of an unknown job': async (bench) => {
    const engine = await bench.open();
    expectSame('cancel of an unknown job', await engine.cancel('nobody'), false);
  },
};
