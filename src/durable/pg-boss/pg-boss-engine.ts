import { setTimeout as pause } from 'node:timers/promises';
import { type Db, PgBoss } from 'pg-boss';
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
  SqlTransaction,
  WorkOptions,
} from '../../core/contract/job-engine.js';
import type { Logger } from '../../core/contract/ports.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { callListener, closeWithin } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';
import {
  BOOLEAN,
  LOGGER,
  type OptionRule,
  optionTable,
  required,
  secret,
  withMethods,
} from '../../core/kernel/options.js';
import { OwnConnections } from '../../core/kernel/own-connections.js';
import { placeIn, serverAddress } from '../../core/kernel/server-address.js';
import { EngineTrouble } from '../../run/jobs/engine-trouble.js';
import { LOST_DELAY_MS, type RunEnd, RunningJobs } from '../../run/jobs/running-jobs.js';
import { BossQueue, type ReturnedJob, type TakenJob } from './boss-queue.js';

/** What travels between the engines of a queue. */
type BossWord =
  | JobNews
  | { readonly type: 'cancel'; readonly jobId: string; readonly reason?: string }
  | { readonly type: 'wake' };

type ListenHandle = Awaited<ReturnType<NonNullable<Db['listen']>>>;
type Listener = (word: BossWord) => void;

/** PostgreSQL takes less than 8,000 bytes. */
const PART_LENGTH = 7800;

/** Tells all engines of a queue, by NOTIFY; words that are too long for that go in parts. */
class BossNews {
  readonly #queue: BossQueue;
  readonly #channel: string;
  readonly #onError: (error: unknown) => void;
  readonly #listeners = new Set<{ readonly receive: Listener }>();
  /** The word that is arriving. */
  #arriving: { readonly id: string; readonly parts: string[] } | undefined;
  #listening: Promise<ListenHandle> | undefined;
  #waking: Promise<void> | undefined;
  #isCalled = false;

  constructor(
    queue: BossQueue,
    place: { readonly name: string; readonly onError: (error: unknown) => void },
  ) {
    this.#queue = queue;
    this.#onError = place.onError;
    const digest = nodeCrypto().createHash('sha256').update(place.name).digest('hex');
    this.#channel = `toolwright_${digest.slice(0, 32)}`;
  }

  async publish(word: BossWord): Promise<void> {
    await this.#queue.ready();
    const id = nodeCrypto().randomUUID();
    const text = asciiJson(word);
    const count = Math.ceil(text.length / PART_LENGTH);
    const parts = Array.from({ length: count }, (_, index) => {
      const part = text.slice(index * PART_LENGTH, (index + 1) * PART_LENGTH);
      return `${id}/${index}/${count}/${part}`;
    });
    // One statement is one transaction, whose notifications arrive together and in order.
    await this.#queue.database.executeSql('SELECT pg_notify($1, part) FROM unnest($2::text[]) AS part', [
      this.#channel,
      parts,
    ]);
  }

  /** Tells workers that there is something to do, once for all that is enqueued in a moment. */
  wake(): void {
    this.#isCalled = true;
    this.#waking ??= this.#wakeAll().finally(() => {
      this.#waking = undefined;
    });
  }

  async #wakeAll(): Promise<void> {
    while (this.#isCalled) {
      this.#isCalled = false;
      await this.publish({ type: 'wake' }).catch(this.#onError);
    }
  }

  async subscribe(receive: Listener): Promise<() => Promise<void>> {
    const subscription = { receive };
    this.#listeners.add(subscription);
    this.#listening ??= this.#listen();
    try {
      await this.#listening;
    } catch (error) {
      this.#listeners.delete(subscription);
      this.#listening = undefined;
      throw error;
    }
    return async () => void this.#listeners.delete(subscription);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    await this.#waking;
    const handle = await this.#listening?.catch(() => undefined);
    await handle?.close();
  }

  async #listen(): Promise<ListenHandle> {
    await this.#queue.ready();
    const { database } = this.#queue;
    if (database.listen === undefined)
      throw new Error('The database of this pg-boss cannot LISTEN; let pg-boss have a pool of its own.');
    return database.listen(
      this.#channel,
      (payload) => this.#receive(payload),
      () => this.#tell({ type: 'wake' }),
    );
  }

  /** Notifications of one transaction come one after the other: what is not whole by then, a lost connection cut. */
  #receive(payload: string): void {
    const [, id = '', index = '0', count = '1', part = ''] =
      /^([^/]*)\/(\d+)\/(\d+)\/(.*)$/s.exec(payload) ?? [];
    const { parts } = this.#arriving?.id === id ? this.#arriving : { parts: [] };
    parts[Number(index)] = part;
    const isWhole = parts.filter((given) => given !== undefined).length === Number(count);
    this.#arriving = isWhole ? undefined : { id, parts };
    if (isWhole) this.#tell(JSON.parse(parts.join('')) as BossWord);
  }

  #tell(word: BossWord): void {
    for (const { receive } of [...this.#listeners]) callListener(() => receive(word), this.#onError);
  }
}

/** As many bytes as characters, and none that a text of PostgreSQL cannot have. */
function asciiJson(word: BossWord): string {
  return JSON.stringify(word).replace(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

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
class BossWorker implements JobWorker {
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
  /** Receives each error of the engine, such as lost connections: once per cause and minute. */
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

/** The database of a pg-boss that the engine has made: pg-boss declares only what all databases have. */
interface OwnDatabase extends Db {
  open(): Promise<void>;
  close(): Promise<void>;
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
      logger: options.logger,
      ask: async () => {
        await this.#queue.ready();
        await this.#queue.database.executeSql('SELECT 1');
      },
    });
    this.#news = new BossNews(this.#queue, { name: `${schema} ${queue}`, onError: this.#onError });
    this.commitsIn = options.transactional ? { query: this.#ask } : undefined;
  }

  get name(): string {
    return this.#trouble.name;
  }

  async check(): Promise<void> {
    const { stream } = this.#connections;
    if (typeof this.#options.connection !== 'string') return;
    // Another pg-boss, which is never started: a start makes tables.
    const database = bossOf(this.#options, { stream, onError: this.#onError }).getDb() as OwnDatabase;
    await database.open();
    try {
      await database.executeSql('SELECT 1');
    } finally {
      await database.close();
    }
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
    const tellNoMore = this.#trouble.logTo(logger);
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

  readonly #onError = (error: unknown): void => this.#trouble.occurred(error);
}
