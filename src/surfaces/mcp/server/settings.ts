import type { ToolPolicy } from '../../../core/contract/call.js';
import type { CheckpointStore } from '../../../core/contract/run-checkpoint.js';
import type { Telemetry } from '../../../core/contract/telemetry.js';
import type { AsyncCallback } from '../../../core/contract/tool.js';
import type { Fields } from '../../../core/kernel/json.js';

/** Limits of the sessions of 2025-11-25 clients. */
export interface McpSessionOptions {
  /** Milliseconds without a request or open stream until a session ends. Default: 30 minutes. */
  readonly idleMs?: number;
  /**
   * The most sessions, and the most `subscriptions/listen` streams. A new session replaces the one that has been idle
   * longest; if none is idle, the client is asked to come back later. Default: 1,000.
   */
  readonly max?: number;
  /** The same per principal with a verified token. It can replace only its own sessions. Default: 100. */
  readonly maxPerPrincipal?: number;
  /** Messages stored for a client whose stream broke. Default: 64. */
  readonly replay?: number;
}

/** The content of a token: `AuthInfo` of the SDK. */
export interface VerifiedToken {
  readonly token: string;
  readonly clientId: string;
  readonly scopes: string[];
  /** Seconds since 1970. */
  readonly expiresAt?: number;
  /** Claims of the token; `sub` is the account. */
  readonly extra?: Record<string, unknown>;
}

/** The client and the scopes in the claims of a token; scopes are a list, or a text with spaces. */
export function grantOf(
  { client_id, azp }: Fields,
  scopes: unknown,
): Pick<VerifiedToken, 'clientId' | 'scopes'> {
  return {
    clientId: String(client_id ?? azp ?? ''),
    scopes: Array.isArray(scopes)
      ? scopes.map(String)
      : String(scopes ?? '')
          .split(' ')
          .filter(Boolean),
  };
}

/** The issuer and audience that a token must have. */
interface ExpectedToken {
  readonly issuer: string;
  readonly audience: readonly string[];
}

/**
 * Verifies an access token: its signature, or its state at the authorization server; its issuer; its audience. The
 * server itself refuses tokens that have expired or have no `expiresAt`. Called for every request and notification.
 *
 * Throw an `OAuthError` of the SDK if the token is invalid: the client must sign in again (401). Other errors are
 * reported to `onError` and answered with 503: the client keeps its token and tries again.
 */
export type VerifyToken = (token: string, expected: ExpectedToken) => Promise<VerifiedToken>;

/** Protects an MCP server as an OAuth 2.1 resource server (MCP, authorization; RFC 9728). */
export interface McpOAuthOptions {
  /** The URL of this server for its clients. Its host is allowed in addition to `allowedHosts`. */
  readonly resource: string;
  /** The authorization server that issues the tokens, as in `iss`. */
  readonly issuer: string;
  /** The audience that tokens must have. Default: `resource`. */
  readonly audience?: string | readonly string[];
  /** Verifies tokens, for example `jwks(url)`. Default: `authInfo` is trusted, because your guards have verified it. */
  readonly verify?: VerifyToken;
  /**
   * Whether lists contain tools whose `scopes` a caller lacks. In both cases, a call is answered with 403, so that
   * the client can ask its user for the scopes. Default `hide`.
   */
  readonly unauthorised?: 'hide' | 'show';
}

/** Calls that are answered later (the extension `io.modelcontextprotocol/tasks` of MCP 2026-07-28). */
export interface McpTaskOptions {
  /** The store of the tasks. All processes that serve the same callers share it. */
  readonly store: CheckpointStore;
  /** Tools that only run as tasks, by name or pattern. Clients without the extension get the error −32021. */
  readonly required?: readonly string[];
  /** Milliseconds until another process continues a task. Default: 30,000. */
  readonly leaseMs?: number;
}

/** Settings of an MCP server in any framework. */
export interface McpServerSettings {
  /** The name that clients see; default `toolwright`. */
  readonly name?: string;
  /** The version that clients see; default `0.0.0`. */
  readonly version?: string;
  /** The name for people. */
  readonly title?: string;
  /** Instructions for the client's model; default without `visible`: the descriptions of the toolsets. */
  readonly instructions?: string;
  /** Tools per page of `tools/list`. Default: 100. */
  readonly pageSize?: number;
  /** Decides about every call after the registry's own policy has allowed it. */
  readonly policy?: ToolPolicy;
  /** Milliseconds for tools that set no `timeoutMs`; default: the registry's. */
  readonly toolTimeoutMs?: number;
  /** Records messages, within the traces that clients send; default: the registry's. */
  readonly telemetry?: Telemetry;
  /**
   * Receives completions of background work. Such calls are answered with the acknowledgement. Without it, and for
   * tools with an `output`, the call waits for the work and is answered with its result.
   */
  readonly onAsyncResult?: AsyncCallback;
  /**
   * Host names that HTTP requests may use (default: localhost and its addresses): `mcp.example.org`, or
   * `mcp.example.org:8080` for that port only.
   */
  readonly allowedHosts?: readonly string[] | 'any';
  /**
   * Pages whose scripts may send requests (default: those of `allowedHosts`): `https://app.example.org`, or
   * `app.example.org` for every scheme and port.
   */
  readonly allowedOrigins?: readonly string[] | 'any';
  /** `false`: no sessions, and so no questions and no notifications between calls. */
  readonly sessions?: McpSessionOptions | false;
  /**
   * Callers sign in at an authorization server. Default: nothing is refused. Over stdio there is no sign-in; `scope`
   * returns the scopes of the caller.
   */
  readonly oauth?: McpOAuthOptions;
  /**
   * A store, or options. Calls of `background` tools and calls that wait for an approval become tasks for clients
   * with the extension. Any process with the store reports, answers and cancels them. Other clients wait for the
   * result.
   */
  readonly tasks?: CheckpointStore | McpTaskOptions;
  /** The most bytes of a request. Over stdio, a larger one closes the connection. Default: 4 MiB, over stdio 10 MiB. */
  readonly maxRequestBytes?: number;
  /**
   * The most bytes of HTTP responses that were written but not read. Above it, the responses whose clients have not
   * read for the longest time are ended. Default: 64 MiB.
   */
  readonly maxUnreadBytes?: number;
  /**
   * Encrypts the state of suspended calls that clients store; at least 32 characters; default: random for this
   * process.
   */
  readonly stateKey?: string;
  /** Receives errors outside of responses; default: they are logged. */
  onError?(error: unknown): void;
}
