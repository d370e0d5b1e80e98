import {
  type CancelledNotificationParams,
  type JSONRPCErrorResponse,
  type JSONRPCMessage,
  type JSONRPCRequest,
  type JSONRPCResultResponse,
  type RequestId,
  SdkError,
  SdkErrorCode,
  type ServerContext,
  type Transport,
} from '@modelcontextprotocol/server';

interface WatchOptions {
  /** Ignores requests that arrive during closing. */
  readonly dropsLate?: boolean;
  /** Called after a response was sent, with the HTTP request that it answers. */
  readonly onAnswer?: (request: Request) => void;
}

/** A request from the client. */
interface Received {
  /** The HTTP request that contained it. */
  readonly http: Request | undefined;
  /** Aborts its call; absent if no call is running. */
  call?: AbortController | undefined;
}

/** Stays open until the connection ends (MCP 2026-07-28). */
export const SUBSCRIPTION = 'subscriptions/listen';
const CONNECTION_CLOSED = -32_000;

/** The unanswered requests of a connection in both directions, so that closing loses no responses. */
export class OpenRequests {
  /** The set of open connections. */
  readonly #all: Set<OpenRequests>;
  /** Requests from the client. */
  readonly #received = new Pending<RequestId, Received>();
  /** Requests to the client. */
  readonly #asked = new Set<RequestId>();
  #transport: Transport | undefined;
  #closing: Error | undefined;

  constructor(all: Set<OpenRequests>) {
    this.#all = all;
  }

  get count(): number {
    return this.#received.count;
  }

  /** Watches a transport; call it once, before the transport starts. */
  watch(transport: Transport, { dropsLate = false, onAnswer }: WatchOptions = {}): void {
    if (this.#transport !== undefined) return;
    this.#transport = transport;
    this.#all.add(this);
    const { start, send } = transport;
    // Users of a transport set their listeners before they start it.
    transport.start = () => {
      const { onmessage, onclose } = transport;
      transport.onmessage = (message, extra) => {
        if (isRequest(message)) {
          if (this.#closing !== undefined && dropsLate) return;
          // Of two requests with the same id, only the later one is watched.
          if (message.method !== SUBSCRIPTION) this.#received.begin(message.id, { http: extra?.request });
        } else if (isAnswer(message)) this.#asked.delete(message.id);
        else if ('method' in message && message.method === 'notifications/cancelled') {
          const { requestId, reason } = (message.params ?? {}) as CancelledNotificationParams;
          const call = requestId === undefined ? undefined : this.#received.get(requestId)?.call;
          // A cancelled request gets no response. Its call is aborted after the SDK has noticed this.
          if (call !== undefined) setImmediate(() => call.abort(reason));
          if (requestId !== undefined) this.#received.end(requestId);
        }
        onmessage?.(message, extra);
      };
      transport.onclose = () => {
        this.#all.delete(this);
        this.#abortCalls(() => new SdkError(SdkErrorCode.ConnectionClosed, 'Connection closed'));
        this.#received.endAll();
        onclose?.();
      };
      return start.call(transport);
    };
    transport.send = async (message, options) => {
      if (isRequest(message)) {
        this.#asked.add(message.id);
        if (this.#closing !== undefined) {
          queueMicrotask(() => this.#giveUp(message.id));
          return;
        }
      }
      const answered = isAnswer(message) ? this.#received.get(message.id) : undefined;
      if (answered !== undefined) answered.call = undefined;
      try {
        await send.call(transport, message, options);
      } finally {
        if (answered?.http !== undefined) onAnswer?.(answered.http);
        if (isAnswer(message)) this.#received.end(message.id);
      }
    };
  }

  /** Most connections close without running calls, and need no error. */
  #abortCalls(reason: () => Error): void {
    for (const { call } of this.#received.values()) call?.abort(reason());
  }

  /**
   * The signal for the call of a request, aborted when the request is cancelled and when the connection closes. It is
   * not the SDK's own signal, because the SDK does not answer a call whose own signal is aborted.
   */
  signalOf({ id, signal }: Pick<ServerContext['mcpReq'], 'id' | 'signal'>): AbortSignal {
    const received = this.#received.get(id);
    // It was cancelled before its call began.
    if (received === undefined) return signal;
    received.call ??= new AbortController();
    if (this.#closing !== undefined) received.call.abort(this.#closing);
    return received.call.signal;
  }

  /** Aborts running calls, gives up requests to the client, and resolves once all requests are answered. */
  async end(): Promise<void> {
    const closing = this.#closing ?? new Error('The server is shutting down');
    this.#closing = closing;
    this.#abortCalls(() => closing);
    for (const id of [...this.#asked]) this.#giveUp(id);
    await this.#received.none();
  }

  /** Simulates an error response of the client, which ends the waiting call. */
  #giveUp(id: RequestId): void {
    if (!this.#asked.delete(id)) return;
    const error = { code: CONNECTION_CLOSED, message: 'the server is shutting down' };
    this.#transport?.onmessage?.({ jsonrpc: '2.0', id, error });
  }
}

function isRequest(message: JSONRPCMessage): message is JSONRPCRequest {
  return 'method' in message && 'id' in message;
}

function isAnswer(
  message: JSONRPCMessage,
): message is (JSONRPCResultResponse | JSONRPCErrorResponse) & { readonly id: RequestId } {
  return !('method' in message) && message.id !== undefined;
}

/** Pending things, which may have values, that report when there are none left. */
export class Pending<Key, Value = undefined> {
  readonly #open = new Map<Key, Value | undefined>();
  #none: PromiseWithResolvers<void> | undefined;

  get count(): number {
    return this.#open.size;
  }

  begin(key: Key, value?: Value): void {
    this.#open.set(key, value);
  }

  get(key: Key): Value | undefined {
    return this.#open.get(key);
  }

  values(): Iterable<Value> {
    return this.#open.values() as Iterable<Value>;
  }

  end(key: Key): void {
    if (!this.#open.delete(key) || this.#open.size > 0) return;
    this.#none?.resolve();
    this.#none = undefined;
  }

  endAll(): void {
    for (const key of this.#open.keys()) this.end(key);
  }

  /** Resolves when nothing is pending. */
  async none(): Promise<void> {
    if (this.#open.size === 0) return;
    this.#none ??= Promise.withResolvers();
    await this.#none.promise;
  }
}
