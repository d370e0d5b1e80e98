import {
  type AuthInfo,
  getOAuthProtectedResourceMetadataUrl,
  INTERNAL_ERROR,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  OAuthError,
} from '@modelcontextprotocol/server';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import { InvalidOptionsError } from '../../../core/errors/author-fault.js';
import { type Fields, isRecord } from '../../../core/kernel/json.js';
import { missingScopes } from '../../../run/call/required-scopes.js';
import type { ToolRegistry } from '../../../run/call/tool-registry.js';
import { namedByUri, servedAs, subscribedUris } from './lists.js';
import { grantOf, type McpOAuthOptions, type McpServerSettings, type VerifyToken } from './settings.js';

/** Limits memory: clients may send any number of invented names. */
const MAX_REPORTED = 100;

/**
 * Refuses requests with an unknown host or origin. This prevents DNS rebinding, in which a page's host name resolves to
 * this machine. Each name is reported once, with the option that allows it.
 */
export function createGuard(
  options: Pick<McpServerSettings, 'oauth' | 'allowedHosts' | 'allowedOrigins'>,
  onError: (error: unknown) => void,
): (request: Request) => Response | undefined {
  const { allowedHosts: given = localhostAllowedHostnames(), allowedOrigins, oauth } = options;
  const allowedHosts = given === 'any' || !oauth ? given : [...given, new URL(oauth.resource).host];
  const hosts = namesOf(allowedHosts, 'allowedHosts');
  const ownOrigins = allowedHosts === 'any' ? localhostAllowedOrigins() : allowedHosts;
  const origins = namesOf(allowedOrigins ?? ownOrigins, 'allowedOrigins');
  const reported = new Set<string>();
  const refuse = (option: NameList, header: string, value: string): Response => {
    if (reported.size < MAX_REPORTED && !reported.has(option + value)) {
      reported.add(option + value);
      onError(
        new Error(`Requests with ${header}: ${value} are refused. To allow them, add the name to ${option}.`),
      );
    }
    return refuseRequest(403, `Invalid ${header}: ${value}`);
  };
  return ({ headers, url }) => {
    // A request that no HTTP server created lacks the header; its URL contains the host.
    const host = headers.get('host') ?? new URL(url).host;
    // User names and paths are not part of a host.
    if ('problem' in readName(host, 'allowedHosts')) return refuseRequest(403, `Invalid Host: ${host}`);
    // The client's protocol is unknown here, because a proxy may have terminated TLS.
    if (!['http', 'https'].some((protocol) => isAllowed(hosts, `${protocol}://${host}`)))
      return refuse('allowedHosts', 'Host', host);
    const origin = headers.get('origin');
    return !origin || isAllowed(origins, origin) ? undefined : refuse('allowedOrigins', 'Origin', origin);
  };
}

/** `undefined` if every name is allowed. */
function namesOf(list: readonly string[] | 'any', of: NameList): readonly AllowedName[] | undefined {
  if (list === 'any') return undefined;
  return list.map((entry) => readName(entry, of)).filter((name): name is AllowedName => !('problem' in name));
}

/** Whether a `Host` header, or the origin of a page, matches one of the names. */
function isAllowed(names: readonly AllowedName[] | undefined, address: string): boolean {
  if (names === undefined) return true;
  const url = URL.parse(address);
  return names.some(
    ({ protocol, hostname, port }) =>
      url !== null &&
      (protocol === undefined || protocol === url.protocol) &&
      (hostname === undefined || hostname === url.hostname) &&
      (port === undefined || port === portOf(url)),
  );
}

type NameList = 'allowedHosts' | 'allowedOrigins';

/** An allowed name: a host, a host with one port, or for pages an origin. */
interface AllowedName {
  /** `https:`; undefined for all protocols. */
  readonly protocol?: string | undefined;
  /** Undefined for all hosts of a protocol that only applications use. */
  readonly hostname?: string | undefined;
  readonly port?: string | undefined;
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };
/** `vscode-webview://*`: applications create such hosts at random, and web pages cannot have them. */
const APPLICATION = /^(?!https?:)([a-z][a-z0-9+.-]*:)\/\/\*$/i;
const ORIGIN = /^([a-z][a-z0-9+.-]*:)\/\//i;

/** Parses an entry: a host, or for pages an origin or its host. */
export function readName(
  entry: unknown,
  list: NameList,
): AllowedName | { readonly problem: string; readonly fix: string } {
  if (typeof entry !== 'string')
    return { problem: `${String(entry)} is not a string`, fix: `'mcp.example.org'` };
  const isOfPage = list === 'allowedOrigins';
  const application = isOfPage ? APPLICATION.exec(entry)?.[1] : undefined;
  if (application !== undefined) return { protocol: application.toLowerCase() };
  if (entry.includes('*')) {
    const fix = `each name in full, or ${list}: 'any'`;
    return { problem: `'${entry}' has a wildcard, but names are compared in full`, fix };
  }
  const isOrigin = ORIGIN.test(entry);
  const url = URL.parse(isOrigin ? entry : `http://${entry}`);
  if (!url?.hostname) {
    const isAddress = entry.split(':').length > 2 && URL.canParse(`http://[${entry}]`);
    return { problem: `'${entry}' is not a host`, fix: isAddress ? `'[${entry}]'` : `'mcp.example.org'` };
  }
  const { protocol, hostname, host, pathname, search, hash, username, password } = url;
  const isBare = /^\/?$/.test(pathname) && search + hash + username + password === '';
  if (!isOfPage && (isOrigin || !isBare))
    return { problem: `'${entry}' is a URL, not a host`, fix: `'${host}'` };
  if (isOfPage && (!isBare || entry.endsWith('/')))
    return {
      problem: `'${entry}' is more than an origin`,
      fix: `'${isOrigin ? `${protocol}//` : ''}${host}'`,
    };
  if (isOrigin) return { protocol, hostname, port: portOf(url) };
  // `URL` omits the default port.
  const [, port] = /:(\d+)$/.exec(entry) ?? [];
  return { hostname, port: port && String(Number(port)) };
}

function portOf({ port, protocol }: URL): string {
  return port || (DEFAULT_PORTS[protocol] ?? '');
}

/** JSON-RPC reserves this range for servers. */
const SERVER_ERROR = -32_000;

/** The response to an HTTP request that is refused before it is parsed as a message. */
export function refuseRequest(
  status: number,
  message: string,
  {
    headers = {},
    code = status === 500 ? INTERNAL_ERROR : SERVER_ERROR,
    id = null,
  }: { readonly headers?: Record<string, string>; readonly code?: number; readonly id?: unknown } = {},
): Response {
  return Response.json({ jsonrpc: '2.0', error: { code, message }, id }, { status, headers });
}

interface Challenge {
  readonly status: 401 | 403;
  readonly error?: 'invalid_token' | 'insufficient_scope';
  readonly description: string;
  readonly scopes?: readonly string[];
}

const NOT_ACCEPTED = { error: 'invalid_token', description: 'The token is not accepted' } as const;

const METADATA_PATH = '/.well-known/oauth-protected-resource';
/** Methods that callers without a token may use if something is public. Messages without a method are responses. */
const OPEN_METHOD =
  /^(?:initialize|ping|server\/discover|tools\/list|tasks\/.+|resources\/unsubscribe|notifications\/.+)$/;

/** Authenticates callers and checks their scopes. */
export class ProtectedResource {
  readonly #options: McpOAuthOptions;
  readonly #registry: ToolRegistry;
  readonly #onError: (error: unknown) => void;
  readonly #expected: Parameters<VerifyToken>[1];
  readonly #metadataUrl: string;
  readonly #metadataPaths: readonly string[];

  constructor(options: McpOAuthOptions, registry: ToolRegistry, onError: (error: unknown) => void) {
    const { resource, issuer, audience = resource } = options;
    this.#options = options;
    this.#registry = registry;
    this.#onError = onError;
    this.#expected = { issuer, audience: typeof audience === 'string' ? [audience] : audience };
    this.#metadataUrl = getOAuthProtectedResourceMetadataUrl(new URL(resource));
    this.#metadataPaths = [METADATA_PATH, new URL(this.#metadataUrl).pathname];
  }

  /** The RFC 9728 metadata document, if the request is for it; pages of all origins may read it. */
  metadata({ method, url }: Request): Response | undefined {
    if (!this.#metadataPaths.includes(new URL(url).pathname)) return undefined;
    const headers = { 'Access-Control-Allow-Origin': '*', 'Cache-Control': 'max-age=3600' };
    if (method === 'OPTIONS')
      return new Response(null, {
        status: 204,
        headers: { ...headers, 'Access-Control-Allow-Headers': 'mcp-protocol-version' },
      });
    if (method !== 'GET')
      return refuseRequest(405, 'Method not allowed', { headers: { Allow: 'GET, OPTIONS' } });
    const { resource, issuer } = this.#options;
    const document = {
      resource,
      authorization_servers: [issuer],
      scopes_supported: this.#allScopes(),
      bearer_methods_supported: ['header'],
    };
    return Response.json(document, { headers });
  }

  /** The token's information; `undefined` without one; a response if the token is invalid, or missing but needed. */
  async authenticate(
    { headers }: Pick<Request, 'headers'>,
    given: AuthInfo | null | undefined,
  ): Promise<AuthInfo | Response | undefined> {
    const { verify } = this.#options;
    const header = headers.get('authorization');
    if (given === null || (verify === undefined && given === undefined && header !== null))
      return this.#refuse({ ...this.#signIn(), ...(header !== null && NOT_ACCEPTED) });
    if (verify === undefined || header === null) {
      const authInfo = verify === undefined ? given : undefined;
      const isRefused = authInfo === undefined && !this.#all().some((definition) => definition.public);
      return isRefused ? this.#refuse(this.#signIn()) : authInfo;
    }
    const [, token] = /^Bearer +([^\s,]+)$/i.exec(header) ?? [];
    try {
      if (token === undefined) throw new OAuthError('invalid_token', 'The header is not "Bearer <token>"');
      const authInfo = await verify(token, this.#expected);
      const { expiresAt = 0 } = authInfo;
      if (expiresAt * 1_000 <= Date.now()) throw new OAuthError('invalid_token', 'The token has expired');
      return authInfo;
    } catch (error) {
      if (error instanceof OAuthError)
        return this.#refuse({ ...this.#signIn(), error: 'invalid_token', description: error.message });
      this.#onError(error);
      return refuseRequest(503, 'The token could not be verified', { headers: { 'Retry-After': '10' } });
    }
  }

  /**
   * A response if the caller may not send these messages: 401 without a token, 403 if the token lacks scopes. `others`
   * are names of further tools that they need.
   */
  authorize(
    body: readonly unknown[],
    authInfo: AuthInfo | undefined,
    others: readonly string[] = [],
  ): Response | undefined {
    const messages = body.filter(isRecord);
    const named = [
      ...messages.flatMap((message) => NAMED.get(message.method)?.(message, this.#registry) ?? []),
      ...others.map((name) => namedIn(this.#registry, name)),
    ];
    const scopes = [...new Set(named.flatMap(([first]) => first?.scopes ?? []))];
    const call = messages.find(({ method }) => method === 'tools/call');
    if (authInfo === undefined) {
      const isOpen = messages.every(
        ({ method }) => typeof method !== 'string' || NAMED.has(method) || this.#isOpen(method),
      );
      if (isOpen && named.every((definitions) => definitions.some((found) => found.public))) return undefined;
      return this.#refuse({ ...this.#signIn(), ...(scopes.length > 0 && { scopes }) }, call);
    }
    const isAllowed = (definition: ToolDefinition) => missingScopes(definition, authInfo.scopes).length === 0;
    if (named.every((definitions) => definitions.length === 0 || definitions.some(isAllowed)))
      return undefined;
    const description = `This needs the scopes ${scopes.join(', ')}`;
    return this.#refuse({ status: 403, error: 'insufficient_scope', description, scopes }, call);
  }

  /** Lists of prompts and resources that `configure` has added to the SDK's server leave nothing out: they need a token. */
  #isOpen(method: string): boolean {
    const [, part] = /^(prompt|resource)s\/(?:templates\/)?list$/.exec(method) ?? [];
    if (part === undefined) return OPEN_METHOD.test(method);
    const hasApps = () => this.#registry.tools().some(({ ui }) => ui !== undefined);
    return (
      this.#registry.part(part as 'prompt' | 'resource').count() > 0 || (part === 'resource' && hasApps())
    );
  }

  /** Names of the tools, prompts or resources that a caller's list leaves out. */
  hiddenFrom(part: ToolRegistry, authInfo: AuthInfo | undefined): readonly string[] {
    if (this.#options.unauthorised === 'show') return [];
    const isHidden = (definition: ToolDefinition): boolean =>
      authInfo === undefined
        ? definition.public !== true
        : missingScopes(definition, authInfo.scopes).length > 0;
    return part.tools().flatMap((definition) => (isHidden(definition) ? [definition.name] : []));
  }

  /** All tools, prompts and resources. */
  #all(): readonly ToolDefinition[] {
    const registry = this.#registry;
    return [registry, registry.part('prompt'), registry.part('resource')].flatMap((part) => part.tools());
  }

  /** If tools are hidden, requests all scopes at once: clients cannot know the scopes of hidden tools. */
  #signIn(): Challenge {
    const scopes = this.#options.unauthorised === 'show' ? [] : this.#allScopes();
    return { status: 401, description: 'Sign in to use this server', scopes };
  }

  #allScopes(): readonly string[] {
    return [...new Set(this.#all().flatMap(({ scopes = [] }) => scopes))].sort();
  }

  /** ChatGPT reads the challenge from the call's result, other hosts from the header (RFC 6750, section 3). */
  #refuse({ status, error, description, scopes = [] }: Challenge, call?: Fields): Response {
    const parts = {
      ...(error && { error, error_description: description.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, ' ') }),
      ...(scopes.length > 0 && { scope: scopes.join(' ') }),
      resource_metadata: this.#metadataUrl,
    };
    const challenge = `Bearer ${Object.entries(parts)
      .map(([name, value]) => `${name}="${value}"`)
      .join(', ')}`;
    const headers = { 'WWW-Authenticate': challenge };
    if (call === undefined) return refuseRequest(status, description, { headers });
    const result = {
      resultType: 'complete',
      content: [{ type: 'text', text: description }],
      isError: true,
      _meta: { 'mcp/www_authenticate': [challenge] },
    };
    return Response.json({ jsonrpc: '2.0', id: call.id, result }, { status, headers });
  }
}

/**
 * What a message refers to by name: a tool, prompt or resource, or the tools of an MCP App, of which the caller needs
 * one. Empty if it does not exist.
 */
type Named = readonly ToolDefinition[];

/** The methods that refer to a tool, prompt or resource. */
const NAMED = new Map<unknown, (message: Fields, registry: ToolRegistry) => readonly Named[]>([
  ['tools/call', ({ params }, registry) => [namedIn(registry, recordOf(params).name)]],
  ['prompts/get', ({ params }, registry) => [namedIn(registry.part('prompt'), recordOf(params).name)]],
  ['resources/read', resourceIn],
  ['resources/subscribe', resourceIn],
  ['completion/complete', completedIn],
  [
    'subscriptions/listen',
    ({ params }, registry) => subscribedUris(params).map((uri) => namedByUri(registry, uri)),
  ],
]);

/** Reads the reference as the completion itself does: by its type alone. */
function completedIn({ params }: Fields, registry: ToolRegistry): readonly Named[] {
  const { type, name, uri } = recordOf(recordOf(params).ref);
  if (type === 'ref/prompt') return [namedIn(registry.part('prompt'), name)];
  const resources = registry.part('resource').tools();
  return [resources.filter((resource) => servedAs(resource).uri === uri).slice(0, 1)];
}

function resourceIn({ params }: Fields, registry: ToolRegistry): readonly Named[] {
  return [namedByUri(registry, String(recordOf(params).uri))];
}

function namedIn(registry: ToolRegistry, name: unknown): Named {
  const definition = registry.offered(String(name));
  return definition === undefined ? [] : [definition];
}

function recordOf(value: unknown): Fields {
  return isRecord(value) ? value : {};
}

/** Without HS256 and the like: a published key must not be usable as a shared secret (RFC 8725, section 3.1). */
const ALGORITHMS = ['RS', 'PS', 'ES'].flatMap((family) => [256, 384, 512].map((bits) => `${family}${bits}`));
const SIGNED_BY = [...ALGORITHMS, 'EdDSA', 'Ed25519'];
const CLOCK_TOLERANCE_SECONDS = 5;
/** Public keys in the format of an authorization server. */
interface KeySet {
  readonly keys: readonly object[];
}

/** Errors of jose that are not about the token: the keys could not be read. */
const KEYS_UNAVAILABLE = new Set(['ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID', 'ERR_JOSE_GENERIC']);

/**
 * Verifies JSON Web Tokens with the public keys of an authorization server (RFC 7517): its `jwks_uri`, or the keys
 * themselves. Checks signature, issuer, audience and expiry. Keys are cached, and fetched again for an unknown key id.
 * The package `jose` must be installed.
 *
 * Scopes are read from `scope` or `scp`, the client from `client_id` or `azp`; all claims are in `authInfo.extra`.
 *
 * @throws InvalidOptionsError (521) if `source` is neither a URL nor a key set.
 *
 * @example
 * ```ts
 * const verify = jwks('https://auth.example.org/.well-known/jwks.json');
 * const resource = 'https://api.example.org/mcp';
 * const mcp = createMcpServer(tools, { oauth: { resource, issuer: 'https://auth.example.org', verify } });
 * ```
 */
export function jwks(source: string | URL | KeySet): VerifyToken {
  const isUrl = source instanceof URL || (typeof source === 'string' && URL.canParse(source));
  if (!isUrl && !(isRecord(source) && Array.isArray(source.keys)))
    throw new InvalidOptionsError([
      {
        where: 'jwks',
        option: 'source',
        problem: 'source is neither a URL nor { keys: […] }',
        fix: "jwks('https://auth.example.org/.well-known/jwks.json')",
      },
    ]);
  const loading = loadVerifier(source);
  // If the package is missing, requests fail, not the start.
  loading.catch(() => {});
  return async (token, { issuer, audience }) => {
    const { jose, keys } = await loading;
    try {
      const { payload } = await jose.jwtVerify(token, keys, {
        issuer,
        audience: [...audience],
        algorithms: SIGNED_BY,
        requiredClaims: ['exp'],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
      });
      const { scope, scp, exp } = payload;
      return { token, ...grantOf(payload, scope ?? scp), expiresAt: Number(exp), extra: { ...payload } };
    } catch (error) {
      if (!(error instanceof jose.errors.JOSEError) || KEYS_UNAVAILABLE.has(error.code)) throw error;
      throw new OAuthError('invalid_token', error.message);
    }
  };
}

async function loadVerifier(source: string | URL | KeySet) {
  const jose = await import('jose').catch((error) => {
    throw error.code === 'ERR_MODULE_NOT_FOUND'
      ? new Error('jwks needs the package jose: npm install jose')
      : error;
  });
  const isSet = typeof source === 'object' && 'keys' in source;
  const keys = isSet
    ? jose.createLocalJWKSet({ keys: [...source.keys] })
    : jose.createRemoteJWKSet(new URL(source));
  return { jose, keys };
}
