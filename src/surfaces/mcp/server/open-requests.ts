import type {
  JSONRPCErrorResponse,
  JSONRPCMessage,
  JSONRPCRequest,
  JSONRPCResultResponse,
  RequestId,
  Transport,
} from '@modelcontextprotocol/server';

interface OpenCall {
  readonly signal: AbortSignal;
  end(): void;
}

interface RequestWatcher {
  /** For connections that last: what comes while they are being closed is not looked at. */
  readonly dropsLate?: boolean;
  /** Hears of every answer that was sent, with the HTTP request that it answers. */
  readonly onAnswer?: (request: Request | undefined) => void;
}

/** Stays open until the connection ends (MCP 2026-07-28). */
const SUBSCRIPTION = 'subscriptions/listen';
const CONNECTION_CLOSED = -32_000;

/**
 * What is not answered yet on one connection, in both directions: closing it must not lose answers. The SDK
 * answers no call whose own signal was aborted, so that calls get a signal of their own.
 */
export class OpenRequests {
  /** Where it is found while its connection is open. */
  readonly #all: Set<OpenRequests>;
  /** What the client asked, and the HTTP request that brought it. */
  readonly #received = new Pending<RequestId, Request | undefined>();
  /** Questions to the client. */
  readonly #asked = new Set<RequestId>();
  /** The calls that run, each with the signal that the SDK gave it. */
  readonly #calls = new Map<AbortController, AbortSignal>();
  #transport: Transport | undefined;
  #closing: Error | undefined;

  constructor(all: Set<OpenRequests>) {
    this.#all = all;
  }

  get count(): number {
    return this.#received.count;
  }

  /** Watches a transport that is not started yet; who watches it first does. */
  watch(transport: Transport, { dropsLate = false, onAnswer }: RequestWatcher = {}): void {
    if (this.#transport !== undefined) return;
    this.#transport = transport;
    this.#all.add(this);
    const { start, send } = transport;
    // Whoever uses a transport puts its own listeners there before it starts it.
    transport.start = () => {
      const { onmessage, onclose } = transport;
      transport.onmessage = (message, extra) => {
        if (this.#closing !== undefined && dropsLate && isRequest(message)) return;
        this.#receive(message, extra?.request);
        onmessage?.(message, extra);
      };
      transport.onclose = () => {
        this.#all.delete(this);
        this.#received.endAll();
        onclose?.();
      };
      return start.call(transport);
    };
    transport.send = async (message, options) => {
      if (isRequest(message) && this.#ask(message.id)) return;
      try {
        await send.call(transport, message, options);
      } finally {
        if (isAnswer(message) && this.#received.has(message.id)) {
          onAnswer?.(this.#received.get(message.id));
          this.#received.end(message.id);
        }
      }
    };
  }

  /**
   * Passes on what the SDK aborts, from a transport that its server is not connected to yet. Calls do not listen
   * to the SDK's signals themselves: for each of them, that would cost more than all that is done for it here.
   */
  followAborts(transport: Transport): void {
    const { onmessage, onclose } = transport;
    transport.onmessage = (message, extra) => {
      onmessage?.(message, extra);
      if (isCancellation(message)) this.#followSoon();
    };
    transport.onclose = () => {
      onclose?.();
      this.#followSoon();
    };
  }

  /** A call whose signal is aborted with the given one, and when the connection is closed. */
  call(signal: AbortSignal): OpenCall {
    const controller = new AbortController();
    if (this.#closing !== undefined) controller.abort(this.#closing);
    if (signal.aborted) controller.abort(signal.reason);
    this.#calls.set(controller, signal);
    return { signal: controller.signal, end: () => this.#calls.delete(controller) };
  }

  /** Aborts the calls that run, gives up what the client was asked, and resolves when all is answered. */
  async end(): Promise<void> {
    this.#closing ??= new Error('The server is closing');
    for (const controller of this.#calls.keys()) controller.abort(this.#closing);
    for (const id of [...this.#asked]) this.#giveUp(id);
    await this.#received.none();
  }

  /** The SDK aborts a call within a microtask of the message that cancels it. */
  #followSoon(): void {
    const follow = (): void => {
      for (const [controller, signal] of this.#calls) if (signal.aborted) controller.abort(signal.reason);
    };
    queueMicrotask(() => queueMicrotask(follow));
  }

  #receive(message: JSONRPCMessage, request: Request | undefined): void {
    if (isAnswer(message)) this.#asked.delete(message.id);
    else if (isRequest(message)) {
      // Of two requests with one id, the SDK answers the later one.
      if (message.method !== SUBSCRIPTION) this.#received.begin(message.id, request);
    }
    // A cancelled request gets no answer.
    else if (isCancellation(message)) this.#received.end(message.params?.requestId as RequestId);
  }

  /** Whether it is too late for questions. */
  #ask(id: RequestId): boolean {
    this.#asked.add(id);
    if (this.#closing === undefined) return false;
    queueMicrotask(() => this.#giveUp(id));
    return true;
  }

  /** As if the client had said that it cannot answer: the call that waits for it then ends with that. */
  #giveUp(id: RequestId): void {
    if (!this.#asked.delete(id)) return;
    const error = { code: CONNECTION_CLOSED, message: 'the server is closing' };
    this.#transport?.onmessage?.({ jsonrpc: '2.0', id, error });
  }
}

function isRequest(message: JSONRPCMessage): message is JSONRPCRequest {
  return 'method' in message && 'id' in message;
}

function isCancellation(
  message: JSONRPCMessage,
): message is JSONRPCMessage & { params?: { requestId?: unknown } } {
  return 'method' in message && message.method === 'notifications/cancelled';
}

function isAnswer(
  message: JSONRPCMessage,
): message is (JSONRPCResultResponse | JSONRPCErrorResponse) & { readonly id: RequestId } {
  return !('method' in message) && message.id !== undefined;
}

/** What has begun and has not ended yet, by its key; reports when all of it has ended. */
export class Pending<Key, Value = undefined> {
  readonly #open = new Map<Key, Value | undefined>();
  #none: PromiseWithResolvers<void> | undefined;

  get count(): number {
    return this.#open.size;
  }

  has(key: Key): boolean {
    return this.#open.has(key);
  }

  get(key: Key): Value | undefined {
    return this.#open.get(key);
  }

  begin(key: Key, value?: Value): void {
    this.#open.set(key, value);
  }

  end(key: Key): void {
    if (!this.#open.delete(key) || this.#open.size > 0) return;
    this.#none?.resolve();
    this.#none = undefined;
  }

  endAll(): void {
    for (const key of [...this.#open.keys()]) this.end(key);
  }

  /** Resolves when nothing is under way. */
  async none(): Promise<void> {
    if (this.#open.size === 0) return;
    this.#none ??= Promise.withResolvers();
    await this.#none.promise;
  }
}
