import { setTimeout as pause } from 'node:timers/promises';
import { type Db, type JobWithMetadata, PgBoss, type SendOptions } from 'pg-boss';
import type {
  DeadJob,
  DeadJobQuery,
  GiveBackOptions,
  Job,
  JobEngine,
  JobHandler,
  JobOptions,
  JobWorker,
  SqlTransaction,
  WorkOptions,
} from '../../core/contract/job-engine.js';
import type { Logger } from '../../core/contract/ports.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { nextTurn, OnFirstUse } from '../../core/kernel/async.js';
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
import {
  BrokerEngine,
  type EngineMessage,
  EngineNews,
  jobOf,
  LOST_DELAY_MS,
  type RunEnd,
  RunningJobs,
  type StorableJob,
  storableFailure,
  storableJob,
} from '../../run/jobs/broker-engine.js';

type ListenHandle = Awaited<ReturnType<NonNullable<Db['listen']>>>;

/** A NOTIFY payload must be shorter than 8,000 bytes. */
const PART_LENGTH = 7800;

/** Sends messages to all engines of a queue with NOTIFY; long messages are split into parts. */
class BossNews extends EngineNews<ListenHandle> {
  readonly #queue: BossQueue;
  readonly #channel: string;
  /** The message whose parts are arriving. */
  #arriving: { readonly id: string; readonly parts: string[] } | undefined;
  #waking: Promise<void> | undefined;
  #isCalled = false;

  constructor(queue: BossQueue, name: string, onError: (error: unknown) => void) {
    super(onError);
    this.#queue = queue;
    this.#channel = `toolwright_${nodeCrypto().hash('sha256', name).slice(0, 32)}`;
  }

  override async publish(message: EngineMessage): Promise<void> {
    await this.#queue.ready();
    const id = crypto.randomUUID();
    // In ASCII: the length is the size in bytes, and there are no characters that PostgreSQL refuses.
    const text = JSON.stringify(message).replace(
      /[^ -~]/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    const count = Math.ceil(text.length / PART_LENGTH);
    const parts = Array.from({ length: count }, (_, index) => {
      const part = text.slice(index * PART_LENGTH, (index + 1) * PART_LENGTH);
      return `${id}/${index}/${count}/${part}`;
    });
    // One statement is one transaction: its notifications arrive together and in order.
    await this.#queue.database.executeSql('SELECT pg_notify($1, part) FROM unnest($2::text[]) AS part', [
      this.#channel,
      parts,
    ]);
  }

  /** Wakes workers, with one message for all jobs that are enqueued at about the same time. */
  wake(): void {
    this.#isCalled = true;
    this.#waking ??= this.#wakeAll().finally(() => {
      this.#waking = undefined;
    });
  }

  async #wakeAll(): Promise<void> {
    while (this.#isCalled) {
      this.#isCalled = false;
      await this.publish({ type: 'wake' }).catch(this.onError);
    }
  }

  async close(): Promise<void> {
    this.listeners.clear();
    await this.#waking;
    const handle = await this.connection.started?.catch(() => undefined);
    await handle?.close();
  }

  protected override async connect(): Promise<ListenHandle> {
    await this.#queue.ready();
    const { database } = this.#queue;
    if (database.listen === undefined)
      throw new Error('The database of this pg-boss cannot LISTEN; give pg-boss its own pool.');
    return database.listen(
      this.#channel,
      (payload) => {
        // Parts of one message arrive without others in between. An incomplete message means a lost connection.
        const [, id = '', index = '0', count = '1', part = ''] =
          /^([^/]*)\/(\d+)\/(\d+)\/(.*)$/s.exec(payload) ?? [];
        const { parts } = this.#arriving?.id === id ? this.#arriving : { parts: [] };
        parts[Number(index)] = part;
        const isWhole = parts.filter((given) => given !== undefined).length === Number(count);
        this.#arriving = isWhole ? undefined : { id, parts };
        if (isWhole) this.deliver(JSON.parse(parts.join('')));
      },
      () => this.deliver({ type: 'wake' }),
    );
  }
}

/** Dependencies of a worker. */
interface BossWork {
  readonly queue: BossQueue;
  /** The name in pg-boss of the only queue that the worker takes jobs from. */
  readonly name: string;
  readonly concurrency: number;
  readonly handle: JobHandler;
  readonly running: RunningJobs;
  readonly transactional: boolean;
  readonly onError: (error: unknown) => void;
}

/** How often a worker polls, for delayed jobs and for jobs whose notification was lost. */
const LOOK_EVERY_MS = 500;
/** The pause after a database error. */
const RECOVER_MS = 1000;

/**
 * Takes jobs from a pg-boss queue as slots become free. pg-boss has workers of its own, but they pause after each
 * batch, and keep a transaction open while tools run.
 */
class BossWorker implements JobWorker {
  readonly #work: BossWork;
  readonly #taken = new Set<TakenJob>();
  readonly #attempts = new Set<Promise<void>>();
  /** Jobs that are being returned to the queue. */
  readonly #leaving = new Set<Promise<void>>();
  readonly #heartbeat: NodeJS.Timeout;
  readonly #ended: Promise<void>;
  #isOpen = true;
  #rouse = new AbortController();
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

  wake(): void {
    this.#rouse.abort();
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
      this.#rouse = new AbortController();
      try {
        const taken = free > 0 ? await queue.take(name, free) : [];
        for (const job of taken) {
          this.#taken.add(job);
          const attempt = this.#attempt(job)
            .catch(onError)
            .finally(() => {
              this.#taken.delete(job);
              this.#attempts.delete(attempt);
              this.wake();
            });
          this.#attempts.add(attempt);
        }
        // If all slots were filled, there may be more jobs: look again without a pause.
        if (free === 0 || taken.length < free) await this.#pause(LOOK_EVERY_MS);
      } catch (error) {
        onError(error);
        await this.#pause(RECOVER_MS);
      }
    }
  }

  /** Ends early if the worker was woken since it last looked. */
  async #pause(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: this.#rouse.signal }).catch(() => {});
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
      else {
        // Do not wait: the slot can take its next job. If this fails, the job comes back when its heartbeat ends.
        const left = returning.catch(this.#work.onError).finally(() => this.#leaving.delete(left));
        this.#leaving.add(left);
      }
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
      const { message } = storableFailure(error);
      return isLast ? queue.bury(taken, message) : queue.retry(taken, message);
    }
    if (hasLeft) return;
    if (end === 'lost') await giveBack({ delay: LOST_DELAY_MS });
    else await this.#completed.add(taken);
  }

  async #touch(): Promise<void> {
    const { queue, name, running } = this.#work;
    const jobs = [...this.#taken];
    if (jobs.length === 0) return;
    try {
      const held = await queue.touch(name, jobs);
      // A job that has ended meanwhile is not held either, so check that it is still taken.
      for (const taken of jobs) if (!held.has(taken.id) && this.#taken.has(taken)) running.lose(taken.job.id);
    } catch (error) {
      this.#work.onError(error);
    }
  }
}

/** Collects the jobs of one turn of the event loop and handles them in one request. */
class Batch<Entry> {
  #open: { readonly entries: Entry[]; readonly done: Promise<void> } | undefined;

  constructor(private readonly work: (entries: readonly Entry[]) => Promise<void>) {}

  add(entry: Entry): Promise<void> {
    if (this.#open === undefined) {
      const entries: Entry[] = [];
      const done = nextTurn().then(() => {
        this.#open = undefined;
        return this.work(entries);
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
   * The database's address (`'postgres://…'`), or a pg-boss. Or a `PgBoss` of the application, started or not, which
   * the application itself stops.
   */
  readonly connection: string | PgBoss;
  /** Schema of the pg-boss that the engine creates; default `pgboss`. */
  readonly schema?: string;
  /**
   * Name of the queue; default `toolwright`. Jobs of tools with `background: { queue: 'mail' }` wait in `<queue>/mail`;
   * `<queue>_dead` stores the dead jobs of all these queues.
   */
  readonly queue?: string;
  /** Seconds until a crashed worker loses its jobs; at least 10, default 30. */
  readonly heartbeatSeconds?: number;
  /**
   * Commits a job's result and its completion in one transaction. The store must be in the same database. A store in
   * another database is refused (521). Default `false`.
   */
  readonly transactional?: boolean;
  /** Receives each error of the engine, once per cause and minute. */
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
 * Runs background jobs on pg-boss 12, in PostgreSQL. Jobs are fetched, kept alive and completed in batches, and no
 * transaction stays open while a tool runs. If a worker crashes, other workers take its jobs after `heartbeatSeconds`,
 * at pg-boss's next check (`superviseIntervalSeconds`). `backoff` is rounded up to whole seconds.
 *
 * @throws InvalidOptionsError (521). Database errors reject the first method that needs the database.
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

/** The database of a pg-boss that the engine created. pg-boss does not declare `open` and `close`. */
interface OwnDatabase extends Db {
  open(): Promise<void>;
  close(): Promise<void>;
}

/** How often pg-boss looks for crashed workers, in seconds. */
const SUPERVISE_SECONDS = 5;

class PgBossEngine extends BrokerEngine implements JobEngine {
  readonly #queue: BossQueue;
  protected override readonly news: BossNews;
  readonly #options: PgBossEngineOptions;
  readonly #connections = new OwnConnections();
  readonly commitsIn: JobEngine['commitsIn'];

  constructor(options: PgBossEngineOptions) {
    const { connection, queue = 'toolwright', heartbeatSeconds = 30, schema = 'pgboss' } = options;
    const placed = typeof connection === 'string' ? ` at ${placeIn(connection)}` : '';
    super(`pg-boss, queue '${queue}' in PostgreSQL${placed}`, options.logger);
    this.#options = options;
    this.#queue = new BossQueue(this.#boss(), queue, heartbeatSeconds);
    this.news = new BossNews(this.#queue, `${schema} ${queue}`, this.onError);
    this.commitsIn = options.transactional ? { query: this.#query } : undefined;
  }

  protected override get isConnected(): boolean {
    return this.#queue.isStarted;
  }

  protected override ask(): Promise<unknown> {
    return this.#query('SELECT 1');
  }

  /** A pg-boss of the application, or a new one. */
  #boss(): PgBoss {
    const { connection, schema = 'pgboss' } = this.#options;
    if (typeof connection !== 'string') return connection;
    const timing = { superviseIntervalSeconds: SUPERVISE_SECONDS, monitorIntervalSeconds: SUPERVISE_SECONDS };
    // pg-boss passes options that it does not use itself to `pg`.
    const own: object = { stream: this.#connections.stream };
    const boss = new PgBoss({ ...own, connectionString: connection, schema, ...timing });
    boss.on('error', this.onError);
    return boss;
  }

  async check(): Promise<void> {
    if (typeof this.#options.connection !== 'string') return;
    // A separate pg-boss that is never started, because starting creates tables.
    const database = this.#boss().getDb() as OwnDatabase;
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

  protected override async open({ concurrency = 1, queue: named, handle }: WorkOptions): Promise<JobWorker> {
    const name = await this.#queue.nameOf(named);
    const { transactional = false } = this.#options;
    const [queue, running, onError] = [this.#queue, this.running, this.onError];
    const worker = new BossWorker({ queue, name, running, concurrency, handle, transactional, onError });
    this.workers.add(worker);
    return { close: () => worker.close().then(() => void this.workers.delete(worker)) };
  }

  async cancel(jobId: string, reason?: string): Promise<boolean> {
    if (!(await this.#queue.cancel(jobId))) return false;
    await this.news.publish({ type: 'cancel', jobId, reason });
    return true;
  }

  deadJobs(query: DeadJobQuery = {}): Promise<readonly DeadJob[]> {
    return this.#queue.dead(query);
  }

  async revive(job: Job, options: JobOptions = {}): Promise<boolean> {
    if (!(await this.#queue.revive(job, options))) return false;
    this.#wake(options);
    return true;
  }

  protected override cut(): undefined {
    this.#connections.cut();
  }

  protected override async closeInOrder(): Promise<void> {
    await this.closeWorkers();
    await this.news.close();
    if (typeof this.#options.connection === 'string') await this.#queue.stop();
  }

  #wake({ delay }: JobOptions): void {
    this.wakeWorkers();
    // A worker in another process that misses the notification polls within a second.
    if (!delay) this.news.wake();
  }

  readonly #query: SqlTransaction['query'] = async (text, values = []) => {
    await this.#queue.ready();
    return this.#queue.database.executeSql(text, [...values]);
  };
}

/** The data that pg-boss stores for a job. */
interface Payload {
  readonly job: StorableJob;
  readonly attempts: number;
  /** Failed attempts. pg-boss itself counts started attempts. */
  readonly failed?: number;
  /** Started attempts before the job was last returned to the queue; pg-boss no longer counts them. */
  readonly begun?: number;
}

/** Data of a dead job; without `error` if pg-boss itself gave the job up. */
interface DeadPayload extends Payload {
  readonly error?: string;
  readonly made?: number;
}

/** A job that this process holds, with the attempt that it is. */
interface TakenJob
  extends Pick<
    JobWithMetadata,
    'id' | 'priority' | 'retryCount' | 'retryLimit' | 'retryDelay' | 'retryBackoff'
  > {
  /** The queue's name in pg-boss. */
  readonly queue: string;
  readonly job: Job;
  readonly attempts: number;
  /** Earlier failed attempts. */
  readonly failed: number;
  /** Earlier started attempts. */
  readonly begun: number;
}

/** A job that its worker returns, and the delay in milliseconds before any worker gets it. */
type ReturnedJob = { readonly taken: TakenJob } & Required<GiveBackOptions>;

/** The result of a pg-boss command; pg-boss does not declare its type. `settled`: the ids of the changed jobs. */
async function outcomeOf(command: Promise<unknown>) {
  return (await command) as { readonly affected: number; readonly settled?: readonly string[] };
}

const DAY = 86_400;
/** pg-boss allows less than a day per attempt, whatever the heartbeat. */
const EXPIRE_SECONDS = DAY - 1;
const KEEP_SECONDS = 30 * DAY;
/** States of a dead job in its own queue. The dead-letter queue has a copy of it. */
const ENDED: ReadonlySet<string> = new Set(['completed', 'failed']);
/** A job counts as dead after more worker crashes than this: the job itself may cause them. */
const MOST_DEATHS = 10;

/** The engine's queue in pg-boss, the queues of tools, and the dead-letter queue that they share. */
class BossQueue {
  readonly #made = new Map<string, OnFirstUse<void>>();
  readonly #ready = new OnFirstUse(async () => {
    await this.boss.start();
    await this.boss.createQueue(this.#deadName, { retentionSeconds: KEEP_SECONDS });
    await this.#make(this.name);
  });
  readonly #deadName: string;

  constructor(
    private readonly boss: PgBoss,
    private readonly name: string,
    /** How long a silent worker holds its jobs. */
    readonly heartbeatSeconds: number,
  ) {
    this.#deadName = `${name}_dead`;
  }

  get database(): Db {
    return this.boss.getDb();
  }

  /** Starts pg-boss and creates the queues, once; after a failure, the next call tries again. */
  ready(): Promise<void> {
    return this.#ready.get();
  }

  async #make(name: string): Promise<void> {
    const { heartbeatSeconds } = this;
    const deadLetter = this.#deadName;
    const limits = { retentionSeconds: KEEP_SECONDS, expireInSeconds: EXPIRE_SECONDS };
    const options = { ...limits, heartbeatSeconds, deadLetter };
    await this.boss.createQueue(name, options);
    // The queue may have existed before without a heartbeat, which is pg-boss's default.
    const known = await this.boss.getQueue(name);
    if (known?.heartbeatSeconds !== heartbeatSeconds || known.deadLetter !== deadLetter)
      await this.boss.updateQueue(name, options);
  }

  /** The name in pg-boss of a tool's queue or of the engine's own; creates a tool's queue on first use. */
  async nameOf(queue: string | undefined): Promise<string> {
    await this.ready();
    if (queue === undefined) return this.name;
    const name = `${this.name}/${queue}`;
    const made = this.#made.get(name) ?? new OnFirstUse(() => this.#make(name));
    this.#made.set(name, made);
    await made.get();
    return name;
  }

  /** The names in pg-boss of the engine's queue and of the tools' queues. */
  async #names(): Promise<readonly string[]> {
    await this.ready();
    const names = (await this.boss.getQueues()).map(({ name }) => name);
    return names.filter((name) => name === this.name || name.startsWith(`${this.name}/`));
  }

  /** Resolves with false if the job exists already. */
  async send(job: Job, options: JobOptions, within: { readonly db?: Db } = {}): Promise<boolean> {
    const name = await this.nameOf(options.queue);
    const { attempts = 1, backoff, priority = 0, delay = 0 } = options;
    const data: Payload = { job: storableJob(job), attempts };
    const sending: SendOptions = {
      ...within,
      id: uuidOf(job.id),
      priority: priority === 0 ? 0 : -priority,
      retryLimit: attempts - 1 + MOST_DEATHS,
      ...(backoff ? { retryDelay: Math.ceil(backoff.delay / 1000) } : {}),
      ...(backoff?.type === 'exponential' ? { retryBackoff: true } : {}),
      ...(delay > 0 ? { startAfter: new Date(Date.now() + delay) } : {}),
    };
    return (await this.boss.send(name, data, sending)) !== null;
  }

  async take(queue: string, limit: number): Promise<readonly TakenJob[]> {
    const taken = await this.boss.fetch<Payload>(queue, { batchSize: limit, includeMetadata: true });
    return taken.map(({ data: { job, attempts, failed = 0, begun = 0 }, ...metadata }) => {
      return { ...metadata, queue, job: jobOf(job), attempts, failed, begun: begun + metadata.retryCount };
    });
  }

  /** Ids of the jobs that this process still holds. */
  async touch(queue: string, jobs: readonly TakenJob[]): Promise<ReadonlySet<string>> {
    const { settled } = await outcomeOf(this.boss.touch(queue, jobs.map(attemptOf)));
    return new Set(settled ?? jobs.map(({ id }) => id));
  }

  async complete(queue: string, jobs: readonly TakenJob[]): Promise<void> {
    await this.boss.complete(queue, jobs.map(attemptOf));
  }

  /** Completes a job in one transaction with writes to the same database. */
  async commit(job: TakenJob, write: (transaction: SqlTransaction) => Promise<void>): Promise<void> {
    if (this.database.beginTransaction === undefined)
      throw new Error('The database of this pg-boss cannot begin transactions.');
    await this.#transact(async (db) => {
      await write({ query: (text, values) => db.executeSql(text, values && [...values]) });
      await this.#completeIn(db, job);
    });
  }

  /** Throws if another worker has taken the job. */
  async #completeIn(db: Db, job: TakenJob): Promise<void> {
    const { affected } = await outcomeOf(this.boss.complete(job.queue, [attemptOf(job)], null, { db }));
    if (affected !== 1) throw new Error(`The job '${job.job.id}' has been taken by another worker.`);
  }

  /** Without a transaction if the application's database object cannot begin any. */
  async #transact<Value>(work: (db: Db) => Promise<Value>): Promise<Value> {
    const transaction = await this.database.beginTransaction?.();
    if (transaction === undefined) return work(this.database);
    try {
      const value = await work(transaction.db);
      await transaction.commit();
      return value;
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
  }

  /** Records a failed attempt; the job waits for its next one. Changes nothing if another worker has taken the job. */
  async retry(taken: TakenJob, message: string): Promise<void> {
    const { id, queue, failed } = taken;
    await this.#transact(async (db) => {
      const { affected } = await outcomeOf(this.boss.fail(queue, [attemptOf(taken)], { message }, { db }));
      if (affected === 0) return;
      await this.boss.update(queue, { ...payloadOf(taken), failed: failed + 1 }, { id, db });
    });
  }

  /**
   * Returns jobs to the end of the queue. The attempts do not count as failures, and there is no backoff. Takes two
   * statements for any number of jobs, because a worker may lack a tool that thousands of jobs need. Jobs that another
   * worker has taken are left as they are.
   */
  async giveBack(queue: string, returned: readonly ReturnedJob[]): Promise<void> {
    await this.#transact(async (db) => {
      const attempts = returned.map(({ taken }) => attemptOf(taken));
      const { settled, affected } = await outcomeOf(this.boss.deleteJob(queue, attempts, { db }));
      const left = new Set(settled ?? (affected === attempts.length ? attempts.map(({ id }) => id) : []));
      const jobs = returned.flatMap(({ taken, delay }) => {
        const { id, priority, retryCount, retryLimit, retryDelay, retryBackoff, begun } = taken;
        if (!left.has(id)) return [];
        const data: Payload = { ...payloadOf(taken), begun: begun + 1 };
        const startAfter = delay === 0 ? 0 : new Date(Date.now() + delay);
        return [
          { id, data, priority, startAfter, retryLimit: retryLimit - retryCount, retryDelay, retryBackoff },
        ];
      });
      if (jobs.length > 0) await this.boss.insert(queue, jobs, { db });
    });
  }

  /** Records the last failed attempt: the job moves to the dead ones, unless another worker has taken it. */
  async bury(taken: TakenJob, error: string): Promise<void> {
    const { id, begun } = taken;
    const data: DeadPayload = { ...payloadOf(taken), error, made: begun + 1 };
    await this.#transact(async (db) => {
      await this.#completeIn(db, taken);
      await this.boss.send(this.#deadName, data, { id, db });
    });
  }

  /** Resolves with true if the job was waiting or running. */
  async cancel(jobId: string): Promise<boolean> {
    const names = await this.#names();
    const outcomes = await Promise.all(names.map((name) => outcomeOf(this.boss.cancel(name, uuidOf(jobId)))));
    return outcomes.some(({ affected }) => affected > 0);
  }

  async dead({ limit = 100, jobIds }: DeadJobQuery): Promise<readonly DeadJob[]> {
    await this.ready();
    if (jobIds !== undefined) {
      const names = jobIds.length === 0 ? [] : await this.#names();
      const dead = jobIds.map(async (jobId) => {
        // Looking a job up by its id is fast. All dead jobs are searched, which is slow, only if that finds the job.
        const id = uuidOf(jobId);
        const found = await Promise.all(names.map((name) => this.boss.findJobs(name, { id })));
        if (!found.flat().some(({ state }) => ENDED.has(state))) return [];
        return (await this.#copiesOf(jobId)).map(deadJob).slice(0, 1);
      });
      return (await Promise.all(dead)).flat();
    }
    const found = await this.boss.findJobs<DeadPayload>(this.#deadName);
    const latest = [...found].sort((one, other) => other.createdOn.getTime() - one.createdOn.getTime());
    return latest.slice(0, limit).map(deadJob);
  }

  /** Sends a dead job again; false if it is not dead, or if another process was faster. */
  async revive(job: Job, options: JobOptions): Promise<boolean> {
    await this.ready();
    const copies = await this.#copiesOf(job.id);
    if (copies.length === 0) return false;
    // Before the transaction, which may hold the only connection: creating the queue needs a connection.
    const names = [...(await this.#names()), await this.nameOf(options.queue)];
    return this.#transact(async (db) => {
      const ids = copies.map(({ id }) => id);
      if ((await outcomeOf(this.boss.deleteJob(this.#deadName, ids, { db }))).affected === 0) return false;
      for (const name of new Set(names)) await this.boss.deleteJob(name, uuidOf(job.id), { db });
      return this.send(job, options, { db });
    });
  }

  /** Copies of a job in the dead-letter queue. A copy that pg-boss put there has another id. */
  async #copiesOf(jobId: string): Promise<readonly JobWithMetadata<DeadPayload>[]> {
    return this.boss.findJobs<DeadPayload>(this.#deadName, { data: { job: { id: jobId } } });
  }

  async stop(): Promise<void> {
    await this.#ready.started?.catch(() => {});
    await this.boss.stop({ graceful: false });
  }

  get isStarted(): boolean {
    return this.#ready.started !== undefined;
  }
}

function deadJob({ data, sourceOutput, sourceRetryCount }: JobWithMetadata<DeadPayload>): DeadJob {
  // Outputs of pg-boss are `{ message }` or `{ value: { message } }`.
  const { message, value } = (sourceOutput ?? {}) as {
    readonly message?: string;
    readonly value?: { message?: string };
  };
  return {
    job: jobOf(data.job),
    error: data.error ?? message ?? value?.message ?? 'its workers died',
    attempts: data.made ?? (data.begun ?? 0) + (sourceRetryCount ?? 0) + 1,
    workersDied: data.error === undefined,
  };
}

function payloadOf({ job, attempts, failed, begun, retryCount }: TakenJob): Payload {
  return { job: storableJob(job), attempts, failed, begun: begun - retryCount };
}

function attemptOf({ id, retryCount }: TakenJob): { readonly id: string; readonly retryCount: number } {
  return { id, retryCount };
}

/** pg-boss needs UUIDs: derives a UUID of version 8 (custom) from the id, always the same. */
function uuidOf(jobId: string): string {
  const hex = nodeCrypto().hash('sha256', jobId);
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
