import { createHash, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { OAuthError, OAuthErrorCode } from '@modelcontextprotocol/client';
import type { ToolRegistry } from 'toolwright';
import { createMcpServer, type VerifiedToken } from 'toolwright/mcp';
import { serve } from '../../setup/loopback.js';

/** The prefix of every secret of the server, to check that secrets appear nowhere else. */
export const CANARY = 'canary-';

/** How the authorization server behaves; a test may change it at any time. */
export interface Behaviour {
  /** The account of the next sign-in or renewal. */
  account: string;
  /** Milliseconds before it answers token requests. */
  delayMs: number;
  /** The status of all token requests. */
  failsWith: number | undefined;
  /** Whether errors repeat the refresh token. */
  echoes: boolean;
}

interface Grant {
  readonly account: string;
  readonly scope: string;
  readonly family: string;
}

/** An MCP server and its authorization server, which misbehaves on demand. */
export interface OddServers extends AsyncDisposable {
  readonly url: string;
  readonly issuer: string;
  readonly behaviour: Behaviour;
  /** The grant types of the token requests. */
  readonly grants: string[];
  /** The scopes of each visit to the sign-in page. */
  readonly visits: string[];
  /** Everything that both servers received, and every secret that was issued. */
  readonly received: string[];
  readonly issued: string[];
  /** Invalidates the access tokens. */
  expireAll(): void;
  /** Invalidates everything that was issued. */
  revokeAll(): void;
}

/** Records a request with its body, which the handler can still read. */
function record(request: IncomingMessage, received: string[]): void {
  const { method, url, headers } = request;
  const at = received.push(`${method} ${url} ${JSON.stringify(headers)}\n`) - 1;
  const push = request.push.bind(request);
  request.push = (chunk, encoding) => {
    if (chunk !== null) received[at] += String(chunk);
    return push(chunk, encoding);
  };
}

export async function serveOddly(
  tools: ToolRegistry,
  unauthorised: 'hide' | 'show' = 'show',
): Promise<OddServers> {
  const behaviour: Behaviour = { account: 'ada', delayMs: 0, failsWith: undefined, echoes: false };
  const grants: string[] = [];
  const visits: string[] = [];
  const received: string[] = [];
  const issued: string[] = [];
  const codes = new Map<string, Grant & { readonly challenge: string }>();
  const access = new Map<string, Grant>();
  const refresh = new Map<string, Grant>();
  const spent = new Map<string, Grant>();

  const secret = (kind: string): string => {
    const text = `${CANARY}${kind}-${randomUUID()}`;
    issued.push(text);
    return text;
  };
  const issue = (grant: Grant): object => {
    const [token, renewal] = [secret('access'), secret('refresh')];
    access.set(token, grant);
    refresh.set(renewal, grant);
    const claims = Buffer.from(JSON.stringify({ sub: grant.account })).toString('base64url');
    return {
      access_token: token,
      refresh_token: renewal,
      token_type: 'Bearer',
      expires_in: 300,
      scope: grant.scope,
      id_token: `e30.${claims}.`,
    };
  };
  const endFamily = (family: string): void => {
    for (const tokens of [access, refresh])
      for (const [token, grant] of tokens) if (grant.family === family) tokens.delete(token);
  };
  const redeem = (form: URLSearchParams): object | undefined => {
    const renewal = form.get('refresh_token') ?? '';
    if (form.get('grant_type') === 'refresh_token') {
      const reused = spent.get(renewal);
      if (reused !== undefined) endFamily(reused.family);
      const grant = refresh.get(renewal);
      if (grant === undefined) return undefined;
      refresh.delete(renewal);
      spent.set(renewal, grant);
      return issue({ ...grant, account: behaviour.account });
    }
    const code = codes.get(form.get('code') ?? '');
    codes.delete(form.get('code') ?? '');
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    return code?.challenge === challenge ? issue(code) : undefined;
  };

  const authorization = await serve(async (request, response) => {
    record(request, received);
    const { pathname, searchParams } = new URL(request.url ?? '/', issuer);
    const body = await text(request);
    const json = (status: number, value: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    };
    if (pathname === '/.well-known/oauth-authorization-server')
      return json(200, {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        registration_endpoint: `${issuer}/register`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        authorization_response_iss_parameter_supported: true,
      });
    if (pathname === '/register')
      return json(201, { ...JSON.parse(body), client_id: randomUUID(), client_secret: secret('client') });
    if (pathname === '/authorize') {
      const scope = searchParams.get('scope') ?? '';
      visits.push(scope);
      const code = secret('code');
      const challenge = searchParams.get('code_challenge') ?? '';
      codes.set(code, { account: behaviour.account, scope, family: randomUUID(), challenge });
      const back = new URL(searchParams.get('redirect_uri') ?? '');
      back.search = new URLSearchParams({
        code,
        state: searchParams.get('state') ?? '',
        iss: issuer,
      }).toString();
      response.writeHead(302, { location: back.href }).end();
      return;
    }
    if (pathname !== '/token') return json(404, {});
    const form = new URLSearchParams(body);
    grants.push(form.get('grant_type') ?? '');
    await wait(behaviour.delayMs);
    if (behaviour.failsWith !== undefined) return json(behaviour.failsWith, { error: 'server_error' });
    const tokens = redeem(form);
    const described = behaviour.echoes
      ? `${form.get('refresh_token')} and ${request.headers.authorization}`
      : '';
    if (tokens === undefined) return json(400, { error: 'invalid_grant', error_description: described });
    return json(200, tokens);
  });
  const issuer = authorization.url;

  const http = await serve((request, response) => {
    record(request, received);
    return mcp.node(request, response);
  });
  const url = `${http.url}/mcp`;
  const verify = async (token: string): Promise<VerifiedToken> => {
    const grant = access.get(token);
    if (grant === undefined) throw new OAuthError(OAuthErrorCode.InvalidToken, `No such token: ${token}`);
    const { scope, account } = grant;
    const expiresAt = Math.floor(Date.now() / 1000) + 300;
    return { token, clientId: 'a', scopes: scope.split(' '), expiresAt, extra: { sub: account } };
  };
  const mcp = createMcpServer(tools, {
    oauth: { resource: url, issuer, verify, unauthorised },
    scope: ({ authInfo }) => ({ data: { account: authInfo?.extra?.sub } }),
    onError: () => {},
  });
  return {
    url,
    issuer,
    behaviour,
    grants,
    visits,
    received,
    issued,
    expireAll: () => access.clear(),
    revokeAll() {
      access.clear();
      refresh.clear();
    },
    async [Symbol.asyncDispose]() {
      await mcp.close();
      await http[Symbol.asyncDispose]();
      await authorization[Symbol.asyncDispose]();
    },
  };
}

/** Opens the page as a user who accepts everything, and returns the address of the redirect. */
export async function agree(page: URL): Promise<string> {
  const response = await fetch(page, { redirect: 'manual' });
  return response.headers.get('location') ?? '';
}
