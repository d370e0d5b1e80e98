import { afterEach, describe, expect, test } from '@jest/globals';
import type { Client } from '@modelcontextprotocol/client';
import { defineTool, ToolRegistry } from 'toolwright';
import { createMcpServer, type McpServerOptions } from 'toolwright/mcp';
import { connectClient, ERAS, type Listening, listen } from './mcp-connections.js';

const asked: string[] = [];
const registry = new ToolRegistry({
  policy: ({ tool }) => {
    asked.push(`registry about ${tool.name}`);
    return tool.name !== 'secret';
  },
}).register(
  defineTool({ name: 'look', description: 'Looks', execute: () => 'seen' }),
  defineTool({ name: 'secret', description: 'Hidden', execute: () => 'told' }),
  defineTool({ name: 'slow', description: 'Takes its time', execute: () => new Promise(() => {}) }),
);

let listening: Listening | undefined;
const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  await listening?.close();
  listening = undefined;
});

async function connect(options: McpServerOptions, era: object): Promise<Client> {
  listening = await listen(registry, options);
  const client = await connectClient(listening.url, { options: era });
  clients.push(client);
  return client;
}

describe.each(Object.entries(ERAS))('for a client of %s', (_era, era) => {
  test('a server says who it is and how it is meant', async () => {
    const client = await connect(
      { name: 'shop', version: '1.2.0', title: 'The shop', instructions: 'Look first.' },
      era,
    );
    expect(client.getServerVersion()).toMatchObject({ name: 'shop', version: '1.2.0', title: 'The shop' });
    expect(client.getInstructions()).toBe('Look first.');
  });

  test('the server’s policy is asked after the registry’s, and only about what that allowed', async () => {
    asked.length = 0;
    const client = await connect(
      {
        policy: ({ tool }) => {
          asked.push(`server about ${tool.name}`);
          return { allow: false, reason: 'not over MCP' };
        },
      },
      era,
    );
    expect(await client.callTool({ name: 'look' })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('not over MCP') }],
    });
    expect(await client.callTool({ name: 'secret' })).toMatchObject({ isError: true });
    expect(asked).toEqual(['registry about look', 'server about look', 'registry about secret']);
  });

  test('a call of a tool without a limit of its own ends by the server’s', async () => {
    const client = await connect({ toolTimeoutMs: 50 }, era);
    expect(await client.callTool({ name: 'slow' })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('timed out after 50 ms') }],
    });
  });

  test('what is no tool is added beside the tools', async () => {
    const client = await connect(
      {
        configure: (server) =>
          server.registerPrompt('greet', { description: 'A greeting' }, () => ({
            messages: [{ role: 'user', content: { type: 'text', text: 'Greet me.' } }],
          })),
      },
      era,
    );
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(['greet']);
    expect((await client.getPrompt({ name: 'greet' })).messages).toMatchObject([
      { content: { text: 'Greet me.' } },
    ]);
    expect(await client.callTool({ name: 'look' })).toMatchObject({ content: [{ text: 'seen' }] });
  });
});

test.each([
  [{}, 'http://evil.example', 403],
  [{ allowedHosts: 'any' }, 'http://evil.example', 403],
  [{ allowedHosts: 'any' }, 'http://localhost:5173', 400],
  [{ allowedHosts: 'any', allowedOrigins: ['app.example.org'] }, 'https://app.example.org', 400],
  [{ allowedHosts: 'any', allowedOrigins: ['app.example.org'] }, 'https://app.example.org.evil.example', 403],
  [{ allowedHosts: 'any', allowedOrigins: 'any' }, 'http://evil.example', 400],
] as const)('with %j, a script of %s gets %d', async (options, origin, status) => {
  const mcp = createMcpServer(registry, options);
  const host = 'allowedHosts' in options ? 'mcp.example.org' : 'localhost';
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    origin,
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  const response = await mcp.fetch(new Request(`http://${host}/mcp`, { method: 'POST', headers, body }));
  // What passes has no session yet, which is another matter.
  expect(response.status).toBe(status);
  await mcp.close();
});

test('whose a session is, the application may say', async () => {
  listening = await listen(registry, { principal: (authInfo) => authInfo?.clientId ?? 'nobody' });
  const { url } = listening;
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const post = (body: object, more: Record<string, string>) =>
    fetch(url, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) });
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'raw', version: '1' },
  };
  const begun = await post(
    { jsonrpc: '2.0', id: 1, method: 'initialize', params },
    { authorization: 'Bearer ada' },
  );
  await begun.text();
  const session = { 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
  const list = { jsonrpc: '2.0', id: 2, method: 'tools/list' };
  const sameApp = await post(list, { ...session, authorization: 'Bearer bob' });
  expect(await sameApp.text()).toContain('look');
  expect((await post(list, session)).status).toBe(404);
});
