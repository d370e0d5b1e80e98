import type { McpServer } from '@modelcontextprotocol/server';
import type { CallScope } from '../../contract/call-scope.js';
import type { AsyncCallback } from '../../contract/tool.js';
import type { ToolPolicy } from '../../contract/tool-policy.js';
import type { NameFilter } from '../../registry/name-filter.js';
import type { McpCaller } from './mcp-caller.js';

/** How long sessions of 2025-11-25 clients live, and how many there may be. */
export interface McpSessionOptions {
  /** Milliseconds without a request or an open stream after which a session ends (30 minutes). */
  readonly idleMs?: number;
  /**
   * For one more, the session that has been silent longest is ended; where none is, the new client is told to
   * come back later (1,000).
   */
  readonly max?: number;
  /** Of one principal, where the request has a verified token (100): the longest silent one makes room. */
  readonly maxPerPrincipal?: number;
  /** Messages that are kept for a client whose stream broke (64); of large ones, what 4 MiB hold. */
  readonly replay?: number;
}

/** Options of `createMcpServer`. */
export interface McpServerOptions {
  /** What clients are told of the server: `toolwright`, `0.0.0`. */
  readonly name?: string;
  readonly version?: string;
  readonly title?: string;
  /** How to use the tools, for the client's model; without `visible`, default: what the toolsets say of themselves. */
  readonly instructions?: string;
  /** Tools on one page of `tools/list` (100). */
  readonly pageSize?: number;
  /**
   * The scope of a caller's calls: its user and tenant in `data`, a plain object beside whose entries `mcp` is
   * put; its `owner`, to whom a suspended call then belongs as well; its container. One that throws refuses the
   * request.
   */
  scope?(caller: McpCaller): CallScope | Promise<CallScope>;
  /** Which tools a caller sees, and may call. One that throws refuses the request. */
  visible?(caller: McpCaller): NameFilter | Promise<NameFilter>;
  /** Decides about every call, after the registry's own policy allowed it. */
  readonly policy?: ToolPolicy;
  /** Milliseconds for tools that set no `timeoutMs`; default: the registry's. */
  readonly toolTimeoutMs?: number;
  /**
   * Hears of the end of work that a tool started; its call is then answered by the acknowledgement. Without
   * it, and for tools with an `output`, the call is answered by what came of the work.
   */
  readonly onAsyncResult?: AsyncCallback;
  /**
   * Names that requests over HTTP may use for this host (localhost and its addresses): `mcp.example.org`, or
   * `mcp.example.org:8080` for that port alone.
   */
  readonly allowedHosts?: readonly string[] | 'any';
  /**
   * The pages whose scripts may send requests (those of `allowedHosts`): `https://app.example.org`, or
   * `app.example.org` whatever the scheme and the port.
   */
  readonly allowedOrigins?: readonly string[] | 'any';
  /**
   * `false`: 2025-11-25 clients get no sessions, and so can be asked nothing and told nothing between calls.
   */
  readonly sessions?: McpSessionOptions | false;
  /** Bytes of a request (4 MiB; over stdio, where a larger one ends the connection, 10 MiB). */
  readonly maxRequestBytes?: number;
  /**
   * Bytes of responses over HTTP that were written and that nobody reads (64 MiB): beyond it, those whose clients
   * have stood still longest are ended.
   */
  readonly maxUnreadBytes?: number;
  /** Whom a session and a suspended call belong to; default: `clientId`, and `extra.sub` of the token. */
  principal?(authInfo: McpCaller['authInfo']): string;
  /**
   * Secret for what a 2026-07-28 client keeps of a suspended call, at least 32 characters; default: one for
   * this process.
   */
  readonly stateKey?: string;
  /** Adds to each connection's server of the SDK what is no tool: prompts, resources. */
  configure?(server: McpServer): void;
  /** Hears of what goes wrong beside the answers. */
  onError?(error: unknown): void;
}
