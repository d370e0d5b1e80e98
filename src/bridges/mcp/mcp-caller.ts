import type {
  AuthInfo,
  ClientCapabilities,
  Implementation,
  Server,
  ServerContext,
} from '@modelcontextprotocol/server';
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  PROTOCOL_VERSION_META_KEY,
} from '@modelcontextprotocol/server';

/**
 * Who sent a request over MCP, and what can be done on that connection. Tools and policies find it as
 * `context.data.mcp`, typed as soon as `toolwright/mcp` is imported somewhere.
 *
 * @example
 * ```ts
 * const policy: ToolPolicy = ({ tool, context }) =>
 *   tool.annotations?.readOnly === true || context.data.mcp?.authInfo?.scopes.includes('write') === true;
 * ```
 */
export interface McpCaller {
  /** What the token was verified to stand for: the word of whoever mounted the server, never the client's. */
  readonly authInfo?: AuthInfo;
  /** Headers of the HTTP request; none over stdio. */
  readonly headers?: Headers;
  /** Of a 2025-11-25 client over HTTP. */
  readonly sessionId?: string;
  readonly protocolVersion?: string;
  /** What the client says of itself. */
  readonly client?: Implementation;
  readonly capabilities: ClientCapabilities;
  /** Ends the stream of this call, so that a 2025-11-25 client comes back for the result later. */
  closeStream?(): void;
}

// Under the package's own name, as applications do it: TypeScript does not merge what is said under two names.
declare module 'toolwright' {
  interface ToolContextData {
    /** Who sent the call, where it came over MCP. */
    readonly mcp?: McpCaller;
  }
}

/** The caller of one request; a 2026-07-28 request names client and revision itself. */
export function callerOf(server: Server, context: ServerContext): McpCaller {
  const { sessionId, mcpReq, http } = context;
  const envelope = (mcpReq.envelope ?? {}) as Readonly<Record<string, unknown>>;
  const closeStream = http?.closeSSE;
  return {
    ...(http?.authInfo ? { authInfo: http.authInfo } : {}),
    ...(http?.req ? { headers: http.req.headers } : {}),
    ...(sessionId === undefined ? {} : { sessionId }),
    protocolVersion:
      (envelope[PROTOCOL_VERSION_META_KEY] as string | undefined) ?? server.getNegotiatedProtocolVersion(),
    client: (envelope[CLIENT_INFO_META_KEY] as Implementation | undefined) ?? server.getClientVersion(),
    capabilities:
      (envelope[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined) ??
      server.getClientCapabilities() ??
      {},
    ...(closeStream ? { closeStream } : {}),
  };
}
