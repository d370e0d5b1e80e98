import { afterEach, expect, test } from '@jest/globals';
import { Client, InMemoryTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  defineTool,
  discoverTools,
  Prompt,
  Public,
  Resource,
  runToolLoop,
  Tool,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import {
  createMcpServer,
  jwks,
  type McpOAuthOptions,
  type McpServerOptions,
  type McpToolServer,
} from 'toolwright/mcp';
import { ScriptedProvider } from 'toolwright/testing';
import { ERAS, type Listening, listen } from './mcp-connections.js';
import { HEADERS, INITIALIZE } from './raw-requests.js';
import { type TokenClaims, tokenIssuer } from './token-issuer.js';

const RESOURCE = 'https://api.example.org/mcp';
const METADATA = 'https://api.example.org/.well-known/oauth-protected-resource/mcp';
const issuer = await tokenIssuer(RESOURCE);

@Toolset()
class ShopTools {
  @Public()
  @Tool('Opening hours')
  hours() {
    return '9 to 18';
  }

  @Tool('Find orders')
  orders() {
    return 'order 1';
  }

  @Tool({ description: 'Cancel an order', scopes: ['orders:write'], _meta: { team: 'shop' } })
  cancel() {
    return 'cancelled';
  }

  @Tool({ description: 'Refund an order', scopes: ['orders:write', 'money'] })
  refund() {
    return 'refunded';
  }
}

const open = new Set<Listening>();

afterEach(async () => {
  for (const listening of open) await listening.close();
  open.clear();
});

/** A protected server with the tools of the shop, except those in `deny`. */
async function protect(
  options: Partial<McpOAuthOptions> = {},
  deny: readonly string[] = [],
  configure: McpServerOptions['configure'] = () => {},
) {
  const registry = new ToolRegistry().register(...discoverTools({ toolsets: [ShopTools] })).view({ deny });
  const verify = jwks(issuer.keys);
  const listening = await listen(registry, {
    oauth: { resource: RESOURCE, issuer: issuer.issuer, verify, ...options },
    onError: () => {},
    configure,
  });
  open.add(listening);
  return listening;
}

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

interface Sent {
  readonly token?: string;
  readonly method?: string;
  readonly name?: string;
}

/** Sends a request of a 2026-07-28 client. */
function send({ url }: Listening, { token, method = 'tools/call', name }: Sent): Promise<Response> {
  const params = { _meta: META, ...(name !== undefined && { name, arguments: {} }) };
  return fetch(url, {
    method: 'POST',
    headers: {
      ...HEADERS,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(name !== undefined && { 'mcp-name': name }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
}

const challengeOf = (response: Response) => response.headers.get('www-authenticate');

async function namesFor(listening: Listening, token?: string): Promise<string[]> {
  const response = await send(listening, { method: 'tools/list', ...(token && { token }) });
  expect(response.status).toBe(200);
  const { result } = (await response.json()) as { result: { tools: { name: string }[] } };
  return result.tools.map(({ name }) => name);
}

test.each(['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp'])(
  'a protected server publishes its RFC 9728 document at %s to pages of any origin',
  async (path) => {
    const { url } = await protect();
    const response = await fetch(new URL(path, url), { headers: { origin: 'https://inspector.example' } });
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(await response.json()).toEqual({
      resource: RESOURCE,
      authorization_servers: [issuer.issuer],
      scopes_supported: ['money', 'orders:write'],
      bearer_methods_supported: ['header'],
    });
  },
);

test('without public tools, every request without a token gets 401 and the way to sign in', async () => {
  const listening = await protect({}, ['hours']);
  for (const method of ['server/discover', 'tools/list', 'tools/call']) {
    const response = await send(listening, { method, ...(method === 'tools/call' && { name: 'orders' }) });
    expect(response.status).toBe(401);
    expect(challengeOf(response)).toBe(`Bearer scope="money orders:write", resource_metadata="${METADATA}"`);
  }
  const { url } = listening;
  const legacy = await fetch(url, { method: 'POST', headers: HEADERS, body: JSON.stringify(INITIALIZE) });
  expect(legacy.status).toBe(401);
  expect((await fetch(url, { headers: { ...HEADERS, 'mcp-session-id': 'unknown' } })).status).toBe(401);
});

test.each<[string, TokenClaims]>([
  ['has expired', { expiresIn: -60 }],
  ['was issued for another resource', { aud: 'https://other.example/mcp' }],
  ['was issued by another server', { iss: 'https://evil.example' }],
])('a token that %s gets 401 invalid_token, even for a public tool', async (_, claims) => {
  const response = await send(await protect(), { name: 'hours', token: await issuer.issue(claims) });
  expect(response.status).toBe(401);
  expect(challengeOf(response)).toContain('error="invalid_token"');
  expect(challengeOf(response)).toContain(`resource_metadata="${METADATA}"`);
});

test('a token of another issuer, a token without a signature and a token in the query are refused', async () => {
  const listening = await protect({}, ['hours']);
  const stranger = await tokenIssuer(RESOURCE);
  const token = await stranger.issue();
  expect((await send(listening, { name: 'orders', token })).status).toBe(401);
  const [, payload] = (await issuer.issue()).split('.');
  const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`;
  expect((await send(listening, { name: 'orders', token: unsigned })).status).toBe(401);
  const inQuery = new URL(`?access_token=${await issuer.issue()}`, listening.url);
  expect((await send({ ...listening, url: inQuery }, { name: 'orders' })).status).toBe(401);
});

test('a call of a protected tool without a token gets the scopes of this tool in its header and body', async () => {
  const listening = await protect({ unauthorised: 'show' });
  const response = await send(listening, { name: 'cancel' });
  expect(response.status).toBe(401);
  const challenge = `Bearer scope="orders:write", resource_metadata="${METADATA}"`;
  expect(challengeOf(response)).toBe(challenge);
  expect(await response.json()).toMatchObject({
    id: 1,
    result: { isError: true, _meta: { 'mcp/www_authenticate': [challenge] } },
  });
});

test.each(['hide', 'show'] as const)(
  'a call that needs more scopes than the token has gets 403 and all scopes of the call (%s)',
  async (unauthorised) => {
    const listening = await protect({ unauthorised });
    const token = await issuer.issue({ scope: 'orders:write' });
    const response = await send(listening, { name: 'refund', token });
    expect(response.status).toBe(403);
    expect(challengeOf(response)).toContain('error="insufficient_scope"');
    expect(challengeOf(response)).toContain('scope="orders:write money"');
    const allowed = await send(listening, { name: 'cancel', token });
    expect(await allowed.json()).toMatchObject({ result: { content: [{ text: 'cancelled' }] } });
  },
);

test('a tool without scopes can be called with any valid token, and a public tool without a token', async () => {
  const listening = await protect();
  const token = await issuer.issue();
  expect(await (await send(listening, { name: 'orders', token })).json()).toMatchObject({
    result: { content: [{ text: 'order 1' }] },
  });
  expect(await (await send(listening, { name: 'hours' })).json()).toMatchObject({
    result: { content: [{ text: '9 to 18' }] },
  });
});

test('lists contain the tools that the caller may call, or all tools if unauthorised is show', async () => {
  const hiding = await protect();
  expect(await namesFor(hiding)).toEqual(['hours']);
  expect(await namesFor(hiding, await issuer.issue())).toEqual(['hours', 'orders']);
  expect(await namesFor(hiding, await issuer.issue({ scope: 'orders:write' }))).toEqual([
    'hours',
    'orders',
    'cancel',
  ]);
  expect(await namesFor(await protect({ unauthorised: 'show' }))).toHaveLength(4);
});

test('listed tools have their _meta, and their scopes in the form that ChatGPT reads', async () => {
  const listening = await protect({ unauthorised: 'show' });
  const response = await send(listening, { method: 'tools/list' });
  const { result } = (await response.json()) as { result: { tools: Record<string, unknown>[] } };
  const oauth2 = [{ type: 'oauth2', scopes: ['orders:write'] }];
  expect(result.tools[0]).toMatchObject({ securitySchemes: [{ type: 'noauth' }] });
  expect(result.tools[2]).toMatchObject({
    securitySchemes: oauth2,
    _meta: { team: 'shop', securitySchemes: oauth2 },
  });
});

test('a batch of calls is refused as a whole, with the scopes of all its calls', async () => {
  const { url } = await protect();
  const call = (id: number, name: string) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } });
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...HEADERS, authorization: `Bearer ${await issuer.issue()}` },
    body: JSON.stringify([call(1, 'hours'), call(2, 'cancel'), call(3, 'refund')]),
  });
  expect(response.status).toBe(403);
  expect(challengeOf(response)).toContain('scope="orders:write money"');
});

test('prompts, resources and other methods need a token even if tools are public', async () => {
  const listening = await protect();
  for (const method of ['prompts/get', 'resources/read', 'completion/complete', 'logging/setLevel'])
    expect((await send(listening, { method })).status).toBe(401);
});

test('names of built-in object methods are unknown methods, and not a server error', async () => {
  const listening = await protect();
  for (const method of ['__proto__', 'constructor', 'toString'])
    expect((await send(listening, { method })).status).toBe(401);
});

test('lists that `configure` has added to the SDK need a token even if tools are public', async () => {
  const listening = await protect({}, [], (server) => {
    server.registerPrompt('internal', { description: 'Internal' }, () => ({ messages: [] }));
  });
  expect((await send(listening, { method: 'prompts/list' })).status).toBe(401);
  const token = await issuer.issue();
  expect((await send(listening, { method: 'prompts/list', token })).status).toBe(200);
});

test('if the keys cannot be loaded, a token gets 503, and the error is reported once', async () => {
  const errors: unknown[] = [];
  const registry = new ToolRegistry().register(
    defineTool({ name: 'work', description: 'x', execute: () => 1 }),
  );
  const oauth = { resource: RESOURCE, issuer: issuer.issuer, verify: jwks('http://127.0.0.1:9/keys') };
  const listening = await listen(registry, { oauth, onError: (error) => errors.push(error) });
  open.add(listening);
  const response = await send(listening, { name: 'work', token: await issuer.issue() });
  expect(response.status).toBe(503);
  expect(response.headers.get('retry-after')).toBe('10');
  expect(errors).toHaveLength(1);
});

test('the keys of the authorization server are loaded from its address and cached', async () => {
  const { serve } = await import('../../setup/loopback.js');
  let published = issuer.keys;
  await using keys = await serve((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify(published));
  });
  const listening = await protect({ verify: jwks(new URL('/keys', keys.url)) });
  expect((await send(listening, { name: 'orders', token: await issuer.issue() })).status).toBe(200);
  published = { keys: [] };
  // A known key is cached, so nothing is loaded again.
  expect((await send(listening, { name: 'orders', token: await issuer.issue() })).status).toBe(200);
});

test.each(Object.entries(ERAS))(
  'a client of %s calls public tools without a token, signs in, and continues on the same connection',
  async (_, options) => {
    const listening = await protect({ unauthorised: 'show' });
    let token: string | undefined;
    const client = new Client({ name: 'a-client', version: '1' }, options);
    const sendSigned: typeof fetch = (url, init) => {
      const headers = new Headers(init?.headers);
      if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
      return fetch(url, { ...init, headers });
    };
    await client.connect(new StreamableHTTPClientTransport(listening.url, { fetch: sendSigned }));
    expect(await client.callTool({ name: 'hours' })).toMatchObject({ content: [{ text: '9 to 18' }] });
    await expect(client.callTool({ name: 'cancel' })).rejects.toThrow();
    token = await issuer.issue({ scope: 'orders:write' });
    expect(await client.callTool({ name: 'cancel' })).toMatchObject({ content: [{ text: 'cancelled' }] });
    await client.close();
  },
);

test('a session belongs to its account: a token of another account gets 404', async () => {
  const { url } = await protect();
  const post = async (sub: string, body: unknown, session?: string) =>
    fetch(url, {
      method: 'POST',
      headers: {
        ...HEADERS,
        authorization: `Bearer ${await issuer.issue({ sub })}`,
        ...(session !== undefined && { 'mcp-session-id': session }),
      },
      body: JSON.stringify(body),
    });
  const begun = await post('anna', INITIALIZE);
  const session = begun.headers.get('mcp-session-id') ?? '';
  expect(session).not.toBe('');
  const list = { jsonrpc: '2.0', id: 2, method: 'tools/list' };
  expect((await post('anna', list, session)).status).toBe(200);
  expect((await post('mallory', list, session)).status).toBe(404);
});

test('a tool with scopes requires them in direct calls, too, and reads the scopes of the caller', async () => {
  const seen: unknown[] = [];
  const read = defineTool({
    name: 'read',
    description: 'Reads',
    scopes: ['read'],
    execute: (_args, { scopes }) => {
      seen.push(scopes);
      return 'done';
    },
  });
  const registry = new ToolRegistry().register(read);
  const refused = await registry.executeWithContext('read', {}, { scopes: ['write'] });
  expect(refused.forLLM).toContain('lacks the OAuth scopes read');
  expect((await registry.execute('read', {})).isError).toBe(true);
  expect((await registry.executeWithContext('read', {}, { scopes: ['read', 'write'] })).forLLM).toBe('done');
  expect(seen).toEqual([['read', 'write']]);
});

test('a lasting connection refuses tools with scopes at its start unless `scope` grants them', async () => {
  const work = defineTool({ name: 'work', description: 'Works', scopes: ['work'], execute: () => 'done' });
  const registry = new ToolRegistry().register(work);
  await using mcp = closing(createMcpServer(registry));
  expect(() => mcp.server.stdio()).toThrow("the scope has no `scopes`, which 'work'");
  await using scoped = closing(createMcpServer(registry, { scope: () => ({ scopes: ['work'] }) }));
  const [mine, theirs] = InMemoryTransport.createLinkedPair();
  scoped.server.connect(theirs);
  const client = new Client({ name: 'a-client', version: '1' });
  await client.connect(mine);
  expect(await client.callTool({ name: 'work' })).toMatchObject({ content: [{ text: 'done' }] });
  await client.close();
});

test('a lasting connection refuses prompts and resources with scopes at its start, together with the tools', async () => {
  @Toolset()
  class Scoped {
    @Tool({ description: 'Works', scopes: ['work'] })
    work() {
      return 'done';
    }

    @Prompt({ description: 'Reveals', scopes: ['secret'] })
    reveal() {
      return 'Reveal it';
    }

    @Resource('info://secret', { scopes: ['secret'] })
    secret() {
      return 'secret';
    }
  }
  const registry = new ToolRegistry().register(...discoverTools({ toolsets: [Scoped] }));
  await using mcp = closing(createMcpServer(registry));
  const [, theirs] = InMemoryTransport.createLinkedPair();
  for (const connect of [() => mcp.server.stdio(), () => mcp.server.connect(theirs)])
    expect(connect).toThrow("'work', 'reveal', 'secret' require");
});

test('a run refuses tools with scopes at its start if its scope grants none', async () => {
  const work = defineTool({ name: 'work', description: 'Works', scopes: ['work'], execute: () => 'done' });
  const config = { model: 'm', tools: [work], maxIterations: 2 };
  const messages = [{ role: 'user', content: 'Work.' }] as const;
  const provider = () => new ScriptedProvider([{ toolCalls: [{ name: 'work' }] }, { content: 'Done.' }]);
  await expect(runToolLoop({ ...config, provider: provider() }, messages)).rejects.toThrow(
    'the scope has no `scopes`',
  );
  const run = await runToolLoop({ ...config, provider: provider() }, messages, { scopes: ['work'] });
  expect(run.toolCalls[0]).toMatchObject({ status: 'success' });
});

function closing(server: McpToolServer) {
  return { server, [Symbol.asyncDispose]: () => server.close() };
}
