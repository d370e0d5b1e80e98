import type { Client } from '@modelcontextprotocol/client';
import { withMethods } from '../../kernel/option-rules.js';
import { connectionLossOf, unreachableError } from './connection-loss.js';
import type { McpClientSource } from './mcp-tools-options.js';

const MOST_NAME_CHARACTERS = 64;
const NOT_CONNECTED = { code: 'NOT_CONNECTED' };

/** Who hears of connections, and how a server is called that never told its name. */
export interface LiveClientOptions {
  /** Hears of every connection, the first included. */
  readonly onConnect?: (client: Client) => void;
  readonly prefix?: string | undefined;
}

/** What is used of a client; it may be one of another copy of the SDK. */
export const CLIENT = withMethods(
  ['getServerVersion', 'request', 'close'],
  'a connected Client of @modelcontextprotocol/client, or a function that connects one',
);

/** A client that is connected anew when its connection was lost, where it is known how. */
export class LiveClient {
  readonly #connect: (() => Client | Promise<Client>) | undefined;
  readonly #onConnect: (client: Client) => void;
  #name: string | undefined;
  #client: Promise<Client> | undefined;
  #current: Client | undefined;
  #isOver = false;

  constructor(source: McpClientSource, { onConnect = () => {}, prefix }: LiveClientOptions = {}) {
    this.#onConnect = onConnect;
    this.#name = prefix;
    if (typeof source === 'function') this.#connect = source as () => Client | Promise<Client>;
    else {
      const client = source as Client;
      this.#client = Promise.resolve(client);
      this.#learnName(client);
      onConnect(client);
    }
  }

  /**
   * Uses the connection. What was surely not carried out because there was none is done once more over a new
   * one; so is what may be done twice.
   */
  async use<Value>(work: (client: Client) => Promise<Value>, isRepeatable: boolean): Promise<Value> {
    for (let isLast = this.#connect === undefined; ; isLast = true) {
      const client = await this.#open();
      try {
        // The SDK says so by words alone.
        if (client.transport === undefined) throw Object.assign(new Error('Not connected'), NOT_CONNECTED);
        return await work(client);
      } catch (error) {
        const loss = connectionLossOf(error);
        if (loss === 'none') throw error;
        if (this.#connect !== undefined) await this.#forget(client);
        if (loss === 'during' && !isRepeatable) throw this.#lost(error);
        if (isLast) throw unreachableError(this.#server, error);
      }
    }
  }

  /** Ends a connection that was made here; who gave a client closes it. */
  async close(): Promise<void> {
    this.#isOver = true;
    const client = this.#current;
    if (client !== undefined) await this.#forget(client);
  }

  get #server(): string {
    return this.#name === undefined ? 'MCP server' : `MCP server '${this.#name}'`;
  }

  #lost(cause: unknown): Error {
    return new Error(
      `The connection to the ${this.#server} was lost during the call; whether it was carried out is not known.`,
      { cause },
    );
  }

  async #open(): Promise<Client> {
    const connect = this.#connect;
    if (connect !== undefined && this.#isOver)
      throw new Error(
        `The ${this.#server} cannot be reached: following it was ended, and its connection with it.`,
      );
    if (connect !== undefined)
      this.#client ??= Promise.resolve()
        .then(connect)
        .then((client) => this.#opened(client));
    const opening = this.#client as Promise<Client>;
    try {
      return await opening;
    } catch (error) {
      // The next call may have more luck.
      if (this.#client === opening) this.#client = undefined;
      throw unreachableError(this.#server, error);
    }
  }

  #opened(client: Client): Client {
    if (!CLIENT.accepts(client)) throw new TypeError('the function that connects gave no Client');
    const { onclose } = client;
    client.onclose = () => {
      onclose?.();
      this.#drop(client);
    };
    this.#current = client;
    this.#learnName(client);
    this.#onConnect(client);
    // It was closed while this one was on the way.
    if (this.#isOver) void this.#forget(client);
    return client;
  }

  #learnName(client: Client): void {
    this.#name = client.getServerVersion()?.name.slice(0, MOST_NAME_CHARACTERS) ?? this.#name;
  }

  /** A client that was replaced already takes nothing with it. */
  #drop(client: Client): void {
    if (this.#current !== client) return;
    this.#current = undefined;
    this.#client = undefined;
  }

  async #forget(client: Client): Promise<void> {
    this.#drop(client);
    // A server that knows the session no more need not be told of its end.
    await client.close().catch(() => {});
  }
}
