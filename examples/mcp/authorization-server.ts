import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider, { type Configuration, type InteractionResults } from 'oidc-provider';

/** The rules for issuing tokens. */
export interface ProtectedApi {
  readonly resource: string;
  readonly scopes: readonly string[];
}

export interface AuthorizationServerOptions {
  readonly port: number;
  readonly api: ProtectedApi;
  /** Fetches client metadata documents; default: the `fetch` of the platform. */
  readonly fetch?: typeof fetch;
  /** `opaque` tokens are introspected at this server and can be revoked; default: signed tokens (JWT). */
  readonly tokens?: 'jwt' | 'opaque';
}

/** A running authorization server on this machine. */
export interface AuthorizationServer {
  readonly issuer: string;
  close(): Promise<void>;
}

/**
 * A complete OAuth 2.1 authorization server for local use: discovery, dynamic registration, client metadata documents,
 * PKCE, resource indicators. It has no login page: the `login_hint` of a request names the user, by default `ada`.
 */
export async function startAuthorizationServer(
  options: AuthorizationServerOptions,
): Promise<AuthorizationServer> {
  const http = createServer();
  await new Promise<void>((resolve) => http.listen(options.port, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, configurationOf(options));
  const answer = provider.callback();
  http.on('request', (request, response) => {
    if (request.url?.startsWith('/interaction/')) void signIn(provider, request, response);
    else void answer(request, response);
  });
  return {
    issuer,
    async close() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

function configurationOf({ api, fetch: read, tokens = 'jwt' }: AuthorizationServerOptions) {
  const configuration: Configuration = {
    scopes: ['openid', 'offline_access', ...api.scopes],
    clientDefaults: { token_endpoint_auth_method: 'none' },
    // Many clients register only with the scopes of their first sign-in, and request more later.
    extraClientMetadata: {
      properties: ['later_scopes'],
      validator: (...[, , , metadata]) => {
        metadata.scope = undefined;
      },
    },
    findAccount: (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    ttl: { AccessToken: 300, Interaction: 600, Session: 600, Grant: 600 },
    cookies: { keys: [crypto.randomUUID()] },
    ...(read && { fetch: read }),
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true, allowedPolicy: () => true },
      clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => api.resource,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: api.scopes.join(' '),
          audience: api.resource,
          accessTokenTTL: 300,
          accessTokenFormat: tokens,
        }),
      },
    },
  };
  return configuration;
}

/** Signs the user in and gives consent, instead of the pages of other servers. */
async function signIn(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  const { login_hint: accountId = 'ada', client_id: clientId } = params as Readonly<Record<string, string>>;
  let result: InteractionResults = { login: { accountId } };
  if (prompt.name === 'consent') {
    const given = grantId === undefined ? undefined : await provider.Grant.find(grantId);
    const grant = given ?? new provider.Grant({ accountId: session?.accountId ?? accountId, clientId });
    const { missingOIDCScope, missingResourceScopes = {} } = prompt.details as {
      readonly missingOIDCScope?: string[];
      readonly missingResourceScopes?: Readonly<Record<string, string[]>>;
    };
    if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
    for (const [resource, scopes] of Object.entries(missingResourceScopes))
      grant.addResourceScope(resource, scopes.join(' '));
    result = { consent: { grantId: await grant.save() } };
  }
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}
