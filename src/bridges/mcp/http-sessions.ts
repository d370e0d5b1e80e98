import type { McpHandlerRequestOptions } from '@modelcontextprotocol/server';
import { HttpSession } from './http-session.js';
import type { McpServerOptions, McpSessionOptions } from './mcp-server-options.js';
import { refuseRequest } from './refuse-request.js';
import { principalOf, type RegistryMcpServer } from './sdk-server.js';
import type { UnderWay } from './under-way.js';
import type { UnreadBytes } from './unread-bytes.js';

const DEFAULTS: Required<McpSessionOptions> = {
  idleMs: 30 * 60 * 1000,
  max: 1_000,
  maxPerPrincipal: 100,
  replay: 64,
};
const RETRY_AFTER_SECONDS = '60';
const METHODS = ['GET', 'POST', 'DELETE'];

/** What all sessions have from their server. */
export interface HttpSessionsParts {
  readonly connect: () => RegistryMcpServer;
  readonly deliveries: UnderWay;
  readonly unread: UnreadBytes;
}

/**
 * The 2025-11-25 clients over HTTP. Each has its own session, which ends by the client, by silence, or all at
 * once.
 */
export class HttpSessions {
  readonly #options: McpServerOptions;
  readonly #limits: Required<McpSessionOptions>;
  readonly #parts: HttpSessionsParts;
  readonly #sessions = new Map<string, HttpSession>();
  /** Those that may become sessions: many can be on the way at once. */
  readonly #beginning = new Set<HttpSession>();
  #isClosed = false;

  constructor(options: McpServerOptions, parts: HttpSessionsParts) {
    this.#options = options;
    this.#limits = { ...DEFAULTS, ...(options.sessions === false ? {} : options.sessions) };
    this.#parts = parts;
  }

  get size(): number {
    return this.#sessions.size;
  }

  async fetch(request: Request, options: McpHandlerRequestOptions): Promise<Response> {
    const id = request.headers.get('mcp-session-id');
    const http = options.authInfo ? { authInfo: options.authInfo } : {};
    const principal = principalOf(this.#options, { http });
    if (id === null) return this.#begin(principal, request, options);
    const session = this.#sessions.get(id);
    // Somebody else's session is none: its id alone opens nothing.
    if (session === undefined || session.principal !== principal)
      return refuseRequest(404, 'Session not found');
    return session.handle(request, options);
  }

  /** Resolves when no answer waits for a client that is expected to come back for it. */
  async collected(): Promise<void> {
    await Promise.all(Array.from(this.#sessions.values(), (session) => session.collected()));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(Array.from(this.#sessions.values(), (session) => session.close()));
  }

  async #begin(principal: string, request: Request, options: McpHandlerRequestOptions): Promise<Response> {
    if (!METHODS.includes(request.method))
      return refuseRequest(405, 'Method not allowed', { Allow: METHODS.join(', ') });
    if (request.method !== 'POST') return refuseRequest(400, 'Mcp-Session-Id header is required');
    if (this.#isClosed) return refuseRequest(503, 'The server is closed');
    if (!this.#makeRoom(options.authInfo && principal))
      return refuseRequest(503, 'Too many sessions', { 'Retry-After': RETRY_AFTER_SECONDS });
    const { idleMs, replay } = this.#limits;
    const session = new HttpSession({
      server: this.#parts.connect(),
      deliveries: this.#parts.deliveries,
      unread: this.#parts.unread,
      principal,
      idleMs,
      replay,
      maxRequestBytes: this.#options.maxRequestBytes,
      onOpen: (id, opened) => {
        this.#beginning.delete(opened);
        this.#sessions.set(id, opened);
      },
      onEnd: (id) => id !== undefined && this.#sessions.delete(id),
    });
    this.#beginning.add(session);
    try {
      await session.connect();
      return await session.handle(request, options);
    } finally {
      this.#beginning.delete(session);
      // The server was closed meanwhile, and knew nothing of this session yet.
      if (this.#isClosed) await session.close();
    }
  }

  /**
   * Many clients never say that they are gone: who has been silent longest makes room for who comes. A principal
   * that is known has to make its own, so that none takes everybody's.
   */
  #makeRoom(known: string | undefined): boolean {
    const sessions = [...this.#sessions.values(), ...this.#beginning];
    const own = sessions.filter(({ principal }) => principal === known);
    if (own.length >= this.#limits.maxPerPrincipal) return this.#closeSilent(own);
    return sessions.length < this.#limits.max || this.#closeSilent(sessions);
  }

  #closeSilent(sessions: readonly HttpSession[]): boolean {
    let longest: HttpSession | undefined;
    for (const session of sessions)
      if (
        !this.#beginning.has(session) &&
        session.silentSince < (longest?.silentSince ?? Number.POSITIVE_INFINITY)
      )
        longest = session;
    longest?.close().catch((error) => this.#options.onError?.(error));
    return longest !== undefined;
  }
}
