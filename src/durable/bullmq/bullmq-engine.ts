import type { EventEmitter } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type BackendFactory,
  type Job as BrokerJob,
  DelayedError,
  type IQueueBackend,
  Queue,
  QueueEvents,
  QueueEventsProducer,
  WaitingError,
  Worker,
} from 'bullmq';
import type {
  DeadJob,
  DeadJobQuery,
  GiveBackOptions,
  Job,
  JobEngine,
  JobHandler,
  JobOptions,
  JobWorker,
  WorkOptions,
} from '../../core/contract/job-engine.js';
import type { Logger } from '../../core/contract/ports.js';
import { invalidOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { unlessAborted } from '../../core/kernel/async.js';
import { isPlainObject, isRecord } from '../../core/kernel/json.js';
import {
  ANY_VALUE,
  FILLED_TEXT,
  FUNCTION,
  LIST,
  LOGGER,
  MILLISECONDS,
  mistakenNames,
  type OptionFault,
  type OptionRule,
  type OptionTable,
  optionTable,
  PAUSE,
  protecting,
  required,
  secret,
  withMethods,
  wrongValues,
} from '../../core/kernel/options.js';
import { watchPool } from '../../core/kernel/own-connections.js';
import { serverAddress } from '../../core/kernel/server-address.js';
import {
  BrokerEngine,
  type EngineMessage,
  EngineNews,
  isAnswered,
  jobOf,
  LOST_DELAY_MS,
  type StorableJob,
  storableFailure,
  storableJob,
} from '../../run/jobs/broker-engine.js';

/** How long a worker pauses before and after it returns a job, so that another worker can take it. */
const OTHERS_FIRST_MS = 10;

/** Connection options of one BullMQ backend. */
interface Broker {
  readonly address: OptionRule;
  /** A client object that the application created. */
  readonly client: OptionRule;
  /** The options of a connection object. */
  readonly table: OptionTable;
  /** At least one of these options must be set: they name the broker's address. */
  readonly places: readonly string[];
  readonly fix: string;
}

/** A string of digits is accepted because environment variables are strings; both drivers read it. */
const PORT: OptionRule = {
  accepts: (value) => {
    const port = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
    return Number.isInteger(port) && Number(port) > 0 && Number(port) <= 65_535;
  },
  fix: 'a whole number from 1 to 65535',
};

/** An unset environment variable must not connect to localhost by default. */
const HOST = protecting(FILLED_TEXT);

/** Accepts any value. Unknown names are refused only if they look like typos: a newer driver may have more options. */
function taken(names: string): Readonly<Record<string, OptionRule>> {
  return Object.fromEntries(
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, ANY_VALUE]),
  );
}

const PASSWORD = { pass: 'password: …', passwd: 'password: …' };

const REDIS: Broker = {
  address: serverAddress(
    'redis',
    "'redis://127.0.0.1:6379'; or a PostgreSQL connection with backend: createPostgresBackend",
  ),
  client: withMethods(['connect', 'disconnect', 'duplicate'], 'a client'),
  places: ['host', 'port', 'path', 'url', 'sentinels', 'Connector'],
  fix: "'redis://127.0.0.1:6379', { host: '127.0.0.1', port: 6379 }, or a client; or a PostgreSQL connection with backend: createPostgresBackend",
  table: optionTable<object>(
    'a connection to Redis',
    {
      ...taken(`
        Connector connectionName db disconnectTimeout family keepAlive name noDelay password role tls
        sentinelCommandTimeout sentinelMaxConnections sentinelPassword sentinelReconnectStrategy
        sentinelRetryStrategy sentinelTLS sentinelUsername enableTLSForSentinelMode failoverDetector
        natMap preferredSlaves updateSentinels username autoPipeliningIgnoredCommands protocol
        autoResendUnfulfilledCommands autoResubscribe blockingTimeout blockingTimeoutGrace readOnly
        clientInfoTag commandQueue commandTimeout connectTimeout disableClientInfo offlineQueue
        enableAutoPipelining enableOfflineQueue enableReadyCheck himportFieldsets keyPrefix lazyConnect
        maxLoadingRetryTime maxRetriesPerRequest monitor reconnectOnError replyMapping retryStrategy
        scripts showFriendlyErrorStack skipVersionCheck socketTimeout stringNumbers`),
      host: HOST,
      port: PORT,
      path: HOST,
      url: protecting(serverAddress('redis', "'redis://127.0.0.1:6379'")),
      sentinels: protecting({ ...LIST, fix: "[{ host: '127.0.0.1', port: 26379 }]" }),
    },
    {
      ...PASSWORD,
      hostname: "host: '127.0.0.1'",
      uri: "url: 'redis://127.0.0.1:6379'",
      user: 'username: …',
      database: 'db: 0',
      socket: 'host and port at the top level, not in socket',
    },
  ),
};

const POSTGRES: Broker = {
  address: serverAddress('postgres', "'postgres://shop@127.0.0.1/shop'"),
  client: withMethods(['connect', 'query', 'end'], 'a pool'),
  places: ['host', 'port', 'connectionString', 'database', 'user'],
  fix: "'postgres://shop@127.0.0.1/shop', { connectionString, schema }, or new pg.Pool({ … })",
  table: optionTable<object>(
    'a connection to PostgreSQL',
    {
      ...taken(`
        allowExitOnIdle application_name client_encoding Client connectionTimeoutMillis database
        enableChannelBinding fallback_application_name idle_in_transaction_session_timeout keepAlive
        idleTimeoutMillis keepAliveInitialDelayMillis lock_timeout log max maxLifetimeSeconds maxUses
        migrate min onConnect options password pipeline Promise query_timeout schema skipMigrations
        skipVersionCheck ssl sslnegotiation statement_timeout stream types user verify`),
      host: HOST,
      port: PORT,
      connectionString: protecting(serverAddress('postgres', "'postgres://shop@127.0.0.1/shop'")),
    },
    {
      ...PASSWORD,
      hostname: "host: '127.0.0.1'",
      username: 'user: …',
      db: 'database: …',
      dbname: 'database: …',
      uri: 'connectionString: …',
      url: 'connectionString: …',
    },
  ),
};

/** Checks the connection options strictly: the drivers fall back to localhost when an address is missing. */
function connectionFaults(connection: unknown, backend: unknown): readonly OptionFault[] {
  const { address, client, table, places, fix } = backend === undefined ? REDIS : POSTGRES;
  if (typeof connection === 'string') return address.explain?.(connection, 'connection') ?? [];
  if (!isRecord(connection) || client.accepts(connection)) return [];
  // Inherited properties, as of a `URL` object, do not count: BullMQ copies own properties only.
  const saysWhere = places.some((name) => Object.hasOwn(connection, name));
  if (saysWhere || isPlainObject(connection)) {
    const path = 'connection.';
    const faults = [...wrongValues(connection, table, path), ...mistakenNames(connection, table, path)];
    // On PostgreSQL, `pg` reads missing options from environment variables.
    if (saysWhere || faults.length > 0 || backend !== undefined) return faults;
  }
  const problem = 'connection does not contain the address of the broker';
  return [{ option: 'connection', problem, fix: `connection: ${fix}` }];
}

/** Options of {@link bullmqEngine}. */
export interface BullmqEngineOptions {
  /**
   * The broker's address (`'redis://127.0.0.1:6379'`, or `'postgres://…'` with the PostgreSQL backend), or what
   * BullMQ's own classes accept.
   */
  readonly connection: unknown;
  /** BullMQ's `createPostgresBackend`; default: its Redis backend. */
  readonly backend?: unknown;
  /**
   * Name of the queue, without `:`; default `toolwright`. Jobs of tools with `background: { queue: 'mail' }` wait in
   * `<queue>/mail`. `<queue>-queues` lists these queues, and `<queue>-news` carries notifications.
   */
  readonly queue?: string;
  /** Prefix of the keys in Redis; default: BullMQ's own, `bull`. */
  readonly prefix?: string;
  /** Milliseconds until a crashed worker loses its jobs. Others take them within the same time again. Default 30000. */
  readonly leaseMs?: number;
  /** How long BullMQ remembers the ids of ended jobs, in milliseconds; default a day. */
  readonly keepEndedMs?: number;
  /** Receives each error of the engine, once per cause and minute. */
  readonly logger?: Logger;
}

const QUEUE_NAME: OptionRule = {
  accepts: (value) => typeof value === 'string' && value !== '' && !value.includes(':'),
  fix: "a name without ':': 'toolwright'",
};

const OPTIONS = optionTable<BullmqEngineOptions>('bullmqEngine', {
  connection: required(
    secret({
      accepts: (value) => typeof value === 'string' || isRecord(value),
      fix: "'redis://127.0.0.1:6379', { host: '127.0.0.1', port: 6379 }, or a client",
    }),
  ),
  backend: { ...FUNCTION, fix: "createPostgresBackend of 'bullmq'" },
  queue: QUEUE_NAME,
  prefix: QUEUE_NAME,
  leaseMs: MILLISECONDS,
  keepEndedMs: PAUSE,
  logger: LOGGER,
});

const DAY_MS = 86_400_000;
/** Dead jobs are stored so that people can inspect them. */
const KEEP_DEAD_SECONDS = 30 * 86_400;
/** A job counts as dead after more worker crashes than this: the job itself may cause them. */
const MOST_DEATHS = 10;
/** The error that BullMQ gives such a job, on both backends. */
const TOO_MANY_DEATHS = 'job stalled more than allowable limit';

/** The data that BullMQ stores for a job. */
interface Payload {
  readonly job: StorableJob;
}

/**
 * Runs background jobs on BullMQ 6: on Redis or Valkey, or on PostgreSQL with `backend: createPostgresBackend`. For
 * PostgreSQL, create the tables first with BullMQ's `runMigrations`. If a worker crashes, other workers take its jobs
 * after `leaseMs`. A job whose workers crashed more than ten times is dead until you call `revive`.
 *
 * @throws InvalidOptionsError (521). Connection errors reject the first method that needs the connection.
 *
 * @example
 * ```ts
 * const engine = bullmqEngine({ connection: { host: '127.0.0.1', port: 6379 } });
 * const dead = await engine.deadJobs();
 * ```
 */
export function bullmqEngine(options: BullmqEngineOptions): JobEngine {
  const { connection, backend } = Object(options) as Partial<BullmqEngineOptions>;
  const faults = connectionFaults(connection, backend).map((fault) => ({ where: OPTIONS.of, ...fault }));
  refuseOptions([...invalidOptions(options, OPTIONS), ...faults]);
  return new BullmqEngine(options);
}

type JobQueue = Queue<Payload, void, string, Payload, void, string, IQueueBackend, unknown>;

class BullmqEngine extends BrokerEngine implements JobEngine {
  readonly #options: BullmqEngineOptions;
  readonly #name: string;
  readonly #connection: NewsPlace['connection'];
  readonly #backend: BackendFactory<IQueueBackend, unknown>;
  /** Open queues by their BullMQ names. */
  readonly #opened = new Map<string, JobQueue>();
  /** Tool queues that are already in the list of queues. */
  readonly #listed = new Set<string>();
  protected override readonly news: BrokerNews;
  /** Workers whose connections `close` can cut. */
  readonly #open = new Set<Openable>();

  constructor(options: BullmqEngineOptions) {
    super(`BullMQ, ${placeOf(options)}`, options.logger);
    const { connection: given, backend, queue = 'toolwright', prefix } = options;
    const place = backend === undefined ? 'url' : 'connectionString';
    const connection = typeof given === 'string' ? { [place]: given } : given;
    this.#options = options;
    this.#name = queue;
    this.#connection = { connection, ...(prefix === undefined ? {} : { prefix }) };
    this.#backend = outlivingCuts(backend as BackendFactory<IQueueBackend, unknown>);
    const news = { queue: `${queue}-news`, connection: this.#connection, backend: this.#backend };
    this.news = new BrokerNews(news, this.onError);
  }

  async check(): Promise<void> {
    await this.#answered(this.ask());
  }

  protected override get isConnected(): boolean {
    return this.#opened.size + this.#open.size + this.news.opened.length > 0;
  }

  protected override async ask(): Promise<unknown> {
    return this.#queue(this.#name).getJobState('toolwright');
  }

  async enqueue(job: Job, options: JobOptions = {}): Promise<void> {
    await this.#answered(this.#add(job, options));
  }

  /** BullMQ itself waits for an absent broker without a limit. */
  #answered<Value>(request: Promise<Value>): Promise<Value> {
    return unlessAborted(this.unlessAway(request), this.closed);
  }

  async #add(job: Job, { attempts = 1, backoff, priority, delay, queue }: JobOptions): Promise<void> {
    const { keepEndedMs = DAY_MS } = this.#options;
    // So that other processes find the queue.
    if (queue !== undefined && !this.#listed.has(queue)) {
      await this.#listOfQueues.add(queue, {} as Payload, { jobId: brokerId(queue) });
      this.#listed.add(queue);
    }
    const options = {
      jobId: brokerId(job.id),
      attempts,
      removeOnComplete: keepEndedMs === 0 ? true : { age: Math.ceil(keepEndedMs / 1000) },
      removeOnFail: { age: KEEP_DEAD_SECONDS },
      ...(backoff && { backoff: { type: backoff.type, delay: backoff.delay } }),
      ...(priority && { priority }),
      ...(delay && { delay }),
    };
    await this.#queue(this.#nameOf(queue)).add(job.tool, { job: storableJob(job) }, options);
  }

  protected override async open({ concurrency = 1, queue, handle }: WorkOptions): Promise<JobWorker> {
    const { leaseMs = 30_000 } = this.#options;
    const process = (taken: BrokerJob<Payload>, token?: string) => this.#attempt(taken, token, handle);
    const timing = { lockDuration: leaseMs, stalledInterval: leaseMs, maxStalledCount: MOST_DEATHS };
    const options = { ...this.#connection, ...timing, concurrency, autorun: false };
    const worker = new Worker<Payload, void, string, IQueueBackend, object, unknown>(
      this.#nameOf(queue),
      process,
      options,
      this.#backend,
    );
    worker.on('error', this.onError);
    worker.on('lockRenewalFailed', (ids) => {
      for (const id of ids) this.running.lose(decodeURIComponent(id.slice(ID_PREFIX.length)));
    });
    const opened = {
      close: async () => {
        await closeOrCut(worker);
        this.workers.delete(opened);
        this.#open.delete(worker);
      },
    };
    this.workers.add(opened);
    this.#open.add(worker);
    try {
      await unlessAborted(worker.waitUntilReady(), this.closed);
    } catch (error) {
      this.workers.delete(opened);
      close(worker);
      throw error;
    }
    worker.run().catch(this.onError);
    return { close: () => this.unlessSilent(opened.close(), () => this.#cut(worker)) };
  }

  async #attempt(taken: BrokerJob<Payload>, token: string | undefined, handle: JobHandler): Promise<void> {
    const { attemptsMade, attemptsStarted: attempt, opts, data } = taken;
    const isLast = attemptsMade + 1 >= (opts.attempts ?? 1);
    // BullMQ renews the locks of running jobs itself.
    const heartbeat = async () => {};
    let returned: DelayedError | WaitingError | undefined;
    const giveBack = async ({ delay = 0 }: GiveBackOptions = {}) => {
      if (delay > 0) {
        await taken.moveToDelayed(Date.now() + delay, token);
        returned = new DelayedError();
        return;
      }
      // BullMQ serves the worker that has waited longest. The pauses let the other workers ask first.
      await pause(OTHERS_FIRST_MS);
      await taken.moveToWait(token);
      returned = new WaitingError();
      await pause(OTHERS_FIRST_MS);
    };
    try {
      const job = jobOf(data.job);
      const end = await this.running.run(job, (signal) =>
        handle(job, { signal, attempt, isLast, heartbeat, giveBack }),
      );
      if (end === 'lost' && returned === undefined) {
        // If the lease has ended, this worker cannot move the job; BullMQ finds it as stalled.
        await giveBack({ delay: LOST_DELAY_MS }).catch(() => {});
        returned ??= new DelayedError();
      }
    } catch (error) {
      if (returned === undefined) throw storableFailure(error);
    }
    if (returned !== undefined) throw returned;
  }

  async cancel(jobId: string, reason?: string): Promise<boolean> {
    const id = brokerId(jobId);
    const cancelled = (await this.#queues()).map(async (queue) => {
      const state = await queue.getJobState(id);
      if (state === 'unknown' || state === 'completed' || state === 'failed') return 'none';
      // `remove` returns 0 if the job has started meanwhile and is locked.
      return state !== 'active' && (await queue.remove(id)) > 0 ? 'removed' : 'active';
    });
    const states = await Promise.all(cancelled);
    if (states.includes('active')) await this.news.publish({ type: 'cancel', jobId, reason });
    return states.some((state) => state !== 'none');
  }

  async deadJobs(query: DeadJobQuery = {}): Promise<readonly DeadJob[]> {
    const failed = await this.#answered(this.#failed(query));
    // Another process may have retried the job since the query.
    return failed
      .filter(({ finishedOn }) => finishedOn)
      .map(({ data, failedReason, attemptsStarted }) => ({
        job: jobOf(data.job),
        error: failedReason,
        attempts: attemptsStarted,
        workersDied: failedReason === TOO_MANY_DEATHS,
      }));
  }

  async revive(job: Job, options: JobOptions = {}): Promise<boolean> {
    const id = brokerId(job.id);
    const removed = (await this.#queues()).map(async (queue) => {
      // BullMQ's own `retry` does not reset the count of crashes, so that the job would fail again.
      return (await queue.getJobState(id)) === 'failed' && (await queue.remove(id)) > 0;
    });
    if (!(await Promise.all(removed)).includes(true)) return false;
    await this.enqueue(job, options);
    return true;
  }

  async #failed({ limit = 100, jobIds }: DeadJobQuery): Promise<readonly BrokerJob<Payload>[]> {
    // `getFailed(0, -1)` would return all jobs.
    if (jobIds === undefined ? limit === 0 : jobIds.length === 0) return [];
    const queues = await this.#queues();
    if (jobIds === undefined) {
      const latest = (await Promise.all(queues.map((queue) => queue.getFailed(0, limit - 1)))).flat();
      return latest.sort((one, other) => (other.finishedOn ?? 0) - (one.finishedOn ?? 0)).slice(0, limit);
    }
    const found = queues.flatMap((queue) =>
      jobIds.map(async (jobId) => {
        const id = brokerId(jobId);
        if ((await queue.getJobState(id)) !== 'failed') return undefined;
        return queue.getJob(id);
      }),
    );
    return (await Promise.all(found)).filter((job) => job !== undefined);
  }

  protected override cut(): Promise<unknown> {
    const all = [...this.#open, ...this.#opened.values(), ...this.news.opened];
    return Promise.all(all.map((opened) => this.#cut(opened)));
  }

  /** A client of the application stays open. */
  #cut(opened: Openable): Promise<void> {
    return cut(opened, !REDIS.client.accepts(this.#options.connection));
  }

  protected override async closeInOrder(): Promise<void> {
    await this.closeWorkers();
    await Promise.all([...Array.from(this.#opened.values(), closeOrCut), this.news.close()]);
  }

  /** Opens a queue when it is first used: a process that starts no jobs needs no broker. */
  #queue(name: string): JobQueue {
    const known = this.#opened.get(name);
    if (known !== undefined) return known;
    this.closed.throwIfAborted();
    const queue: JobQueue = new Queue(name, this.#connection, this.#backend);
    queue.on('error', this.onError);
    this.#opened.set(name, queue);
    dropUnready(queue, () => {
      if (this.#opened.get(name) === queue) this.#opened.delete(name);
    });
    return queue;
  }

  /** The engine's own queue and all tool queues. */
  async #queues(): Promise<readonly JobQueue[]> {
    const listed = await this.#listOfQueues.getWaiting(0, -1);
    return [undefined, ...listed.map(({ name }) => name)].map((queue) => this.#queue(this.#nameOf(queue)));
  }

  /** A queue without workers: each of its waiting jobs names a queue. */
  get #listOfQueues(): JobQueue {
    return this.#queue(`${this.#name}-queues`);
  }

  #nameOf(queue: string | undefined): string {
    return queue === undefined ? this.#name : `${this.#name}/${queue}`;
  }
}

/** The queue and the broker's address, without passwords. */
function placeOf({ queue = 'toolwright', connection, backend }: BullmqEngineOptions): string {
  const url = typeof connection === 'string' ? new URL(connection) : undefined;
  const place = url === undefined ? Object(connection) : { host: url.hostname, port: url.port };
  const { host, port, path } = place as Partial<Record<'host' | 'port' | 'path', unknown>>;
  const at = path ?? (host === undefined && port === undefined ? '' : `${host ?? '127.0.0.1'}:${port ?? ''}`);
  const broker = backend === undefined ? 'Redis' : 'PostgreSQL';
  return `queue '${queue}' in ${broker}${at === '' ? '' : ` at ${at}`}`;
}

const ID_PREFIX = 'job_';

/** BullMQ refuses ids that contain a colon or are numbers. */
function brokerId(jobId: string): string {
  return `${ID_PREFIX}${encodeURIComponent(jobId)}`;
}

/** Where messages are published. */
interface NewsPlace {
  readonly queue: string;
  readonly connection: { readonly connection: unknown; readonly prefix?: string };
  readonly backend: BackendFactory<IQueueBackend, unknown>;
}

type Events = QueueEvents<unknown, IQueueBackend, unknown>;
type Producer = QueueEventsProducer<IQueueBackend, unknown>;

/** Messages that the stream stores for slow listeners; in PostgreSQL, BullMQ has a limit of its own. */
const KEPT = 10_000;
const HELLO_EVERY_MS = 50;

/** Sends messages to all engines of a queue, through the event stream of a queue without jobs. */
class BrokerNews extends EngineNews<Events> {
  #producer: Producer | undefined;
  /** Possibly not ready yet. */
  #opened: Events | undefined;
  /** Aborted before the connections are closed, so that none is opened meanwhile. */
  readonly #closing = new AbortController();

  constructor(
    private readonly place: NewsPlace,
    onError: (error: unknown) => void,
  ) {
    super(onError);
  }

  override publish(message: EngineMessage): Promise<void> {
    return this.#send('news', JSON.stringify(message));
  }

  async close(): Promise<void> {
    this.listeners.clear();
    this.#closing.abort(new Error('The engine of BullMQ was closed.'));
    await Promise.all(this.opened.map(closeOrCut));
  }

  /** What is open and can be cut. */
  get opened(): readonly (Events | Producer)[] {
    return [this.#opened, this.#producer].filter((opened) => opened !== undefined);
  }

  /** BullMQ does not report when it starts to read the stream. So we send a message of our own until it arrives. */
  protected override async connect(): Promise<Events> {
    const { queue, connection, backend } = this.place;
    const { signal } = this.#closing;
    signal.throwIfAborted();
    const events: Events = new QueueEvents(queue, { ...connection, autorun: false }, backend);
    this.#opened = events;
    events.on('error', this.onError);
    const nonce = crypto.randomUUID();
    let isHeard = false;
    const own = events as unknown as OwnEvents;
    own.on('hello', ({ word }) => {
      isHeard ||= word === nonce;
    });
    own.on('news', ({ word }) => this.deliver(JSON.parse(word)));
    try {
      await unlessAborted(events.waitUntilReady(), signal);
      let fault: unknown;
      events.run().catch((error: unknown) => {
        fault = error;
      });
      while (!isHeard) {
        if (fault !== undefined) throw fault;
        await unlessAborted(this.#send('hello', nonce), signal);
        await pause(HELLO_EVERY_MS, undefined, { signal });
      }
      return events;
    } catch (error) {
      // If the signal was aborted, `close` closes it.
      if (!signal.aborted) close(events);
      throw signal.aborted ? signal.reason : error;
    }
  }

  async #send(eventName: string, word: string): Promise<void> {
    await this.#open().publishEvent({ eventName, word }, KEPT);
  }

  #open(): Producer {
    if (this.#producer === undefined) {
      const { queue, connection, backend } = this.place;
      this.#closing.signal.throwIfAborted();
      const producer: Producer = new QueueEventsProducer(queue, connection, backend);
      producer.on('error', this.onError);
      this.#producer = producer;
      dropUnready(producer, () => {
        if (this.#producer === producer) this.#producer = undefined;
      });
    }
    return this.#producer;
  }
}

/** Events that BullMQ does not declare. */
interface OwnEvents {
  on(event: 'hello' | 'news', listener: (fields: { readonly word: string }) => void): void;
}

/** The module from which BullMQ creates its LISTEN connection. */
interface ClientModule {
  readonly Client: new (config: unknown) => EventEmitter;
}

/** What BullMQ's classes have in common. */
interface Openable {
  waitUntilReady(): Promise<unknown>;
  /** With `force`, a worker does not wait for its jobs. */
  close(force?: boolean): Promise<unknown>;
  getBackend(): Pick<IQueueBackend, 'close'>;
}

/**
 * Wraps a backend so that its connections can be cut. On PostgreSQL, BullMQ checks out a pool client without an `error`
 * listener, and adds the one of its LISTEN client too late; without this wrapper, a cut would end the process. Pending
 * requests still reject.
 */
function outlivingCuts<Factory extends BackendFactory<IQueueBackend, unknown> | undefined>(
  factory: Factory,
): Factory {
  if (factory === undefined) return factory;
  const outliving: BackendFactory<IQueueBackend, unknown> = (...made) => {
    const backend = factory(...made);
    const { connection } = backend as {
      readonly connection?: { readonly pool?: object; pgModule?: ClientModule };
    };
    if (connection?.pool !== undefined) watchPool(connection.pool);
    if (connection?.pgModule !== undefined) {
      class OutlivingClient extends connection.pgModule.Client {
        override emit(event: string, ...values: unknown[]): boolean {
          return (event !== 'error' || this.listenerCount('error') > 0) && super.emit(event, ...values);
        }
      }
      connection.pgModule = { Client: OutlivingClient };
    }
    return backend;
  };
  return outliving as Factory;
}

/** BullMQ never recovers an object that failed to become ready: close it, and let its owner forget it. */
function dropUnready(opened: Openable, forget: () => void): void {
  opened.waitUntilReady().catch(() => {
    forget();
    close(opened);
  });
}

/** Closes an unusable object in the background and ignores the result. */
function close(opened: Openable): void {
  opened.close().catch(() => {});
}

/** A client of the Redis backend. */
interface RedisClient {
  readonly status: string;
  disconnect(): void;
}

/** What the Redis backend has besides. */
interface RedisBackend {
  readonly client?: Promise<RedisClient>;
  readonly blockingClient?: Promise<RedisClient>;
}

/** Cuts a connection that is not established: BullMQ would wait for it, and keep the timers of a worker. */
async function closeOrCut(opened: Openable): Promise<void> {
  const isThere = (await isAnswered(opened.waitUntilReady())) && (await isLive(opened));
  await (isThere ? opened.close() : cut(opened, false));
}

/** States of a connected client, of a connected cluster, and of a client that connects on first use. */
const LIVE: ReadonlySet<string | undefined> = new Set(['ready', 'connect', 'wait']);
const MOST_LOOKS = 20;
const LOOK_EVERY_MS = 100;

/** Whether a ready object is still connected, perhaps after a short wait. A PostgreSQL pool connects on request. */
async function isLive(opened: Openable): Promise<boolean> {
  const client = await (opened.getBackend() as RedisBackend).client;
  for (let looks = 1; client !== undefined && !LIVE.has(client.status); looks += 1) {
    if (looks > MOST_LOOKS) return false;
    await pause(LOOK_EVERY_MS);
  }
  return true;
}

/**
 * Closes without a message to the broker. `isOwn`: also if `close` has begun; it then waits for Redis, and so does
 * `close(true)`, while the clients connect again and again.
 */
async function cut(opened: Openable, isOwn: boolean): Promise<void> {
  const backend = opened.getBackend();
  const { client, blockingClient } = backend as RedisBackend;
  const cutting = backend.close(true);
  // Stops further requests. Called first, `close` would send the broker a message.
  opened.close(true).catch(() => {});
  const clients = [blockingClient, isOwn ? client : undefined].filter((one) => one !== undefined);
  const disconnecting = clients.map(async (one) => (await one).disconnect());
  await isAnswered(
    disconnecting.length === 0 ? cutting : Promise.race([cutting, Promise.all(disconnecting)]),
  );
}
