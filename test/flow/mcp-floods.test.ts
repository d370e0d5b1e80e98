import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, connect as connectSocket, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { discoverTools, Resource, ToolRegistry, Toolset } from 'toolwright';
import { createMcpServer, type McpServerOptions } from 'toolwright/mcp';
import { serve } from '../setup/loopback.js';
import {
  ask,
  type Bank,
  beginSession,
  callIn,
  callModern,
  LEGACY,
  lastMessage,
  META,
  MODERN,
  messagesOf,
  openBank,
  post,
  type Sender,
  textOf,
} from './mcp-bank.js';

let bank: Bank;
let mallory: Sender;
let acme: Sender;
beforeEach(() => open());
afterEach(() => bank.close());

async function open(options?: McpServerOptions): Promise<void> {
  bank = await openBank(options);
  mallory = { url: bank.url, token: await bank.tokenOf('mallory') };
  acme = { url: bank.url, token: await bank.tokenOf('acme') };
}

/** Another tenant is served, in both revisions. */
async function expectService(): Promise<void> {
  const [modern, session] = await Promise.all([callModern(acme, { name: 'who_am_i' }), beginSession(acme)]);
  const legacy = await lastMessage(await callIn({ ...acme, session }, 'who_am_i'));
  for (const message of [modern, legacy]) expect(textOf(message)).toContain('acme');
}

describe('large and deep bodies', () => {
  const call = (args: string) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who_am_i","arguments":${args}}}`;
  const nested = (levels: number, [start, end]: readonly [string, string]) =>
    call(`{"a":${start.repeat(levels)}1${end.repeat(levels)}}`);

  test('a body above the limit is refused, even without a content-length', async () => {
    const large = call(JSON.stringify({ a: 'x'.repeat(5 * 1024 * 1024) }));
    for (const sender of [{ url: bank.url }, mallory]) {
      const response = await post(sender, large);
      expect([401, 413]).toContain(response.status);
      await response.text();
    }
    const chunks = ReadableStream.from(Array.from({ length: 100 }, () => new Uint8Array(64 * 1024)));
    const streamed = fetch(bank.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${mallory.token}` },
      body: chunks,
      duplex: 'half',
    });
    // The server may close the connection while the client still sends.
    expect([413, 'closed']).toContain(await streamed.then(({ status }) => status).catch(() => 'closed'));
    await expectService();
  });

  test.each<[string, () => string]>([
    ['1,000,000 nested arrays', () => nested(1_000_000, ['[', ']'])],
    ['300,000 nested objects', () => nested(300_000, ['{"a":', '}'])],
    [
      '300,000 keys',
      () => call(JSON.stringify(Object.fromEntries(Array.from({ length: 300_000 }, (_, i) => [`k${i}`, i])))),
    ],
    ['a number of 1,000,000 digits', () => call(`{"a":${'9'.repeat(1_000_000)}}`)],
    ['a batch of 20,000 calls', () => `[${Array(20_000).fill(call('{}')).join(',')}]`],
    ['a batch of 500,000 numbers', () => `[${'1,'.repeat(500_000)}1]`],
    ['1,000,000 opening brackets', () => '['.repeat(1_000_000)],
  ])('a body of %s breaks only its own request', async (_, body) => {
    const text = body();
    const session = await beginSession(mallory);
    for (const sender of [mallory, { ...mallory, session }]) {
      const response = await post(sender, text);
      await response.text();
      expect(response.status).toBeLessThanOrEqual(500);
    }
    await expectService();
  });

  test.each<[string, string]>([
    ['100,000 nested arrays', `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['100,000 nested objects', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
    ['300,000 elements', `{"a":[${'1,'.repeat(300_000)}1]}`],
  ])('arguments of %s break only their own call, without a session, too', async (_, args) => {
    const params = { name: 'who_am_i', arguments: 'ARGUMENTS', _meta: META };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'who_am_i' };
    const response = await post(mallory, body.replace('"ARGUMENTS"', args), { headers });
    await response.text();
    expect(response.status).toBeLessThanOrEqual(500);
    await expectService();
  });

  test.each(['__proto__', 'constructor', 'hasOwnProperty', 'toString', 'then', 'length', ''])(
    'a tool, an argument or a key named %j has no special effect',
    async (name) => {
      const answer = await callModern(acme, { name }).catch(() => undefined);
      expect(answer === undefined || answer.error !== undefined || answer.result?.isError).toBe(true);
      const session = await beginSession(acme);
      const args = `{${JSON.stringify(name)}:{"polluted":true,"then":1},"amount":1}`;
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who_am_i","arguments":${args}}}`;
      const response = await lastMessage(await post({ ...acme, session }, body));
      expect(textOf(response)).toContain('acme');
      for (const value of [{}, [], () => {}])
        expect((value as { polluted?: unknown }).polluted).toBeUndefined();
    },
  );
});

describe('floods', () => {
  test('a tenant with too many streams does not take the places of others', async () => {
    await bank.close();
    await open({ sessions: { max: 60, maxPerPrincipal: 20 } });
    const gone = new AbortController();
    const subscribe = (sender: Sender, signal?: AbortSignal) =>
      ask(
        sender,
        'subscriptions/listen',
        { notifications: { toolsListChanged: true } },
        signal === undefined ? {} : { signal },
      );
    const flood = await Promise.all(Array.from({ length: 200 }, () => subscribe(mallory, gone.signal)));
    const statuses = flood.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(20);
    expect(statuses.filter((status) => status === 503)).toHaveLength(180);
    const own = await subscribe(acme);
    const messages = messagesOf(own);
    expect((await messages.next()).value?.method).toBe('notifications/subscriptions/acknowledged');
    await messages.return(undefined);
    await expectService();
    // Streams that have ended free their places.
    gone.abort();
    for (;;) {
      const again = await subscribe(mallory);
      await again.body?.cancel();
      if (again.status === 200) break;
    }
  });

  test('a tenant with too many sessions loses only its own', async () => {
    await bank.close();
    await open({ sessions: { max: 60, maxPerPrincipal: 20 } });
    const session = await beginSession(acme);
    await Promise.all(Array.from({ length: 100 }, () => beginSession(mallory).catch(() => undefined)));
    expect(bank.mcp.sessionCount).toBeLessThanOrEqual(21);
    const answer = await lastMessage(await callIn({ ...acme, session }, 'who_am_i'));
    expect(textOf(answer)).toContain('acme');
  });

  test('endless bodies and silent connections delay no request, and close with the server', async () => {
    const sockets: Socket[] = [];
    const begin = async (text: string) => {
      const socket = connectSocket(Number(bank.url.port), '127.0.0.1');
      socket.on('error', () => {});
      sockets.push(socket);
      await once(socket, 'connect');
      socket.write(text);
    };
    const head = `POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nauthorization: Bearer ${mallory.token}\r\ncontent-length: 1000\r\n`;
    await Promise.all(
      Array.from({ length: 300 }, (_, index) =>
        begin(['', head, `${head}\r\n`, `${head}\r\n{"jsonrpc":`][index % 4] ?? ''),
      ),
    );
    await expectService();
    await bank.mcp.close();
    for (const socket of sockets) socket.destroy();
  });

  test('1,000 concurrent requests with invalid tokens are refused without a log line for each', async () => {
    const flood = Array.from({ length: 1_000 }, async (_, index) => {
      const response = await ask({ url: bank.url, token: `x.${index}` }, 'tools/list');
      await response.text();
      return response.status;
    });
    expect(new Set(await Promise.all(flood))).toEqual(new Set([401]));
    expect(bank.log.length).toBeLessThan(100);
    await expectService();
  });
});

describe('subscriptions to resources', () => {
  @Toolset()
  class Notes {
    @Resource('notes://{id}', { name: 'note' })
    note(id: string) {
      return `note ${id}`;
    }

    @Resource('board://minutes', { name: 'minutes' })
    minutes() {
      return 'minutes';
    }
  }

  async function subscribing(options: McpServerOptions = {}) {
    const registry = new ToolRegistry().register(...discoverTools({ toolsets: [Notes] }));
    const mcp = createMcpServer(registry, options);
    const server = await serve((request, response) => void mcp.node(request, response));
    const url = new URL('/mcp', server.url);
    const session = await beginSession({ url });
    const subscribe = async (uri: string) => {
      const body = { jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri } };
      return lastMessage(await post({ url, session }, body));
    };
    return {
      subscribe,
      async [Symbol.asyncDispose]() {
        await mcp.close();
        await server[Symbol.asyncDispose]();
      },
    };
  }

  test('are refused for resources that are hidden from the client or do not exist', async () => {
    await using at = await subscribing({ visible: () => ({ deny: ['minutes'] }) });
    expect((await at.subscribe('notes://1')).result).toBeDefined();
    for (const uri of ['board://minutes', 'files://passwd', '__proto__'])
      expect((await at.subscribe(uri)).error).toBeDefined();
  });

  test('are limited per session, in number and in the length of the URI', async () => {
    await using at = await subscribing();
    expect((await at.subscribe(`notes://${'x'.repeat(100_000)}`)).error).toBeDefined();
    let refused: unknown;
    for (let count = 0; refused === undefined && count < 1_100; count += 1)
      refused = (await at.subscribe(`notes://${count}`)).error;
    expect(refused).toMatchObject({ message: expect.stringContaining('Too many subscriptions') });
  });
});

describe('hosts and origins', () => {
  function statusOf(headers: Record<string, string>): Promise<number> {
    return new Promise((resolve, reject) => {
      const own = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
      const options = {
        method: 'POST',
        headers: { ...own, authorization: `Bearer ${acme.token}`, ...headers },
      };
      const request = httpRequest(bank.url, options, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      request.on('error', reject).end('{"jsonrpc":"2.0","id":1,"method":"ping"}');
    });
  }

  test.each([
    { host: 'evil.example' },
    { host: 'localhost.evil.example' },
    { host: '127.0.0.1.evil.example' },
    { host: 'evil.example#@localhost' },
    { host: 'evil.example?localhost' },
    { host: 'localhost.' },
    { host: '0.0.0.0' },
    { host: '[::ffff:7f00:1]' },
    { host: 'bank.example.org.evil.example' },
    { host: 'localhost', origin: 'http://evil.example' },
    { host: 'localhost', origin: 'null' },
    { host: 'localhost', origin: 'http://localhost.evil.example' },
    { host: 'localhost', origin: 'http://evil.example#localhost' },
    { host: 'localhost', origin: 'http://localhost@evil.example' },
    { host: 'localhost', origin: 'file://' },
    { host: 'localhost', origin: 'chrome-extension://abc' },
  ])('a request with %j is refused, even with a valid token', async (headers) => {
    expect(await statusOf(headers as Record<string, string>)).toBe(403);
  });

  test('a host with a user name is refused', async () => {
    expect(await statusOf({ host: 'localhost@evil.example' })).toBeGreaterThanOrEqual(400);
    await expectService();
  });

  test('over HTTP/2, the host is checked for each request, not for the connection', async () => {
    const server = createHttp2Server(bank.mcp.node as never).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const from = async (authority: string) => {
      const headers = { ':method': 'POST', ':path': '/mcp', 'content-type': 'application/json' };
      const stream = session.request({ ...headers, ':authority': authority, 'mcp-protocol-version': LEGACY });
      stream.end('{"jsonrpc":"2.0","method":"notifications/initialized"}');
      const [answer] = await once(stream.resume(), 'response');
      return answer[':status'];
    };
    expect(await from('evil.example')).toBe(403);
    expect(await from('bank.example.org')).not.toBe(403);
    session.close();
    server.close();
  });
});
