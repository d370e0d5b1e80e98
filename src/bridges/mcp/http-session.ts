import { randomUUID } from 'node:crypto';
import {
  type McpHandlerRequestOptions,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { MAX_TIMER_MS } from '../../invocation/max-timer-ms.js';
import { EventLog } from './event-log.js';
import { watchResponse } from './watch-response.js';

/** What a session is made from. */
export interface HttpSessionParts {
  readonly server: McpServer;
  /** Whose session it is; nobody else may use it. */
  readonly principal: string;
  readonly idleMs: number;
  readonly replay: number;
  readonly maxRequestBytes: number | undefined;
  readonly onOpen: (id: string, session: HttpSession) => void;
  readonly onEnd: (id: string | undefined) => void;
}

/** How soon a client whose stream was ended comes back. */
const RETRY_MS = 500;

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

  connect(): Promise<void> {
    return this.#parts.server.connect(this.#transport);
  }

  async handle(request: Request, options: McpHandlerRequestOptions): Promise<Response> {
    this.#open += 1;
    clearTimeout(this.#idle);
    try {
      const response = await this.#transport.handleRequest(request, options);
      if (this.#transport.sessionId === undefined) await this.close();
      const isStream = request.method === 'GET' && response.ok;
      return watchResponse(response, {
        onEnd: () => this.#rest(),
        signal: request.signal,
        ...(isStream ? { first: COMMENT } : {}),
      });
    } catch (error) {
      this.#rest();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#parts.server.close();
  }

  #rest(): void {
    this.#open -= 1;
    if (this.#open > 0 || this.#isOver) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.close(), Math.min(this.#parts.idleMs, MAX_TIMER_MS));
    // A process does not stay for a client that may come back.
    this.#idle.unref();
  }
}
