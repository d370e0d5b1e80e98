import {
  type CallToolRequest,
  McpServer,
  type ServerContext,
  type Transport,
} from '@modelcontextprotocol/server';
import type { ToolRegistry } from '../../../run/call/tool-registry.js';
import { asSent, recordMessage } from '../record-message.js';
import { ANSWER_MS } from './ask-client.js';
import type { OpenRequests } from './open-requests.js';
import {
  arrivalOf,
  type McpRequest,
  prepare,
  readRequest,
  type ServedTools,
  visibleTools,
} from './request.js';
import { serveCall } from './serve-call.js';

/** How often one call may come back with another question. */
const MAX_ROUNDS = 32;
const PAGE_SIZE = 100;

/** The SDK has checked the parameters of a call before it looks at this; by a type of its own it checks them twice. */
const AS_SENT = asSent<CallToolRequest['params']>();

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
 * them. Each method of the protocol is one handler here.
 */
export function createSdkServer(served: ServedTools, open: OpenRequests): RegistryMcpServer {
  const { registry, options, telemetry } = served;
  const { name = 'toolwright', version = '0.0.0', title } = options;
  // Where callers see different tools, some may not know of all toolsets.
  const instructions =
    options.instructions ?? (options.visible || options.oauth ? undefined : served.lists.titles());
  const mcp = new RegistryMcpServer(registry, open, [
    { name, version, title },
    {
      capabilities: { tools: { listChanged: true }, logging: {} },
      instructions,
      inputRequired: { maxRounds: MAX_ROUNDS, roundTimeoutMs: ANSWER_MS },
      debouncedNotificationMethods: ['notifications/tools/list_changed'],
    },
  ]);
  const { server } = mcp;
  server.onerror = (error) => options.onError?.(error);
  const read = (context: ServerContext): McpRequest => readRequest(served, server, context);
  server.setRequestHandler('tools/list', ({ params }, context) => {
    const request = read(context);
    const message = { ...arrivalOf(request, 'tools/list'), side: 'server' } as const;
    return recordMessage(telemetry, message, async () => {
      const visible = await prepare(request, () => visibleTools(request));
      const hidden = served.resource?.hiddenFrom(request.caller.authInfo) ?? [];
      const tools = hidden.length === 0 ? visible : served.lists.view({ deny: hidden }, visible);
      const { pageSize: size = PAGE_SIZE } = options;
      return served.lists.page(tools, {
        size,
        cursor: params?.cursor,
        isProtected: served.resource !== undefined,
      });
    });
  });
  server.setRequestHandler('tools/call', { params: AS_SENT }, async (params, context) => {
    const request = read(context);
    const { signal, end } = open.call(context.mcpReq.signal);
    try {
      return await serveCall(request, params, signal);
    } finally {
      end();
    }
  });
  options.configure?.(mcp);
  return mcp;
}
