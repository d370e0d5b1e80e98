import type { EventEmitter } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type BackendFactory, type IQueueBackend, QueueEvents, QueueEventsProducer } from 'bullmq';
import type { JobNews } from '../../core/contract/job-engine.js';
import { callListener, unlessAborted, withinLimits } from '../../core/kernel/async.js';

/** What travels between the engines of a queue. */
type BrokerWord = JobNews | { readonly type: 'cancel'; readonly jobId: string; readonly reason?: string };

/** Where it travels. */
interface NewsPlace {
  readonly queue: string;
  readonly connection: { readonly connection: unknown; readonly prefix?: string };
  readonly backend: BackendFactory<IQueueBackend, unknown>;
  readonly onError: (error: Error) => void;
}

type Listener = (word: BrokerWord) => void;
type Events = QueueEvents<unknown, IQueueBackend, unknown>;
type Producer = QueueEventsProducer<IQueueBackend, unknown>;

/** Messages that the stream keeps for listeners that are a little behind. */
const KEPT = 10_000;
const HELLO_EVERY_MS = 50;

/** The error of requests to a closed engine. */
export const ENGINE_CLOSED = 'The engine of BullMQ was closed.';

/** Tells all engines of a queue, through the event stream of a queue without jobs. */
export class BrokerNews {
  readonly #place: NewsPlace;
  readonly #listeners = new Set<{ readonly receive: Listener }>();
  #producer: Producer | undefined;
  #events: Promise<Events> | undefined;
  /** Perhaps not ready yet. */
  #opened: Events | undefined;
  readonly #closing = new AbortController();
  #published = 0;

  constructor(place: NewsPlace) {
    this.#place = place;
  }

  async publish(word: BrokerWord): Promise<void> {
    await this.#tell('news', JSON.stringify(word));
  }

  /** Resolves when what is published from now on will be heard. */
  async subscribe(receive: Listener): Promise<() => Promise<void>> {
    const subscription = { receive };
    this.#listeners.add(subscription);
    this.#events ??= this.#listen();
    try {
      await this.#events;
    } catch (error) {
      this.#listeners.delete(subscription);
      this.#events = undefined;
      throw error;
    }
    return async () => void this.#listeners.delete(subscription);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    this.#closing.abort(new Error(ENGINE_CLOSED));
    await Promise.all([
      this.#opened && closeOrCut(this.#opened, { asked: 'never' }),
      this.#producer && closeOrCut(this.#producer),
    ]);
  }

  /** What is opened, whose connections can be cut. */
  get opened(): readonly (Events | Producer)[] {
    return [this.#opened, this.#producer].filter((opened) => opened !== undefined);
  }

  /** A stream is read from when the reading begins, which nothing tells: so a word of our own is sent until it comes back. */
  async #listen(): Promise<Events> {
    const { queue, connection, backend, onError } = this.#place;
    const { signal } = this.#closing;
    signal.throwIfAborted();
    const events: Events = new QueueEvents(queue, { ...connection, autorun: false }, backend);
    this.#opened = events;
    events.on('error', onError);
    const nonce = crypto.randomUUID();
    let isHeard = false;
    this.#on(events, (event, text) => {
      if (event === 'hello') isHeard ||= text === nonce;
      else this.#receive(JSON.parse(text) as BrokerWord);
    });
    try {
      await unlessAborted(events.waitUntilReady(), signal);
      let fault: unknown;
      events.run().catch((error: unknown) => {
        fault = error;
      });
      while (!isHeard) {
        if (fault !== undefined) throw fault;
        await unlessAborted(this.#tell('hello', nonce), signal);
        await pause(HELLO_EVERY_MS, undefined, { signal });
      }
      return events;
    } catch (error) {
      // Otherwise whoever closes all closes it.
      if (!signal.aborted) close(events);
      throw signal.aborted ? signal.reason : error;
    }
  }

  #on(events: Events, receive: (event: string, text: string) => void): void {
    const own = events as unknown as {
      on(event: string, listener: (fields: { word: string }) => void): void;
    };
    for (const event of ['hello', 'news']) own.on(event, ({ word }) => receive(event, word));
  }

  #receive(word: BrokerWord): void {
    for (const { receive } of [...this.#listeners])
      callListener(() => receive(word), this.#place.onError as never);
  }

  async #tell(eventName: string, word: string): Promise<void> {
    const producer = this.#open();
    await producer.publishEvent({ eventName, word }, KEPT);
    this.#published += 1;
    // Redis trims with every message, PostgreSQL only on request.
    if (this.#published % KEPT === 0) await producer.getBackend().trimEvents(KEPT);
  }

  #open(): Producer {
    if (this.#producer === undefined) {
      this.#closing.signal.throwIfAborted();
      const { queue, connection, backend, onError } = this.#place;
      const producer: Producer = new QueueEventsProducer(queue, connection, backend);
      producer.on('error', onError);
      this.#producer = producer;
      dropUnready(producer, () => {
        if (this.#producer === producer) this.#producer = undefined;
      });
    }
    return this.#producer;
  }
}

/** A client of `pg`, and a pool of them, as far as their losses are heard. */
interface Client {
  on(event: 'error', listener: () => void): unknown;
}
interface Pool {
  on(event: 'acquire', listener: (client: Client) => void): unknown;
}

/** What BullMQ makes the connection from that hears what is told over channels. */
interface ClientModule {
  readonly Client: new (config: unknown) => EventEmitter;
}

/** What BullMQ's classes have in common. */
interface Openable {
  waitUntilReady(): Promise<unknown>;
  /** With force, a worker waits for no jobs. */
  close(force?: boolean): Promise<unknown>;
  getBackend(): Pick<IQueueBackend, 'close'>;
}

/** How long a broker may be away until its connections are cut at the end. */
const AWAY_MS = 2_000;
const LOOK_EVERY_MS = 100;

const heardPools = new WeakSet<Pool>();
const heardClients = new WeakSet<Client>();

/**
 * A backend whose connections may be cut. On PostgreSQL, BullMQ takes one out of its pool without listening to its
 * loss, and listens to that of the connection for channels a moment too late: either would end the process. What was
 * under way rejects all the same.
 */
export function outlivingCuts<Factory extends BackendFactory<IQueueBackend, unknown> | undefined>(
  factory: Factory,
): Factory {
  if (factory === undefined) return factory;
  const outliving: BackendFactory<IQueueBackend, unknown> = (...made) => {
    const backend = factory(...made);
    const { connection } = backend as {
      readonly connection?: { readonly pool?: Pool; pgModule?: ClientModule };
    };
    if (connection?.pool !== undefined) watchPool(connection.pool);
    if (connection?.pgModule !== undefined)
      connection.pgModule = { Client: outlivingClient(connection.pgModule) };
    return backend;
  };
  return outliving as Factory;
}

function outlivingClient({ Client }: ClientModule): ClientModule['Client'] {
  return class OutlivingClient extends Client {
    override emit(event: string, ...told: unknown[]): boolean {
      return (event !== 'error' || this.listenerCount('error') > 0) && super.emit(event, ...told);
    }
  };
}

function watchPool(pool: Pool): void {
  if (heardPools.has(pool)) return;
  heardPools.add(pool);
  pool.on('acquire', (client) => {
    if (!heardClients.has(client)) client.on('error', () => {});
    heardClients.add(client);
  });
}

/** What was not ready once never is, for BullMQ: it is closed, and forgotten by those who would use it again. */
export function dropUnready(opened: Openable, forget: () => void): void {
  opened.waitUntilReady().catch(() => {
    forget();
    close(opened);
  });
}

/** Closes what is of no use; nobody waits for it, and nobody needs to know how it went. */
export function close(opened: Openable): void {
  opened.close().catch(() => {});
}

/**
 * Closes in good order, however long the jobs of a worker take. Where the broker is away, that would last until it is
 * back: then the connections are cut, and what was not told is found by others when leases have ended.
 */
export async function closeOrCut(opened: Openable, looking: Looking = {}): Promise<void> {
  const { asked = 'before' } = looking;
  if (!(await isThere(opened, { asks: asked === 'before' }))) return cut(opened);
  const closed = new AbortController();
  const closing = opened.close().finally(() => closed.abort());
  await Promise.race([closing, cutWhenAway(opened, closed.signal, { asks: asked !== 'never' })]);
}

/** When a broker is asked whether it is there. */
interface Looking {
  /**
   * `while`: of a worker, which takes no more jobs from the moment at which it closes; `never`: where a connection
   * waits for news, and answers nothing until they come.
   */
  readonly asked?: 'before' | 'while' | 'never';
}

async function cutWhenAway(opened: Openable, closed: AbortSignal, asking: Asking): Promise<void> {
  while (!closed.aborted && (await isThere(opened, asking)))
    await pause(AWAY_MS, undefined, { signal: closed }).catch(() => {});
  if (!closed.aborted) await cut(opened);
}

/** Closes without a word to the broker. */
export async function cut(opened: Openable): Promise<void> {
  const cutting = opened.getBackend().close(true);
  // So that it asks for nothing more; by itself, it would first tell the broker that it goes.
  opened.close(true).catch(() => {});
  await withinLimits(cutting, LIMITS).catch(() => {});
}

/** A client of Redis as far as it is asked how it is; a pool of PostgreSQL has no state. */
interface Connected {
  readonly status?: string;
  /** What BullMQ asks of every kind of client. */
  get?(key: string): Promise<unknown>;
}

/** Whether it is more than looked at. */
interface Asking {
  readonly asks: boolean;
}

/** Whether the broker can be told something, perhaps after a moment. */
async function isThere(opened: Openable, { asks }: Asking): Promise<boolean> {
  const { client } = opened.getBackend() as { readonly client?: Promise<Connected> };
  let known: Connected | undefined;
  try {
    known = await withinLimits(
      opened.waitUntilReady().then(() => client),
      LIMITS,
    );
  } catch {
    return false;
  }
  for (let waited = 0; !isLive(known); waited += LOOK_EVERY_MS) {
    if (waited >= AWAY_MS) return false;
    await pause(LOOK_EVERY_MS);
  }
  return !asks || (await answers(known)) || answers(known);
}

/** A connection may stay while nobody answers any more. A failure is an answer: what is asked then fails, too. */
async function answers(known: Connected | undefined): Promise<boolean> {
  if (known?.status === 'wait') return true;
  const asked = known?.get?.('toolwright');
  if (asked === undefined) return true;
  return withinLimits(
    asked.then(
      () => true,
      () => true,
    ),
    LIMITS,
  ).catch(() => false);
}

const LIMITS = { signal: undefined, timeoutMs: AWAY_MS };

/** What clients of one Redis and of a cluster are when they are connected, and those that connect when they are used. */
function isLive(known: Connected | undefined): boolean {
  const { status } = known ?? {};
  // A pool of PostgreSQL has no state: it connects anew for what it is asked, or rejects.
  return status === undefined || status === 'ready' || status === 'connect' || status === 'wait';
}
