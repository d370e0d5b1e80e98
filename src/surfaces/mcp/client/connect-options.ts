import { invalidOptions, refuseOptions } from '../../../core/errors/author-fault.js';
import { isRecord } from '../../../core/kernel/json.js';
import {
  ADDRESS,
  FILLED_TEXT,
  FUNCTION,
  HEADERS,
  listOf,
  type OptionFault,
  type OptionRule,
  type OptionTable,
  objectOf,
  optionTable,
  protecting,
  RECORD,
  required,
  secret,
  TEXT,
  withMethods,
} from '../../../core/kernel/options.js';

/**
 * Identifies a `Client` of the SDK, version 2. The class is not named, so that servers compile without the client's
 * package, and clients of another copy of the SDK are accepted.
 */
export interface ConnectedMcpClient {
  getProtocolEra(): string | undefined;
  getServerCapabilities(): object | undefined;
  close(): Promise<void>;
}

/** Where sign-ins are stored: `fileTokens(path)`, `storeTokens(store, secret)`, or a database of your own. */
export interface McpTokenStore {
  /** The text under a key; `undefined` if nothing is stored. The key contains the server and the account. */
  load(key: string): string | undefined | Promise<string | undefined>;
  /**
   * Stores a text if the stored text is still `expected`, in one atomic step, also between processes. Returns `false`,
   * without a change, if it is not. The text contains secrets: encrypt it, or protect the place.
   */
  save(key: string, text: string, expected: string | undefined): boolean | Promise<boolean>;
}

/** How a client signs in at the authorization server of an MCP server. */
export interface McpAuth {
  /**
   * The address to which the browser returns after the sign-in. Without it, the client signs in with its own `clientId`
   * and `clientSecret`, and no user takes part.
   */
  readonly redirectUrl?: string;
  /**
   * Shows a user the sign-in page, and returns the address to which the browser came back, with its query. The user has
   * ten minutes; then `signal` is aborted, and the call or the connection fails. Default: the sign-in is a question of
   * the run. `finishSignIn` completes it.
   */
  onSignIn?(address: URL, signal: AbortSignal): string | URL | Promise<string | URL>;
  /** A client that is registered already. Default: `clientMetadataUrl`, or dynamic registration. */
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** The authorization server of `clientId`: no other one receives the secret. Default: the first that is used. */
  readonly issuer?: string;
  /** The address of the client's metadata document, its id where the authorization server supports this. */
  readonly clientMetadataUrl?: string;
  /** Scopes in addition to those that the server asks for. */
  readonly scopes?: readonly string[];
  /** Separates the sign-ins of several users at one server: the id of the user. */
  readonly account?: string;
  /**
   * `fileTokens(path)`, `storeTokens(store, stateSecret)`, or a store of your own. Default: in memory, for this
   * connection and its reconnections.
   */
  readonly tokens?: McpTokenStore;
}

/** A server at a URL. */
export interface McpRemoteOptions {
  readonly url: string;
  /** Sent to the server with every request, and never to its authorization server. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How the client signs in. */
  readonly auth?: McpAuth;
}

/** A program to start. */
export interface McpStdioOptions {
  readonly command: string;
  readonly args?: readonly string[];
  /** In addition to the variables that every program needs. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A server: a program to start, or a URL. */
export type McpConnectOptions = McpStdioOptions | McpRemoteOptions;

const SERVERS = new WeakMap<object, string>();

/** Stores the server of a function that connects, without arguments and queries, which may contain secrets. */
export function rememberServer(connect: object, options: McpConnectOptions): void {
  const url = 'url' in options ? new URL(options.url) : undefined;
  SERVERS.set(connect, url ? url.origin + url.pathname : (options as McpStdioOptions).command);
}

/** The URL or the command of the server of `connectMcp`. */
export function serverOf(source: object): string | undefined {
  return SERVERS.get(source);
}

/** How an MCP server can be reached now. */
export interface McpConnectionStatus {
  /** `sign_in`: its user must sign in first. `disconnected`: the next call connects again. */
  readonly state: 'connected' | 'disconnected' | 'sign_in';
  /** Why the last attempt to reach the server failed. */
  readonly problem?: string;
  /** Its registered tools. */
  readonly tools: readonly string[];
}

const TEXTS: OptionRule = {
  accepts: (value) =>
    RECORD.accepts(value) && Object.values(value as object).every((one) => typeof one === 'string'),
  fix: "{ NAME: 'value' }",
};

const PROGRAM = optionTable<McpStdioOptions>(
  'an MCP server',
  {
    command: required(FILLED_TEXT),
    args: listOf(TEXT, "['--verbose']"),
    env: secret(TEXTS),
    cwd: FILLED_TEXT,
  },
  { environment: 'env: …', folder: 'cwd: …' },
);

const AUTH = objectOf<McpAuth>(
  {
    redirectUrl: FILLED_TEXT,
    onSignIn: FUNCTION,
    clientId: FILLED_TEXT,
    clientSecret: secret(FILLED_TEXT),
    issuer: protecting(ADDRESS),
    clientMetadataUrl: ADDRESS,
    scopes: listOf(FILLED_TEXT, "['orders:read']"),
    account: protecting(FILLED_TEXT),
    tokens: withMethods(['load', 'save'], "fileTokens('.tokens.json')"),
  },
  {
    fix: "{ redirectUrl: 'http://127.0.0.1:33333/callback', onSignIn, tokens: fileTokens('.tokens.json') }",
    meant: {
      redirectUri: 'redirectUrl: …',
      scope: "scopes: ['orders:read']",
      store: 'tokens: …',
      user: 'account: …',
    },
  },
);

const ADDRESSED = optionTable<McpRemoteOptions>('an MCP server', {
  url: required(ADDRESS),
  headers: HEADERS,
  auth: AUTH,
});

/** @throws InvalidOptionsError (521). */
export function checkConnectOptions(options: McpConnectOptions): void {
  const given: Readonly<Record<string, unknown>> = isRecord(options) ? options : {};
  const isOf = ({ rules }: OptionTable) => [...rules.keys()].some((name) => name in given);
  if (isRecord(options) && ('url' in given ? 'command' in given : !isOf(ADDRESSED) && !isOf(PROGRAM)))
    refuseOptions([{ where: PROGRAM.of, ...URL_OR_COMMAND }]);
  const table = isOf(ADDRESSED) ? ADDRESSED : PROGRAM;
  const fault = isRecord(given.auth) ? faultOfClient(given.auth) : undefined;
  refuseOptions([...invalidOptions(options, table), ...(fault ? [{ where: table.of, ...fault }] : [])]);
}

const URL_OR_COMMAND: OptionFault = {
  option: 'url',
  problem: 'either `url` or `command` is needed',
  fix: "url: 'https://shop.example.com/mcp', or command: 'npx'",
};

/** Without these, the client would sign in as itself, or ignore the secret. */
function faultOfClient({ redirectUrl, clientId, clientSecret }: Partial<McpAuth>): OptionFault | undefined {
  if (clientSecret !== undefined && clientId === undefined)
    return {
      option: 'auth.clientId',
      problem: '`auth.clientSecret` needs `auth.clientId`',
      fix: 'the `clientId` that belongs to the `clientSecret`',
    };
  if (redirectUrl !== undefined || clientSecret !== undefined) return undefined;
  return {
    option: 'auth.redirectUrl',
    problem: '`auth` needs `redirectUrl`, or `clientId` and `clientSecret` for an account without a user',
    fix: "redirectUrl: 'http://127.0.0.1:33333/callback'",
  };
}
