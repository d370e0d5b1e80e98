import {
  type CallToolRequest,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type ServerContext,
  type Transport,
} from '@modelcontextprotocol/server';
import type { ServedAs } from '../../../core/contract/declaration.js';
import { SERVED_KINDS } from '../../../run/call/tool-registry.js';
import { asSent, recordMessage } from '../record-message.js';
import { TASKS_EXTENSION } from '../tasks-extension.js';
import { APPS_EXTENSION, listedApp } from './apps.js';
import { ANSWER_MS } from './ask-client.js';
import { listedTool } from './listed-tool.js';
import type { OpenRequests } from './open-requests.js';
import type { McpCaller } from './options.js';
import {
  completeArgument,
  getPrompt,
  listedPrompt,
  listedResource,
  listedTemplate,
  readResource,
} from './prompts-and-resources.js';
import {
  arrivalOf,
  callerOf,
  listedPart,
  type McpRequest,
  prepare,
  type ServedTools,
  visibleTools,
} from './request.js';
import { findResource, isTemplate } from './resource-uris.js';
import { serveToolCall } from './serve-call.js';
import { TASK_METHODS, type Tasks } from './tasks.js';
import { LISTS } from './tool-lists.js';

/**
 * The parts of a registry besides tools; MCP Apps are resources. Without prompts, `configure` may add the SDK's own;
 * likewise resources.
 */
function partsOf({ registry, lists }: ServedTools): ReadonlySet<ServedAs['kind']> {
  const isApp = (kind: ServedAs['kind']) => kind === 'resource' && lists.apps().size > 0;
  return new Set(SERVED_KINDS.filter((kind) => registry.part(kind).count() > 0 || isApp(kind)));
}

const CHANGES = LISTS.map((list) => `notifications/${list}/list_changed`);

/** How often a call may ask again. */
const MAX_ROUNDS = 32;
const PAGE_SIZE = 100;
/** The most resources that a connection can subscribe to; each URI stays in memory. */
const MAX_SUBSCRIBED = 1_000;
const MAX_URI_CHARACTERS = 8_000;

/** The SDK has already validated the parameters; its own type would validate them again. */
const AS_SENT = asSent<CallToolRequest['params']>();

/** The HTTP session of a server, with its last request. */
interface LastingSession extends Pick<McpCaller, 'headers' | 'authInfo' | 'sessionId'> {
  /** Ends the stream of notifications. */
  endStream(): void;
}

/** The SDK's server of a connection, with its lists, and with its requests that pass the pipeline of calls. */
export class RegistryMcpServer extends McpServer {
  readonly open: OpenRequests;
  /** URIs of resources that a 2025-11-25 client has subscribed to. */
  readonly subscribed = new Set<string>();
  session: LastingSession | undefined;
  readonly #served: ServedTools;

  constructor(served: ServedTools, open: OpenRequests, options: ConstructorParameters<typeof McpServer>) {
    super(...options);
    this.open = open;
    this.#served = served;
  }

  override connect(transport: Transport): Promise<void> {
    this.open.watch(transport);
    return super.connect(transport);
  }

  /** Tells the SDK which parameters are headers. */
  override toolInputSchemaJson(name: string): Record<string, unknown> | undefined {
    return this.#served.registry.offered(name)?.parameters;
  }

  /** A page of the tools, or of another part of the registry. The last page of the resources also has all MCP Apps. */
  list(context: ServerContext, cursor: string | undefined, kind?: ServedAs['kind']) {
    const { lists, options, telemetry } = this.#served;
    const request = this.#read(context);
    const method = kind === undefined ? 'tools/list' : `${kind}s/list`;
    const message = { ...arrivalOf(request, method), side: 'server' } as const;
    return recordMessage(telemetry, message, async () => {
      const visible = await prepare(request, () => visibleTools(request));
      const shown = listedPart(request, visible, kind);
      const { listed, ...page } = lists.page(shown, options.pageSize ?? PAGE_SIZE, cursor);
      const hasApps = kind === 'resource' && page.nextCursor === undefined;
      const apps = hasApps ? [...lists.apps(listedPart(request, visible)).values()] : [];
      return { listed, apps, page };
    });
  }

  /** Whether the caller may see a resource. */
  async sees(context: ServerContext, uri: string): Promise<boolean> {
    const request = this.#read(context);
    const visible = await prepare(request, () => visibleTools(request));
    const isApp = this.#served.lists.apps(listedPart(request, visible)).has(uri);
    return isApp || findResource(visible.part('resource'), uri) !== undefined;
  }

  /** Answers a request that passes the pipeline of calls. */
  serve<Params, Result>(
    params: Params,
    context: ServerContext,
    answer: (request: McpRequest, params: Params, signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    return answer(this.#read(context), params, this.open.signalOf(context.mcpReq));
  }

  #read(context: ServerContext): McpRequest {
    const { sessionId, mcpReq, http } = context;
    const { authInfo, req, closeSSE: closeStream } = http ?? {};
    const from = { authInfo, headers: req?.headers, sessionId, closeStream };
    const caller = callerOf(from, this.server, mcpReq.envelope);
    return { served: this.#served, server: this.server, context, caller };
  }
}

/**
 * Creates the SDK server of a connection, with one handler for each method. Lists and calls are the registry's own: the
 * SDK adds no checks.
 */
export function createSdkServer(
  served: ServedTools,
  open: OpenRequests,
  tasks: Tasks | undefined,
): RegistryMcpServer {
  const { options } = served;
  const { name = 'toolwright', version = '0.0.0', title } = options;
  // If callers see different tools, some must not see the descriptions of all toolsets.
  const isSameForAll = options.visible === undefined && options.oauth === undefined;
  const instructions = options.instructions ?? (isSameForAll ? served.lists.titles() : undefined);
  const parts = partsOf(served);
  const extensions = {
    ...(served.lists.apps().size > 0 && { [APPS_EXTENSION]: {} }),
    ...(tasks && { [TASKS_EXTENSION]: {} }),
  };
  const mcp = new RegistryMcpServer(served, open, [
    { name, version, title },
    {
      capabilities: {
        tools: { listChanged: true },
        logging: {},
        ...(parts.has('prompt') && { prompts: { listChanged: true } }),
        ...(parts.has('resource') && { resources: { listChanged: true, subscribe: true } }),
        ...(parts.has('completion') && { completions: {} }),
        ...(Object.keys(extensions).length > 0 && { extensions }),
      },
      instructions,
      inputRequired: { maxRounds: MAX_ROUNDS, roundTimeoutMs: ANSWER_MS },
      debouncedNotificationMethods: CHANGES,
    },
  ]);
  mcp.server.onerror = (error) => options.onError?.(error);
  serveTools(mcp, served, tasks);
  if (parts.has('prompt')) servePrompts(mcp);
  if (parts.has('resource')) serveResources(mcp);
  if (parts.has('completion'))
    mcp.server.setRequestHandler('completion/complete', ({ params }, context) =>
      mcp.serve(params, context, completeArgument),
    );
  if (tasks !== undefined) serveTasks(mcp, tasks);
  options.configure?.(mcp);
  return mcp;
}

function serveTools(mcp: RegistryMcpServer, { resource }: ServedTools, tasks: Tasks | undefined): void {
  mcp.server.setRequestHandler('tools/list', async ({ params }, context) => {
    const { listed, page } = await mcp.list(context, params?.cursor);
    return { tools: listed.map((tool) => listedTool(tool, resource !== undefined)), ...page };
  });
  mcp.server.setRequestHandler('tools/call', { params: AS_SENT }, (params, context) =>
    mcp.serve(params, context, (request, sent, signal) => serveToolCall(request, sent, { signal, tasks })),
  );
}

/** The SDK has no types for these methods. */
const TASK_PARAMS = asSent<{ readonly taskId?: unknown }>();

function serveTasks(mcp: RegistryMcpServer, tasks: Tasks): void {
  for (const method of Object.keys(TASK_METHODS) as (keyof typeof TASK_METHODS)[])
    mcp.server.setRequestHandler(method, { params: TASK_PARAMS }, (params, context) =>
      mcp.serve(params, context, (request, { taskId }) => tasks.serve(method, request, taskId)),
    );
}

function servePrompts(mcp: RegistryMcpServer): void {
  mcp.server.setRequestHandler('prompts/list', async ({ params }, context) => {
    const { listed, page } = await mcp.list(context, params?.cursor, 'prompt');
    return { prompts: listed.map(listedPrompt), ...page };
  });
  mcp.server.setRequestHandler('prompts/get', ({ params }, context) => mcp.serve(params, context, getPrompt));
}

function serveResources(mcp: RegistryMcpServer): void {
  const { server, subscribed } = mcp;
  server.setRequestHandler('resources/list', async ({ params }, context) => {
    const { listed, apps, page } = await mcp.list(context, params?.cursor, 'resource');
    const resources = listed.filter((resource) => !isTemplate(resource)).map(listedResource);
    return { resources: [...resources, ...apps.map(listedApp)], ...page };
  });
  server.setRequestHandler('resources/templates/list', async ({ params }, context) => {
    const { listed, page } = await mcp.list(context, params?.cursor, 'resource');
    return { resourceTemplates: listed.filter(isTemplate).map(listedTemplate), ...page };
  });
  server.setRequestHandler('resources/read', ({ params }, context) =>
    mcp.serve(params, context, readResource),
  );
  server.setRequestHandler('resources/subscribe', async ({ params: { uri } }, context) => {
    if (!(await mcp.sees(context, uri))) throw new ResourceNotFoundError(uri);
    if (subscribed.size >= MAX_SUBSCRIBED || uri.length > MAX_URI_CHARACTERS)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Too many subscriptions, or too long a URI');
    subscribed.add(uri);
    return {};
  });
  server.setRequestHandler('resources/unsubscribe', ({ params }) => {
    subscribed.delete(params.uri);
    return {};
  });
}
