import type { PostgresClient } from './pool.js';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;

/** Who listens. */
interface Hearer {
  readonly hear: (payload: string) => void;
  /** There was no connection, and is one again: something may not have been heard. */
  readonly miss: () => void;
}

/**
 * Hears what processes tell each other over a channel of the database (`LISTEN`), over a connection of its own, as
 * long as anybody listens. What is told while there is no connection is lost: whoever listens is told so.
 */
export class Listener {
  readonly #database: { connect(): Promise<PostgresClient> };
  readonly #channel: string;
  readonly #hearers = new Set<Hearer>();
  #connection: Promise<PostgresClient | undefined> | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(database: { connect(): Promise<PostgresClient> }, channel: string) {
    this.#database = database;
    this.#channel = channel;
  }

  add(hearer: Hearer): () => void {
    this.#hearers.add(hearer);
    this.#connection ??= this.#connect();
    return () => {
      this.#hearers.delete(hearer);
      if (this.#hearers.size === 0) void this.#disconnect();
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#disconnect();
  }

  async #connect(): Promise<PostgresClient | undefined> {
    let client: PostgresClient | undefined;
    let isLost = false;
    const lose = (): void => {
      if (isLost) return;
      isLost = true;
      client?.release(true);
      this.#reconnect();
    };
    try {
      client = await this.#database.connect();
      client.on('notification', ({ channel, payload = '' }) => {
        if (channel === this.#channel) for (const { hear } of [...this.#hearers]) hear(payload);
      });
      client.on('error', lose);
      await client.query({ text: `LISTEN "${this.#channel}"` });
      this.#pauseMs = FIRST_PAUSE_MS;
      // Those who began to listen before this moment, too.
      for (const { miss } of [...this.#hearers]) miss();
      return client;
    } catch {
      lose();
      return undefined;
    }
  }

  /** The connection was lost, or there was none. */
  #reconnect(): void {
    this.#connection = undefined;
    if (this.#isClosed || this.#hearers.size === 0) return;
    // The process stays, as it does with a connection.
    this.#timer = setTimeout(() => {
      this.#connection ??= this.#connect();
    }, this.#pauseMs);
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
  }

  async #disconnect(): Promise<void> {
    clearTimeout(this.#timer);
    const connection = this.#connection;
    this.#connection = undefined;
    // A connection that listens must not go back to the pool.
    (await connection)?.release(true);
  }
}
