import type {
  JSONRPCMessage,
  JSONRPCNotification,
  JSONRPCRequest,
  RequestId,
  Transport,
} from '@modelcontextprotocol/server';
import { UnderWay } from './under-way.js';

/** A call, and the signal that ends it. */
export interface OpenCall {
  readonly signal: AbortSignal;
  /** When the call is answered. */
  end(): void;
}

/** How a connection is watched. */
export interface RequestWatcher {
  /** For connections that last: what comes while they are being closed is not looked at. */
  readonly dropsLate?: boolean;
  /** Hears of every answer that was sent, with the HTTP request that it answers. */
  readonly onAnswer?: (request: Request | undefined) => void;
}

interface Received {
  readonly request: Request | undefined;
  readonly answered: () => void;
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
  readonly #unanswered = new UnderWay();
  readonly #received = new Map<RequestId, Received>();
  /** Questions to the client. */
  readonly #asked = new Set<RequestId>();
  readonly #calls = new Set<AbortController>();
  #transport: Transport | undefined;
  #closing: Error | undefined;

  constructor(all: Set<OpenRequests>) {
    this.#all = all;
  }

  get count(): number {
    return this.#unanswered.count;
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
        this.#forget();
        onclose?.();
      };
      return start.call(transport);
    };
    transport.send = async (message, options) => {
      if (isRequest(message) && this.#ask(message.id)) return;
      try {
        await send.call(transport, message, options);
      } finally {
        const received = isAnswer(message) ? this.#received.get(message.id) : undefined;
        if (received) onAnswer?.(received.request);
        received?.answered();
      }
    };
  }

  /** A call whose signal is aborted with the given one, and when the connection is closed. */
  call(signal: AbortSignal): OpenCall {
    const controller = new AbortController();
    const abort = (): void => controller.abort(signal.reason);
    if (this.#closing !== undefined) controller.abort(this.#closing);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    this.#calls.add(controller);
    return {
      signal: controller.signal,
      end: () => {
        signal.removeEventListener('abort', abort);
        this.#calls.delete(controller);
      },
    };
  }

  /** Aborts the calls that run, gives up what the client was asked, and resolves when all is answered. */
  async end(): Promise<void> {
    this.#closing ??= new Error('The server is closing');
    for (const controller of this.#calls) controller.abort(this.#closing);
    for (const id of [...this.#asked]) this.#giveUp(id);
    await this.#unanswered.none();
  }

  #receive(message: JSONRPCMessage, request: Request | undefined): void {
    if (isAnswer(message)) this.#asked.delete(message.id);
    else if (isRequest(message)) this.#open(message, request);
    // A cancelled request gets no answer.
    else if (isCancellation(message)) this.#received.get(message.params?.requestId as RequestId)?.answered();
  }

  #open({ id, method }: JSONRPCRequest, request: Request | undefined): void {
    if (method === SUBSCRIPTION) return;
    // Of two requests with one id, the SDK answers the later one.
    this.#received.get(id)?.answered();
    const end = this.#unanswered.begin();
    const received: Received = {
      request,
      answered: () => {
        if (this.#received.get(id) === received) this.#received.delete(id);
        end();
      },
    };
    this.#received.set(id, received);
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

  #forget(): void {
    this.#all.delete(this);
    for (const { answered } of [...this.#received.values()]) answered();
  }
}

function isRequest(message: JSONRPCMessage): message is JSONRPCRequest {
  return 'method' in message && 'id' in message;
}

function isCancellation(message: JSONRPCMessage): message is JSONRPCNotification {
  return 'method' in message && message.method === 'notifications/cancelled';
}

function isAnswer(
  message: JSONRPCMessage,
): message is Extract<JSONRPCMessage, { readonly id?: unknown }> & { readonly id: RequestId } {
  return !('method' in message) && message.id !== undefined;
}
