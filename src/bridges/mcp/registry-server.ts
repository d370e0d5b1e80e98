import {
  createMcpHandler,
  isLegacyRequest,
  type McpHttpHandler,
  type McpServer,
  type McpServerFactory,
  type Transport,
} from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import type { ToolRegistry } from '../../registry/tool-registry.js';
import { guardRequest } from './guard-request.js';
import { HttpSessions } from './http-sessions.js';
import type { McpServerOptions } from './mcp-server-options.js';
import type { McpConnection, McpRequestInfo, McpToolServer, StdioStreams } from './mcp-tool-server.js';
import { refuseRequest } from './refuse-request.js';
import { createSdkServer, type ServedTools } from './sdk-server.js';
import { SealedState } from './sealed-state.js';

/**
 * The HTTP entry of the SDK serves 2026-07-28, where no request knows of another; 2025-11-25 clients get a
 * session each. What lasts, these and stdio, is told when the tools change.
 */
export class RegistryServer implements McpToolServer {
  readonly #options: McpServerOptions;
  readonly #onError: (error: unknown) => void;
  readonly #bodyLimit: { readonly maxRequestBodySize?: number };
  readonly #served: ServedTools;
  readonly #modern: McpHttpHandler;
  readonly #sessions: HttpSessions;
  readonly #connections = new Set<McpConnection>();
  /** Servers whose clients stay connected. */
  readonly #lasting = new Set<McpServer>();
  readonly #unfollow: () => void;
  #isClosed = false;
  #isTelling = false;
  #node: Promise<McpToolServer['node']> | undefined;

  constructor(registry: ToolRegistry, options: McpServerOptions) {
    this.#options = options;
    this.#served = { registry, options, state: new SealedState(options.stateKey) };
    this.#onError = (error) => options.onError?.(error);
    const { maxRequestBytes } = options;
    this.#bodyLimit = maxRequestBytes === undefined ? {} : { maxRequestBodySize: maxRequestBytes };
    this.#modern = createMcpHandler(() => createSdkServer(this.#served), {
      legacy: options.sessions === false ? 'stateless' : 'reject',
      onerror: this.#onError,
      ...this.#bodyLimit,
    });
    this.#sessions = new HttpSessions(options, () => this.#lastingServer());
    this.#unfollow = registry.onChange(() => this.#tellOfChange());
  }

  readonly fetch = async (request: Request, info: McpRequestInfo = {}): Promise<Response> => {
    if (this.#isClosed) return refuseRequest(503, 'The server is closed');
    try {
      return guardRequest(request, this.#options) ?? (await this.#serve(request, info));
    } catch (error) {
      this.#onError(error);
      return refuseRequest(500, 'Internal error');
    }
  };

  readonly node: McpToolServer['node'] = async (request, response, body) => {
    this.#node ??= this.#loadNodeHandler().catch((error) => {
      this.#onError(error);
      return refuseAll;
    });
    const handle = await this.#node;
    return handle(request, response, body);
  };

  get sessionCount(): number {
    return this.#sessions.size;
  }

  stdio({ input, output }: StdioStreams = {}): McpConnection {
    const { maxRequestBytes } = this.#options;
    const limit = maxRequestBytes === undefined ? {} : { maxBufferSize: maxRequestBytes };
    return this.connect(new StdioServerTransport(input, output, limit));
  }

  connect(transport: Transport): McpConnection {
    let isOver = (): void => {};
    const closed = new Promise<void>((resolve) => {
      isOver = resolve;
    });
    const factory: McpServerFactory = () => this.#lastingServer();
    const handle = serveStdio(factory, { transport, onerror: this.#onError });
    const ended = transport.onclose;
    transport.onclose = () => {
      this.#connections.delete(connection);
      ended?.();
      isOver();
    };
    const connection: McpConnection = { closed, close: () => handle.close() };
    this.#connections.add(connection);
    if (this.#isClosed) connection.close().catch(this.#onError);
    return connection;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unfollow();
    const connections = Array.from(this.#connections, (connection) => connection.close());
    await Promise.all([this.#modern.close(), this.#sessions.close(), ...connections]);
  }

  async #serve(request: Request, info: McpRequestInfo): Promise<Response> {
    const isSession =
      this.#options.sessions !== false && (await isLegacyRequest(request, info.parsedBody, this.#bodyLimit));
    return isSession ? this.#sessions.fetch(request, info) : this.#modern.fetch(request, info);
  }

  #lastingServer(): McpServer {
    const mcp = createSdkServer(this.#served);
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
      if (this.#isClosed) return;
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

/** Nobody waits for what `http` calls: a rejection would end the process. */
const refuseAll: McpToolServer['node'] = async (_request, response) => {
  const refusal = refuseRequest(500, 'This server lacks the package @modelcontextprotocol/node');
  response.writeHead(refusal.status, { 'Content-Type': 'application/json' }).end(await refusal.text());
};
