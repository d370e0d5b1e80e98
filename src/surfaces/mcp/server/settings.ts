import type { ToolPolicy } from '../../../core/contract/call.js';
import type { Telemetry } from '../../../core/contract/telemetry.js';
import type { AsyncCallback } from '../../../core/contract/tool.js';

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

/** What a token stands for: `AuthInfo` of the SDK. */
export interface VerifiedToken {
  readonly token: string;
  readonly clientId: string;
  readonly scopes: string[];
  /** Seconds since 1970. */
  readonly expiresAt?: number;
  /** Claims of the token; `sub` is the account. */
  readonly extra?: Record<string, unknown>;
}

/** What a token must have been issued for. */
export interface ExpectedToken {
  readonly issuer: string;
  readonly audience: readonly string[];
}

/**
 * Verifies an access token: its signature or its state at the authorization server, its issuer, its audience. The
 * server itself refuses tokens without `expiresAt` and after it.
 *
 * An `OAuthError` of the SDK means that the token is not valid: the client is told to sign in again (401). Anything else
 * that is thrown is reported to `onError`, and answered with 503: the client keeps its token and tries again.
 */
export type VerifyToken = (token: string, expected: ExpectedToken) => Promise<VerifiedToken>;

/** How an MCP server is protected as an OAuth 2.1 resource server (MCP, authorization; RFC 9728). */
export interface McpOAuthOptions {
  /** The URL of this server as its clients use it; its host is allowed beside `allowedHosts`. */
  readonly resource: string;
  /** The authorization server that issues the tokens, as in its metadata and in `iss`. */
  readonly issuer: string;
  /** What tokens must name as their audience. Default: `resource`. */
  readonly audience?: string | readonly string[];
  /** Verifies tokens, such as `jwks(url)`. Without it, `authInfo` of the request is trusted, which your guards verified. */
  readonly verify?: VerifyToken;
  /**
   * Tools whose `scopes` a caller lacks: `hide` leaves them out of lists, `show` lists them. A call of such a tool is
   * answered with 403 either way, so that the client asks its user for the scopes. Default `hide`.
   */
  readonly unauthorised?: 'hide' | 'show';
}

/** How tools are served over MCP, whatever the framework around the server. */
export interface McpServerSettings {
  /** The name and version that clients see; default: `toolwright`, `0.0.0`. */
  readonly name?: string;
  readonly version?: string;
  readonly title?: string;
  /** How to use the tools, for the client's model; without `visible`, default: what the toolsets say of themselves. */
  readonly instructions?: string;
  /** Tools on one page of `tools/list` (100). */
  readonly pageSize?: number;
  /** Decides about every call, after the registry's own policy allowed it. */
  readonly policy?: ToolPolicy;
  /** Milliseconds for tools that set no `timeoutMs`; default: the registry's. */
  readonly toolTimeoutMs?: number;
  /** Records messages, as parts of what their clients send along; default: the registry's. */
  readonly telemetry?: Telemetry;
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
   * `false`: 2025-11-25 clients get no sessions, and so receive no questions and no notifications between calls.
   */
  readonly sessions?: McpSessionOptions | false;
  /**
   * Protects the server over HTTP: callers sign in at an authorization server. Without it, `authInfo` of the request is
   * taken as it is, and nothing is refused. Over stdio nobody signs in; there `scope` says the scopes of the caller.
   */
  readonly oauth?: McpOAuthOptions;
  /** Bytes of a request (4 MiB; over stdio, where a larger one ends the connection, 10 MiB). */
  readonly maxRequestBytes?: number;
  /**
   * Bytes of responses over HTTP that were written and that nobody reads (64 MiB): beyond it, those whose clients
   * have stood still longest are ended.
   */
  readonly maxUnreadBytes?: number;
  /**
   * Secret for what a 2026-07-28 client keeps of a suspended call, at least 32 characters; default: one for
   * this process.
   */
  readonly stateKey?: string;
  /** Receives what fails beside the answers, instead of the log of the registry or else the console. */
  onError?(error: unknown): void;
}
