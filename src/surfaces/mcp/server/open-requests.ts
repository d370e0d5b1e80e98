import type {
  JSONRPCErrorResponse,
  JSONRPCMessage,
  JSONRPCRequest,
  JSONRPCResultResponse,
  RequestId,
  Transport,
} from '@modelcontextprotocol/server';
import { atEndOfTurn, onAbort } from '../../../core/kernel/async.js';

interface WatchOptions {
  /** Ignores requests that arrive during closing. */
  readonly dropsLate?: boolean;
  /** Called after a response was sent, with the HTTP request that it answers. */
  readonly onAnswer?: (request: Request) => void;
}

interface OpenCall {
  readonly signal: AbortSignal;
  end(): unknown;
}

/** Stays open until the connection ends (MCP 2026-07-28). */
export const SUBSCRIPTION = 'subscriptions/listen';
const CONNECTION_CLOSED = -32_000;

/**
 * The unanswered requests of a connection in both directions, so that closing loses no responses. The SDK does not
 * answer a call whose own signal is aborted, so calls get another signal.
 */
export class OpenRequests {
  /** The set of open connections. */
  readonly #all: Set<OpenRequests>;
  /** Requests from the client. */
  readonly #received = new Pending<RequestId>();
  /** The HTTP requests that contained them. */
  readonly #http = new Map<RequestId, Request>();
  /** Requests to the client. */
  readonly #asked = new Set<RequestId>();
  /** Running calls. */
  readonly #calls = new Set<AbortController>();
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
        if (this.#closing !== undefined && dropsLate && isRequest(message)) return;
        if (isAnswer(message)) this.#asked.delete(message.id);
        else if (isRequest(message)) {
          // If two requests have the same id, the SDK answers only the later one.
          if (message.method !== SUBSCRIPTION) this.#received.begin(message.id);
          if (extra?.request !== undefined) this.#http.set(message.id, extra.request);
        }
        // A cancelled request gets no response.
        else if ('method' in message && message.method === 'notifications/cancelled')
          this.#end(message.params?.requestId as RequestId);
        onmessage?.(message, extra);
      };
      transport.onclose = () => {
        this.#all.delete(this);
        this.#received.endAll();
        this.#http.clear();
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
      try {
        await send.call(transport, message, options);
      } finally {
        if (isAnswer(message)) {
          const request = this.#http.get(message.id);
          if (request !== undefined) onAnswer?.(request);
          this.#end(message.id);
        }
      }
    };
  }

  #end(id: RequestId): void {
    this.#http.delete(id);
    this.#received.end(id);
  }

  /** Registers a call. Its signal is aborted with the given signal, and when the connection closes. */
  call(signal: AbortSignal): OpenCall {
    const controller = new AbortController();
    this.#calls.add(controller);
    const unfollow = atEndOfTurn(() => onAbort(signal, () => controller.abort(signal.reason)));
    if (this.#closing !== undefined) controller.abort(this.#closing);
    const end = () => {
      unfollow();
      this.#calls.delete(controller);
    };
    return { signal: controller.signal, end };
  }

  /** Aborts running calls, gives up requests to the client, and resolves once all requests are answered. */
  async end(): Promise<void> {
    this.#closing ??= new Error('The server is closing');
    for (const controller of this.#calls) controller.abort(this.#closing);
    for (const id of [...this.#asked]) this.#giveUp(id);
    await this.#received.none();
  }

  /** Simulates an error response of the client, which ends the waiting call. */
  #giveUp(id: RequestId): void {
    if (!this.#asked.delete(id)) return;
    const error = { code: CONNECTION_CLOSED, message: 'the server is closing' };
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

/** A set of pending things that reports when it is empty. */
export class Pending<Key> {
  readonly #open = new Set<Key>();
  #none: PromiseWithResolvers<void> | undefined;

  get count(): number {
    return this.#open.size;
  }

  begin(key: Key): void {
    this.#open.add(key);
  }

  end(key: Key): void {
    if (!this.#open.delete(key) || this.#open.size > 0) return;
    this.#none?.resolve();
    this.#none = undefined;
  }

  endAll(): void {
    for (const key of this.#open) this.end(key);
  }

  /** Resolves when nothing is pending. */
  async none(): Promise<void> {
    if (this.#open.size === 0) return;
    this.#none ??= Promise.withResolvers();
    await this.#none.promise;
  }
}
