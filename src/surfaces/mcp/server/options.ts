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
  secret,
  TEXT,
  WHOLE,
  withMethods,
} from '../../../core/kernel/options.js';
import type { NameFilter } from '../../../run/call/registration.js';
import { readName } from './host-guard.js';
import { OAUTH_OPTION } from './oauth.js';
import type { McpServerSettings, McpSessionOptions } from './settings.js';

/** Options of `createMcpServer`. */
export interface McpServerOptions extends McpServerSettings {
  /**
   * The scope of a caller's calls: its user and tenant in `data`, a plain object beside whose entries `mcp` is
   * put; its `owner`, to whom a suspended call then belongs as well; its container. One that throws refuses the
   * request.
   */
  scope?(caller: McpCaller): CallScope | Promise<CallScope>;
  /** Which tools a caller sees, and may call. One that throws refuses the request. */
  visible?(caller: McpCaller): NameFilter | Promise<NameFilter>;
  /** Whom a session and a suspended call belong to; default: `clientId`, and `extra.sub` of the token. */
  principal?(authInfo: McpCaller['authInfo']): string;
  /** Adds to each connection's server of the SDK what is no tool: prompts, resources. */
  configure?(server: McpServer): void;
}

const STATE_KEY_CHARACTERS = 32;

const STATE_KEY: OptionRule = {
  accepts: (value) => typeof value === 'string' && value.trim().length >= STATE_KEY_CHARACTERS,
  fix: `at least ${STATE_KEY_CHARACTERS} characters that nobody else knows`,
};

const SESSIONS = objectOf<McpSessionOptions>(
  {
    idleMs: { accepts: (value) => Number.isFinite(value) && Number(value) >= 1, fix: 'a number, 1 or more' },
    max: COUNT_LIMIT,
    maxPerPrincipal: COUNT_LIMIT,
    replay: WHOLE,
  },
  { fix: '{ max: 1_000 }' },
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
    principal: protecting({ ...FUNCTION, fix: "(authInfo) => authInfo?.clientId ?? ''" }),
    stateKey: protecting(secret(STATE_KEY)),
    configure: { ...FUNCTION, fix: '(server) => {}' },
    onError: { ...FUNCTION, fix: '(error) => console.error(error)' },
  },
  { allow: 'visible: () => ({ allow: […] })', deny: 'visible: () => ({ deny: […] })' },
);

/** What is used of a registry; it may be one of another copy of this package. */
const REGISTRY = withMethods(['invoke', 'tools', 'view', 'onChange', 'offered'], 'a ToolRegistry');

const NO_REGISTRY: InvalidOption = {
  where: OPTIONS.of,
  option: 'registry',
  problem: 'the first argument is no ToolRegistry',
  fix: 'createMcpServer(new ToolRegistry().register(…), { … })',
};

/** Throws all mistakes in what a server is made of, together. */
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
      return [{ option, problem: `${option} is no list`, fix }];
    },
  };
}

/** What the one who mounts the server knows of a request. */
export interface McpRequestInfo {
  /**
   * What the token of the request was verified to stand for. `null`: your own check refused the request, which is then
   * answered with 401 and the way to sign in.
   */
  readonly authInfo?: AuthInfo | null;
  /** The body, if it was already read. */
  readonly parsedBody?: unknown;
}

/** Where a client writes and reads; by default this process’s standard input and output. */
export interface StdioStreams {
  readonly input?: Readable;
  /** Nothing else may be written there. */
  readonly output?: Writable;
}

/** One connection over stdio, or over any other transport that lasts. */
export interface McpConnection {
  /** When the client is gone, or the connection was closed. */
  readonly closed: Promise<void>;
  /** As the server's own `close`, for this connection. */
  close(): Promise<void>;
}

/** A registry over MCP: any number of connections, over HTTP and over transports that last. */
export interface McpToolServer {
  /** Streamable HTTP, as a Web-standard handler; bound, so that it can be handed on. */
  readonly fetch: (request: Request, info?: McpRequestInfo) => Promise<Response>;
  /** The same for Node's `http` and for Express; `request.auth` is the verified token, `body` a parsed body. */
  readonly node: (
    request: IncomingMessage & { auth?: AuthInfo },
    response: ServerResponse,
    body?: unknown,
  ) => Promise<void>;
  /** Serves one client over standard input and output. */
  stdio(streams?: StdioStreams): McpConnection;
  /** Serves one client over a transport of the SDK that lasts. */
  connect(transport: Transport): McpConnection;
  /** Sessions of 2025-11-25 clients over HTTP. */
  readonly sessionCount: number;
  /** Tells the clients that have subscribed to a resource that it has changed. */
  resourceChanged(uri: string): void;
  /**
   * Takes no new requests, aborts the calls that run, sends every answer that there is, those of the aborted
   * calls included, and then ends all connections. It takes a second at most, and may be called again.
   */
  close(): Promise<void>;
}

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
