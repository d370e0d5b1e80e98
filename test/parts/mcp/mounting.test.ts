import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import { defineTool, ToolRegistry } from 'toolwright';
import { createMcpServer } from 'toolwright/mcp';
import { serve } from '../../setup/loopback.js';
import { connectClient, ERAS } from './mcp-connections.js';
import { HEADERS } from './raw-requests.js';

const registry = new ToolRegistry().register(
  defineTool({
    name: 'who',
    description: 'Says who calls, and by which revision',
    execute: (_args, { data: { mcp } }) => `${mcp?.authInfo?.clientId} by ${mcp?.protocolVersion}`,
  }),
);
const authInfo = { token: 't', clientId: 'ada', scopes: [] };

test('clients of both revisions can share a server that gets its bodies parsed', async () => {
  const mcp = createMcpServer(registry);
  await using server = await serve(async (request, response) => {
    const body = await text(request);
    const read = body === '' ? undefined : JSON.parse(body);
    await mcp.node(Object.assign(request, { auth: authInfo }), response, read);
  });
  const url = new URL('/mcp', server.url);
  const clients = await Promise.all(Object.values(ERAS).map((options) => connectClient(url, { options })));
  const results = await Promise.all(clients.map((client) => client.callTool({ name: 'who' })));
  expect(results).toMatchObject(Object.keys(ERAS).map((era) => ({ content: [{ text: `ada by ${era}` }] })));
  for (const client of clients) await client.close();
  await mcp.close();
});

test('a body that a parser has read, as in Express, is taken from the request', async () => {
  const mcp = createMcpServer(registry);
  await using server = await serve(async (request, response) => {
    const body = await text(request);
    // Express also passes its `next` function, and gives requests without a body an empty object.
    const parsed = Object.assign(request, { auth: authInfo, body: body === '' ? {} : JSON.parse(body) });
    await mcp.node(parsed, response, () => {});
  });
  const url = new URL('/mcp', server.url);
  for (const [era, options] of Object.entries(ERAS)) {
    const client = await connectClient(url, { options });
    const { content } = await client.callTool({ name: 'who' });
    expect(content).toMatchObject([{ text: `ada by ${era}` }]);
    await client.close();
  }
  await mcp.close();
});

test('a body that was read but not stored is refused with the reason', async () => {
  const mcp = createMcpServer(registry);
  await using server = await serve(async (request, response) => {
    await text(request);
    await mcp.node(request, response);
  });
  const response = await fetch(new URL('/mcp', server.url), { method: 'POST', headers: HEADERS, body: '{}' });
  expect([response.status, await response.text()]).toEqual([
    500,
    expect.stringContaining('The body was already read'),
  ]);
  await mcp.close();
});

test('the handler of Web requests takes the auth info and a parsed body beside the request', async () => {
  const mcp = createMcpServer(registry, { sessions: false });
  const parsedBody = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'who' } };
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const request = new Request('http://localhost/mcp', { method: 'POST', headers });
  const response = await mcp.fetch(request, { authInfo, parsedBody });
  expect(await response.text()).toContain('ada by');
  await mcp.close();
});
