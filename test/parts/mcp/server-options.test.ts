import { once } from 'node:events';
import { request } from 'node:http';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { Client } from '@modelcontextprotocol/client';
import { defineTool, InvalidOptionsError, ToolRegistry } from 'toolwright';
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
  test('a server sends its name, version, title and instructions', async () => {
    const client = await connect(
      { name: 'shop', version: '1.2.0', title: 'The shop', instructions: 'Look first.' },
      era,
    );
    expect(client.getServerVersion()).toMatchObject({ name: 'shop', version: '1.2.0', title: 'The shop' });
    expect(client.getInstructions()).toBe('Look first.');
  });

  test('the policy of the server decides after that of the registry, and only calls that it allowed', async () => {
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

  test('a call of a tool without its own timeout ends after toolTimeoutMs', async () => {
    const client = await connect({ toolTimeoutMs: 50 }, era);
    expect(await client.callTool({ name: 'slow' })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('timed out after 50 ms') }],
    });
  });

  test('configure adds a prompt beside the tools', async () => {
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
] as const)('with %j, a request from the origin %s gets %d', async (options, origin, status) => {
  const mcp = createMcpServer(registry, options);
  const host = 'allowedHosts' in options ? 'mcp.example.org' : 'localhost';
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    origin,
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  const response = await mcp.fetch(new Request(`http://${host}/mcp`, { method: 'POST', headers, body }));
  // An accepted request gets 400, because it has no session.
  expect(response.status).toBe(status);
  await mcp.close();
});

test.each([
  'localhost@evil',
  'evil@localhost',
  'local host',
  'localhost:99999',
  '[::1',
  '%00',
  'localhost/x',
])('an HTTP request with the Host %j is refused, and not reported as an error', async (host) => {
  const reported: unknown[] = [];
  listening = await listen(registry, { onError: (error) => reported.push(error) });
  const sent = request(listening.url, { method: 'POST', headers: { host } }).end('{}');
  const [response] = await once(sent, 'response');
  expect(response.statusCode).toBe(403);
  response.resume();
  expect(reported).toEqual([]);
});

test('a method that the Fetch API lacks is refused with the allowed methods, and not reported as an error', async () => {
  const reported: unknown[] = [];
  listening = await listen(registry, { onError: (error) => reported.push(error) });
  const [response] = await once(request(listening.url, { method: 'TRACE' }).end(), 'response');
  expect([response.statusCode, response.headers.allow]).toEqual([405, 'GET, POST, DELETE']);
  response.resume();
  expect(reported).toEqual([]);
});

test('the application decides with `principal` whose session it is', async () => {
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

describe('allowed hosts and origins', () => {
  const statusFor = async (options: McpServerOptions, host: string, origin?: string) => {
    const mcp = createMcpServer(registry, options);
    const response = await mcp.fetch(
      new Request('http://localhost/mcp', {
        method: 'POST',
        headers: {
          ...{ host, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
          ...(origin === undefined ? {} : { origin }),
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      }),
    );
    await mcp.close();
    // An accepted request gets 400, because it has no session.
    return response.status;
  };

  test.each([
    ['mcp.example.org', 'mcp.example.org:8080', 400],
    ['MCP.example.org', 'mcp.EXAMPLE.org', 400],
    ['mcp.example.org:8080', 'mcp.example.org:8080', 400],
    ['mcp.example.org:8080', 'mcp.example.org', 403],
    ['mcp.example.org:8080', 'mcp.example.org:8081', 403],
    ['mcp.example.org:443', 'mcp.example.org', 400],
    ['mcp.example.org:80', 'mcp.example.org', 400],
    ['[::1]:3000', '[::1]:3000', 400],
    ['example.org', 'mcp.example.org', 403],
    ['localhost', 'not a host', 403],
  ])('with the allowed host %s, requests for %s get %d', async (allowed, host, status) => {
    expect(await statusFor({ allowedHosts: [allowed] }, host)).toBe(status);
  });

  test.each([
    ['https://app.example.org', 'https://app.example.org', 400],
    ['https://app.example.org', 'http://app.example.org', 403],
    ['https://app.example.org', 'https://app.example.org:8443', 403],
    ['https://app.example.org:443', 'https://app.example.org', 400],
    ['http://localhost:5173', 'http://localhost:5173', 400],
    ['http://localhost:5173', 'http://localhost:5174', 403],
    ['app.example.org', 'http://app.example.org:8080', 400],
    ['app.example.org:8080', 'https://app.example.org:8080', 400],
    ['app.example.org:8080', 'https://app.example.org', 403],
    ['vscode-webview://*', 'vscode-webview://1a2b3c', 400],
    ['vscode-webview://*', 'https://1a2b3c', 403],
    ['app.example.org', 'null', 403],
  ])('with the allowed origin %s, requests from %s get %d', async (allowed, origin, status) => {
    expect(await statusFor({ allowedOrigins: [allowed] }, 'localhost', origin)).toBe(status);
  });

  test('pages of a host that is allowed with a port may send requests from that port only', async () => {
    const options = { allowedHosts: ['mcp.example.org:8080'] };
    const host = 'mcp.example.org:8080';
    expect(await statusFor(options, host, 'https://mcp.example.org:8080')).toBe(400);
    expect(await statusFor(options, host, 'https://mcp.example.org')).toBe(403);
  });

  test('a refused host or origin is reported once, with the option that allows it', async () => {
    const errors: unknown[] = [];
    const mcp = createMcpServer(registry, { onError: (error) => errors.push(String(error)) });
    for (const host of ['shop.example.org', 'shop.example.org', 'localhost'])
      await mcp.fetch(
        new Request('http://localhost/mcp', { headers: { host, origin: 'https://a.example' } }),
      );
    await mcp.close();
    expect(errors).toEqual([
      expect.stringMatching(/Host: shop\.example\.org.*allowedHosts/),
      expect.stringMatching(/Origin: https:\/\/a\.example.*allowedOrigins/),
    ]);
  });
});

describe('invalid options:', () => {
  test.each([
    [
      { allowedHosts: 'mcp.example.org' },
      /allowedHosts is not a list.*allowedHosts: \['mcp\.example\.org'\]/s,
    ],
    [
      { allowedHosts: ['https://mcp.example.org:8080/mcp'] },
      /is a URL, not a host.*'mcp\.example\.org:8080'/s,
    ],
    [{ allowedHosts: ['mcp.example.org/mcp'] }, /is a URL, not a host.*'mcp\.example\.org'/s],
    [{ allowedHosts: ['*.example.org'] }, /wildcard.*allowedHosts: 'any'/s],
    [{ allowedHosts: ['::1'] }, /'::1' is not a host.*'\[::1\]'/s],
    [{ allowedHosts: ['two words'] }, /'two words' is not a host/],
    [{ allowedHosts: [''] }, /'' is not a host/],
    [{ allowedHosts: [7] }, /7 is not a string/],
    [{ allowedOrigins: 'https://app.example.org' }, /not a list.*\['https:\/\/app\.example\.org'\]/s],
    [{ allowedOrigins: ['https://*.example.org'] }, /wildcard.*allowedOrigins: 'any'/s],
    [{ allowedOrigins: ['*'] }, /wildcard/],
    [{ allowedOrigins: ['https://app.example.org/'] }, /more than an origin.*'https:\/\/app\.example\.org'/s],
    [{ scope: { data: {} } }, /scope is \{ data \}/],
    [{ visible: { allow: ['plain'] } }, /visible is \{ allow \}/],
    [{ policy: 'no' }, /policy is 'no'/],
    [{ principal: 'ada' }, /principal is 'ada'/],
    [{ onError: console }, /onError is /],
    [{ configure: {} }, /configure is \{\}/],
    [{ onAsyncResult: true }, /onAsyncResult is true/],
    [{ name: 7 }, /name is 7/],
    [{ sessions: true }, /sessions is true/],
  ])('%j is refused with a message that shows the valid form', (options, message) => {
    const create = () => createMcpServer(registry, options as never);
    expect(create).toThrow(InvalidOptionsError);
    expect(create).toThrow(message);
  });

  test('all are reported together, also with an invalid registry', () => {
    const options = {
      allowedHosts: ['*', 'https://a.example'],
      scope: {},
      pageSize: 0,
      sessions: { max: 0 },
    };
    expect(() => createMcpServer({} as never, options as never)).toThrow(
      /6 mistakes.*not a ToolRegistry.*pageSize.*scope.*'\*'.*'https:\/\/a\.example'.*max/s,
    );
  });
});
