import { afterEach, describe, expect, test } from '@jest/globals';
import { OAuthError } from '@modelcontextprotocol/server';
import { defineTool, ToolRegistry } from 'toolwright';
import { createMcpServer, jwks, type McpOAuthOptions, type VerifyToken } from 'toolwright/mcp';
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../examples/mcp/authorization-server.js';
import { serve } from '../setup/loopback.js';
import { EmulatedHost, HOSTS, hostDocuments } from './mcp-hosts.js';

const tool = (name: string, options: { scopes?: string[]; public?: boolean } = {}) =>
  defineTool({
    name,
    description: `Does ${name}`,
    execute: (_args, { data }) => `${name} for ${data.mcp?.authInfo?.extra?.sub ?? 'everybody'}`,
    ...options,
  });
const HOURS = tool('hours', { public: true });
const ORDERS = tool('orders');
const READ = tool('read', { scopes: ['orders:read'] });
const CANCEL = tool('cancel', { scopes: ['orders:write'] });
const SCOPES = ['orders:read', 'orders:write'];

interface Signing extends Pick<McpOAuthOptions, 'unauthorised'> {
  readonly tokens?: 'jwt' | 'opaque';
}

const open: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** A server, and the authorization server that issues its tokens. */
async function start(tools: readonly ReturnType<typeof tool>[], { unauthorised, ...signing }: Signing = {}) {
  let answer: (request: never, response: never) => unknown = () => {};
  const http = await serve((request, response) => void answer(request as never, response as never));
  const url = new URL('/mcp', http.url);
  const api = { resource: url.href, scopes: SCOPES };
  const authorization = await startAuthorizationServer({ port: 0, api, fetch: hostDocuments, ...signing });
  const { issuer } = authorization;
  const verify = signing.tokens === 'opaque' ? introspect(authorization) : jwks(`${issuer}/jwks`);
  /** Tokens that this test declares expired. */
  const expired = new Set<string | undefined>();
  const mcp = createMcpServer(new ToolRegistry().register(...tools), {
    oauth: {
      resource: url.href,
      issuer,
      verify: async (token, wanted) => {
        const authInfo = await verify(token, wanted);
        return expired.has(token) ? { ...authInfo, expiresAt: 1 } : authInfo;
      },
      ...(unauthorised && { unauthorised }),
    },
  });
  answer = mcp.node as never;
  open.push(
    () => mcp.close(),
    async () => http[Symbol.asyncDispose](),
    () => authorization.close(),
  );
  return { url, authorization, expired };
}

/** Verifies tokens by introspection (RFC 7662), which detects revoked ones. */
function introspect({ issuer }: AuthorizationServer): VerifyToken {
  return async (token, { audience }) => {
    const response = await fetch(`${issuer}/token/introspection`, {
      method: 'POST',
      body: new URLSearchParams({ token, client_id: await registered(issuer) }),
    });
    const {
      active,
      aud,
      scope = '',
      sub,
      exp,
      client_id,
    } = (await response.json()) as Record<string, string>;
    if (!active || !audience.includes(aud ?? ''))
      throw new OAuthError('invalid_token', 'The token is not active');
    return {
      token,
      clientId: client_id ?? '',
      scopes: scope.split(' '),
      expiresAt: Number(exp),
      extra: { sub },
    };
  };
}

const clients = new Map<string, Promise<string>>();

/** The client id of the resource server at an authorization server. */
function registered(issuer: string): Promise<string> {
  const register = async (): Promise<string> => {
    const response = await fetch(`${issuer}/reg`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        redirect_uris: ['https://api.example.org/'],
        token_endpoint_auth_method: 'none',
      }),
    });
    return ((await response.json()) as { client_id: string }).client_id;
  };
  const known = clients.get(issuer) ?? register();
  clients.set(issuer, known);
  return known;
}

describe.each(HOSTS.map((host) => [host.name, host] as const))('%s', (_, rules) => {
  test('uses public tools without a sign-in', async () => {
    const { url } = await start([HOURS, ORDERS]);
    const host = new EmulatedHost(rules, url);
    await host.connect();
    expect(await host.toolNames()).toEqual(['hours']);
    expect(await host.call('hours')).toBe('hours for everybody');
    expect(host.signIns).toEqual([]);
  });

  test('signs in once when it connects to a server without public tools', async () => {
    const { url } = await start([ORDERS, CANCEL]);
    const host = new EmulatedHost(rules, url);
    await host.connect();
    expect(await host.toolNames()).toEqual(['orders', 'cancel']);
    expect(await host.call('cancel')).toBe('cancel for ada');
    expect(host.signIns).toHaveLength(1);
  });

  test('signs in at the call that needs it, and again for a tool with another scope', async () => {
    const { url } = await start([HOURS, READ, CANCEL], {
      unauthorised: 'show',
    });
    const host = new EmulatedHost(rules, url);
    await host.connect();
    expect(await host.toolNames()).toEqual(['hours', 'read', 'cancel']);
    expect(host.signIns).toEqual([]);
    expect(await host.call('read')).toBe('read for ada');
    expect(await host.call('cancel')).toBe('cancel for ada');
    expect(host.signIns).toEqual(['orders:read', 'orders:write']);
  });

  test('signs in again when its token has expired', async () => {
    const { url, expired } = await start([READ]);
    const host = new EmulatedHost(rules, url);
    await host.connect();
    expired.add(host.token);
    expect(await host.call('read')).toBe('read for ada');
    expect(host.signIns).toHaveLength(2);
  });

  test('signs in when its token was issued for another server', async () => {
    const other = await start([READ]);
    const stranger = new EmulatedHost(rules, other.url);
    await stranger.connect();
    const { url } = await start([READ]);
    const host = new EmulatedHost(rules, url);
    host.token = stranger.token;
    await host.connect();
    expect(await host.call('read')).toBe('read for ada');
    expect(host.signIns).toHaveLength(1);
  });

  test('signs in again when its token was revoked', async () => {
    const { url, authorization } = await start([READ], { tokens: 'opaque' });
    const host = new EmulatedHost(rules, url);
    await host.connect();
    expect(await host.call('read')).toBe('read for ada');
    const { issuer } = authorization;
    const { token = '' } = host;
    const revoked = await fetch(`${issuer}/token/revocation`, {
      method: 'POST',
      body: new URLSearchParams({ token, client_id: host.clientId ?? '' }),
    });
    expect(revoked.status).toBe(200);
    expect(await host.call('read')).toBe('read for ada');
    expect(host.signIns).toHaveLength(2);
  });
});
