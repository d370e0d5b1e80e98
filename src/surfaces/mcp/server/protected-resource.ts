import {
  type AuthInfo,
  getOAuthProtectedResourceMetadataUrl,
  OAuthError,
} from '@modelcontextprotocol/server';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import { type Fields, isRecord } from '../../../core/kernel/json.js';
import { missingScopes } from '../../../run/call/required-scopes.js';
import type { ToolRegistry } from '../../../run/call/tool-registry.js';
import { refuseRequest } from './host-guard.js';
import { namedByUri, servedAs, subscribedUris } from './resource-uris.js';
import type { McpOAuthOptions, VerifyToken } from './settings.js';

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
  #refuse({ status, error, description, scopes = [] }: Challenge, call?: Message): Response {
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

type Message = Fields;

/**
 * What a message refers to by name: a tool, prompt or resource, or the tools of an MCP App, of which the caller needs
 * one. Empty if it does not exist.
 */
type Named = readonly ToolDefinition[];

/** The methods that refer to a tool, prompt or resource. */
const NAMED = new Map<unknown, (message: Message, registry: ToolRegistry) => readonly Named[]>([
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
function completedIn({ params }: Message, registry: ToolRegistry): readonly Named[] {
  const { type, name, uri } = recordOf(recordOf(params).ref);
  if (type === 'ref/prompt') return [namedIn(registry.part('prompt'), name)];
  const resources = registry.part('resource').tools();
  return [resources.filter((resource) => servedAs(resource).uri === uri).slice(0, 1)];
}

function resourceIn({ params }: Message, registry: ToolRegistry): readonly Named[] {
  return [namedByUri(registry, String(recordOf(params).uri))];
}

function namedIn(registry: ToolRegistry, name: unknown): Named {
  const definition = registry.offered(String(name));
  return definition === undefined ? [] : [definition];
}

function recordOf(value: unknown): Message {
  return isRecord(value) ? value : {};
}
