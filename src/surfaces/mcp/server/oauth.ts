import {
  type AuthInfo,
  getOAuthProtectedResourceMetadataUrl,
  OAuthError,
} from '@modelcontextprotocol/server';
import { isRecord } from '../../../core/kernel/json.js';
import {
  either,
  FILLED_TEXT,
  FUNCTION,
  listOf,
  type OptionRule,
  objectOf,
  oneOf,
  protecting,
  required,
} from '../../../core/kernel/options.js';
import { missingScopes } from '../../../run/call/required-scopes.js';
import type { ToolRegistry } from '../../../run/call/tool-registry.js';
import { refuseRequest } from './host-guard.js';
import type { ExpectedToken, McpOAuthOptions } from './settings.js';

const URL_TEXT: OptionRule = {
  accepts: (value) => typeof value === 'string' && /^https?:\/\/[^?#]+$/.test(value) && URL.canParse(value),
  fix: "a URL without query: 'https://api.example.org/mcp'",
};

/** The option `oauth` of `createMcpServer`. */
export const OAUTH_OPTION = objectOf<McpOAuthOptions>(
  {
    resource: protecting(required(URL_TEXT)),
    issuer: protecting(required(URL_TEXT)),
    audience: protecting(either(FILLED_TEXT, listOf(FILLED_TEXT, "['https://api.example.org/mcp']"))),
    verify: protecting({ ...FUNCTION, fix: 'jwks(url)' }),
    unauthorised: oneOf('hide', 'show'),
  },
  {
    fix: "{ resource: 'https://api.example.org/mcp', issuer: 'https://auth.example.org', verify: jwks(url) }",
    meant: { unauthorized: "unauthorised: 'hide'", jwksUri: 'verify: jwks(url)' },
  },
);

interface Challenge {
  readonly status: 401 | 403;
  readonly error?: 'invalid_token' | 'insufficient_scope';
  readonly description: string;
  readonly scopes?: readonly string[];
}

/** A call in the body of a request. */
interface SentCall {
  readonly id: unknown;
  readonly name: string;
}

const NOT_ACCEPTED = { error: 'invalid_token', description: 'The token is not accepted' } as const;

const METADATA_PATH = '/.well-known/oauth-protected-resource';
/** Methods that callers without a token may use where some tools are public. Messages without a method are answers. */
const OPEN_METHOD = /^(?:initialize|ping|server\/discover|tools\/(?:list|call)|notifications\/.+)$/;

/** The part of an MCP server that signs callers in. */
export class ProtectedResource {
  readonly #options: McpOAuthOptions;
  readonly #registry: ToolRegistry;
  readonly #onError: (error: unknown) => void;
  readonly #expected: ExpectedToken;
  readonly #metadataUrl: string;
  readonly #metadataPaths: readonly string[];

  constructor(
    options: McpOAuthOptions,
    { registry, onError }: { readonly registry: ToolRegistry; readonly onError: (error: unknown) => void },
  ) {
    const { resource, issuer, audience = resource } = options;
    this.#options = options;
    this.#registry = registry;
    this.#onError = onError;
    this.#expected = { issuer, audience: typeof audience === 'string' ? [audience] : audience };
    this.#metadataUrl = getOAuthProtectedResourceMetadataUrl(new URL(resource));
    this.#metadataPaths = [METADATA_PATH, new URL(this.#metadataUrl).pathname];
  }

  /** The RFC 9728 document, if a request asks for it. Pages of any origin may read it. */
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

  /** Whose request it is: nothing without a token, and a response if the token is not valid or one is needed. */
  async authenticate(
    { headers }: Request,
    given: AuthInfo | null | undefined,
  ): Promise<AuthInfo | Response | undefined> {
    const { verify } = this.#options;
    const header = headers.get('authorization');
    if (given === null || (verify === undefined && given === undefined && header !== null))
      return this.#refuse({ ...this.#signIn(), ...(header !== null && NOT_ACCEPTED) });
    if (verify === undefined || header === null) return this.#admit(verify === undefined ? given : undefined);
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

  /** A response if the caller may not send this message: 401 without a token, 403 if the token lacks scopes of a tool. */
  authorize(body: unknown, authInfo: AuthInfo | undefined): Response | undefined {
    const messages = (Array.isArray(body) ? body : [body]).filter(isRecord);
    const calls = messages.flatMap(callIn);
    const tools = calls.map(({ name }) => this.#registry.offered(name));
    const scopes = [...new Set(tools.flatMap((tool) => tool?.scopes ?? []))];
    if (authInfo === undefined) {
      const isOpen = messages.every(({ method }) => typeof method !== 'string' || OPEN_METHOD.test(method));
      if (isOpen && tools.every((tool) => tool?.public)) return undefined;
      return this.#refuse({ ...this.#signIn(), ...(scopes.length > 0 && { scopes }) }, calls);
    }
    if (tools.every((tool) => tool === undefined || missingScopes(tool, authInfo.scopes).length === 0))
      return undefined;
    const description = `The call needs the scopes ${scopes.join(', ')}`;
    return this.#refuse({ status: 403, error: 'insufficient_scope', description, scopes }, calls);
  }

  /** Names of the tools that are left out of a caller's lists. */
  hiddenFrom(authInfo: AuthInfo | undefined): readonly string[] {
    if (this.#options.unauthorised === 'show') return [];
    const isHidden = (tool: ReturnType<ToolRegistry['tools']>[number]): boolean =>
      authInfo === undefined ? tool.public !== true : missingScopes(tool, authInfo.scopes).length > 0;
    return this.#registry.tools().flatMap((tool) => (isHidden(tool) ? [tool.name] : []));
  }

  #admit(authInfo: AuthInfo | undefined): AuthInfo | Response | undefined {
    const isRefused = authInfo === undefined && !this.#registry.tools().some((tool) => tool.public);
    return isRefused ? this.#refuse(this.#signIn()) : authInfo;
  }

  /** Whoever hides tools asks for all scopes at once, since nobody asks for those of a tool that is not seen. */
  #signIn(): Challenge {
    const scopes = this.#options.unauthorised === 'show' ? [] : this.#allScopes();
    return { status: 401, description: 'Sign in to use this server', scopes };
  }

  #allScopes(): readonly string[] {
    return [...new Set(this.#registry.tools().flatMap(({ scopes = [] }) => scopes))].sort();
  }

  /** ChatGPT reads the challenge out of the result of the call, other hosts out of the header (RFC 6750, section 3). */
  #refuse({ status, error, description, scopes = [] }: Challenge, calls: readonly SentCall[] = []): Response {
    const parts = {
      ...(error && { error, error_description: description.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, ' ') }),
      ...(scopes.length > 0 && { scope: scopes.join(' ') }),
      resource_metadata: this.#metadataUrl,
    };
    const challenge = `Bearer ${Object.entries(parts)
      .map(([name, value]) => `${name}="${value}"`)
      .join(', ')}`;
    const headers = { 'WWW-Authenticate': challenge };
    const [call] = calls;
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

function callIn({ method, id, params }: Readonly<Record<string, unknown>>): readonly SentCall[] {
  if (method !== 'tools/call') return [];
  return [{ id, name: isRecord(params) ? String(params.name) : '' }];
}
