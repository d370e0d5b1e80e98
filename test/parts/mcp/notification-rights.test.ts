import { afterEach, describe, expect, test } from '@jest/globals';
import {
  Client,
  InMemoryTransport,
  OAuthError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { defineTool, discoverTools, Resource, ToolRegistry, Toolset } from 'toolwright';
import { createMcpServer, type McpServerOptions } from 'toolwright/mcp';
import { ERAS, type Listening, listen } from './mcp-connections.js';
import { HEADERS, INITIALIZE } from './raw-requests.js';

@Toolset()
class Stock {
  @Resource('stock://apples')
  apples() {
    return 'apples';
  }

  @Resource('stock://pears')
  pears() {
    return 'pears';
  }
}

const URIS = ['stock://apples', 'stock://pears'];
const LIST = 'notifications/tools/list_changed';
const stock = () => new ToolRegistry().register(...discoverTools({ toolsets: [Stock] }));
const tool = (name: string) => defineTool({ name, description: 'A tool', execute: () => 'done' });

const open = new Set<Listening>();
afterEach(async () => {
  for (const listening of open) await listening.close();
  open.clear();
});

async function start(options: McpServerOptions, registry = stock()): Promise<Listening> {
  const listening = await listen(registry, options);
  open.add(listening);
  return listening;
}

/** A client that has subscribed to the resources and the list of tools, with its notifications. */
async function subscribed(era: keyof typeof ERAS, client: Client) {
  const notified: string[] = [];
  let next = Promise.withResolvers<void>();
  const note = (text: string) => {
    notified.push(text);
    next.resolve();
  };
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => note(params.uri));
  client.setNotificationHandler(LIST, () => note(LIST));
  const subscription =
    era === '2026-07-28'
      ? await client.listen({ resourceSubscriptions: URIS, toolsListChanged: true })
      : undefined;
  if (subscription === undefined) for (const uri of URIS) await client.subscribeResource({ uri });
  const until = async (count: number) => {
    while (notified.length < count) {
      next = Promise.withResolvers();
      await next.promise;
    }
    return notified;
  };
  return { until, closed: subscription?.closed };
}

async function connect({ url }: Listening, era: keyof typeof ERAS, token = 'a-token'): Promise<Client> {
  const client = new Client({ name: 'a-client', version: '1' }, ERAS[era]);
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
  return client;
}

/** Tokens that an authorization server can revoke, and whose expiry it can change. */
class Tokens {
  readonly revoked = new Set<string>();
  expiresAt = Number.MAX_SAFE_INTEGER;

  readonly options: McpServerOptions = {
    oauth: {
      resource: 'https://api.example.org/mcp',
      issuer: 'https://auth.example.org',
      verify: async (token) => {
        if (this.revoked.has(token)) throw new OAuthError('invalid_token' as never, 'The token was revoked');
        return { token, clientId: 'an-app', scopes: [], expiresAt: this.expiresAt, extra: { sub: 'anna' } };
      },
    },
    onError: () => {},
  };
}

const LOSSES: Readonly<Record<string, (tokens: Tokens) => unknown>> = {
  'was revoked': (tokens) => tokens.revoked.add('a-token'),
  'has expired': (tokens) => {
    tokens.expiresAt = 1;
  },
};

describe.each(Object.entries(LOSSES))('after a token %s', (_, lose) => {
  test('the stream of a client of 2026-07-28 ends without a further notification', async () => {
    const tokens = new Tokens();
    const listening = await start(tokens.options);
    const client = await connect(listening, '2026-07-28');
    const { until, closed } = await subscribed('2026-07-28', client);
    listening.mcp.resourceChanged('stock://apples');
    expect(await until(1)).toEqual(['stock://apples']);
    lose(tokens);
    listening.mcp.resourceChanged('stock://pears');
    // The client has to open it again with another token.
    expect(await closed).toBe('remote');
    expect(await until(1)).toEqual(['stock://apples']);
    await client.close();
  });

  test('the stream of a session ends, and a client that returns with another token is notified', async () => {
    const tokens = new Tokens();
    const registry = stock();
    const listening = await start(tokens.options, registry);
    const send = async (body: object, session: Record<string, string> = {}) => {
      const headers = { ...HEADERS, authorization: 'Bearer a-token', ...session };
      const response = await fetch(listening.url, { method: 'POST', headers, body: JSON.stringify(body) });
      await response.text();
      return response.headers.get('mcp-session-id') ?? '';
    };
    const session = { 'mcp-session-id': await send(INITIALIZE), 'mcp-protocol-version': '2025-11-25' };
    await send({ jsonrpc: '2.0', id: 2, method: 'resources/subscribe', params: { uri: URIS[1] } }, session);
    const stream = (token: string, others: Record<string, string> = {}) =>
      fetch(listening.url, {
        headers: { accept: 'text/event-stream', ...session, authorization: `Bearer ${token}`, ...others },
      });
    const first = await stream('a-token');
    expect(first.status).toBe(200);
    lose(tokens);
    registry.register(tool('late'));
    listening.mcp.resourceChanged('stock://pears');
    expect(await first.text()).not.toContain('notifications/');
    expect((await stream('a-token')).status).toBe(401);
    tokens.expiresAt = Number.MAX_SAFE_INTEGER;
    const second = await stream('another-token', { 'last-event-id': '_GET_stream_0' });
    let text = '';
    for await (const chunk of second.body ?? []) {
      text += new TextDecoder().decode(chunk as Uint8Array);
      if (text.includes('stock://pears')) break;
    }
    expect(text).toContain(LIST);
  });
});

describe.each(Object.keys(ERAS) as (keyof typeof ERAS)[])('a client of %s', (era) => {
  test('is no longer notified of a resource that it no longer sees', async () => {
    let deny: string[] = [];
    const listening = await start({ visible: () => ({ deny }) });
    const client = await connect(listening, era);
    const { until } = await subscribed(era, client);
    listening.mcp.resourceChanged('stock://apples');
    await until(1);
    deny = ['apples'];
    listening.mcp.resourceChanged('stock://apples');
    listening.mcp.resourceChanged('stock://pears');
    expect(await until(2)).toEqual(['stock://apples', 'stock://pears']);
    await client.close();
  });

  test.each(['HTTP', 'a lasting connection'])(
    'is notified over %s in the order of the changes, even if its rights are decided late',
    async (kind) => {
      let asked = 0;
      const slow = Promise.withResolvers<void>();
      const registry = stock();
      const options: McpServerOptions = {
        visible: async () => {
          asked += 1;
          // The check of the first change.
          if (isChanging && asked === 1) await slow.promise;
          return {};
        },
      };
      let isChanging = false;
      const client = new Client({ name: 'a-client', version: '1' }, ERAS[era]);
      const listening = await start(options, registry);
      const [own, others] = InMemoryTransport.createLinkedPair();
      if (kind === 'HTTP') await client.connect(new StreamableHTTPClientTransport(listening.url));
      else {
        listening.mcp.connect(others);
        await client.connect(own);
      }
      const { until } = await subscribed(era, client);
      [isChanging, asked] = [true, 0];
      listening.mcp.resourceChanged('stock://apples');
      registry.register(tool('late'));
      listening.mcp.resourceChanged('stock://pears');
      setTimeout(slow.resolve, 20);
      expect(await until(3)).toEqual(['stock://apples', LIST, 'stock://pears']);
      await client.close();
    },
  );

  test('on a lasting connection is no longer notified of a resource that it no longer sees', async () => {
    let deny: string[] = [];
    const mcp = createMcpServer(stock(), { visible: () => ({ deny }) });
    const client = new Client({ name: 'a-client', version: '1' }, ERAS[era]);
    const [own, others] = InMemoryTransport.createLinkedPair();
    mcp.connect(others);
    await client.connect(own);
    const { until } = await subscribed(era, client);
    deny = ['apples'];
    for (const uri of URIS) mcp.resourceChanged(uri);
    expect(await until(1)).toEqual(['stock://pears']);
    await client.close();
    await mcp.close();
  });
});
