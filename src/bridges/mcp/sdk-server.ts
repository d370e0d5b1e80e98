import {
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
  type Transport,
} from '@modelcontextprotocol/server';
import type { ToolRegistry } from '../../registry/tool-registry.js';
import { callerOf, type McpCaller } from './mcp-caller.js';
import type { McpServerOptions } from './mcp-server-options.js';
import type { OpenRequests } from './open-requests.js';
import { ANSWER_MS, type SealedState } from './sealed-state.js';
import { serveCall } from './serve-call.js';
import type { ToolLists } from './tool-lists.js';

/** What the servers of all connections share. */
export interface ServedTools {
  readonly registry: ToolRegistry;
  readonly options: McpServerOptions;
  readonly state: SealedState;
  readonly lists: ToolLists;
}

/** How often one call may come back with another question. */
const MOST_ROUNDS = 32;
const PAGE_SIZE = 100;

/**
 * The SDK's server with the one thing that it looks up among its own tools, which parameters have headers; and
 * with an eye on what is not answered yet.
 */
export class RegistryMcpServer extends McpServer {
  readonly open: OpenRequests;
  readonly #registry: ToolRegistry;

  constructor(registry: ToolRegistry, open: OpenRequests, options: ConstructorParameters<typeof McpServer>) {
    super(...options);
    this.open = open;
    this.#registry = registry;
  }

  override connect(transport: Transport): Promise<void> {
    this.open.watch(transport);
    return super.connect(transport);
  }

  override toolInputSchemaJson(name: string): Record<string, unknown> | undefined {
    return this.#registry.offered(name)?.parameters;
  }
}

/**
 * A server of the SDK for one connection. Lists and calls are the registry's own: the SDK adds no check to
 * them.
 */
export function createSdkServer(served: ServedTools, open: OpenRequests): RegistryMcpServer {
  const { registry, options } = served;
  const { name = 'toolwright', version = '0.0.0', title } = options;
  // Where callers see different tools, some may not know of all toolsets.
  const instructions = options.instructions ?? (options.visible ? undefined : served.lists.titles());
  const mcp = new RegistryMcpServer(registry, open, [
    { name, version, ...(title === undefined ? {} : { title }) },
    {
      capabilities: { tools: { listChanged: true }, logging: {} },
      ...(instructions === undefined ? {} : { instructions }),
      inputRequired: { maxRounds: MOST_ROUNDS, roundTimeoutMs: ANSWER_MS },
      debouncedNotificationMethods: ['notifications/tools/list_changed'],
    },
  ]);
  const { server } = mcp;
  server.onerror = (error) => options.onError?.(error);
  server.setRequestHandler('tools/list', async ({ params }, context) => {
    const tools = await prepared(options, () => visibleTools(served, callerOf(server, context)));
    return served.lists.page(tools, options.pageSize ?? PAGE_SIZE, params?.cursor);
  });
  server.setRequestHandler('tools/call', async (request, context) => {
    const caller = callerOf(server, context);
    const [tools, scope, principal] = await prepared(options, () =>
      Promise.all([
        visibleTools(served, caller),
        options.scope?.(caller) ?? {},
        principalOf(options, context),
      ]),
    );
    const call = open.call(context.mcpReq.signal);
    try {
      const parts = { ...served, server, request, context, caller, tools, scope, principal };
      return await serveCall({ ...parts, signal: call.signal });
    } finally {
      call.end();
    }
  });
  options.configure?.(mcp);
  return mcp;
}

async function visibleTools({ lists, options }: ServedTools, caller: McpCaller): Promise<ToolRegistry> {
  return lists.view(await options.visible?.(caller));
}

/** Whom sessions and suspended calls belong to. */
export function principalOf(options: McpServerOptions, { http }: Pick<ServerContext, 'http'>): string {
  const authInfo = http?.authInfo;
  if (options.principal) return options.principal(authInfo);
  return JSON.stringify([authInfo?.clientId ?? null, authInfo?.extra?.sub ?? null]);
}

/** What the application throws while it looks at a caller is not for the caller's eyes. */
async function prepared<Value>(options: McpServerOptions, prepare: () => Promise<Value>): Promise<Value> {
  try {
    return await prepare();
  } catch (error) {
    options.onError?.(error);
    throw new ProtocolError(ProtocolErrorCode.InternalError, 'The request could not be prepared');
  }
}
