import { finished, PassThrough, type Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import {
  createMcpHandler,
  isLegacyRequest,
  type McpHttpHandler,
  type McpServer,
  type McpServerFactory,
  type Transport,
} from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import type { ToolRegistry } from '../../call/tool-registry.js';
import { checkArguments } from '../../errors/author-fault.js';
import { withMethods } from '../../kernel/options.js';
import { SealedState } from './ask-client.js';
import { Deliveries, watchResponse } from './deliveries.js';
import { createGuard, type RequestGuard, refuseRequest } from './host-guard.js';
import { HttpSessions, isReturn } from './http-sessions.js';
import { OpenRequests, Pending } from './open-requests.js';
import {
  checkServerOptions,
  type McpConnection,
  type McpRequestInfo,
  type McpServerOptions,
  type McpToolServer,
  type StdioStreams,
} from './options.js';
import { createSdkServer, type RegistryMcpServer } from './sdk-server.js';
import type { ServedTools } from './serve-call.js';
import { ToolLists } from './tool-lists.js';

/**
 * Offers the tools of a registry to MCP clients of 2025-11-25 and of 2026-07-28, over stdio and streamable
 * HTTP. Every call takes the registry's own pipeline; the schemas are offered as they are.
 *
 * @throws InvalidOptionsError (521) naming every option that cannot be meant.
 *
 * @example
 * ```ts
 * const mcp = createMcpServer(tools, { name: 'shop', version: '1.2.0' });
 * createServer(mcp.node).listen(3000, '127.0.0.1');
 * ```
 */
export function createMcpServer(registry: ToolRegistry, options: McpServerOptions = {}): McpToolServer {
  checkServerOptions(registry, options);
  return new RegistryServer(registry, options);
}

const UNREAD_BYTES = 64 * 1024 * 1024;

const TRANSPORT = withMethods(['start', 'send', 'close'], 'a Transport of the SDK');

/**
 * The HTTP entry of the SDK serves 2026-07-28, where no request knows of another; 2025-11-25 clients get a
 * session each. What lasts, these and stdio, is told when the tools change.
 */
class RegistryServer implements McpToolServer {
  readonly #options: McpServerOptions;
  readonly #onError: (error: unknown) => void;
  readonly #guard: RequestGuard;
  readonly #bodyLimit: { readonly maxRequestBodySize?: number };
  readonly #served: ServedTools;
  readonly #modern: McpHttpHandler;
  readonly #sessions: HttpSessions;
  readonly #connections = new Set<McpConnection>();
  /** Servers whose clients stay connected. */
  readonly #lasting = new Set<McpServer>();
  /** What is not answered yet, of all connections. */
  readonly #open = new Set<OpenRequests>();
  /** HTTP requests that have no response yet, and responses that somebody reads. */
  readonly #requests = new Pending<Request>();
  readonly #deliveries: Deliveries;
  readonly #unfollow: () => void;
  #closing: Promise<void> | undefined;
  #isOver = false;
  #isTelling = false;
  #node: Promise<McpToolServer['node']> | undefined;

  constructor(registry: ToolRegistry, options: McpServerOptions) {
    this.#options = options;
    this.#served = {
      registry,
      options,
      state: new SealedState(options.stateKey),
      lists: new ToolLists(registry),
      invokers: new WeakMap(),
    };
    this.#onError = (error) => options.onError?.(error);
    this.#guard = createGuard(options, this.#onError);
    const { maxRequestBytes } = options;
    this.#bodyLimit = maxRequestBytes === undefined ? {} : { maxRequestBodySize: maxRequestBytes };
    this.#modern = createMcpHandler(() => createSdkServer(this.#served, this.#openRequests()), {
      legacy: options.sessions === false ? 'stateless' : 'reject',
      onerror: this.#onError,
      ...this.#bodyLimit,
    });
    this.#deliveries = new Deliveries(options.maxUnreadBytes ?? UNREAD_BYTES);
    this.#sessions = new HttpSessions(options, {
      connect: () => this.#lastingServer(this.#openRequests()),
      deliveries: this.#deliveries,
    });
    this.#unfollow = registry.onChange(() => this.#tellOfChange());
  }

  readonly fetch = async (request: Request, info: McpRequestInfo = {}): Promise<Response> => {
    if (this.#isOver || (this.#closing !== undefined && !isReturn(request))) return refuseClosed();
    this.#requests.begin(request);
    try {
      return this.#guard(request) ?? (await this.#serve(request, info));
    } catch (error) {
      this.#onError(error);
      return refuseRequest(500, 'Internal error');
    } finally {
      this.#requests.end(request);
    }
  };

  readonly node: McpToolServer['node'] = async (request, response, body) => {
    this.#node ??= this.#loadNodeHandler().catch((error) => {
      this.#onError(error);
      return refuseAll;
    });
    const handle = await this.#node;
    // What the adapter has written is not sent yet.
    this.#deliveries.begin(response);
    finished(response, () => this.#deliveries.end(response));
    return handle(request, response, body);
  };

  get sessionCount(): number {
    return this.#sessions.size;
  }

  stdio({ input = process.stdin, output }: StdioStreams = {}): McpConnection {
    const { maxRequestBytes } = this.#options;
    const limit = maxRequestBytes === undefined ? {} : { maxBufferSize: maxRequestBytes };
    const held = holdInput(input, (error) => {
      if (error) this.#onError(error);
      connection.close().catch(this.#onError);
    });
    const transport = new StdioServerTransport(held.input, output, limit);
    const connection = this.#connect(transport, held.release);
    return connection;
  }

  connect(transport: Transport): McpConnection {
    checkArguments({ of: 'McpToolServer.connect', given: { transport }, rules: { transport: TRANSPORT } });
    return this.#connect(transport);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #connect(transport: Transport, onClosing = (): void => {}): McpConnection {
    const { promise: closed, resolve: isOver } = Promise.withResolvers<void>();
    const open = this.#openRequests();
    open.watch(transport, { dropsLate: true });
    const factory: McpServerFactory = () => this.#lastingServer(open);
    const handle = serveStdio(factory, { transport, onerror: this.#onError });
    const ended = transport.onclose;
    transport.onclose = () => {
      this.#connections.delete(connection);
      onClosing();
      ended?.();
      isOver();
    };
    let closing: Promise<void> | undefined;
    const close = async (): Promise<void> => {
      onClosing();
      await inClosingTime(() => open.end());
      await handle.close();
    };
    const connection: McpConnection = { closed, close: () => (closing ??= close()) };
    this.#connections.add(connection);
    if (this.#closing !== undefined) connection.close().catch(this.#onError);
    return connection;
  }

  /**
   * No answer is lost: the calls that run are aborted and answered, clients whose stream broke may come back for
   * what they missed, and then everything that was written is read, all of it within the one closing time.
   */
  async #close(): Promise<void> {
    this.#unfollow();
    const connections = Array.from(this.#connections, (connection) => connection.close());
    await inClosingTime(
      () => this.#endRequests(),
      () => this.#sessions.collected(),
      async () => {
        this.#isOver = true;
        await Promise.all([this.#modern.close(), this.#sessions.close()]);
      },
      () => this.#deliveries.none(),
    );
    await Promise.all(connections);
  }

  /** Once more after the last request is read: what came with it is not answered yet, either. */
  async #endRequests(): Promise<void> {
    const end = () => Promise.all(Array.from(this.#open, (open) => open.end()));
    await Promise.all([end(), this.#requests.none()]);
    await end();
  }

  async #serve(request: Request, info: McpRequestInfo): Promise<Response> {
    const isSession =
      this.#options.sessions !== false && (await isLegacyRequest(request, info.parsedBody, this.#bodyLimit));
    if (this.#isOver) return refuseClosed();
    if (isSession) return this.#sessions.fetch(request, info);
    const response = await this.#modern.fetch(request, info);
    return watchResponse(response, { deliveries: this.#deliveries, signal: request.signal });
  }

  /** Of one connection, which may come while the server is being closed. */
  #openRequests(): OpenRequests {
    const open = new OpenRequests(this.#open);
    if (this.#closing !== undefined) void open.end();
    return open;
  }

  #lastingServer(open: OpenRequests): RegistryMcpServer {
    const mcp = createSdkServer(this.#served, open);
    this.#lasting.add(mcp);
    mcp.server.onclose = () => this.#lasting.delete(mcp);
    return mcp;
  }

  /** Once for all changes of one turn: registering ten tools is one change. */
  #tellOfChange(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    queueMicrotask(() => {
      this.#isTelling = false;
      if (this.#closing !== undefined) return;
      this.#modern.notify.toolsChanged();
      for (const { server } of this.#lasting) server.sendToolListChanged().catch(this.#onError);
    });
  }

  /** The adapter is a package of its own, which not everybody has. */
  async #loadNodeHandler(): Promise<McpToolServer['node']> {
    const { toNodeHandler } = await import('@modelcontextprotocol/node');
    return toNodeHandler(this, { onerror: this.#onError, ...this.#bodyLimit }) as McpToolServer['node'];
  }
}

function refuseClosed(): Response {
  return refuseRequest(503, 'The server is closed');
}

/** Nobody waits for what `http` calls: a rejection would end the process. */
const refuseAll: McpToolServer['node'] = async (_request, response) => {
  const refusal = refuseRequest(500, 'This server lacks the package @modelcontextprotocol/node');
  response.writeHead(refusal.status, { 'Content-Type': 'application/json' }).end(await refusal.text());
};

/** An input that does not end by itself: what was asked before is answered before its connection ends. */
interface HeldInput {
  readonly input: Readable;
  /** Reads no more. */
  release(): void;
}

/** Passes an input on, and tells of its end instead. */
function holdInput(input: Readable, onEnd: (error?: Error | null) => void): HeldInput {
  const held = new PassThrough();
  input.pipe(held, { end: false });
  const forget = finished(input, { writable: false }, onEnd);
  return {
    input: held,
    release() {
      forget();
      input.unpipe(held);
    },
  };
}

/** An aborted call is answered within half a second, and its answer still has to be read. */
const CLOSING_MS = 1_000;

/** Does the steps of closing one after the other; what has not ended when the time is up is waited for no more. */
async function inClosingTime(...steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const isDone = new AbortController();
  const limit = wait(CLOSING_MS, undefined, { signal: isDone.signal }).catch(() => {});
  try {
    for (const step of steps) await Promise.race([step(), limit]);
  } finally {
    isDone.abort();
  }
}
