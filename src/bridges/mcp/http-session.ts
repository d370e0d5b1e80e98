import { randomUUID } from 'node:crypto';
import {
  type McpHandlerRequestOptions,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { MAX_TIMER_MS } from '../../invocation/max-timer-ms.js';
import { EventLog } from './event-log.js';
import type { RegistryMcpServer } from './sdk-server.js';
import { UnderWay } from './under-way.js';
import type { UnreadBytes } from './unread-bytes.js';
import { watchResponse } from './watch-response.js';

/** What a session is made from. */
export interface HttpSessionParts {
  readonly server: RegistryMcpServer;
  /** Whose session it is; nobody else may use it. */
  readonly principal: string;
  readonly idleMs: number;
  readonly replay: number;
  readonly maxRequestBytes: number | undefined;
  /** Responses that somebody reads. */
  readonly deliveries: UnderWay;
  /** What of them nobody has read. */
  readonly unread: UnreadBytes;
  readonly onOpen: (id: string, session: HttpSession) => void;
  readonly onEnd: (id: string | undefined) => void;
}

/** How soon a client whose stream was ended comes back, and how long it is expected to. */
const RETRY_MS = 500;
const RETURN_MS = 2 * RETRY_MS;
/** Begins the ids of events that belong to no call (of the SDK). */
const STANDALONE = '_GET_stream';

/** Node sends no headers before there is a body; a client would wait for its stream until something happens. */
const COMMENT = new TextEncoder().encode(': open\n\n');

/** One 2025-11-25 client over HTTP: its server of the SDK, and the time that it may be silent. */
export class HttpSession {
  readonly principal: string;
  readonly #parts: HttpSessionParts;
  readonly #transport: WebStandardStreamableHTTPServerTransport;
  #idle: NodeJS.Timeout | undefined;
  #open = 0;
  #isOver = false;
  #silentSince = performance.now();
  /** Requests whose stream has ended, with their answer or without. */
  readonly #streamless = new WeakSet<Request>();
  /** Streams of clients that came back for an answer. */
  readonly #returned = new UnderWay();
  #missedAt: number | undefined;
  #collected: PromiseWithResolvers<void> | undefined;

  constructor(parts: HttpSessionParts) {
    this.principal = parts.principal;
    this.#parts = parts;
    this.#transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => parts.onOpen(id, this),
      eventStore: new EventLog(parts.replay),
      retryInterval: RETRY_MS,
      ...(parts.maxRequestBytes === undefined ? {} : { maxRequestBodySize: parts.maxRequestBytes }),
    });
    const { onclose } = parts.server.server;
    parts.server.server.onclose = () => {
      onclose?.();
      this.#isOver = true;
      clearTimeout(this.#idle);
      parts.onEnd(this.#transport.sessionId);
    };
  }

  /** When the last request or stream ended; `Infinity` while there is one, or a call that is not answered. */
  get silentSince(): number {
    const isBusy = this.#open > 0 || this.#parts.server.open.count > 0;
    return isBusy ? Number.POSITIVE_INFINITY : this.#silentSince;
  }

  connect(): Promise<void> {
    const { server } = this.#parts;
    server.open.watch(this.#transport, {
      onAnswer: (request) => {
        if (request && this.#streamless.has(request) && this.#returned.count === 0)
          this.#missedAt = performance.now();
      },
    });
    return server.connect(this.#transport);
  }

  /** Resolves when no answer waits for a client that is expected to come back for it. */
  async collected(): Promise<void> {
    if (this.#missedAt === undefined || performance.now() - this.#missedAt > RETURN_MS) return;
    this.#collected ??= Promise.withResolvers();
    await this.#collected.promise;
  }

  async handle(request: Request, options: McpHandlerRequestOptions): Promise<Response> {
    this.#open += 1;
    clearTimeout(this.#idle);
    const returned = isReturn(request) ? this.#returned.begin() : undefined;
    const onEnd = (): void => {
      this.#streamless.add(request);
      if (returned) this.#collect(returned);
      this.#rest();
    };
    try {
      const response = await this.#transport.handleRequest(request, options);
      if (this.#transport.sessionId === undefined) await this.close();
      const isStream = request.method === 'GET' && response.ok;
      return watchResponse(response, {
        deliveries: this.#parts.deliveries,
        unread: this.#parts.unread,
        onEnd,
        signal: request.signal,
        ...(isStream ? { first: COMMENT } : {}),
      });
    } catch (error) {
      onEnd();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#parts.server.close();
  }

  #collect(returned: () => void): void {
    returned();
    this.#missedAt = undefined;
    this.#collected?.resolve();
  }

  #rest(): void {
    this.#open -= 1;
    this.#silentSince = performance.now();
    if (this.#open > 0 || this.#isOver) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.close(), Math.min(this.#parts.idleMs, MAX_TIMER_MS));
    // A process does not stay for a client that may come back.
    this.#idle.unref();
  }
}

/** Whether a client comes back for an answer that its stream did not bring. */
export function isReturn({ method, headers }: Request): boolean {
  const id = headers.get('last-event-id');
  return method === 'GET' && id !== null && !id.startsWith(STANDALONE);
}
