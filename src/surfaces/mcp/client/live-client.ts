import type { Client } from '@modelcontextprotocol/client';
import { withMethods } from '../../../core/kernel/options.js';
import type { McpClientSource } from './options.js';

const MOST_NAME_CHARACTERS = 64;
const NOT_CONNECTED = { code: 'NOT_CONNECTED' };

/** Who is notified of connections, and the name of a server that never sent one. */
interface LiveClientOptions {
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
        if (loss === 'during' && !isRepeatable) {
          const message = `The connection to the ${this.#server} was lost during the call; whether it was carried out is not known.`;
          throw new Error(message, { cause: error });
        }
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
    // A server that has forgotten the session needs no notice of its end.
    await client.close().catch(() => {});
  }
}

/**
 * How a use of a connection failed: before anything was sent, with the answer lost, or for another reason than
 * the connection.
 */
type ConnectionLoss = 'before' | 'during' | 'none';

/** Codes of Node and of the SDK that say that nothing was sent, and that the answer is lost. */
const LOSSES: ReadonlyMap<unknown, ConnectionLoss> = new Map([
  ...losses('before', ['NOT_CONNECTED', 'ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH']),
  ...losses('before', ['ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']),
  ...losses('during', ['CONNECTION_CLOSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'UND_ERR_SOCKET']),
  ...losses('during', ['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']),
]);

function losses(loss: ConnectionLoss, codes: readonly string[]): [unknown, ConnectionLoss][] {
  return codes.map((code) => [code, loss]);
}

/** The server has forgotten the session, and did not look at the message. */
const SESSION_GONE = 404;
/** All that Node’s `fetch` says for itself. */
const FETCH_FAILED = 'fetch failed';
const MOST_CAUSES = 8;

/**
 * Whether an error says that there is no connection; told apart by its data, as there may be two copies of
 * the SDK.
 */
function connectionLossOf(error: unknown): ConnectionLoss {
  if (typeof error !== 'object' || error === null) return 'none';
  const { data } = error as { readonly data?: { readonly status?: unknown } };
  if (data?.status === SESSION_GONE) return 'before';
  const causes = causesOf(error);
  const known = causes.map(({ code }) => LOSSES.get(code)).find((loss) => loss !== undefined);
  if (known !== undefined) return known;
  return causes.some(({ message }) => message === FETCH_FAILED) ? 'during' : 'none';
}

/** What is said of a server that did not answer, with what the network said for those who look after it. */
function unreachableError(server: string, error: unknown): Error {
  if (connectionLossOf(error) === 'none')
    return new Error(
      `The ${server} cannot be reached: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  const code = causesOf(error).findLast((cause) => LOSSES.has(cause.code))?.code;
  const shown = code === undefined ? '' : ` (${String(code)})`;
  return new Error(`The ${server} cannot be reached${shown}.`, { cause: error });
}

interface Cause {
  readonly code?: unknown;
  readonly message?: unknown;
}

function causesOf(error: unknown): readonly Cause[] {
  const causes: Cause[] = [];
  for (let cause = error; typeof cause === 'object' && cause !== null && causes.length < MOST_CAUSES; )
    cause = (causes[causes.push(cause) - 1] as { readonly cause?: unknown }).cause;
  return causes;
}
