import type { EventEmitter } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type BackendFactory, type IQueueBackend, QueueEvents, QueueEventsProducer } from 'bullmq';
import type { JobNews } from '../../core/contract/job-engine.js';
import { callListener, unlessAborted, withinLimits } from '../../core/kernel/async.js';

/** A message between the engines of a queue. */
type BrokerWord = JobNews | { readonly type: 'cancel'; readonly jobId: string; readonly reason?: string };

/** Where messages are published. */
interface NewsPlace {
  readonly queue: string;
  readonly connection: { readonly connection: unknown; readonly prefix?: string };
  readonly backend: BackendFactory<IQueueBackend, unknown>;
  readonly onError: (error: Error) => void;
}

type Listener = (word: BrokerWord) => void;
type Events = QueueEvents<unknown, IQueueBackend, unknown>;
type Producer = QueueEventsProducer<IQueueBackend, unknown>;

/** Messages that the stream stores for slow listeners. */
const KEPT = 10_000;
const HELLO_EVERY_MS = 50;

/** The error of requests to a closed engine. */
export const ENGINE_CLOSED = 'The engine of BullMQ was closed.';

/** Sends messages to all engines of a queue, through the event stream of a queue without jobs. */
export class BrokerNews {
  readonly #place: NewsPlace;
  readonly #listeners = new Set<{ readonly receive: Listener }>();
  #producer: Producer | undefined;
  #events: Promise<Events> | undefined;
  /** Possibly not ready yet. */
  #opened: Events | undefined;
  readonly #closing = new AbortController();
  #published = 0;

  constructor(place: NewsPlace) {
    this.#place = place;
  }

  async publish(word: BrokerWord): Promise<void> {
    await this.#tell('news', JSON.stringify(word));
  }

  /** Resolves once the listener is sure to receive what is published from then on. */
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

  /** What is open and can be cut. */
  get opened(): readonly (Events | Producer)[] {
    return [this.#opened, this.#producer].filter((opened) => opened !== undefined);
  }

  /** BullMQ does not report when it starts to read the stream. So we send a message of our own until it arrives. */
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
      // If the signal was aborted, `close` closes it.
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
    // Redis trims the stream with every message, PostgreSQL only on request.
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

/** The part of a `pg` client and pool that reports lost connections. */
interface Client {
  on(event: 'error', listener: () => void): unknown;
}
interface Pool {
  on(event: 'acquire', listener: (client: Client) => void): unknown;
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

/** While closing: how long a broker may be unreachable before its connections are cut. */
const AWAY_MS = 2_000;
const LOOK_EVERY_MS = 100;

const heardPools = new WeakSet<Pool>();
const heardClients = new WeakSet<Client>();

/**
 * Wraps a backend so that its connections can be cut. On PostgreSQL, BullMQ checks out a pool client without an `error`
 * listener, and adds the one of its LISTEN client too late; without this wrapper, a cut would end the process. Pending
 * requests still reject.
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
    override emit(event: string, ...values: unknown[]): boolean {
      return (event !== 'error' || this.listenerCount('error') > 0) && super.emit(event, ...values);
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

/** BullMQ never recovers an object that failed to become ready: close it, and let its owner forget it. */
export function dropUnready(opened: Openable, forget: () => void): void {
  opened.waitUntilReady().catch(() => {
    forget();
    close(opened);
  });
}

/** Closes an unusable object in the background and ignores the result. */
export function close(opened: Openable): void {
  opened.close().catch(() => {});
}

/**
 * Closes in order, and waits for the jobs of a worker. If the broker is unreachable, the connections are cut instead,
 * because BullMQ would wait for the broker. Other workers then find the unfinished jobs when the leases end.
 */
export async function closeOrCut(opened: Openable, looking: Looking = {}): Promise<void> {
  const { asked = 'before' } = looking;
  if (!(await isThere(opened, { asks: asked === 'before' }))) return cut(opened);
  const closed = new AbortController();
  const closing = opened.close().finally(() => closed.abort());
  await Promise.race([closing, cutWhenAway(opened, closed.signal, { asks: asked !== 'never' })]);
}

/** When to check whether the broker answers. */
interface Looking {
  /**
   * `while`: for a worker, which must stop taking jobs as soon as it closes. `never`: for a connection that waits for
   * events, and answers no requests meanwhile.
   */
  readonly asked?: 'before' | 'while' | 'never';
}

async function cutWhenAway(opened: Openable, closed: AbortSignal, asking: Asking): Promise<void> {
  while (!closed.aborted && (await isThere(opened, asking)))
    await pause(AWAY_MS, undefined, { signal: closed }).catch(() => {});
  if (!closed.aborted) await cut(opened);
}

/** Closes without a message to the broker. */
export async function cut(opened: Openable): Promise<void> {
  const cutting = opened.getBackend().close(true);
  // Stops further requests. Called first, `close` would send the broker a message.
  opened.close(true).catch(() => {});
  await withinLimits(cutting, LIMITS).catch(() => {});
}

/** The part of a Redis client that shows its state; a PostgreSQL pool has no state. */
interface Connected {
  readonly status?: string;
  /** A method that BullMQ's Redis clients of every kind have. */
  get?(key: string): Promise<unknown>;
}

/** Whether to send a request, in addition to reading the state. */
interface Asking {
  readonly asks: boolean;
}

/** Whether the broker is reachable, perhaps after a short wait. */
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

/** A connection may stay open while the broker is silent. An error counts as an answer: closing then fails, too. */
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

/** States of a connected client, of a connected cluster, and of a client that connects on first use. */
function isLive(known: Connected | undefined): boolean {
  const { status } = known ?? {};
  // A PostgreSQL pool has no state: it connects again on request, or rejects.
  return status === undefined || status === 'ready' || status === 'connect' || status === 'wait';
}
