import {
  type CallToolRequest,
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type ClientCapabilities,
  type Implementation,
  McpServer,
  PROTOCOL_VERSION_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
  type Transport,
} from '@modelcontextprotocol/server';
import type { NameFilter } from '../../call/registration.js';
import type { ToolRegistry } from '../../call/tool-registry.js';
import type { CallScope } from '../../contract/call.js';
import { isThenable } from '../../kernel/async.js';
import { asSent, recordMessage } from '../record-message.js';
import { ANSWER_MS } from './ask-client.js';
import type { OpenRequests } from './open-requests.js';
import type { McpCaller, McpServerOptions } from './options.js';
import { factsOf, type ServedTools, serveCall } from './serve-call.js';

/** How often one call may come back with another question. */
const MOST_ROUNDS = 32;
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
    this.open.followAborts(transport);
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
  server.setRequestHandler('tools/list', ({ params }, context) => {
    const caller = callerOf(server, context);
    const list = async () => {
      const tools = await prepared(options, async () => served.lists.view(await options.visible?.(caller)));
      return served.lists.page(tools, options.pageSize ?? PAGE_SIZE, params?.cursor);
    };
    const carrier = context.mcpReq._meta;
    const message = { ...factsOf('tools/list', caller, context), side: 'server', carrier } as const;
    return recordMessage(options.telemetry ?? registry.telemetry, message, list);
  });
  server.setRequestHandler('tools/call', { params: AS_SENT }, async (params, context) => {
    const caller = callerOf(server, context);
    const asked = prepared(options, () => callerRights(served, caller, context));
    const { tools, scope, principal } = isThenable(asked) ? await asked : asked;
    const { signal, end } = open.call(context.mcpReq.signal);
    try {
      return await serveCall({ served, server, params, context, caller, tools, scope, principal, signal });
    } finally {
      end();
    }
  });
  options.configure?.(mcp);
  return mcp;
}

/** Waits for nothing where the application answers at once. */
function callerRights({ options, lists }: ServedTools, caller: McpCaller, context: ServerContext) {
  const filter = options.visible?.(caller);
  const scope = options.scope?.(caller);
  const principal = principalOf(options, context);
  const rights = (shown: NameFilter | undefined, own: CallScope | undefined) => ({
    tools: lists.view(shown),
    scope: own ?? {},
    principal,
  });
  return isThenable(filter) || isThenable(scope)
    ? Promise.all([filter, scope]).then(([shown, own]) => rights(shown, own))
    : rights(filter, scope);
}

const NO_TOKEN = JSON.stringify([null, null]);

/** Whom sessions and suspended calls belong to. */
export function principalOf(options: McpServerOptions, { http }: Pick<ServerContext, 'http'>): string {
  const authInfo = http?.authInfo;
  if (options.principal) return options.principal(authInfo);
  if (authInfo === undefined) return NO_TOKEN;
  return JSON.stringify([authInfo.clientId ?? null, authInfo.extra?.sub ?? null]);
}

/** What the application throws while it looks at a caller is not for the caller's eyes. */
function prepared<Value>(
  options: McpServerOptions,
  prepare: () => Value | Promise<Value>,
): Value | Promise<Value> {
  const fail = (error: unknown): never => {
    options.onError?.(error);
    throw new ProtocolError(ProtocolErrorCode.InternalError, 'The request could not be prepared');
  };
  try {
    const value = prepare();
    return isThenable(value) ? Promise.resolve(value).catch(fail) : value;
  } catch (error) {
    return fail(error);
  }
}

/** The caller of one request; a 2026-07-28 request names client and revision itself. */
function callerOf(server: Server, { sessionId, mcpReq, http }: ServerContext): McpCaller {
  const envelope = mcpReq.envelope as
    | {
        readonly [PROTOCOL_VERSION_META_KEY]?: string;
        readonly [CLIENT_INFO_META_KEY]?: Implementation;
        readonly [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities;
      }
    | undefined;
  return {
    ...(http?.authInfo && { authInfo: http.authInfo }),
    ...(http?.req && { headers: http.req.headers }),
    ...(sessionId !== undefined && { sessionId }),
    protocolVersion: envelope?.[PROTOCOL_VERSION_META_KEY] ?? server.getNegotiatedProtocolVersion(),
    client: envelope?.[CLIENT_INFO_META_KEY] ?? server.getClientVersion(),
    capabilities: envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? server.getClientCapabilities() ?? {},
    ...(http?.closeSSE && { closeStream: http.closeSSE }),
  };
}
