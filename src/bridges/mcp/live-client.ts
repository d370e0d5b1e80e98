import type { Client } from '@modelcontextprotocol/client';
import type { McpClientSource } from './mcp-tools-options.js';

/** Codes of the SDK and of Node that say that nothing was sent, and that the answer is lost. */
const LOSSES: ReadonlyMap<unknown, Loss> = new Map([
  ['NOT_CONNECTED', 'before'],
  ['ECONNREFUSED', 'before'],
  ['CONNECTION_CLOSED', 'during'],
  ['ECONNRESET', 'during'],
  ['EPIPE', 'during'],
  ['UND_ERR_SOCKET', 'during'],
]);
/** The server has forgotten the session, and did not look at the message. */
const SESSION_GONE = 404;

/** How a use of the connection failed. */
type Loss = 'before' | 'during' | 'none';

/** A client that is connected anew when its connection was lost, where it is known how. */
export class LiveClient {
  readonly #connect: (() => Client | Promise<Client>) | undefined;
  readonly #onConnect: (client: Client) => void;
  #client: Promise<Client> | undefined;
  #current: Client | undefined;

  /** `onConnect` hears of every connection, the first included. */
  constructor(source: McpClientSource, onConnect: (client: Client) => void = () => {}) {
    this.#onConnect = onConnect;
    if (typeof source === 'function') this.#connect = source as () => Client | Promise<Client>;
    else {
      const client = source as Client;
      this.#client = Promise.resolve(client);
      onConnect(client);
    }
  }

  /**
   * Uses the connection. What was surely not carried out because there was none is done once more over a new
   * one; so is what may be done twice.
   */
  async use<Value>(work: (client: Client) => Promise<Value>, isRepeatable: boolean): Promise<Value> {
    const client = await this.#open();
    try {
      return await work(client);
    } catch (error) {
      const loss = lossOf(error);
      if (loss === 'none' || this.#connect === undefined) throw error;
      await this.#forget(client);
      if (loss === 'before' || isRepeatable) return work(await this.#open());
      throw new Error(
        'The connection to the server was lost during the call; whether it was carried out is not known.',
        { cause: error },
      );
    }
  }

  async #open(): Promise<Client> {
    const connect = this.#connect;
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
      throw error;
    }
  }

  #opened(client: Client): Client {
    const { onclose } = client;
    client.onclose = () => {
      onclose?.();
      this.#drop(client);
    };
    this.#current = client;
    this.#onConnect(client);
    return client;
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

/**
 * Whether an error says that there is no connection; told apart by its data, as there may be two copies of
 * the SDK.
 */
function lossOf(error: unknown): Loss {
  if (typeof error !== 'object' || error === null) return 'none';
  const { code, data, cause } = error as {
    readonly code?: unknown;
    readonly data?: { readonly status?: unknown };
    readonly cause?: { readonly code?: unknown };
  };
  if (data?.status === SESSION_GONE) return 'before';
  return LOSSES.get(code) ?? LOSSES.get(cause?.code) ?? 'none';
}
