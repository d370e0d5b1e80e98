import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, expect, test } from '@jest/globals';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { defineTool, InvalidOptionsError, ToolRegistry } from 'toolwright';
import { createMcpServer, type McpServerOptions } from 'toolwright/mcp';
import { connectClient, ERAS, type Listening, listen } from './mcp-connections.js';

const waiting: ((value: string) => void)[] = [];
const registry = new ToolRegistry().register(
  defineTool({ name: 'ping_pong', description: 'Answers', execute: () => 'pong' }),
  defineTool({
    name: 'wait',
    description: 'Takes its time',
    execute: () => new Promise<string>((resolve) => waiting.push(resolve)),
  }),
);
const JSON_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};
const LIST = { jsonrpc: '2.0', id: 2, method: 'tools/list' };

let listening: Listening | undefined;
afterEach(async () => {
  await listening?.close();
  listening = undefined;
});

async function open(options?: McpServerOptions): Promise<Listening> {
  listening = await listen(registry, options);
  return listening;
}

const post = ({ url }: Listening, body: unknown, headers: Record<string, string> = {}) =>
  fetch(url, { method: 'POST', headers: { ...JSON_HEADERS, ...headers }, body: JSON.stringify(body) });

async function begin(at: Listening, headers: Record<string, string> = {}): Promise<string> {
  const response = await post(at, INITIALIZE, headers);
  await response.text();
  return response.headers.get('mcp-session-id') ?? '';
}

async function eventually(holds: () => boolean): Promise<void> {
  while (!holds()) await wait(10);
}

test('a 2025-11-25 client has its own session, which it can end', async () => {
  const at = await open();
  const [one, other] = [await connectClient(at.url), await connectClient(at.url)];
  expect(at.mcp.sessionCount).toBe(2);
  await (one.transport as StreamableHTTPClientTransport).terminateSession();
  await one.close();
  expect(at.mcp.sessionCount).toBe(1);
  expect(await other.callTool({ name: 'ping_pong' })).toMatchObject({ content: [{ text: 'pong' }] });
  await other.close();
});

test('a new session of a principal at its limit ends the oldest of its own, and none of other principals', async () => {
  const at = await open({ sessions: { maxPerPrincipal: 2, max: 5 } });
  const anna = await begin(at, { authorization: 'Bearer anna' });
  const bert = [];
  for (let count = 0; count < 4; count += 1) bert.push(await begin(at, { authorization: 'Bearer bert' }));
  await eventually(() => at.mcp.sessionCount === 3);
  const alive = async (id: string, user: string) => {
    const headers = {
      authorization: `Bearer ${user}`,
      'mcp-session-id': id,
      'mcp-protocol-version': '2025-11-25',
    };
    const response = await post(at, LIST, headers);
    await response.text();
    return response.status;
  };
  expect(await alive(anna, 'anna')).toBe(200);
  expect(await Promise.all(bert.map((id) => alive(id, 'bert')))).toEqual([404, 404, 200, 200]);
  // Without tokens, callers cannot be told apart, and only the total limit applies.
  for (let count = 0; count < 2; count += 1) await begin(at);
  expect(at.mcp.sessionCount).toBe(5);
});

test('a 2026-07-28 client creates no session', async () => {
  const at = await open();
  const client = await connectClient(at.url, { options: ERAS['2026-07-28'] });
  await client.callTool({ name: 'ping_pong' });
  expect(at.mcp.sessionCount).toBe(0);
  await client.close();
});

test('a session ends after its idle time, but not while its client listens', async () => {
  const at = await open({ sessions: { idleMs: 1_000 } });
  const silent = await begin(at);
  const listening = await begin(at);
  const stream = await fetch(at.url, {
    headers: { accept: 'text/event-stream', 'mcp-session-id': listening },
  });
  await eventually(() => at.mcp.sessionCount === 1);
  expect((await post(at, LIST, { 'mcp-session-id': silent })).status).toBe(404);
  const still = await post(at, LIST, { 'mcp-session-id': listening });
  expect(still.status).toBe(200);
  await still.text();
  await stream.body?.cancel();
  await eventually(() => at.mcp.sessionCount === 0);
});

test('a session cannot be used by another user', async () => {
  const at = await open();
  const session = { 'mcp-session-id': await begin(at, { authorization: 'Bearer ada' }) };
  expect((await post(at, LIST, session)).status).toBe(404);
  expect((await post(at, LIST, { ...session, authorization: 'Bearer bob' })).status).toBe(404);
  const own = await post(at, LIST, { ...session, authorization: 'Bearer ada' });
  expect(await own.text()).toContain('ping_pong');
});

test('a session beyond the limit ends the session that has been idle longest', async () => {
  const at = await open({ sessions: { max: 2 } });
  const [older, newer] = [await begin(at), await begin(at)];
  await (await post(at, LIST, { 'mcp-session-id': older })).text();
  const newest = await begin(at);
  expect(at.mcp.sessionCount).toBe(2);
  expect((await post(at, LIST, { 'mcp-session-id': newer })).status).toBe(404);
  for (const id of [older, newest])
    expect(await (await post(at, LIST, { 'mcp-session-id': id })).text()).toContain('ping_pong');
});

test('a session beyond the limit is refused with Retry-After if no session is idle', async () => {
  const at = await open({ sessions: { max: 3 } });
  const [listener, caller, leaver] = [await begin(at), await begin(at), await begin(at)];
  const stream = await fetch(at.url, {
    headers: { accept: 'text/event-stream', 'mcp-session-id': listener },
  });
  const call = { jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'wait' } };
  // With this header, a client gets a stream before its first event.
  const revision = { 'mcp-protocol-version': '2025-11-25' };
  const answer = await post(at, call, { 'mcp-session-id': caller, ...revision });
  // Its call continues without a stream.
  await (await post(at, call, { 'mcp-session-id': leaver, ...revision })).body?.cancel();
  await eventually(() => waiting.length === 2);
  const refused = await post(at, INITIALIZE);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '60']);
  for (const end of waiting.splice(0)) end('done');
  expect(await answer.text()).toContain('done');
  await eventually(() => at.mcp.sessionCount === 3);
  expect(await begin(at)).not.toBe('');
  expect((await post(at, LIST, { 'mcp-session-id': listener })).status).toBe(200);
  await stream.body?.cancel();
});

test('concurrent requests never start more sessions than the limit', async () => {
  const mcp = createMcpServer(registry, { sessions: { max: 2 } });
  const start = () =>
    mcp.fetch(
      new Request('http://localhost/mcp', {
        method: 'POST',
        headers: JSON_HEADERS,
        body: JSON.stringify(INITIALIZE),
      }),
    );
  const responses = await Promise.all(Array.from({ length: 5 }, start));
  expect(responses.map(({ status }) => status).sort()).toEqual([200, 200, 503, 503, 503]);
  expect(mcp.sessionCount).toBe(2);
  await mcp.close();
});

test('requests that start no session do not count toward the limit', async () => {
  const at = await open({ sessions: { max: 1 } });
  for (const body of [LIST, 'no message', LIST]) expect((await post(at, body)).status).toBe(400);
  expect((await post(at, INITIALIZE)).status).toBe(200);
});

test('an invalid first request or an unknown session id starts no session', async () => {
  const at = await open();
  expect((await post(at, LIST)).status).toBe(400);
  expect((await fetch(at.url, { headers: { accept: 'text/event-stream' } })).status).toBe(400);
  expect((await post(at, 'no message')).status).toBe(400);
  expect((await post(at, LIST, { 'mcp-session-id': 'made-up' })).status).toBe(404);
  expect(at.mcp.sessionCount).toBe(0);
});

test('without sessions, each request of a 2025-11-25 client is independent', async () => {
  const at = await open({ sessions: false });
  const client = await connectClient(at.url);
  expect(await client.callTool({ name: 'ping_pong' })).toMatchObject({ content: [{ text: 'pong' }] });
  expect(at.mcp.sessionCount).toBe(0);
  await client.close();
});

test('a closed server has ended every session and refuses requests, and its registry still takes tools', async () => {
  const at = await open();
  const client = await connectClient(at.url);
  await at.mcp.close();
  expect(at.mcp.sessionCount).toBe(0);
  expect((await post(at, INITIALIZE)).status).toBe(503);
  registry.register(defineTool({ name: 'later', description: 'Comes later', execute: () => 'ok' }));
  await client.close();
});

test.each([{ pageSize: 0 }, { sessions: { idleMs: Number.NaN } }, { stateKey: 'too short' }])(
  'invalid options are refused: %j',
  (options) => {
    expect(() => createMcpServer(registry, options)).toThrow(InvalidOptionsError);
  },
);

test('a body that is too large is refused with 413', async () => {
  const at = await open({ maxRequestBytes: 1_000 });
  const large = { ...INITIALIZE, params: { ...INITIALIZE.params, filler: 'x'.repeat(2_000) } };
  expect((await post(at, large)).status).toBe(413);
});

test.each([
  [{ host: 'evil.example' }, 403],
  [{ host: 'localhost:3000' }, 400],
  [{ host: '127.0.0.1' }, 400],
  [{ host: '127.0.0.1', origin: 'http://evil.example' }, 403],
  [{ host: '127.0.0.1', origin: 'null' }, 403],
  [{ host: '[::1]:80', origin: 'http://localhost:5173' }, 400],
])('a request with %j gets %d, which prevents DNS rebinding', async (headers, status) => {
  const mcp = createMcpServer(registry);
  const request = (name: string) =>
    new Request(`http://${name}/mcp`, {
      method: 'POST',
      headers: { ...JSON_HEADERS, ...headers },
      body: JSON.stringify(LIST),
    });
  expect((await mcp.fetch(request('127.0.0.1'))).status).toBe(status);
  await mcp.close();
});

test('a server with its own host name accepts only that name', async () => {
  const mcp = createMcpServer(registry, { allowedHosts: ['mcp.example.org'] });
  const statusOf = async (host: string, origin?: string) => {
    const headers = { ...JSON_HEADERS, host, ...(origin === undefined ? {} : { origin }) };
    const request = new Request(`https://${host}/mcp`, {
      method: 'POST',
      headers,
      body: JSON.stringify(INITIALIZE),
    });
    return (await mcp.fetch(request)).status;
  };
  expect(await statusOf('mcp.example.org', 'https://mcp.example.org')).toBe(200);
  expect(await statusOf('localhost')).toBe(403);
  expect(await statusOf('mcp.example.org', 'https://other.example.org')).toBe(403);
  await mcp.close();
});
