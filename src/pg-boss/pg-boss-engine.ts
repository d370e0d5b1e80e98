import { setTimeout as pause } from 'node:timers/promises';
import { PgBoss } from 'pg-boss';
import { SafeLog } from '../call/log.js';
import type {
  DeadJob,
  DeadJobQuery,
  EngineCloseOptions,
  Job,
  JobEngine,
  JobNews,
  JobNewsListener,
  JobOptions,
  JobWorker,
  SqlTransaction,
  WorkOptions,
} from '../contract/job-engine.js';
import type { Logger } from '../contract/ports.js';
import { checkOptions } from '../errors/author-fault.js';
import { EngineTrouble } from '../jobs/engine-trouble.js';
import { RunningJobs } from '../jobs/running-jobs.js';
import { closeWithin } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import {
  BOOLEAN,
  LOGGER,
  type OptionRule,
  optionTable,
  required,
  secret,
  withMethods,
} from '../kernel/options.js';
import { OwnConnections } from '../kernel/own-connections.js';
import { placeIn, serverAddress } from '../kernel/server-address.js';
import { BossNews } from './boss-news.js';
import { BossQueue } from './boss-queue.js';
import { BossWorker } from './boss-worker.js';

/** Options of {@link pgBossEngine}. */
export interface PgBossEngineOptions {
  /**
   * Where the database is: `'postgres://…'`, and the engine then has a pg-boss of its own; or a `PgBoss` that the
   * application has, started or not, and stops itself.
   */
  readonly connection: string | PgBoss;
  /** Of the pg-boss that the engine makes; default `pgboss`. */
  readonly schema?: string;
  /**
   * Name of the queue; default `toolwright`. Jobs of tools with `background: { queue: 'mail' }` wait in `<queue>/mail`;
   * `<queue>_dead` keeps the dead jobs of all these queues.
   */
  readonly queue?: string;
  /** Seconds after which a worker that died has lost its jobs; at least 10, default 30. */
  readonly heartbeatSeconds?: number;
  /**
   * The store is in the same database: what a job's end writes there commits in one transaction with the end of the
   * job in the queue. A store elsewhere is refused (521). Default `false`.
   */
  readonly transactional?: boolean;
  /** Hears of lost connections and jobs. */
  readonly logger?: Logger;
}

const HEARTBEAT: OptionRule = {
  accepts: (value) => Number.isInteger(value) && Number(value) >= 10,
  fix: 'a whole number of seconds, 10 or more',
};

const QUEUE_NAME: OptionRule = {
  accepts: (value) => typeof value === 'string' && /^[\w.-]+$/.test(value),
  fix: "a name of letters, digits, '_', '-' and '.': 'toolwright'",
};

const SCHEMA_NAME: OptionRule = {
  accepts: (value) => typeof value === 'string' && /^[a-z_]\w{0,49}$/i.test(value),
  fix: "a name of letters, digits and '_', at most 50: 'pgboss'",
};

const PG_BOSS = withMethods(['start', 'send', 'fetch', 'complete', 'fail', 'getDb'], 'a PgBoss');

const ADDRESS = serverAddress('postgres', "'postgres://shop@127.0.0.1/shop', or new PgBoss({ … })");

const OPTIONS = optionTable<PgBossEngineOptions>('pgBossEngine', {
  connection: required(
    secret({ ...ADDRESS, accepts: (value) => ADDRESS.accepts(value) || PG_BOSS.accepts(value) }),
  ),
  schema: SCHEMA_NAME,
  queue: QUEUE_NAME,
  heartbeatSeconds: HEARTBEAT,
  transactional: BOOLEAN,
  logger: LOGGER,
});

/**
 * Runs started work on pg-boss 12, in PostgreSQL. Jobs are fetched, kept alive and ended in batches, so that no
 * transaction stays open while a tool works; workers that die lose their jobs to others once `heartbeatSeconds` have
 * gone by and pg-boss has looked (`superviseIntervalSeconds`). Pauses of `backoff` are whole seconds.
 *
 * @throws InvalidOptionsError (521). What the database refuses, the first method that needs it rejects with.
 *
 * @example
 * ```ts
 * const engine = pgBossEngine({ connection: 'postgres://shop@127.0.0.1/shop', transactional: true });
 * const dead = await engine.deadJobs();
 * ```
 */
export function pgBossEngine(options: PgBossEngineOptions): JobEngine {
  checkOptions(options, OPTIONS);
  return new PgBossEngine(options);
}

/** Dead workers are looked for as often as that, in seconds. */
const SUPERVISE_SECONDS = 5;

/** How long a database may say nothing at the end, twice, until its connections are cut. */
const SILENT_MS = 2_000;

/** How a pg-boss of the engine's own is made. */
interface OwnBoss extends Pick<OwnConnections, 'stream'> {
  readonly onError: (error: unknown) => void;
}

function bossOf(options: PgBossEngineOptions, { stream, onError }: OwnBoss): PgBoss {
  const { connection, schema = 'pgboss' } = options;
  if (typeof connection !== 'string') return connection;
  const timing = { superviseIntervalSeconds: SUPERVISE_SECONDS, monitorIntervalSeconds: SUPERVISE_SECONDS };
  // pg-boss hands on to `pg` what it does not know itself.
  const own: object = { stream };
  const boss = new PgBoss({ ...own, connectionString: connection, schema, ...timing });
  boss.on('error', onError);
  return boss;
}

class PgBossEngine implements JobEngine {
  readonly #queue: BossQueue;
  readonly #news: BossNews;
  readonly #options: PgBossEngineOptions;
  readonly #workers = new Set<BossWorker>();
  readonly #running = new RunningJobs();
  readonly #connections = new OwnConnections();
  readonly #trouble: EngineTrouble;
  readonly commitsIn: JobEngine['commitsIn'];
  #hearsWords: Promise<unknown> | undefined;

  constructor(options: PgBossEngineOptions) {
    const { connection, queue = 'toolwright', heartbeatSeconds = 30, schema = 'pgboss' } = options;
    this.#options = options;
    const { stream } = this.#connections;
    const placed = typeof connection === 'string' ? ` at ${placeIn(connection)}` : '';
    const boss = bossOf(options, { stream, onError: this.#onError });
    this.#queue = new BossQueue(boss, { name: queue, heartbeatSeconds });
    this.#trouble = new EngineTrouble({
      name: `pg-boss, queue '${queue}' in PostgreSQL${placed}`,
      ask: async () => {
        await this.#queue.ready();
        await this.#queue.database.executeSql('SELECT 1');
      },
    });
    this.#news = new BossNews(this.#queue, { name: `${schema} ${queue}`, onError: this.#onError });
    this.commitsIn = options.transactional ? { query: this.#ask } : undefined;
  }

  async enqueue(job: Job, options: JobOptions = {}): Promise<void> {
    if (await this.#queue.send(job, options)) this.#wake(options);
  }

  async work({ concurrency = 1, queue: named, handle, logger }: WorkOptions): Promise<JobWorker> {
    const name = await this.#queue.nameOf(named);
    this.#hearsWords ??= this.#news.subscribe((word) => {
      if (word.type === 'cancel') this.#running.cancel(word.jobId, word.reason);
      if (word.type === 'wake') for (const worker of this.#workers) worker.wake();
    });
    try {
      await this.#hearsWords;
    } catch (error) {
      // The next worker may have a database that answers.
      this.#hearsWords = undefined;
      throw error;
    }
    const { transactional = false } = this.#options;
    const [queue, running, onError] = [this.#queue, this.#running, this.#onError];
    const worker = new BossWorker({ queue, name, running, concurrency, handle, transactional, onError });
    this.#workers.add(worker);
    const tellNoMore = this.#trouble.tell(logger);
    const leave = () => {
      tellNoMore();
      this.#workers.delete(worker);
    };
    return { close: () => worker.close().then(leave) };
  }

  async cancel(jobId: string, reason?: string): Promise<boolean> {
    if (!(await this.#queue.cancel(jobId))) return false;
    await this.#news.publish({ type: 'cancel', jobId, ...(reason === undefined ? {} : { reason }) });
    return true;
  }

  async publish(news: JobNews): Promise<void> {
    await this.#news.publish(news);
  }

  subscribe(listener: JobNewsListener): Promise<() => Promise<void>> {
    return this.#news.subscribe((word) => {
      if (word.type === 'progress' || word.type === 'end') listener(word);
    });
  }

  deadJobs(query: DeadJobQuery = {}): Promise<readonly DeadJob[]> {
    return this.#queue.dead(query);
  }

  async revive(job: Job, options: JobOptions = {}): Promise<boolean> {
    if (!(await this.#queue.revive(job, options))) return false;
    this.#wake(options);
    return true;
  }

  async close({ timeoutMs }: EngineCloseOptions = {}): Promise<void> {
    this.#trouble.close();
    const closed = new AbortController();
    const closing = this.#closeInOrder().finally(() => closed.abort());
    const closingOrCut = Promise.race([closing, this.#cutWhenSilent(closed)]);
    await closeWithin(closingOrCut, { timeoutMs }, () => {
      closed.abort();
      this.#connections.cut();
    });
  }

  async #closeInOrder(): Promise<void> {
    await Promise.all(Array.from(this.#workers, (worker) => worker.close()));
    await this.#news.close();
    if (typeof this.#options.connection === 'string') await this.#queue.stop();
  }

  /** What cannot be told a database that says nothing is found by others when heartbeats have ended. */
  async #cutWhenSilent({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    for (let silences = 0; silences < 2; ) {
      const isSilent = !(await this.#queue.answers(SILENT_MS));
      if (signal.aborted) return;
      silences = isSilent ? silences + 1 : 0;
      if (!isSilent) await pause(SILENT_MS, undefined, { signal }).catch(() => {});
    }
    this.#connections.cut();
    await pause(SILENT_MS, undefined, { signal }).catch(() => {});
  }

  #wake({ delay }: JobOptions): void {
    for (const worker of this.#workers) worker.wake();
    // A worker elsewhere that does not hear of it looks again within a second.
    if (!delay) this.#news.wake();
  }

  readonly #ask: SqlTransaction['query'] = async (text, values = []) => {
    await this.#queue.ready();
    return this.#queue.database.executeSql(text, [...values]);
  };

  readonly #onError = (error: unknown): void => {
    const { logger } = this.#options;
    if (logger === undefined) this.#trouble.occurred(error);
    else new SafeLog(logger).warn(`${this.#trouble.name}: ${errorMessage(error)}`, { error });
  };
}
