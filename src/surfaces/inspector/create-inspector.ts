import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { type Answer, type CallScope, scopeFields } from '../../core/contract/call.js';
import type { McpApp, McpAppCsp } from '../../core/contract/declaration.js';
import type { LLMProvider } from '../../core/contract/llm-provider.js';
import type { RunStore } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { repeat } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
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
import { connectionsOf } from '../../core/kernel/tool-connections.js';
import { resultText } from '../../run/call/result-text.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import type { RunWatcher } from '../../run/loop/loop-run.js';
import { appFaults, htmlOf } from '../mcp/server/apps.js';
import { listedTool, structuredOutput, writeCallResult } from '../mcp/server/call-result.js';
import { type ChosenScope, checkInspector, type InspectorOptions } from './options.js';
import {
  callTexts,
  type Recording,
  Recordings,
  recordCall,
  recordRun,
  replay,
  saveTest,
  scopeFromRequest,
  writeTest,
} from './recording.js';
import {
  callLine,
  listsRuns,
  runDetail,
  runLine,
  shownFields,
  shownRecordOf,
  shownValue,
  storedLine,
  storedRun,
} from './shown-runs.js';
import { listWarnings, toolCard, toolSummaries } from './tool-card.js';
import {
  type GoesOn,
  PageFault,
  PendingBoard,
  type TrialAnswer,
  type TrialCall,
  TrialCalls,
  TrialChats,
} from './trials.js';
import { EventFeed, type SeenCall, WatchedCalls, WatchedRuns } from './watched.js';

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
  return {
    registry,
    options,
    feed,
    calls,
    runs,
    pending: new PendingBoard({ registry, runs, options }),
    trials: new TrialCalls({ registry, calls, options }),
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
    if (error instanceof URIError) return problem(400, `the path cannot be decoded: ${path}`);
    // Any other error comes from the application, its store or a file, not from the request.
    const isRefusal = error instanceof PageFault || ToolwrightError.is(error);
    return problem((isRefusal && error.statusCode) || 500, errorMessage(error));
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
        return problem(403, `Host ${host} is not allowed; add it to allowedHosts`);
      const origin = headers.get('origin')?.toLowerCase();
      if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`)
        return problem(403, 'requests from pages of other origins are not allowed');
      const site = headers.get('sec-fetch-site');
      // Links from other sites to the page are allowed.
      const isOpened = headers.get('sec-fetch-mode') === 'navigate';
      if (site !== null && site !== 'same-origin' && site !== 'none' && !isOpened)
        return problem(403, 'requests from pages of other sites are not allowed');
      return undefined;
    },
    refusalOfCall({ headers, method }: Request): Response | undefined {
      const [, given = ''] = /^Bearer (.+)$/.exec(headers.get('authorization') ?? '') ?? [];
      const bytes = Buffer.from(given);
      if (bytes.length !== expected.length || !timingSafeEqual(bytes, expected))
        return problem(401, 'the token is missing or wrong');
      const type = headers.get('content-type') ?? '';
      if (method === 'POST' && !/^application\/json\b/.test(type))
        return problem(415, 'the content type must be application/json');
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

/** Headers of every response of the inspector. */
const PRIVATE_HEADERS = {
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

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

/** The parts that requests of the page use. */
interface PageParts {
  readonly registry: ToolRegistry;
  readonly options: InspectorOptions;
  readonly feed: EventFeed;
  readonly calls: WatchedCalls;
  readonly runs: WatchedRuns;
  readonly trials: TrialCalls;
  readonly chats: TrialChats;
  readonly pending: PendingBoard;
  readonly recordings: Recordings;
  readonly apps: AppDocuments;
}

interface PageRequest {
  /** The rest of the path. */
  readonly id: string;
  readonly body: Fields;
  /** The address of the page, with a slash at its end. */
  readonly page: string;
}

const PAGE_CALLS: Readonly<Record<string, (parts: PageParts, request: PageRequest) => unknown>> = {
  'GET about': ({ options }) => ({
    hasModel: options.provider !== undefined && options.model !== undefined,
    model: options.model,
    hasStore: options.store !== undefined,
    tests: options.tests,
    recordings: options.recordings,
  }),
  'GET tools': async (parts, { id }) => {
    if (id !== '') return (await toolCard(id, parts)) ?? missing('tool', id);
    const { registry, calls } = parts;
    const tools = toolSummaries(registry);
    const connections = connectionsOf(registry).map((connection) => ({
      ...connection,
      tools: connection.tools.length,
    }));
    return { tools, connections, warnings: listWarnings(tools), breakpoints: calls.breakpoints };
  },
  'GET calls': (parts, { id, page }) => {
    const { calls, options } = parts;
    if (id === '') return { calls: calls.list().map(callLine) };
    const seen = calls.get(id) ?? missing('call', id);
    const setup = options.tests?.setup;
    const texts = callTexts({ tool: seen.tool, args: seen.arguments }, { page, setup });
    return { ...callDetail(seen, parts), texts };
  },
  'POST calls': async (parts, { body }) => {
    const { trials, options } = parts;
    const { tool, arguments: args } = body;
    const scope = await scopeFor(options, body.scope);
    return callDetail(await trials.make({ tool: text('tool', tool), arguments: args, scope }), parts);
  },
  'POST call-texts': ({ options }, { body, page }) =>
    callTexts({ tool: text('tool', body.tool), args: body.arguments }, { page, setup: options.tests?.setup }),
  'POST call-answers': async (parts, { id, body }) =>
    callDetail(await parts.trials.answer(id, body as unknown as TrialAnswer), parts),
  'POST app-views': ({ registry, apps }, { id }) => {
    const tool = registry.offered(id);
    const { ui } = tool ?? missing('tool', id);
    return tool && ui ? apps.open({ ...tool, ui }) : missing('view of', id);
  },
  'POST app-calls': async ({ registry, trials, options }, { body }) => {
    const { name, arguments: args = {} } = body;
    const scope = await scopeFor(options, body.scope);
    return callForApp(registry, trials, { tool: text('name', name), arguments: args, scope });
  },
  'GET runs': async ({ runs, calls, options }, { id }) => {
    const seen = runs.get(id);
    if (seen !== undefined) return runDetail(seen, calls);
    if (id !== '') return (await storedRun(options.store, id)) ?? missing('run', id);
    const { store } = options;
    const stored = listsRuns(store) ? (await store.list({ limit: 50 })).runs : [];
    const own = runs.list().map(runLine);
    const known = new Set(own.map(({ runId }) => runId));
    const others = stored.filter(({ runId }) => !known.has(runId)).map(storedLine);
    return { runs: [...own, ...others] };
  },
  'GET pending': async ({ pending }) => ({ runs: shownValue(await pending.list()) }),
  'POST answers': async ({ pending, feed }, { body }) => {
    const { runId, answers, goesOn = 'here' } = body;
    if (!Array.isArray(answers)) throw new PageFault('answers must be a list');
    await pending.answer(text('runId', runId), answers as Answer[], goesOn as GoesOn);
    feed.report('pending');
    return {};
  },
  'GET chats': ({ chats }, { id }) => shownValue(chats.get(id)),
  'POST chats': async ({ chats, options }, request) => {
    const prompt = text('text', request.body.text);
    return shownValue(chats.prompt({ ...(await chatFor(options, request)), text: prompt }));
  },
  'POST chat-retries': async ({ chats, options }, request) =>
    shownValue(chats.retry(await chatFor(options, request))),
  'POST chat-aborts': ({ chats }, { id }) => {
    chats.abort(id);
    return shownValue(chats.get(id));
  },
  'GET held': ({ calls }) => ({
    held: calls.held().map((held) => ({ ...held, arguments: shownValue(held.arguments) })),
    breakpoints: calls.breakpoints,
  }),
  'POST held': ({ calls }, { id, body }) => {
    const reason =
      typeof body.reason === 'string' && body.reason !== '' ? body.reason : 'it was refused at a breakpoint';
    if (!calls.release(id, body.how === 'refuse' ? { how: 'refuse', reason } : { how: 'go' }))
      missing('held call', id);
    return {};
  },
  'POST breakpoints': ({ calls, registry }, { id, body }) => {
    if (registry.offered(id) === undefined) missing('tool', id);
    calls.breakAt(id, body.state === 'on' ? 'on' : 'off');
    return { breakpoints: calls.breakpoints };
  },
  'GET recordings': async ({ recordings }, { id }) => {
    if (id !== '') return shownValue((await recordings.get(id)) ?? missing('recording', id));
    return {
      recordings: (await recordings.list()).map(({ outcome: { status, calls }, ...recording }) => {
        const { id: name, kind, title, at } = recording;
        return { id: name, kind, title, at, status, calls: calls.length };
      }),
    };
  },
  'POST recordings': async (parts, { body }) => {
    const { id, title } = await parts.recordings.save(await recordingOf(parts, body));
    parts.feed.report('recordings');
    return { id, title };
  },
  'POST replays': async (parts, { body }) => {
    const { registry, options } = parts;
    const recording = await recordingOf(parts, body);
    const scope = await scopeFor(options, body.scope ?? recording.scope);
    const model = body.with === 'model' ? await modelFor(options, 'configured') : undefined;
    const { answeredBy } = options;
    return shownValue(await replay(recording, { tools: registry, model, scope, answeredBy }));
  },
  'POST tests': async (parts, { body }) => {
    const { tests } = parts.options;
    const setup = typeof body.setup === 'string' && body.setup.trim() !== '' ? body.setup : tests?.setup;
    const written = writeTest(await recordingOf(parts, body), { ...tests, setup });
    if (body.save !== true || tests === undefined) return written;
    return { ...written, path: await saveTest(written, tests) };
  },
};

function missing(what: string, id: string): never {
  throw new PageFault(`there is no ${what} '${id.slice(0, 100)}'`, 404);
}

function text(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new PageFault(`${name} is missing`);
}

async function scopeFor({ scope }: InspectorOptions, given: unknown): Promise<CallScope> {
  if (given !== undefined && !isRecord(given)) throw new PageFault('scope must be an object');
  const chosen = (given ?? {}) as ChosenScope;
  if (scope !== undefined) return scopeFromRequest(scopeFields(await scope(chosen)), chosen.request);
  const { request: _, ...others } = chosen;
  return others as CallScope;
}

/** The chat of a request, and how to continue it. */
async function chatFor(options: InspectorOptions, { id, body }: PageRequest) {
  const scope = await scopeFor(options, body.scope);
  return { id: text('id', id), scope, model: await modelFor(options, body.with) };
}

async function modelFor({ provider, model }: InspectorOptions, who: unknown) {
  if (who === 'configured') {
    if (provider === undefined || model === undefined)
      throw new PageFault('no model is configured: createInspector(registry, { provider, model })');
    return { provider, model };
  }
  const { OfflineProvider } = await import('../../models/offline/offline-provider.js');
  return { provider: new OfflineProvider() as LLMProvider, model: 'offline' };
}

/** The recording, run or call that a request names. */
async function recordingOf(
  { recordings, runs, calls }: PageParts,
  { recording, runId, key }: PageRequest['body'],
): Promise<Recording> {
  if (typeof recording === 'string')
    return (await recordings.get(recording)) ?? missing('recording', recording);
  if (typeof key === 'string') {
    const seen = calls.get(key) ?? missing('call', key);
    return recordCall(seen) ?? unfinished('call');
  }
  const seen = runs.get(text('runId', runId)) ?? missing('run of this process', String(runId));
  return recordRun(seen) ?? unfinished('run');
}

function unfinished(what: string): never {
  throw new PageFault(`the ${what} is still running: its result is not known yet`);
}

function callDetail(seen: SeenCall, { registry, trials }: PageParts): object {
  const { arguments: args, steps, scope, invocation } = seen;
  const { isError, silent, async, content } = invocation?.result ?? {};
  const { channel, chatId, conversationId, owner, data } = scope;
  return {
    ...callLine(seen),
    steps,
    isError,
    silent,
    async,
    ...(invocation && shownRecordOf(invocation.record)),
    ...shownFields({ arguments: args, scope: { channel, chatId, conversationId, owner, data }, content }),
    app: appData(registry.offered(seen.tool), seen),
    ...(invocation?.status === 'suspended' && {
      waits: invocation.suspension.waits,
      canAnswer: trials.isWaiting(seen.key),
    }),
  };
}

/** Views that the page may still load. */
const MAX_DOCUMENTS = 50;

/** The documents of MCP Apps that the page shows, each at an address that cannot be guessed. */
class AppDocuments {
  readonly #documents = new Map<string, { readonly html: string; readonly policy: string }>();

  /**
   * Makes the view of a tool available to the page.
   *
   * @throws Error naming the mistakes in the view.
   */
  async open(tool: ToolDefinition & { readonly ui: McpApp }) {
    const faults = appFaults(tool);
    if (faults.length > 0)
      throw new Error(faults.map(({ problem, fix }) => `${problem}. Write instead: ${fix}`).join('\n'));
    const { permissions = {}, csp, prefersBorder } = tool.ui;
    const id = randomBytes(24).toString('base64url');
    this.#documents.set(id, { html: await htmlOf(tool.ui), policy: policyOf(csp) });
    forgetOldest(this.#documents, MAX_DOCUMENTS);
    const features = Object.keys(permissions).map((name) =>
      name === 'clipboardWrite' ? 'clipboard-write' : name,
    );
    return {
      address: `apps/${id}`,
      allow: features.join('; '),
      prefersBorder,
      tool: listedTool(tool, false),
    };
  }

  response(id: string): Response | undefined {
    const document = this.#documents.get(id);
    if (document === undefined) return undefined;
    const headers = {
      ...PRIVATE_HEADERS,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': document.policy,
    };
    return new Response(document.html, { headers });
  }
}

/**
 * The policy of a view. `sandbox` gives it an origin of its own, so it needs no second frame between it and the page,
 * and `'self'` would not be the view but the inspector.
 */
function policyOf({
  connectDomains = [],
  resourceDomains = [],
  frameDomains = [],
  baseUriDomains = [],
}: McpAppCsp = {}): string {
  const from = (directive: string, ...sources: readonly string[]) =>
    `${directive} ${sources.length === 0 ? "'none'" : sources.join(' ')}`;
  return [
    "default-src 'none'",
    from('script-src', "'unsafe-inline'", ...resourceDomains),
    from('style-src', "'unsafe-inline'", ...resourceDomains),
    from('img-src', 'data:', ...resourceDomains),
    from('font-src', 'data:', ...resourceDomains),
    from('media-src', 'data:', ...resourceDomains),
    from('connect-src', ...connectDomains),
    from('frame-src', ...frameDomains),
    from('base-uri', ...baseUriDomains),
    "form-action 'none'",
    "frame-ancestors 'self'",
    'sandbox allow-scripts',
  ].join('; ');
}

/** The arguments of a call that has ended, with its result or why it was aborted, as the tool's view receives them. */
function appData(tool: ToolDefinition | undefined, { invocation }: SeenCall) {
  if (tool?.ui === undefined || invocation === undefined || invocation.status === 'suspended')
    return undefined;
  const { record } = invocation;
  if (record.status === 'aborted') return { input: record.arguments, cancelled: resultText(record.result) };
  return { input: record.arguments, result: writeCallResult(record, structuredOutput(tool)) };
}

/** Makes a call for a view, as a host does; only tools that views may call. */
async function callForApp(registry: ToolRegistry, trials: TrialCalls, call: TrialCall) {
  const name = call.tool;
  const tool = registry.offered(name);
  const { visibility = ['app'] } = Object(tool?._meta?.ui) as { readonly visibility?: readonly string[] };
  if (tool === undefined || !visibility.includes('app'))
    throw new PageFault(
      `the view may not call '${name}': there is no such tool, or its visibility lacks 'app'`,
    );
  const { invocation } = await trials.make(call);
  if (invocation === undefined) throw new Error(`the call of '${name}' has not ended`);
  if (invocation.status !== 'suspended') return writeCallResult(invocation.record, structuredOutput(tool));
  const text = `The call of '${name}' is waiting for an answer; answer it under Calls.`;
  return { content: [{ type: 'text', text }], isError: true };
}
