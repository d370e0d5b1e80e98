import { setTimeout as pause } from 'node:timers/promises';
import { type BackendFactory, type IQueueBackend, QueueEvents, QueueEventsProducer } from 'bullmq';
import type { JobNews } from '../contract/job-engine.js';
import { callListener, unlessAborted } from '../kernel/async.js';
import { close, closeOrCut, dropUnready } from './cut-connections.js';

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

/** Words that are kept for those who are a little behind. */
const KEPT = 10_000;
const HELLO_EVERY_MS = 50;

/** What is asked of an engine that was closed is told so. */
export const ENGINE_CLOSED = 'The engine of BullMQ was closed.';

/** Tells all engines of a queue, through the event stream of a queue without jobs. */
export class BrokerNews {
  readonly #place: NewsPlace;
  readonly #listeners = new Set<{ readonly hear: Listener }>();
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
  async subscribe(hear: Listener): Promise<() => Promise<void>> {
    const subscription = { hear };
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
      else this.#hear(JSON.parse(text) as BrokerWord);
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

  #on(events: Events, hear: (event: string, text: string) => void): void {
    const own = events as unknown as {
      on(event: string, listener: (fields: { word: string }) => void): void;
    };
    for (const event of ['hello', 'news']) own.on(event, ({ word }) => hear(event, word));
  }

  #hear(word: BrokerWord): void {
    for (const { hear } of [...this.#listeners]) callListener(() => hear(word), this.#place.onError as never);
  }

  async #tell(eventName: string, word: string): Promise<void> {
    const producer = this.#open();
    await producer.publishEvent({ eventName, word }, KEPT);
    this.#published += 1;
    // Redis trims with every word, and PostgreSQL when it is told to.
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
