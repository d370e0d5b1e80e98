import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { finished, PassThrough } from 'node:stream';
import type { UnderlyingSource } from 'node:stream/web';
import { setTimeout as wait } from 'node:timers/promises';
import {
  type AuthInfo,
  createMcpHandler,
  type EventStore,
  INVALID_PARAMS,
  isInitializeRequest,
  isLegacyRequest,
  type JSONRPCMessage,
  type McpHandlerRequestOptions,
  type McpHttpHandler,
  PARSE_ERROR,
  readRequestBody,
  type ServerEvent,
  type ServerEventBus,
  type Transport,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { checkArguments } from '../../../core/errors/author-fault.js';
import { MAX_TIMER_MS } from '../../../core/kernel/async.js';
import { type Fields, isRecord, withoutUndefined } from '../../../core/kernel/json.js';
import { type NodeRequest, respond, toRequest } from '../../../core/kernel/node-http.js';
import { withMethods } from '../../../core/kernel/options.js';
import { logFailure } from '../../../run/call/failure-log.js';
import { refuseUnknownScopes } from '../../../run/call/required-scopes.js';
import { SERVED_KINDS, type ToolRegistry } from '../../../run/call/tool-registry.js';
import { SealedState } from '../sealed-state.js';
import { ANSWER_MS, STATELESS } from './ask-client.js';
import { type LISTS, namedByUri, subscribedUris, ToolLists } from './lists.js';
import { OpenRequests, Pending, SUBSCRIPTION } from './open-requests.js';
import {
  checkServer,
  type McpCaller,
  type McpConnection,
  type McpRequestInfo,
  type McpServerOptions,
  type McpToolServer,
  type StdioStreams,
} from './options.js';
import { callerOf, principalOf, type ServedTools } from './request.js';
import { createGuard, ProtectedResource, refuseRequest } from './request-guard.js';
import { createSdkServer, type RegistryMcpServer } from './sdk-server.js';
import type { McpSessionOptions } from './settings.js';
import { Tasks } from './tasks.js';

const DEFAULTS: Required<McpSessionOptions> = {
  idleMs: 30 * 60 * 1000,
  max: 1_000,
  maxPerPrincipal: 100,
  replay: 64,
};
const RETRY_AFTER_SECONDS = '60';
const METHODS = ['GET', 'POST', 'DELETE'];

function sessionLimits({ sessions }: McpServerOptions): Required<McpSessionOptions> {
  return { ...DEFAULTS, ...(sessions === false ? {} : sessions) };
}

/** The HTTP sessions of 2025-11-25 clients. */
class HttpSessions {
  readonly #options: McpServerOptions;
  readonly #limits: Required<McpSessionOptions>;
  readonly #connect: () => RegistryMcpServer;
  readonly #deliveries: Deliveries;
  readonly #sessions = new Map<string, HttpSession>();
  /** Sessions that are not initialized yet; they count towards the limit. */
  readonly #beginning = new Set<HttpSession>();
  #isClosed = false;

  constructor(options: McpServerOptions, deliveries: Deliveries, connect: () => RegistryMcpServer) {
    this.#options = options;
    this.#limits = sessionLimits(options);
    this.#deliveries = deliveries;
    this.#connect = connect;
  }

  get size(): number {
    return this.#sessions.size;
  }

  async fetch(request: Request, options: McpHandlerRequestOptions): Promise<Response> {
    const id = request.headers.get('mcp-session-id');
    const { authInfo } = options;
    const principal = principalOf(this.#options, authInfo);
    if (id !== null) {
      const known = this.#sessions.get(id);
      // Other principals cannot find out that the session exists.
      if (known === undefined || known.principal !== principal)
        return refuseRequest(404, 'Session not found');
      return known.handle(request, options);
    }
    if (!METHODS.includes(request.method)) return refuseMethod();
    if (request.method !== 'POST') return refuseRequest(400, 'Mcp-Session-Id header is required');
    if (this.#isClosed) return refuseClosed();
    if (!this.#freePlace(options.authInfo && principal)) return refuseMany('sessions');
    const session: HttpSession = new HttpSession({
      ...this.#limits,
      server: this.#connect(),
      deliveries: this.#deliveries,
      principal,
      maxRequestBytes: this.#options.maxRequestBytes,
      onOpen: (id) => {
        this.#beginning.delete(session);
        this.#sessions.set(id, session);
      },
      onEnd: (id) => id !== undefined && this.#sessions.delete(id),
    });
    this.#beginning.add(session);
    try {
      await session.connect();
      return await session.handle(request, options);
    } finally {
      this.#beginning.delete(session);
      // `close` ran meanwhile and did not include this session.
      if (this.#isClosed) await session.close();
    }
  }

  /**
   * Many clients never report that they leave, so a new session replaces the one that has been idle longest. A
   * principal with a token replaces only its own sessions, so that it cannot displace others.
   */
  #freePlace(known: string | undefined): boolean {
    const sessions = [...this.#sessions.values(), ...this.#beginning];
    const own = sessions.filter(({ principal }) => principal === known);
    const isOwnFull = own.length >= this.#limits.maxPerPrincipal;
    if (!isOwnFull && sessions.length < this.#limits.max) return true;
    let silent: HttpSession | undefined;
    for (const session of isOwnFull ? own : sessions) {
      const { silentSince } = session;
      if (!this.#beginning.has(session) && silentSince < (silent?.silentSince ?? Number.POSITIVE_INFINITY))
        silent = session;
    }
    silent?.close().catch((error) => this.#options.onError?.(error));
    return silent !== undefined;
  }

  /** Resolves once no response waits for a client that may reconnect for it. */
  async collected(): Promise<void> {
    await Promise.all(Array.from(this.#sessions.values(), (session) => session.collected()));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(Array.from(this.#sessions.values(), (session) => session.close()));
  }
}

interface HttpSessionParts extends Pick<Required<McpSessionOptions>, 'idleMs' | 'replay'> {
  readonly server: RegistryMcpServer;
  /** The owner of the session; others cannot use it. */
  readonly principal: string;
  readonly maxRequestBytes: number | undefined;
  readonly deliveries: Deliveries;
  readonly onOpen: (id: string) => void;
  readonly onEnd: (id: string | undefined) => void;
}

/** How soon clients reconnect after their stream ended, and how long to wait for them. */
const RETRY_MS = 500;
const RETURN_MS = 2 * RETRY_MS;
/** The SDK's prefix for ids of events that belong to no call. */
const STANDALONE = '_GET_stream';

/** Node sends headers with the first bytes of the body; without them, clients would wait for their stream to open. */
const COMMENT = new TextEncoder().encode(': open\n\n');

/** The HTTP session of a 2025-11-25 client, with its SDK server and its idle time-out. */
class HttpSession {
  readonly principal: string;
  readonly #parts: HttpSessionParts;
  readonly #transport: WebStandardStreamableHTTPServerTransport;
  #idle: NodeJS.Timeout | undefined;
  #open = 0;
  #isOver = false;
  #silentSince = performance.now();
  /** Requests whose stream has ended, with or without a response. */
  readonly #streamless = new WeakSet<Request>();
  /** Open streams of clients that reconnected for a response. */
  #returned = 0;
  /** When the last response was sent without an open stream. */
  #missedAt: number | undefined;
  #collected: PromiseWithResolvers<void> | undefined;

  constructor(parts: HttpSessionParts) {
    this.principal = parts.principal;
    this.#parts = parts;
    this.#transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: parts.onOpen,
      eventStore: new EventLog(parts.replay),
      retryInterval: RETRY_MS,
      maxRequestBodySize: parts.maxRequestBytes,
    });
    const { onclose } = parts.server.server;
    parts.server.server.onclose = () => {
      onclose?.();
      this.#isOver = true;
      clearTimeout(this.#idle);
      parts.onEnd(this.#transport.sessionId);
    };
  }

  /** When the last request or stream ended; `Infinity` while one is open, or a call is unanswered. */
  get silentSince(): number {
    const isBusy = this.#open > 0 || this.#parts.server.open.count > 0;
    return isBusy ? Number.POSITIVE_INFINITY : this.#silentSince;
  }

  connect(): Promise<void> {
    const { server } = this.#parts;
    server.open.watch(this.#transport, {
      onAnswer: (request) => {
        if (this.#streamless.has(request) && this.#returned === 0) this.#missedAt = performance.now();
      },
    });
    return server.connect(this.#transport);
  }

  /** Resolves once no response waits for a client that may reconnect for it. */
  async collected(): Promise<void> {
    if (this.#missedAt === undefined || performance.now() - this.#missedAt > RETURN_MS) return;
    this.#collected ??= Promise.withResolvers();
    await this.#collected.promise;
  }

  async handle(request: Request, options: McpHandlerRequestOptions): Promise<Response> {
    this.#open += 1;
    clearTimeout(this.#idle);
    this.#parts.server.session = {
      headers: request.headers,
      authInfo: options.authInfo,
      sessionId: this.#transport.sessionId,
      endStream: () => this.#transport.closeStandaloneSSEStream(),
    };
    const isComingBack = isReturn(request);
    if (isComingBack) this.#returned += 1;
    const onEnd = (): void => {
      this.#streamless.add(request);
      if (isComingBack) {
        this.#returned -= 1;
        this.#missedAt = undefined;
        this.#collected?.resolve();
      }
      this.#open -= 1;
      this.#silentSince = performance.now();
      if (this.#open > 0 || this.#isOver) return;
      clearTimeout(this.#idle);
      this.#idle = setTimeout(() => this.close(), Math.min(this.#parts.idleMs, MAX_TIMER_MS));
      // Sessions do not keep the process alive.
      this.#idle.unref();
    };
    try {
      const response = await this.#transport.handleRequest(request, options);
      if (this.#transport.sessionId === undefined) await this.close();
      const isStream = request.method === 'GET' && response.ok;
      const { deliveries } = this.#parts;
      const { signal } = request;
      return watchResponse(response, { deliveries, onEnd, signal, first: isStream ? COMMENT : undefined });
    } catch (error) {
      onEnd();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#parts.server.close();
  }
}

/** Whether a client reconnects for a response that its stream did not deliver. */
function isReturn({ method, headers }: Request): boolean {
  const id = headers.get('last-event-id');
  return method === 'GET' && id !== null && !id.startsWith(STANDALONE);
}

interface LoggedEvent {
  readonly number: number;
  readonly stream: string;
  readonly message: JSONRPCMessage;
  readonly size: number;
}

/** The most characters of stored messages per session. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

/** The last messages of a session, for a client that reconnects after its stream broke. */
export class EventLog implements EventStore {
  readonly #size: number;
  readonly #events: LoggedEvent[] = [];
  #count = 0;
  #characters = 0;

  constructor(size: number) {
    this.#size = size;
  }

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    this.#count += 1;
    const size = JSON.stringify(message).length;
    this.#events.push({ number: this.#count, stream, message, size });
    this.#characters += size;
    while (this.#events.length > this.#size || this.#characters > MAX_CHARACTERS)
      this.#characters -= this.#events.shift()?.size ?? 0;
    return `${stream}_${this.#count}`;
  }

  async getStreamIdForEventId(id: string): Promise<string | undefined> {
    const end = id.lastIndexOf('_');
    return end > 0 ? id.slice(0, end) : undefined;
  }

  /** Sends the later events of the same stream; if the event itself is gone, all that remain. */
  async replayEventsAfter(
    lastId: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const stream = (await this.getStreamIdForEventId(lastId)) ?? '';
    const last = Number(lastId.slice(stream.length + 1));
    for (const { number, message, ...event } of [...this.#events]) {
      if (event.stream !== stream || number <= last) continue;
      // The first event of a stream is empty; it only gives the client an id to reconnect with.
      if (Object.keys(message).length > 0) await send(`${stream}_${number}`, message);
    }
    return stream;
  }
}

/**
 * Serves the tools of a registry to MCP clients of 2025-11-25 and 2026-07-28, over stdio and streamable HTTP. Calls
 * pass the registry's own pipeline; schemas are served unchanged.
 *
 * @throws InvalidOptionsError (521) naming every invalid option.
 *
 * @example
 * ```ts
 * const mcp = createMcpServer(tools, { name: 'shop', version: '1.2.0' });
 * createServer(mcp.node).listen(3000, '127.0.0.1');
 * ```
 */
export function createMcpServer(registry: ToolRegistry, options: McpServerOptions = {}): McpToolServer {
  checkServer(registry, options);
  return new RegistryServer(registry, options);
}

const UNREAD_BYTES = 64 * 1024 * 1024;

const TRANSPORT = withMethods(['start', 'send', 'close'], 'a Transport of the SDK');

/**
 * Over HTTP, the SDK serves 2026-07-28 clients without sessions; 2025-11-25 clients get a session each. Sessions and
 * stdio connections are notified when the tools change.
 */
class RegistryServer implements McpToolServer {
  readonly #options: McpServerOptions;
  readonly #onError: (error: unknown) => void;
  readonly #guard: ReturnType<typeof createGuard>;
  readonly #served: ServedTools;
  readonly #tasks: Tasks | undefined;
  readonly #modern: McpHttpHandler;
  readonly #sessions: HttpSessions;
  readonly #connections = new Set<McpConnection>();
  readonly #notifications: Notifications;
  /** Unanswered requests of all connections. */
  readonly #open = new Set<OpenRequests>();
  /** HTTP requests without a response, and responses that are being read. */
  readonly #requests = new Pending<Request>();
  readonly #deliveries: Deliveries;
  /** The principals of the open `subscriptions/listen` streams: none can take the places of all others. */
  readonly #listening = new Set<{ readonly principal: string | undefined }>();
  readonly #unfollow: () => void;
  #closing: Promise<void> | undefined;
  /** Set when clients can no longer reconnect for a response. */
  #isOver = false;
  #isListChanging = false;

  constructor(registry: ToolRegistry, given: McpServerOptions) {
    const onError = (error: unknown) => logFailure(registry.logger, { what: 'An MCP request failed', error });
    const options = { onError, ...given };
    const { oauth } = options;
    this.#options = options;
    this.#served = {
      registry,
      options,
      telemetry: options.telemetry ?? registry.telemetry,
      state: new SealedState(options.stateKey, ANSWER_MS),
      lists: new ToolLists(registry),
      resource: oauth && new ProtectedResource(oauth, registry, options.onError),
    };
    const { tasks } = options;
    this.#tasks = tasks && new Tasks('store' in tasks ? tasks : { store: tasks });
    this.#onError = (error) => options.onError(error);
    this.#guard = createGuard(options, this.#onError);
    this.#notifications = new Notifications(this.#served, this.#onError);
    this.#modern = createMcpHandler(() => createSdkServer(this.#served, this.#openRequests(), this.#tasks), {
      onerror: this.#onError,
      bus: this.#notifications,
      maxSubscriptions: sessionLimits(options).max,
      maxRequestBodySize: options.maxRequestBytes,
    });
    this.#deliveries = new Deliveries(options.maxUnreadBytes ?? UNREAD_BYTES);
    this.#sessions = new HttpSessions(options, this.#deliveries, () =>
      this.#lastingServer(this.#openRequests()),
    );
    this.#unfollow = registry.onChange(() => {
      if (this.#isListChanging) return;
      // Once per turn of the event loop, because registrations come in groups.
      this.#isListChanging = true;
      queueMicrotask(() => this.#publishLists());
    });
  }

  readonly fetch = async (request: Request, info: McpRequestInfo = {}): Promise<Response> => {
    if (this.#isOver || (this.#closing !== undefined && !isReturn(request))) return refuseClosed();
    this.#requests.begin(request);
    try {
      const refusal = this.#served.resource?.metadata(request) ?? this.#guard(request);
      return refusal ?? (await this.#serve(request, info));
    } catch (error) {
      this.#onError(error);
      return refuseRequest(500, 'Internal error');
    } finally {
      this.#requests.end(request);
    }
  };

  readonly node: McpToolServer['node'] = (request: NodeRequest & { auth?: AuthInfo }, response, given) => {
    const { method, auth: authInfo, readableDidRead } = request;
    // Express passes its `next` function, and its body parsers leave the body at the request.
    const isGiven = given !== undefined && typeof given !== 'function';
    const parsedBody = isGiven ? given : method === 'POST' && readableDidRead ? request.body : undefined;
    // What was written may not have been sent yet.
    this.#deliveries.begin(response);
    finished(response, () => this.#deliveries.end(response));
    return respond(request, response, async (signal) => {
      if (method === 'TRACE') return refuseMethod();
      if (method === 'POST' && readableDidRead && parsedBody === undefined)
        return refuseRequest(500, BODY_READ_BEFORE);
      const asked = toRequest(request, signal);
      return this.fetch(asked, withoutUndefined({ authInfo, parsedBody }));
    });
  };

  get sessionCount(): number {
    return this.#sessions.size;
  }

  stdio({ input = process.stdin, output }: StdioStreams = {}): McpConnection {
    this.#refuseScopes('McpToolServer.stdio');
    // The end of the input must not close the connection before its requests are answered.
    const held = new PassThrough();
    input.pipe(held, { end: false });
    const forget = finished(input, { writable: false }, (error) => {
      if (error) this.#onError(error);
      connection.close().catch(this.#onError);
    });
    const options = { maxBufferSize: this.#options.maxRequestBytes };
    const connection = this.#connect(new StdioServerTransport(held, output, options), () => {
      forget();
      input.unpipe(held);
    });
    return connection;
  }

  connect(transport: Transport): McpConnection {
    checkArguments({ of: 'McpToolServer.connect', given: { transport }, rules: { transport: TRANSPORT } });
    this.#refuseScopes('McpToolServer.connect');
    return this.#connect(transport);
  }

  resourceChanged(uri: string): void {
    if (this.#closing !== undefined) return;
    // Lists that changed before are notified before.
    this.#publishLists();
    this.#notifications.publish({ kind: 'resource_updated', uri });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Clients cannot sign in over a lasting connection, so the application must provide their scopes. */
  #refuseScopes(where: string): void {
    const { registry, options } = this.#served;
    const parts = [registry, ...SERVED_KINDS.map((kind) => registry.part(kind))];
    const all = parts.flatMap((part) => part.tools());
    if (options.scope === undefined) refuseUnknownScopes(all, { scope: {}, where });
  }

  #connect(transport: Transport, onClosing = (): void => {}): McpConnection {
    const { promise: closed, resolve: isOver } = Promise.withResolvers<void>();
    const open = this.#openRequests();
    open.watch(transport, { dropsLate: true });
    const handle = serveStdio(() => this.#lastingServer(open), { transport, onerror: this.#onError });
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
   * Closes without losing responses: aborts and answers running calls, waits for clients that may reconnect for a
   * missed response, and waits until all responses are read. All of this shares one time limit.
   */
  async #close(): Promise<void> {
    this.#unfollow();
    const connections = Array.from(this.#connections, (connection) => connection.close());
    const tasks = inClosingTime(async () => this.#tasks?.close());
    const endRequests = () => Promise.all(Array.from(this.#open, (open) => open.end()));
    await inClosingTime(
      () => Promise.all([endRequests(), this.#requests.none()]),
      // The last HTTP requests to be read may contain further ones.
      endRequests,
      () => this.#sessions.collected(),
      async () => {
        this.#isOver = true;
        await Promise.all([this.#modern.close(), this.#sessions.close()]);
      },
      () => this.#deliveries.none(),
    );
    await Promise.all([...connections, tasks]);
  }

  async #serve(request: Request, given: McpRequestInfo): Promise<Response> {
    const { resource } = this.#served;
    const authInfo = resource
      ? await resource.authenticate(request, given.authInfo)
      : (given.authInfo ?? (given.authInfo === null ? refuseRequest(401, 'Unauthorized') : undefined));
    if (authInfo instanceof Response) return authInfo;
    const parsedBody = given.parsedBody ?? (await this.#readBody(request));
    if (parsedBody instanceof Response) return parsedBody;
    const messages = Array.isArray(parsedBody) ? parsedBody : [parsedBody];
    const ofTasks = resource && (await this.#tasks?.toolsOf(messages, principalOf(this.#options, authInfo)));
    const refusal = resource?.authorize(messages, authInfo, ofTasks);
    if (refusal !== undefined) return refusal;
    const info = withoutUndefined({ authInfo, parsedBody });
    const isSession = await this.#belongsToSession(request, info);
    if (this.#isOver) return refuseClosed();
    if (isSession) return this.#sessions.fetch(request, info);
    if (isRecord(parsedBody) && parsedBody.method === SUBSCRIPTION)
      return this.#listen(parsedBody, request, info);
    const response = await this.#modern.fetch(request, info);
    return watchResponse(response, { deliveries: this.#deliveries, signal: request.signal });
  }

  /** Opens the stream of a 2026-07-28 client. */
  async #listen(message: Fields, request: Request, info: McpHandlerRequestOptions): Promise<Response> {
    const { authInfo } = info;
    const { params } = message;
    const meta = isRecord(params) && isRecord(params._meta) ? params._meta : {};
    const caller = callerOf({ authInfo, headers: request.headers }, undefined, meta);
    const uris = subscribedUris(params);
    const hidden = await this.#notifications.hidden(caller, uris);
    if (hidden !== undefined)
      return refuseRequest(400, `Resource not found: ${hidden}`, { code: INVALID_PARAMS, id: message.id });
    const stream = { principal: authInfo && principalOf(this.#options, authInfo) };
    const own = [...this.#listening].filter(({ principal }) => principal === stream.principal);
    if (authInfo !== undefined && own.length >= sessionLimits(this.#options).maxPerPrincipal)
      return refuseMany('subscriptions');
    this.#listening.add(stream);
    const onEnd = () => this.#listening.delete(stream);
    const ended = new AbortController();
    const wants = (change: ServerEvent) => change.kind !== 'resource_updated' || uris.includes(change.uri);
    const subscriber = { caller: () => caller, wants, endStream: () => ended.abort() };
    const response = await this.#notifications.open(subscriber, () => this.#modern.fetch(request, info));
    const signal = AbortSignal.any([request.signal, ended.signal]);
    return watchResponse(response, { deliveries: this.#deliveries, onEnd, signal });
  }

  /** Reads the body once, because several functions need it. */
  async #readBody(request: Request): Promise<unknown> {
    if (request.method !== 'POST' || request.body === null) return undefined;
    const read = await readRequestBody(request, this.#options.maxRequestBytes);
    if (read.tooLarge) return refuseRequest(413, 'The body of the request is too large');
    try {
      return JSON.parse(read.text);
    } catch {
      return refuseRequest(400, 'Parse error: the body is not JSON', { code: PARSE_ERROR });
    }
  }

  /**
   * Whether a request belongs to a session; only 2025-11-25 clients have them. On a protected server, callers without a
   * token get no session, so that a session belongs to one account; after signing in, they continue without one.
   */
  async #belongsToSession(
    request: Request,
    { authInfo, parsedBody }: McpHandlerRequestOptions,
  ): Promise<boolean> {
    if (this.#options.sessions === false) return false;
    const limit = { maxRequestBodySize: this.#options.maxRequestBytes };
    if (!(await isLegacyRequest(request, parsedBody, limit))) return false;
    if (this.#served.resource === undefined || request.headers.has('mcp-session-id')) return true;
    return authInfo !== undefined && isInitializeRequest(parsedBody);
  }

  /** The requests of one connection; ended at once if the server is closing. */
  #openRequests(): OpenRequests {
    const open = new OpenRequests(this.#open);
    if (this.#closing !== undefined) void open.end();
    return open;
  }

  #lastingServer(open: OpenRequests): RegistryMcpServer {
    const mcp = createSdkServer(this.#served, open, this.#tasks);
    mcp.server.onclose = this.#notifications.add(mcp);
    return mcp;
  }

  #publishLists(): void {
    if (!this.#isListChanging) return;
    this.#isListChanging = false;
    if (this.#closing !== undefined) return;
    for (const list of this.#served.lists.changed())
      this.#notifications.publish({ kind: `${list}_list_changed` });
  }
}

function refuseMany(what: string): Response {
  return refuseRequest(503, `Too many ${what}`, { headers: { 'Retry-After': RETRY_AFTER_SECONDS } });
}

function refuseMethod(): Response {
  return refuseRequest(405, 'Method not allowed', { headers: { Allow: METHODS.join(', ') } });
}

function refuseClosed(): Response {
  return refuseRequest(503, 'The server is closed');
}

const BODY_READ_BEFORE =
  'The body was already read, and request.body is not set: pass the body, mcp.node(request, response, body)';

/** An aborted call is answered within half a second; the rest is for reading the response. */
const CLOSING_MS = 1_000;

/** Runs the steps one after another, within one time limit. */
async function inClosingTime(...steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const isDone = new AbortController();
  const limit = wait(CLOSING_MS, undefined, { signal: isDone.signal }).catch(() => {});
  try {
    for (const step of steps) await Promise.race([step(), limit]);
  } finally {
    isDone.abort();
  }
}

interface ResponseWatcher {
  /** Counts the response while it is read, and its bytes until they are read. */
  readonly deliveries: Deliveries;
  /** Called once, when nothing more will be written to the body. */
  readonly onEnd?: () => void;
  /** Sent before the body. */
  readonly first?: Uint8Array | undefined;
  /** Aborted when the client has left; adapters may notice this only with the next chunk. */
  readonly signal: AbortSignal;
}

/** Chunk size, so that an adapter never buffers a large unread message. */
const CHUNK_BYTES = 64 * 1024;

function watchResponse(response: Response, watcher: ResponseWatcher): Response {
  if (response.body === null) {
    watcher.onEnd?.();
    return response;
  }
  const { status, statusText, headers } = response;
  // Nothing is buffered ahead, so that an unread response is never waited for.
  const body = new ReadableStream(new WatchedBody(response.body, watcher), { highWaterMark: 0 });
  return new Response(body, { status, statusText, headers });
}

/** Reads the source immediately, so that the number of unread bytes is known. */
class WatchedBody implements UnderlyingSource<Uint8Array> {
  /** Bytes that were written but not read. */
  unread = 0;
  /** When the client last read, or had nothing to read. */
  readAt = 0;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #watcher: ResponseWatcher;
  readonly #queue: Uint8Array[] = [];
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #wake: (() => void) | undefined;
  #isOver = false;
  /** Set once the source has ended or failed. */
  #ending: { readonly error?: unknown } | undefined;

  constructor(body: ReadableStream<Uint8Array>, watcher: ResponseWatcher) {
    this.#reader = body.getReader();
    this.#watcher = watcher;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
    const { first, signal } = this.#watcher;
    if (first !== undefined) controller.enqueue(first);
    // Cancelling also ends a pending read, and with it the body.
    const leave = (): void => void this.cancel(signal.reason).catch(() => {});
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    void this.#take();
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (!this.#isOver) this.#watcher.deliveries.begin(this);
    while (this.#queue.length === 0 && this.#ending === undefined)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    const chunk = this.#queue.shift();
    if (chunk !== undefined) {
      if (chunk.length > CHUNK_BYTES) this.#queue.unshift(chunk.subarray(CHUNK_BYTES));
      const part = chunk.length > CHUNK_BYTES ? chunk.slice(0, CHUNK_BYTES) : chunk;
      this.readAt = performance.now();
      this.#watcher.deliveries.change(this, -part.length);
      return controller.enqueue(part);
    }
    this.#end();
    if (this.#ending !== undefined && 'error' in this.#ending) return controller.error(this.#ending.error);
    controller.close();
  }

  async cancel(reason?: unknown): Promise<void> {
    this.#end();
    await this.#reader.cancel(reason);
  }

  /** Ends the response because its client does not read it and memory is needed. */
  drop(): void {
    const error = new Error('The response was closed, because its client does not read it');
    this.#controller?.error(error);
    this.cancel(error).catch(() => {});
  }

  async #take(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await this.#reader.read();
        if (done || this.#isOver) break;
        this.#queue.push(value);
        if (this.unread === 0) this.readAt = performance.now();
        this.#watcher.deliveries.change(this, value.length);
        this.#wake?.();
      }
      this.#ending = {};
    } catch (error) {
      this.#ending = { error };
    }
    this.#watcher.onEnd?.();
    this.#wake?.();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#queue.length = 0;
    this.#ending ??= {};
    this.#wake?.();
    this.#watcher.deliveries.change(this, -this.unread);
    this.#watcher.deliveries.end(this);
  }
}

/**
 * The responses that are being read, with their unread bytes. If there are too many, the responses that have not been
 * read for the longest time are ended; a single response may have any size.
 */
class Deliveries extends Pending<object> {
  readonly #max: number;
  readonly #unread = new Set<WatchedBody>();
  #total = 0;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  /** Adds written bytes of a body, or subtracts read ones. */
  change(body: WatchedBody, bytes: number): void {
    body.unread += bytes;
    this.#total += bytes;
    if (body.unread > 0) this.#unread.add(body);
    else this.#unread.delete(body);
    while (this.#total > this.#max && this.#unread.size > 1)
      Array.from(this.#unread)
        .reduce((stalled, other) => (other.readAt < stalled.readAt ? other : stalled))
        .drop();
  }
}

/** A client that is notified of changes. */
interface Receiver {
  /** As its last request described it. */
  caller(): McpCaller;
  wants(change: ServerEvent): boolean;
  send(change: ServerEvent): Promise<void> | void;
  /** Ends its stream: the client opens another one with a new token. A session stores what is sent meanwhile. */
  endStream(): void;
}

/** A client that opens a stream with `subscriptions/listen`; the SDK provides `send`. */
type Subscriber = Omit<Receiver, 'send'>;

/**
 * Notifies clients of changes, in the order in which they happened. Rights are checked before each notification,
 * because a token may have expired, or a right may be lost, since the client subscribed.
 */
class Notifications implements ServerEventBus {
  readonly #served: ServedTools;
  readonly #onError: (error: unknown) => void;
  /** The last notification of each client. */
  readonly #last = new Map<Receiver, Promise<void>>();
  readonly #opening = new AsyncLocalStorage<Subscriber>();

  constructor(served: ServedTools, onError: (error: unknown) => void) {
    this.#served = served;
    this.#onError = onError;
  }

  publish(change: ServerEvent): void {
    for (const [receiver, last] of this.#last) {
      if (!receiver.wants(change)) continue;
      const next = last.then(() => this.#notify(receiver, change)).catch(this.#onError);
      this.#last.set(receiver, next);
    }
  }

  /** Adds a session or a lasting connection. The returned function removes it. */
  add(mcp: RegistryMcpServer): () => void {
    const { server, subscribed } = mcp;
    return this.#add({
      caller: () => callerOf(mcp.session ?? {}, server),
      // The SDK itself drops what a 2026-07-28 client has not subscribed to.
      wants: (change) =>
        change.kind === 'resource_updated'
          ? subscribed.has(change.uri) || server.getNegotiatedProtocolVersion() === STATELESS
          : server.getCapabilities()[listOf(change)] !== undefined,
      send: (change) =>
        change.kind === 'resource_updated'
          ? server.sendResourceUpdated({ uri: change.uri })
          : server.notification({ method: `notifications/${listOf(change)}/list_changed` }),
      endStream: () => mcp.session?.endStream(),
    });
  }

  /** Opens a stream of `subscriptions/listen`, for which the SDK calls {@link subscribe}. */
  open(subscriber: Subscriber, listen: () => Promise<Response>): Promise<Response> {
    return this.#opening.run(subscriber, listen);
  }

  subscribe(send: (change: ServerEvent) => void): () => void {
    return this.#add({ ...(this.#opening.getStore() as Subscriber), send });
  }

  /** The first of the resources that `visible` hides from a caller. */
  async hidden(caller: McpCaller, uris: readonly string[]): Promise<string | undefined> {
    const { registry, lists, options } = this.#served;
    if (options.visible === undefined || uris.length === 0) return undefined;
    const view = lists.view(await options.visible(caller));
    return uris.find((uri) => namedByUri(view, uri).length === 0 && namedByUri(registry, uri).length > 0);
  }

  #add(receiver: Receiver): () => void {
    this.#last.set(receiver, Promise.resolve());
    return () => this.#last.delete(receiver);
  }

  async #notify(receiver: Receiver, change: ServerEvent): Promise<void> {
    const caller = receiver.caller();
    const { headers, authInfo } = caller;
    const { resource } = this.#served;
    const { expiresAt = Number.POSITIVE_INFINITY } = authInfo ?? {};
    const isExpired = expiresAt * 1_000 <= Date.now();
    if (isExpired || (headers && (await resource?.authenticate({ headers }, authInfo)) instanceof Response))
      receiver.endStream();
    if (change.kind === 'resource_updated') {
      const { uri } = change;
      const request = { method: 'resources/subscribe', params: { uri } };
      if (headers && resource?.authorize([request], authInfo) !== undefined) return;
      if ((await this.hidden(caller, [uri])) !== undefined) return;
    }
    // It may have left meanwhile.
    if (this.#last.has(receiver)) await receiver.send(change);
  }
}

function listOf({ kind }: ServerEvent): (typeof LISTS)[number] {
  return kind.split('_', 1)[0] as (typeof LISTS)[number];
}
