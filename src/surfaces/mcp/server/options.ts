import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import type {
  AuthInfo,
  ClientCapabilities,
  Implementation,
  McpServer,
  Transport,
} from '@modelcontextprotocol/server';
import type { CallScope } from '../../../core/contract/call.js';
import { CHECKPOINT_STORE } from '../../../core/contract/run-checkpoint.js';
import { TELEMETRY } from '../../../core/contract/telemetry.js';
import { type InvalidOption, invalidOptions, refuseOptions } from '../../../core/errors/author-fault.js';
import {
  COUNT,
  COUNT_LIMIT,
  either,
  exactly,
  FUNCTION,
  MILLISECONDS,
  type OptionRule,
  objectOf,
  optionTable,
  protecting,
  required,
  SECRET_KEY,
  TEXT,
  WHOLE,
  withMethods,
} from '../../../core/kernel/options.js';
import { NAME_FILTER_RULES, type NameFilter } from '../../../run/call/tool-registry.js';
import { LEASE } from '../../../run/loop/claimed-run.js';
import { readName } from './host-guard.js';
import { OAUTH_OPTION } from './oauth.js';
import type { McpServerSettings, McpSessionOptions, McpTaskOptions } from './settings.js';

/** Options of `createMcpServer`. */
export interface McpServerOptions extends McpServerSettings {
  /**
   * The scope of a caller's calls: `data`, `owner`, `container`. `data` is a plain object to which `mcp` is added;
   * `owner` then also owns suspended calls. If the function throws, the request is refused.
   */
  scope?(caller: McpCaller): CallScope | Promise<CallScope>;
  /** The tools that a caller sees and may call. If the function throws, the request is refused. */
  visible?(caller: McpCaller): NameFilter | Promise<NameFilter>;
  /**
   * The owner of sessions and suspended calls; default: `clientId` and `extra.sub`, without `sub` `clientId` and the
   * token itself.
   */
  principal?(authInfo: McpCaller['authInfo']): string;
  /** Adds features to each connection's SDK server. */
  configure?(server: McpServer): void;
}

const SESSIONS = objectOf<McpSessionOptions>(
  {
    idleMs: { accepts: (value) => Number.isFinite(value) && Number(value) >= 1, fix: 'a number, 1 or more' },
    max: COUNT_LIMIT,
    maxPerPrincipal: COUNT_LIMIT,
    replay: WHOLE,
  },
  { fix: '{ max: 1_000 }' },
);

const TASKS = objectOf<McpTaskOptions>(
  { store: required(CHECKPOINT_STORE), required: NAME_FILTER_RULES.deny, leaseMs: LEASE },
  { fix: "{ store, required: ['import_*'] }" },
);

const OPTIONS = optionTable<McpServerOptions>(
  'createMcpServer',
  {
    name: TEXT,
    version: TEXT,
    title: TEXT,
    instructions: TEXT,
    pageSize: COUNT_LIMIT,
    scope: protecting({ ...FUNCTION, fix: '(caller) => ({ data: {} })' }),
    visible: protecting({ ...FUNCTION, fix: '(caller) => ({ deny: [] })' }),
    policy: protecting({ ...FUNCTION, fix: '({ tool, context }) => true' }),
    toolTimeoutMs: MILLISECONDS,
    telemetry: TELEMETRY,
    onAsyncResult: { ...FUNCTION, fix: '(context, result) => {}' },
    allowedHosts: protecting(namesOf('allowedHosts')),
    allowedOrigins: protecting(namesOf('allowedOrigins')),
    sessions: either(SESSIONS, exactly(false)),
    maxRequestBytes: COUNT,
    maxUnreadBytes: COUNT_LIMIT,
    oauth: protecting(OAUTH_OPTION),
    tasks: either(CHECKPOINT_STORE, TASKS),
    principal: protecting({ ...FUNCTION, fix: "(authInfo) => authInfo?.clientId ?? ''" }),
    stateKey: protecting(SECRET_KEY),
    configure: { ...FUNCTION, fix: '(server) => {}' },
    onError: { ...FUNCTION, fix: '(error) => console.error(error)' },
  },
  { allow: 'visible: () => ({ allow: […] })', deny: 'visible: () => ({ deny: […] })' },
);

/** The methods of a registry that are used; it may come from another copy of this package. */
const REGISTRY = withMethods(['invoke', 'tools', 'view', 'onChange', 'offered'], 'a ToolRegistry');

const NO_REGISTRY: InvalidOption = {
  where: OPTIONS.of,
  option: 'registry',
  problem: 'the first argument is not a ToolRegistry',
  fix: 'createMcpServer(new ToolRegistry().register(…), { … })',
};

/** Throws all faults of the arguments together. */
export function checkServerOptions(registry: unknown, options: unknown): void {
  refuseOptions([...(REGISTRY.accepts(registry) ? [] : [NO_REGISTRY]), ...invalidOptions(options, OPTIONS)]);
}

function namesOf(list: 'allowedHosts' | 'allowedOrigins'): OptionRule {
  const problems = (names: readonly unknown[]) =>
    names.map((name) => readName(name, list)).filter((name) => 'problem' in name);
  return {
    accepts: (value) => value === 'any' || (Array.isArray(value) && problems(value).length === 0),
    fix: "['mcp.example.org'], or 'any'",
    explain: (value, option) => {
      if (Array.isArray(value)) return problems(value).map((problem) => ({ option, ...problem }));
      const entry = typeof value === 'string' ? `'${value}'` : `'mcp.example.org'`;
      const fix = `${option}: [${entry}], or ${option}: 'any'`;
      return [{ option, problem: `${option} is not a list`, fix }];
    },
  };
}

/** Information about a request from the application that mounts the server. */
export interface McpRequestInfo {
  /**
   * The verified content of the request's token. `null`: your own check refused the request; the response is 401 with
   * instructions to sign in.
   */
  readonly authInfo?: AuthInfo | null;
  /** The parsed body, if it was already read. */
  readonly parsedBody?: unknown;
}

/** Streams of a client; default: standard input and output of this process. */
export interface StdioStreams {
  readonly input?: Readable;
  /** Nothing else may write to it. */
  readonly output?: Writable;
}

/** A connection over stdio or another lasting transport. */
export interface McpConnection {
  /** Resolves when the client has left or the connection was closed. */
  readonly closed: Promise<void>;
  /** Closes this connection in the same way as the server's `close`. */
  close(): Promise<void>;
}

/** A registry served over MCP: any number of connections, over HTTP and lasting transports. */
export interface McpToolServer {
  /** Streamable HTTP as a Web-standard handler; it is bound. */
  readonly fetch: (request: Request, info?: McpRequestInfo) => Promise<Response>;
  /**
   * The same for Node's `http` and Express. `request.auth` is the verified token; `body` is a parsed body, by default
   * the `request.body` of a parser.
   */
  readonly node: (
    request: IncomingMessage & { auth?: AuthInfo },
    response: ServerResponse,
    body?: unknown,
  ) => Promise<void>;
  /** Serves one client over standard input and output. */
  stdio(streams?: StdioStreams): McpConnection;
  /** Serves one client over a lasting transport of the SDK. */
  connect(transport: Transport): McpConnection;
  /** Number of HTTP sessions of 2025-11-25 clients. */
  readonly sessionCount: number;
  /** Notifies the clients that have subscribed to a resource of its change. */
  resourceChanged(uri: string): void;
  /**
   * Accepts no new requests, aborts running calls, sends all responses including theirs, and then closes all
   * connections. Takes a second at most, and may be called again.
   */
  close(): Promise<void>;
}

/**
 * The sender of an MCP request, and what its connection supports. Tools and policies find it as `context.data.mcp`,
 * which is typed once `toolwright/mcp` is imported somewhere.
 *
 * @example
 * ```ts
 * const policy: ToolPolicy = ({ tool, context }) =>
 *   tool.annotations?.readOnly === true || context.data.mcp?.authInfo?.scopes.includes('write') === true;
 * ```
 */
export interface McpCaller {
  /** The verified content of the token; comes from the server's application, never from the client. */
  readonly authInfo?: AuthInfo;
  /** Headers of the HTTP request; absent over stdio. */
  readonly headers?: Headers;
  /** For 2025-11-25 clients over HTTP. */
  readonly sessionId?: string;
  readonly protocolVersion?: string;
  /** The client's own description. */
  readonly client?: Implementation;
  readonly capabilities: ClientCapabilities;
  /** Closes the stream of this call, so that a 2025-11-25 client reconnects for the result later. */
  closeStream?(): void;
}

// Uses the package name, as applications do: TypeScript does not merge declarations of two module names.
declare module 'toolwright' {
  interface ToolContextData {
    /** The sender of the call, if it arrived over MCP. */
    readonly mcp?: McpCaller;
  }
}
