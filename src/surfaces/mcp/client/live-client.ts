import type { Client } from '@modelcontextprotocol/client';
import { causesOf, errorMessage } from '../../../core/kernel/error-message.js';
import { isObject } from '../../../core/kernel/json.js';
import { withMethods } from '../../../core/kernel/options.js';
import { asSent, TASKS_EXTENSION } from '../record-message.js';
import { serverOf } from './connect-options.js';
import type { McpClientSource } from './options.js';
import {
  type AskForSignIn,
  type McpSignIn,
  SignInError,
  serverRefusalOf,
  signInNeededBy,
  signInOf,
} from './sign-in.js';

const MOST_NAME_CHARACTERS = 64;
/** The second one if the user of the first answered without signing in. */
const MOST_SIGN_INS = 2;
const CANCEL_WITHIN_MS = 5_000;
const NOT_CONNECTED = { code: 'NOT_CONNECTED' };

/** How one use of the connection goes on after an error. */
export interface UseOptions {
  /** Whether the work may be done again if its response was lost. */
  readonly isRepeatable: boolean;
  /** Asks the user of the call to sign in. */
  readonly askForSignIn?: AskForSignIn;
}

/** The methods of a client that are used; it may come from another copy of the SDK. */
export const CLIENT = withMethods(
  ['getServerVersion', 'request', 'close'],
  'a connected Client of @modelcontextprotocol/client, or a function that connects one',
);

/** The server, or its authorization server, did not respond or refused the connection; its cause has the details. */
export class UnreachableError extends Error {
  /** What to set instead, if the address of the server is not the cause. */
  readonly fix: string | undefined;

  constructor(message: string, cause: unknown, fix?: string) {
    super(message, { cause });
    this.fix = fix;
  }
}

/** A client that reconnects after a lost connection, if it was created with a function that connects. */
export class LiveClient {
  readonly #connect: (() => Client | Promise<Client>) | undefined;
  readonly #onConnect: (client: Client) => void;
  #name: string | undefined;
  /** The server's URL or command until it is known by its name: models receive later errors. */
  #address: string | undefined;
  #client: Promise<Client> | undefined;
  #current: Client | undefined;
  readonly #cancels = new Set<Promise<unknown> | undefined>();
  isClosed = false;
  /** Whether the server may answer calls with tasks. */
  hasTasks = false;
  /** Why the last attempt to reach the server failed. */
  problem: string | undefined;

  /**
   * `prefix` names the server in errors until it reports its own name. `onConnect` is called for every connection,
   * including the first.
   */
  constructor(
    source: McpClientSource,
    prefix: string | undefined,
    onConnect: (client: Client) => void = () => {},
  ) {
    this.#onConnect = onConnect;
    this.#name = prefix;
    this.#address = serverOf(source);
    if (typeof source === 'function') this.#connect = source as () => Client | Promise<Client>;
    else {
      const client = source as Client;
      this.#client = Promise.resolve(client);
      this.#adopt(client);
    }
  }

  /**
   * Runs `work` with the connection. After a lost connection, runs it once more if the server cannot have executed it,
   * or if it is repeatable; and after a refusal that a sign-in or more scopes remove.
   */
  async use<Value>(work: (client: Client) => Promise<Value>, options: UseOptions): Promise<Value> {
    let signIns = 0;
    for (let isLast = this.#connect === undefined; ; ) {
      let client: Client | undefined;
      try {
        client = await this.#open();
        // The SDK reports this only in the text of a message.
        if (client.transport === undefined) throw Object.assign(new Error('Not connected'), NOT_CONNECTED);
        return await work(client);
      } catch (error) {
        const signIn = client === undefined ? signInNeededBy(error)?.signIn : signInOf(client);
        if (signIns < MOST_SIGN_INS && (await signIn?.resolve(error, options.askForSignIn))) {
          signIns += 1;
          continue;
        }
        if (client === undefined) throw error;
        const loss = connectionLossOf(error);
        if (loss === 'none') throw error;
        if (this.#connect !== undefined) await this.#forget(client);
        if (loss === 'during' && !options.isRepeatable) {
          const message = `The connection to the ${this.#server} was lost during the call; the outcome of the call is unknown.`;
          throw new Error(message, { cause: error });
        }
        const unreachable = this.#unreachable(error);
        if (isLast) throw unreachable;
        isLast = true;
      }
    }
  }

  /** The name that the server reports, and before the first connection the prefix of its tools. */
  get name(): string {
    return this.#name ?? 'MCP server';
  }

  get isConnected(): boolean {
    return this.#current?.transport !== undefined && !this.isClosed;
  }

  /** The sign-in of the current connection. */
  get signIn(): McpSignIn | undefined {
    return this.#current && signInOf(this.#current);
  }

  /** Whether a lost connection is replaced: a client that was passed in stays disconnected. */
  get canReconnect(): boolean {
    return this.#connect !== undefined;
  }

  /** Cancels a task of the server; `close` waits for the request. */
  cancelTask(taskId: string): void {
    const params = { taskId };
    const cancel = this.#current
      ?.request({ method: 'tasks/cancel', params }, asSent(), { timeout: CANCEL_WITHIN_MS })
      .catch(() => {})
      .finally(() => this.#cancels.delete(cancel));
    this.#cancels.add(cancel);
  }

  /** Closes a connection that was opened here; a client that was passed in stays open. */
  async close(): Promise<void> {
    this.isClosed = true;
    const client = this.#current;
    await Promise.all(this.#cancels);
    if (this.#connect !== undefined && client !== undefined) await this.#forget(client);
  }

  get #server(): string {
    const name = this.#name === undefined ? '' : ` '${this.#name}'`;
    const address = this.#address === undefined ? '' : ` (${this.#address})`;
    return `MCP server${name}${address}`;
  }

  async #open(): Promise<Client> {
    const connect = this.#connect;
    if (connect !== undefined && this.isClosed)
      throw new Error(
        `The ${this.#server} cannot be reached: its tools are no longer followed, and its connection was closed.`,
      );
    if (connect !== undefined)
      this.#client ??= Promise.resolve()
        .then(connect)
        .then((client) => this.#opened(client));
    const opening = this.#client as Promise<Client>;
    try {
      return await opening;
    } catch (error) {
      // The next call tries again.
      if (this.#client === opening) this.#client = undefined;
      if (signInNeededBy(error) !== undefined) throw error;
      throw this.#unreachable(error);
    }
  }

  #opened(client: Client): Client {
    if (!CLIENT.accepts(client)) throw new TypeError('the function that connects returned no Client');
    const { onclose } = client;
    client.onclose = () => {
      onclose?.();
      this.#drop(client);
    };
    this.#adopt(client);
    // The client was closed while connecting.
    if (this.isClosed) void this.#forget(client);
    return client;
  }

  #adopt(client: Client): void {
    this.#current = client;
    this.problem = undefined;
    this.#address = undefined;
    this.#name = client.getServerVersion()?.name.slice(0, MOST_NAME_CHARACTERS) ?? this.#name;
    this.hasTasks = client.getServerCapabilities()?.extensions?.[TASKS_EXTENSION] !== undefined;
    this.#onConnect(client);
  }

  #unreachable(error: unknown): UnreachableError {
    const unreachable = unreachableError(this.#server, error);
    this.problem = unreachable.message;
    return unreachable;
  }

  /** Does nothing if the client was replaced already. */
  #drop(client: Client): void {
    if (this.#current !== client) return;
    this.#current = undefined;
    this.#client = undefined;
  }

  async #forget(client: Client): Promise<void> {
    this.#drop(client);
    // Ignore errors: a server that has dropped the session needs no notice.
    await client.close().catch(() => {});
  }
}

/** When a connection failed: before anything was sent, with the response lost, or not at all (another error). */
type ConnectionLoss = 'before' | 'during' | 'none';

/** Error codes of Node and the SDK. */
const LOSSES = new Map<unknown, ConnectionLoss>([
  ['NOT_CONNECTED', 'before'],
  ['ECONNREFUSED', 'before'],
  ['ENOTFOUND', 'before'],
  ['EAI_AGAIN', 'before'],
  ['EHOSTUNREACH', 'before'],
  ['ENETUNREACH', 'before'],
  ['UND_ERR_CONNECT_TIMEOUT', 'before'],
  ['CONNECTION_CLOSED', 'during'],
  ['ECONNRESET', 'during'],
  ['EPIPE', 'during'],
  ['ETIMEDOUT', 'during'],
  ['UND_ERR_SOCKET', 'during'],
  ['UND_ERR_HEADERS_TIMEOUT', 'during'],
  ['UND_ERR_BODY_TIMEOUT', 'during'],
]);

/** The server no longer has the session and has not processed the message. */
const SESSION_GONE = 404;
/** The message of `fetch` in Node; details are in its cause. */
const FETCH_FAILED = 'fetch failed';

/** Classifies an error by its data: `instanceof` fails if there are two copies of the SDK. */
function connectionLossOf(error: unknown): ConnectionLoss {
  if (!isObject(error)) return 'none';
  if (serverRefusalOf(error)?.status === SESSION_GONE) return 'before';
  const causes = causesOf(error) as readonly Cause[];
  if (causes.some((cause) => cause instanceof SignInError)) return 'none';
  const known = causes.map(({ code }) => LOSSES.get(code)).find((loss) => loss !== undefined);
  if (known !== undefined) return known;
  return causes.some(({ message }) => message === FETCH_FAILED) ? 'during' : 'none';
}

const MOST_SHOWN_CHARACTERS = 200;

/** The statuses of a server that refuses who asks. */
const REFUSED: ReadonlySet<number> = new Set([401, 403]);

/** The error for a connection that could not be opened or was lost. */
function unreachableError(server: string, error: unknown): UnreachableError {
  const failed = causesOf(error).find((cause) => cause instanceof SignInError);
  if (failed !== undefined) {
    const fix = 'retry when its authorization server works, or set an `auth` that the server accepts';
    return new UnreachableError(failed.message, error, fix);
  }
  const { status, text } = serverRefusalOf(error) ?? {};
  if (status !== undefined) {
    const [line = ''] = typeof text === 'string' ? text.trim().split(/\r?\n/, 1) : [];
    const shown = line === '' ? '.' : `: ${line.slice(0, MOST_SHOWN_CHARACTERS)}`;
    const fix = REFUSED.has(status) ? 'an `auth` or `headers` that the server accepts' : undefined;
    const advice = status === 401 ? ' Set an `auth` or `headers` that the server accepts.' : '';
    return new UnreachableError(`The ${server} answered with status ${status}${shown}${advice}`, error, fix);
  }
  if (connectionLossOf(error) === 'none')
    return new UnreachableError(`The ${server} cannot be reached: ${errorMessage(error)}`, error);
  const causes = causesOf(error) as readonly Cause[];
  const code = causes.findLast((cause) => LOSSES.has(cause.code))?.code;
  const shown = code === undefined ? '' : ` (${String(code)})`;
  return new UnreachableError(`The ${server} cannot be reached${shown}.`, error);
}

interface Cause {
  readonly code?: unknown;
  readonly message?: unknown;
}
