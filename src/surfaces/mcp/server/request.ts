import { createHash } from 'node:crypto';
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type ClientCapabilities,
  type Implementation,
  PROTOCOL_VERSION_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { type CallScope, SCOPE, scopeFields } from '../../../core/contract/call.js';
import type { ServedAs } from '../../../core/contract/declaration.js';
import type { Telemetry } from '../../../core/contract/telemetry.js';
import { checkOptions } from '../../../core/errors/author-fault.js';
import { withoutUndefined } from '../../../core/kernel/json.js';
import type { ToolRegistry } from '../../../run/call/tool-registry.js';
import type { SealedState } from '../sealed-state.js';
import type { ToolLists } from './lists.js';
import type { McpCaller, McpServerOptions } from './options.js';
import type { ProtectedResource } from './request-guard.js';

/** Shared by the servers of all connections. */
export interface ServedTools {
  readonly registry: ToolRegistry;
  readonly options: McpServerOptions;
  readonly telemetry: Telemetry | undefined;
  readonly state: SealedState;
  readonly lists: ToolLists;
  readonly resource: ProtectedResource | undefined;
}

/** A client's request, with what every handler needs. */
export interface McpRequest {
  readonly served: ServedTools;
  readonly server: Server;
  readonly context: ServerContext;
  readonly caller: McpCaller;
}

/** 2026-07-28 requests describe their client; other clients have described themselves when they connected. */
export function callerOf(
  { authInfo, headers, sessionId, closeStream }: Omit<McpCaller, 'capabilities'>,
  server: Server | undefined,
  envelope: object = {},
): McpCaller {
  const described = envelope as {
    readonly [PROTOCOL_VERSION_META_KEY]?: string;
    readonly [CLIENT_INFO_META_KEY]?: Implementation;
    readonly [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities;
  };
  const protocolVersion = described[PROTOCOL_VERSION_META_KEY] ?? server?.getNegotiatedProtocolVersion();
  const client = described[CLIENT_INFO_META_KEY] ?? server?.getClientVersion();
  const capabilities = described[CLIENT_CAPABILITIES_META_KEY] ?? server?.getClientCapabilities() ?? {};
  return withoutUndefined({
    authInfo,
    headers,
    sessionId,
    protocolVersion,
    client,
    capabilities,
    closeStream,
  });
}

const NO_PRINCIPAL = JSON.stringify([null, null]);

/** The owner of sessions and suspended calls. */
export function principalOf(options: McpServerOptions, authInfo: McpCaller['authInfo']): string {
  if (options.principal) return options.principal(authInfo);
  if (authInfo === undefined) return NO_PRINCIPAL;
  const { clientId, extra, token } = authInfo;
  // Two tokens that name no account may belong to two accounts.
  const account = extra?.sub ?? createHash('sha256').update(String(token)).digest('base64url');
  return JSON.stringify([clientId, account]);
}

/** The tools that a caller sees. */
export function visibleTools(request: McpRequest): Promise<ToolRegistry> {
  const { lists, options } = request.served;
  return prepare(request, async () => lists.view(await options.visible?.(request.caller)));
}

/** The tools of a view that a caller's list contains; the same for prompts and resources. */
export function listedPart(
  { served, caller }: McpRequest,
  visible: ToolRegistry,
  kind?: ServedAs['kind'],
): ToolRegistry {
  const part = kind === undefined ? visible : visible.part(kind);
  const hidden = served.resource?.hiddenFrom(part, caller.authInfo) ?? [];
  return hidden.length === 0 ? part : served.lists.view({ deny: hidden }, part);
}

/** What a caller may use, and as whom. */
export interface CallerRights {
  /** The tools that it sees. */
  readonly tools: ToolRegistry;
  readonly scope: CallScope;
  /** The owner of suspended calls and tasks. */
  readonly principal: string;
}

/** The visible tools, scope and principal of a request's caller. */
export async function rightsOf(request: McpRequest): Promise<CallerRights> {
  const { options } = request.served;
  const [tools, own] = await Promise.all([
    visibleTools(request),
    prepare(request, async () => {
      const scope = (await options.scope?.(request.caller)) ?? {};
      checkOptions(scope, SCOPE);
      return { scope: scopeFields(scope), principal: principalOf(options, request.context.http?.authInfo) };
    }),
  ]);
  return { tools, ...own };
}

/** The scope of a caller's calls: that of the application, with the facts of the request. */
export function callScopeOf(scope: CallScope, caller: McpCaller): CallScope {
  const { authInfo, sessionId } = caller;
  return {
    channel: 'mcp',
    conversationId: sessionId,
    ...(authInfo && { scopes: authInfo.scopes }),
    ...scope,
    data: { ...scope.data, mcp: caller },
  };
}

/** Calls functions of the application. Their errors are reported, but not sent to the client. */
export async function prepare<Value>({ served }: McpRequest, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    served.options.onError?.(error);
    throw new ProtocolError(ProtocolErrorCode.InternalError, 'The request could not be prepared');
  }
}
