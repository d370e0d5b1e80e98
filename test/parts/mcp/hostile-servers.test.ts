import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import { InvalidOptionsError, type ToolDefinition, ToolRegistry } from 'toolwright';
import {
  connectMcp,
  createMcpServer,
  fileTokens,
  followMcpTools,
  jwks,
  type McpAuth,
  mcpTools,
  storeTokens,
} from 'toolwright/mcp';
import { SqliteRunStore } from 'toolwright/stores';
import { serve } from '../../setup/loopback.js';

const redirectUrl = 'http://127.0.0.1:33333/callback';

/** How the server differs from a correct server. */
interface Fault {
  /** Fields of the metadata of the authorization server. */
  readonly metadata?: object;
  /** Answers token requests. */
  token?(response: ServerResponse): void;
  /** Answers MCP requests that have a token. */
  mcp?(request: { readonly id: number; readonly method: string }, response: ServerResponse): void;
}

const json = (response: ServerResponse, status: number, value: object, headers: object = {}) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));

/** An MCP server that is its own authorization server. */
async function serveFaulty({ metadata, token, mcp }: Fault) {
  const server = await serve(async (request, response) => {
    const { url: me } = server;
    const body = await text(request);
    const path = request.url ?? '';
    if (path.includes('oauth-protected-resource'))
      return json(response, 200, { resource: `${me}/mcp`, authorization_servers: [me] });
    if (path.includes('oauth-authorization-server'))
      return json(response, 200, {
        issuer: me,
        authorization_endpoint: `${me}/authorize`,
        token_endpoint: `${me}/token`,
        registration_endpoint: `${me}/register`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        ...metadata,
      });
    if (path === '/register') return json(response, 201, { ...JSON.parse(body), client_id: 'a' });
    if (path === '/token' && token !== undefined) return token(response);
    if (path === '/token') return json(response, 200, { access_token: 'a-token', token_type: 'Bearer' });
    if (path !== '/mcp') return json(response, 404, {});
    const isSignedIn = request.headers.authorization !== undefined;
    if (!isSignedIn || mcp === undefined) return refuse(response, 401, '');
    return mcp(body === '' ? { id: 0, method: 'GET' } : JSON.parse(body), response);
  });
  return server;
}

const refuse = (response: ServerResponse, status: number, challenge: string) =>
  json(response, status, {}, { 'www-authenticate': `Bearer ${challenge}` });

/** Connects to a server; returns the sign-in pages and the error. */
async function use(url: string, { onSignIn, ...auth }: Partial<McpAuth> = {}) {
  const pages: URL[] = [];
  const agree = async (page: URL) => {
    pages.push(page);
    return `${redirectUrl}?code=1&state=${page.searchParams.get('state')}`;
  };
  const connect = connectMcp({
    url: `${url}/mcp`,
    auth: { redirectUrl, onSignIn: onSignIn ?? agree, ...auth },
  });
  const registry = new ToolRegistry();
  const following = await followMcpTools(registry, connect, { prefix: 'shop' }).catch(
    (error: Error) => error,
  );
  return { pages, registry, connect, following, error: following instanceof Error ? following.message : '' };
}

/** Writes until the client disconnects. */
function writeForever(response: ServerResponse, type: string): void {
  response.writeHead(200, { 'content-type': type });
  const chunk = 'x'.repeat(1_000_000);
  const write = (): void => {
    if (response.destroyed) return;
    if (response.write(chunk)) setImmediate(write);
    else response.once('drain', write);
  };
  write();
}

/** An MCP server with one tool. */
function answerMcp(
  { id, method }: { readonly id: number; readonly method: string },
  response: ServerResponse,
  others: Readonly<Record<string, () => void>>,
): void {
  const other = others[method];
  const results: Readonly<Record<string, object>> = {
    initialize: {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'shop', version: '1' },
    },
    'tools/list': { tools: [{ name: 'order', inputSchema: { type: 'object' } }] },
  };
  const result = results[method];
  if (other !== undefined) other();
  else if (method === 'GET') response.writeHead(405).end();
  else if (method.startsWith('notifications/')) response.writeHead(202).end();
  else if (result === undefined)
    json(response, 200, { jsonrpc: '2.0', id, error: { code: -32601, message: 'Unknown method' } });
  else json(response, 200, { jsonrpc: '2.0', id, result });
}

test('an endless response of the authorization server or the MCP server fails at 10 MB', async () => {
  for (const type of ['application/json', 'text/event-stream']) {
    await using server = await serveFaulty({ token: (response) => writeForever(response, type) });
    expect((await use(server.url)).error).toContain(
      `The response of ${server.url}/token has more than 10 MB.`,
    );
  }
  await using server = await serveFaulty({
    mcp: (request, response) =>
      answerMcp(request, response, { 'tools/list': () => writeForever(response, 'application/json') }),
  });
  expect((await use(server.url)).error).toContain(`The response of ${server.url}/mcp has more than 10 MB.`);
  await using open = await serve((_request, response) => writeForever(response, 'application/json'));
  await expect(mcpTools(connectMcp({ url: open.url }))).rejects.toThrow('has more than 10 MB.');
});

test('an endless event is aborted, but an event stream may be longer than 10 MB', async () => {
  const ended = Promise.withResolvers<void>();
  const ping = `: ${'x'.repeat(1_000_000)}\r\n\r\n`;
  const events = { 'content-type': 'text/event-stream' };
  await using server = await serve(async (request, response) => {
    const body = await text(request);
    answerMcp(body === '' ? { id: 0, method: 'GET' } : JSON.parse(body), response, {
      'tools/list'() {
        const tools = [{ name: 'order', inputSchema: { type: 'object' } }];
        const result = { jsonrpc: '2.0', id: JSON.parse(body).id, result: { tools } };
        response.writeHead(200, events).write(ping.repeat(11));
        response.end(`data: ${JSON.stringify(result)}\n\n`);
      },
      'tools/call'() {
        response.once('close', ended.resolve);
        writeForever(response, 'text/event-stream');
      },
    });
  });
  const [tool] = await mcpTools(connectMcp({ url: server.url }));
  const registry = new ToolRegistry().register(tool as ToolDefinition);
  const call = new AbortController();
  const result = registry.executeWithContext('order', {}, { signal: call.signal });
  await ended.promise;
  call.abort();
  expect(await result).toMatchObject({ isError: true });
});

test.each(['file:///etc/passwd', 'http://login.example.com/authorize', 'ms-calculator:open'])(
  'the sign-in page %s is not shown to the user',
  async (authorization_endpoint) => {
    await using server = await serveFaulty({ metadata: { authorization_endpoint } });
    const { pages, error } = await use(server.url);
    expect(pages).toEqual([]);
    expect(error).toContain('a sign-in page that is not https');
    const inRun = connectMcp({ url: `${server.url}/mcp`, auth: { redirectUrl } });
    await expect(followMcpTools(new ToolRegistry(), inRun)).rejects.toThrow(
      'a sign-in page that is not https',
    );
  },
);

test.each([undefined, ['plain']])(
  'an authorization server with the PKCE methods %s in its metadata is refused',
  async (code_challenge_methods_supported) => {
    await using server = await serveFaulty({ metadata: { code_challenge_methods_supported } });
    const { pages, error } = await use(server.url);
    expect(pages).toEqual([]);
    expect(error).toMatch(/S256/);
  },
);

test('a server that rejects a new token opens one sign-in page, and the error states the reason', async () => {
  await using server = await serveFaulty({});
  const { pages, error } = await use(server.url);
  expect(pages).toHaveLength(1);
  expect(error).toBe(
    `The MCP server ${server.url}/mcp does not accept the new token of its authorization server. Its \`audience\` or \`issuer\` may differ from that of the token.`,
  );
});

test('a sign-in that does not grant the scope of a call opens one page, and the error names the scope', async () => {
  await using server = await serveFaulty({
    mcp: (request, response) =>
      answerMcp(request, response, {
        'tools/call': () => refuse(response, 403, 'error="insufficient_scope", scope="write"'),
      }),
  });
  const { pages, registry, following } = await use(server.url);
  expect(pages).toHaveLength(1);
  const { forLLM } = await registry.execute('shop_order', {});
  expect(forLLM).toContain(
    `The sign-in at ${server.url}/mcp did not grant the scopes that the call needs: write`,
  );
  expect(pages).toHaveLength(2);
  if (!(following instanceof Error)) await following.close();
});

test('a sign-in that the user declines is reported with its code and the server', async () => {
  await using server = await serveFaulty({});
  const back = (page: URL) => `${redirectUrl}?error=access_denied&state=${page.searchParams.get('state')}`;
  const message = `The sign-in at ${server.url}/mcp was refused: access_denied`;
  const { error } = await use(server.url, { onSignIn: back });
  expect(error).toBe(message);

  let page = new URL(redirectUrl);
  const { connect } = await use(server.url, {
    onSignIn(address) {
      page = address;
      throw new Error('no browser');
    },
  });
  await expect(connect.finishSignIn(back(page))).rejects.toMatchObject({ message, code: 'access_denied' });
});

test('a sign-in that fails at the start is not reported as an unreachable server', async () => {
  await using server = await serveFaulty({});
  const onSignIn = () => {
    throw new Error('no browser');
  };
  expect((await use(server.url, { onSignIn })).error).toBe(
    `The sign-in at ${server.url}/mcp failed: no browser`,
  );
});

test('a server that requires a sign-in is reported with the missing auth option', async () => {
  await using server = await serveFaulty({});
  await expect(mcpTools(connectMcp({ url: `${server.url}/mcp` }))).rejects.toThrow(
    'answered with status 401: {} Set an `auth` or `headers` that the server accepts.',
  );
});

test.each<[string, Partial<McpAuth>, string]>([
  ['no option', {}, 'auth.redirectUrl'],
  ['only a clientId', { clientId: 'a' }, 'auth.redirectUrl'],
  ['a clientSecret without its clientId', { redirectUrl, clientSecret: 's' }, 'auth.clientId'],
])('auth with %s is refused', (_, auth, option) => {
  const connect = () => connectMcp({ url: 'https://shop.example.com/mcp', auth });
  expect(faultsOf(connect)).toEqual([expect.objectContaining({ option })]);
});

test.each([{}, { url: 'https://shop.example.com/mcp', command: 'npx' }])(
  'the server options %j are refused: either a URL or a command is needed',
  (options) => {
    expect(faultsOf(() => connectMcp(options as never))).toEqual([
      expect.objectContaining({ problem: 'either `url` or `command` is needed' }),
    ]);
  },
);

test('token stores validate their arguments', () => {
  const secret = 'x'.repeat(32);
  expect(faultsOf(() => fileTokens(undefined as never))).toMatchObject([{ option: 'path' }]);
  expect(faultsOf(() => storeTokens(undefined as never, secret))).toMatchObject([{ option: 'store' }]);
  expect(faultsOf(() => storeTokens({} as never, secret))).toMatchObject([{ option: 'store' }]);
  const store = new SqliteRunStore({ path: ':memory:' });
  expect(faultsOf(() => storeTokens(store, 'x'))).toMatchObject([{ option: 'stateSecret' }]);
  store.close();
});

test('a server with an empty list of audiences is refused', () => {
  const [resource, issuer] = ['https://api.example.org/mcp', 'https://auth.example.org'];
  const oauth = { resource, issuer, verify: jwks(`${issuer}/jwks`), audience: [] };
  expect(faultsOf(() => createMcpServer(new ToolRegistry(), { oauth }))).toMatchObject([
    { option: 'oauth.audience' },
  ]);
});

function faultsOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    if (error instanceof InvalidOptionsError) return error.faults;
    throw error;
  }
  return [];
}
