import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import type { RunStore } from '../../core/contract/run-state.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { repeat } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { type Fields, isRecord } from '../../core/kernel/json.js';
import {
  bytesOf,
  type NodeHandler,
  nodeListener,
  rawRequestOf,
  rawResponseOf,
} from '../../core/kernel/node-http.js';
import { nodeHttp } from '../../core/kernel/node-module.js';
import { FILLED_TEXT, optionTable, WHOLE } from '../../core/kernel/options.js';
import { isLoopbackHost } from '../../core/kernel/server-address.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import type { RunWatcher } from '../../run/loop/loop-run.js';
import { AppDocuments, PRIVATE_HEADERS } from './app-views.js';
import { EventFeed } from './event-feed.js';
import { checkInspector, type InspectorOptions } from './options.js';
import { PAGE_CALLS, PageFault, type PageParts } from './page-calls.js';
import { AnsweringPerson, PendingBoard } from './pending-board.js';
import { Recordings } from './recording.js';
import { listsRuns } from './shown-runs.js';
import { TrialCalls, TrialChats } from './trials.js';
import { WatchedCalls } from './watched-calls.js';
import { WatchedRuns } from './watched-runs.js';

/** Where the inspector listens. */
export interface ListenOptions {
  /** Default: a free port. */
  readonly port?: number;
  /** Default: `127.0.0.1`. Any other host needs `allowedHosts`. */
  readonly host?: string;
}

/** The inspector of a registry. */
export interface Inspector {
  /** The token of the page; a part of the address that `listen` returns. */
  readonly token: string;
  /** Handles a `Request` of the Fetch standard. */
  fetch(request: Request): Promise<Response>;
  /** The same for Node's `http`, Express and NestJS. Without `allowedHosts`, it only serves this machine. */
  readonly node: NodeHandler;
  /** Starts a server. The address contains the token after its `#`. */
  listen(options?: ListenOptions): Promise<{ readonly url: string; readonly port: number }>;
  /** Continues held calls, and stops watching and serving. */
  close(): Promise<void>;
}

const LISTEN = optionTable<ListenOptions>('inspector.listen', { port: WHOLE, host: FILLED_TEXT });

/** The largest body of a request. */
const MOST_BYTES = 4 * 2 ** 20;

const LOOPBACK_ADDRESS = /^(?:127\.|::1$|::ffff:127\.)/;

/**
 * A page for the tools of a registry: definitions, a form that calls them through the whole pipeline, runs, a chat,
 * pending approvals, breakpoints, and recordings that become tests. It watches the registry from now on. Whoever has
 * the token can call every tool, so by default it only serves this machine, and only if `NODE_ENV` is `development`
 * or `test`.
 *
 * @throws InvalidOptionsError (521), also if it is not allowed here; ToolDeclarationError (502) if the registry is watched already.
 *
 * @example
 * ```ts
 * const inspector = createInspector(tools, { provider, model: 'gpt-5' });
 * const { url } = await inspector.listen();
 * console.log(url); // http://127.0.0.1:53211/#token=…
 * ```
 */
export function createInspector(registry: ToolRegistry, options: InspectorOptions = {}): Inspector {
  checkInspector(registry, options);
  const token = options.token ?? randomBytes(24).toString('base64url');
  const guard = createGuard(token, options.allowedHosts);
  const parts = partsOf(registry, options);
  const { calls, runs, feed, chats } = parts;
  const watcher: RunWatcher = {
    aroundCall: (call) => calls.aroundCall(call),
    aroundRun: (run) => runs.begin(run),
  };
  const unwatch = registry.watch(watcher);
  const unfollow = registry.onChange(() => feed.report('tools'));
  const leaveStore = followStore(options.store, feed);
  const fetch = (request: Request): Promise<Response> => answer(request, parts, guard);
  const handler = nodeListener(fetch);
  const node: NodeHandler = (request, response) => {
    const { remoteAddress = '' } = rawRequestOf(request).socket;
    if (options.allowedHosts !== undefined || LOOPBACK_ADDRESS.test(remoteAddress))
      handler(request, response);
    else rawResponseOf(response).writeHead(403).end();
  };
  const servers = new Set<Server>();
  return {
    token,
    fetch,
    node,
    async listen(given = {}) {
      checkOptions(given, LISTEN);
      const { port = 0, host = '127.0.0.1' } = given;
      const server = nodeHttp().createServer(node);
      servers.add(server);
      await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
      const { port: own } = server.address() as AddressInfo;
      const name = host.includes(':') ? `[${host}]` : host;
      return { url: `http://${name}:${own}${options.path ?? ''}/#token=${token}`, port: own };
    },
    async close() {
      unwatch();
      unfollow();
      leaveStore();
      calls.close();
      chats.close();
      feed.close();
      const closed = [...servers].map((server) => once(server.close(), 'close'));
      for (const server of servers) server.closeAllConnections();
      await Promise.all(closed);
      servers.clear();
    },
  };
}

function partsOf(registry: ToolRegistry, options: InspectorOptions): PageParts {
  const feed = new EventFeed();
  const calls = new WatchedCalls(feed);
  const runs = new WatchedRuns(feed);
  const person = new AnsweringPerson(registry, options.answeredBy);
  return {
    registry,
    options,
    feed,
    calls,
    runs,
    pending: new PendingBoard({ registry, runs, options, person }),
    trials: new TrialCalls(registry, calls, person),
    chats: new TrialChats(registry, runs, options.systemPrompt),
    recordings: new Recordings(options.recordings),
    apps: new AppDocuments(),
  };
}

async function answer(
  request: Request,
  parts: PageParts,
  guard: ReturnType<typeof createGuard>,
): Promise<Response> {
  const refusal = guard.refusal(request);
  if (refusal !== undefined) return refusal;
  const { pathname } = new URL(request.url);
  const { path: mount = '' } = parts.options;
  if (pathname === mount && mount !== '')
    return new Response(null, { status: 308, headers: { location: `${mount}/` } });
  if (!pathname.startsWith(`${mount}/`)) return problem(404, 'not found');
  const path = pathname.slice(mount.length + 1);
  if (!path.startsWith('api/')) {
    const isAsked = request.method === 'GET' || request.method === 'HEAD';
    const [, app] = /^apps\/(.+)$/.exec(path) ?? [];
    const file = app === undefined ? pageFile(path) : parts.apps.response(app);
    return (isAsked && (await file)) || problem(404, 'not found');
  }
  const denied = guard.refusalOfCall(request);
  if (denied !== undefined) return denied;
  return answerCall(request, path.slice('api/'.length), parts);
}

async function answerCall(request: Request, path: string, parts: PageParts): Promise<Response> {
  const { host } = new URL(request.url);
  const page = `http://${request.headers.get('host') ?? host}${parts.options.path ?? ''}/`;
  const [name = '', ...rest] = path.split('/');
  if (name === 'events' && request.method === 'GET') {
    const headers = { ...SAFE_HEADERS, 'content-type': 'text/event-stream' };
    return new Response(parts.feed.stream(request.signal), { headers });
  }
  const wanted = `${request.method} ${name}`;
  const call = Object.hasOwn(PAGE_CALLS, wanted) ? PAGE_CALLS[wanted] : undefined;
  if (call === undefined) return problem(404, 'not found');
  try {
    const id = rest.map(decodeURIComponent).join('/');
    const body = request.method === 'POST' ? await bodyOf(request) : {};
    return Response.json((await call(parts, { id, body, page })) ?? {}, { headers: SAFE_HEADERS });
  } catch (error) {
    if (error instanceof PageFault) return problem(error.status, error.message);
    if (error instanceof URIError) return problem(400, `the path cannot be decoded: ${path}`);
    return problem(500, errorMessage(error));
  }
}

async function bodyOf(request: Request): Promise<Fields> {
  const bytes = await bytesOf(request, MOST_BYTES);
  if (bytes === undefined) throw new PageFault(`the body has more than ${MOST_BYTES} bytes`);
  try {
    const body: unknown = JSON.parse(Buffer.from(bytes).toString() || '{}');
    if (isRecord(body)) return body;
  } catch {
    // Reported below, like any other value that is not an object.
  }
  throw new PageFault('the body must be a JSON object');
}

function problem(status: number, message: string): Response {
  return Response.json({ error: message }, { status, headers: SAFE_HEADERS });
}

/**
 * Refuses requests for other host names (DNS rebinding) and requests of other pages. Everything but the files of the
 * page and its MCP Apps, whose addresses cannot be guessed, needs the token.
 */
function createGuard(token: string, allowedHosts: readonly string[] = []) {
  const expected = Buffer.from(token);
  const hosts = new Set(allowedHosts.map((host) => host.toLowerCase()));
  return {
    /** Applies to every request, including the files of the page. */
    refusal({ headers, url }: Request): Response | undefined {
      const host = (headers.get('host') ?? new URL(url).host).toLowerCase();
      if (!isLoopbackHost(host) && !hosts.has(host))
        return problem(403, `Host ${host} is not allowed: allowedHosts names it`);
      const origin = headers.get('origin')?.toLowerCase();
      if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`)
        return problem(403, 'pages of other origins may not call this');
      const site = headers.get('sec-fetch-site');
      // Links from other sites to the page are allowed.
      const isOpened = headers.get('sec-fetch-mode') === 'navigate';
      if (site !== null && site !== 'same-origin' && site !== 'none' && !isOpened)
        return problem(403, 'pages of other sites may not call this');
      return undefined;
    },
    refusalOfCall({ headers, method }: Request): Response | undefined {
      const [, given = ''] = /^Bearer (.+)$/.exec(headers.get('authorization') ?? '') ?? [];
      const bytes = Buffer.from(given);
      if (bytes.length !== expected.length || !timingSafeEqual(bytes, expected))
        return problem(401, 'the token is missing or wrong');
      const type = headers.get('content-type') ?? '';
      if (method === 'POST' && !/^application\/json\b/.test(type))
        return problem(415, 'the body must be application/json');
      return undefined;
    },
  };
}

const TYPES: Readonly<Record<string, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
};

/** Only resources of this server, nothing inline, no framing. Its frames are MCP Apps, which have their own policy. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const SAFE_HEADERS: Readonly<Record<string, string>> = {
  ...PRIVATE_HEADERS,
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

let folder: string | undefined;

/** A file of the page, if it exists. */
async function pageFile(name: string): Promise<Response | undefined> {
  const file = name === '' ? 'index.html' : name;
  if (!Object.hasOwn(TYPES, file)) return undefined;
  folder ??= pageFolder(import.meta.dirname);
  const text = await readFile(join(folder, file), 'utf8');
  return new Response(text, { headers: { ...SAFE_HEADERS, 'content-type': TYPES[file] ?? '' } });
}

/** The build moves this file, but the page is always in `dist/inspector`. */
function pageFolder(from: string): string {
  const found = join(from, 'dist', 'inspector');
  if (existsSync(found)) return found;
  const parent = dirname(from);
  if (parent === from) throw new Error('the page of the inspector is not built: npm run build');
  return pageFolder(parent);
}

const LOOK_MS = 1_000;
/** The latest change comes first, so the first runs are enough to detect changes. */
const LOOKED_AT = 20;

/** Reports changes by other processes in a store while a page is open. Returns a function that stops this. */
function followStore(store: RunStore | undefined, feed: EventFeed): () => void {
  if (!listsRuns(store)) return () => {};
  let known: string | undefined;
  const look = async (): Promise<void> => {
    const { runs } = await store.list({ limit: LOOKED_AT });
    const seen = JSON.stringify(
      runs.map(({ runId, status, generation, changedAt }) => [runId, status, generation, changedAt]),
    );
    if (seen === known) return;
    known = seen;
    feed.report('runs');
    feed.report('pending');
  };
  const stop = repeat(
    async () => {
      // The page reports an unreachable store itself.
      if (feed.hasReaders) await look().catch(() => {});
      return LOOK_MS;
    },
    { firstMs: LOOK_MS },
  );
  return () => void stop();
}
