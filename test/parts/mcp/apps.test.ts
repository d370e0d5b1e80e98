import { afterEach, describe, expect, test } from '@jest/globals';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  defineTool,
  describeClass,
  discoverTools,
  type McpApp,
  Public,
  Resource,
  runToolLoop,
  Tool,
  ToolDeclarationError,
  type ToolDefinition,
  ToolRegistry,
  ToolResult,
  Toolset,
} from 'toolwright';
import { createMcpServer, jwks, type McpServerOptions } from 'toolwright/mcp';
import { ScriptedProvider } from 'toolwright/testing';
import { connectClient, ERAS, type Listening, listen } from './mcp-connections.js';
import { tokenIssuer } from './token-issuer.js';

const EXTENSION = 'io.modelcontextprotocol/ui';
const MIME_TYPE = 'text/html;profile=mcp-app';

const ORDER = {
  type: 'object',
  properties: { id: { type: 'string' }, total: { type: 'number' } },
  required: ['id', 'total'],
} as const;

const OrderCard: McpApp = {
  uri: 'ui://shop/order-card',
  html: '<!doctype html><title>Order</title>',
  title: 'Order card',
  description: 'An order with its total',
  csp: { resourceDomains: ['https://*.example.org'], connectDomains: ['wss://live.example.org:8443'] },
  permissions: { clipboardWrite: {} },
  domain: 'shop.claudemcpcontent.com',
  prefersBorder: true,
};
const META = {
  csp: OrderCard.csp,
  permissions: { clipboardWrite: {} },
  domain: OrderCard.domain,
  prefersBorder: true,
};

@Toolset()
class Orders {
  @Tool({ description: 'Show an order', ui: OrderCard })
  show(id: string) {
    return { id, total: 42 };
  }

  @Tool({
    description: 'Refresh an order',
    output: ORDER,
    ui: OrderCard,
    _meta: { ui: { visibility: ['app'] }, a: 1 },
  })
  refresh(id: string) {
    return { id, total: 43 };
  }

  @Tool('Count the orders')
  count() {
    return 2;
  }

  @Resource('shop://catalogue', 'All products')
  catalogue() {
    return 'sku,price';
  }
}

describeClass(Orders, {
  tools: { show: { parameters: [{ name: 'id', schema: { type: 'string' } }], output: ORDER } },
});

const ends: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const shop = () => new ToolRegistry().register(...discoverTools({ toolsets: [Orders] }));

async function start(registry: ToolRegistry, options: McpServerOptions = {}): Promise<Listening> {
  const listening = await listen(registry, options);
  ends.push(() => listening.close());
  return listening;
}

async function connect(
  registry: ToolRegistry,
  era: keyof typeof ERAS = '2026-07-28',
  options?: McpServerOptions,
) {
  const { url } = await start(registry, options);
  const client = await connectClient(url, { options: ERAS[era] });
  ends.push(() => client.close());
  return client;
}

const show = (ui: unknown, output: unknown = ORDER): ToolDefinition =>
  defineTool({
    name: 'show',
    description: 'Show',
    output,
    ui,
    execute: () => ({ id: 'a', total: 1 }),
  } as never);

describe.each(Object.keys(ERAS) as (keyof typeof ERAS)[])('an MCP App for %s', (era) => {
  test('is announced, listed and read, and its tools return data and text', async () => {
    const client = await connect(shop(), era);
    expect(client.getServerCapabilities()?.extensions).toEqual({ [EXTENSION]: {} });

    const { tools } = await client.listTools();
    const [first, second, third] = tools;
    expect(first?._meta).toEqual({ ui: { resourceUri: OrderCard.uri }, 'ui/resourceUri': OrderCard.uri });
    expect(second?._meta?.ui).toEqual({
      resourceUri: OrderCard.uri,
      visibility: ['app'],
    });
    expect(second?._meta?.a).toBe(1);
    expect(third?._meta).toBeUndefined();
    // Clients would fail calls whose result does not match an inferred schema.
    expect([first?.outputSchema, second?.outputSchema]).toEqual([undefined, ORDER]);

    const { resources } = await client.listResources();
    expect(resources).toEqual([
      expect.objectContaining({ uri: 'shop://catalogue' }),
      {
        uri: OrderCard.uri,
        name: 'shop/order-card',
        title: 'Order card',
        description: 'An order with its total',
        mimeType: MIME_TYPE,
        _meta: { ui: META },
      },
    ]);

    const { contents } = await client.readResource({ uri: OrderCard.uri });
    expect(contents).toEqual([
      { uri: OrderCard.uri, mimeType: MIME_TYPE, text: OrderCard.html, _meta: { ui: META } },
    ]);

    const result = await client.callTool({ name: 'show', arguments: { id: 'a1' } });
    expect(result.structuredContent).toEqual({ id: 'a1', total: 42 });
    expect(result.content).toEqual([{ type: 'text', text: '{"id":"a1","total":42}' }]);
  });

  test('has the same tools for clients with and without support for it', async () => {
    const { url } = await start(shop());
    const extensions = { [EXTENSION]: { mimeTypes: [MIME_TYPE] } };
    const lists = [{}, { capabilities: { extensions } }].map(async (options) => {
      const client = await connectClient(url, { options: { ...ERAS[era], ...options } });
      ends.push(() => client.close());
      return (await client.listTools()).tools;
    });
    const [without, supporting] = await Promise.all(lists);
    expect(supporting).toEqual(without);
  });

  test('is hidden from a caller that cannot see its tools', async () => {
    const client = await connect(shop(), era, { visible: () => ({ deny: ['show', 'refresh'] }) });
    const { resources } = await client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual(['shop://catalogue']);
    await expect(client.readResource({ uri: OrderCard.uri })).rejects.toThrow('not found');
  });

  test('gets its data as text even if its tool returns only a picture for the model', async () => {
    const picture = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const;
    const tool = defineTool({
      name: 'draw',
      description: 'Draw',
      output: ORDER,
      ui: OrderCard,
      execute: () => new ToolResult({ forLLM: '', content: [picture], details: { id: 'a', total: 1 } }),
    });
    const client = await connect(new ToolRegistry().register(tool), era);
    const { content, structuredContent } = await client.callTool({ name: 'draw', arguments: {} });
    expect(structuredContent).toEqual({ id: 'a', total: 1 });
    expect(content).toEqual([
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'text', text: '{"id":"a","total":1}' },
    ]);
  });
});

test('the document of an MCP App may be a function, which is called for each request', async () => {
  let count = 0;
  const html = async () => `<!doctype html>${++count}`;
  const client = await connect(new ToolRegistry().register(show({ uri: 'ui://count', html })));
  const texts = [1, 2].map(async () => (await client.readResource({ uri: 'ui://count' })).contents[0]);
  expect((await Promise.all(texts)).map((content) => content && 'text' in content && content.text)).toEqual(
    expect.arrayContaining(['<!doctype html>1', '<!doctype html>2']),
  );
});

test('an error in the function that makes the document is reported, and not sent to the client', async () => {
  const errors: unknown[] = [];
  const html = () => {
    throw new Error('/srv/secret.html is missing');
  };
  const registry = new ToolRegistry().register(show({ uri: 'ui://broken', html }));
  const client = await connect(registry, '2026-07-28', { onError: (error) => errors.push(error) });
  const error: Error = await client.readResource({ uri: 'ui://broken' }).then(fail, (thrown) => thrown);
  expect(error.message).not.toContain('secret');
  expect(String(errors[0])).toContain('secret.html is missing');
});

function fail(): never {
  throw new Error('it was read');
}

test('a background tool of an MCP App returns its data instead of an acknowledgement', async () => {
  const tool = defineTool({
    name: 'start',
    description: 'Start',
    output: ORDER,
    ui: OrderCard,
    background: true,
    execute: async () => ({ id: 'late', total: 1 }),
  });
  const client = await connect(new ToolRegistry().register(tool), '2026-07-28', { onAsyncResult: () => {} });
  const result = await client.callTool({ name: 'start', arguments: {} });
  expect(result.structuredContent).toEqual({ id: 'late', total: 1 });
});

test('an MCP App is not sent to models', async () => {
  const provider = new ScriptedProvider([{ content: 'Hello' }]);
  await runToolLoop({ provider, model: 'a', tools: shop() }, [{ role: 'user', content: 'Hi' }]);
  expect(JSON.stringify(provider.requests)).not.toContain('ui://');
});

test('errors in the views of tools are reported together when the server is created', () => {
  class Views {
    @Tool({ description: 'A list', ui: OrderCard })
    list() {
      return [];
    }

    @Tool({ description: 'Another view', output: ORDER, ui: { ...OrderCard, html: '<p>' } })
    other() {}

    @Tool({ description: 'Takes a resource', output: ORDER, ui: { uri: 'ui://taken', html: '<p>' } })
    taken() {}

    @Resource('ui://taken', 'A resource')
    resource() {
      return 'text';
    }
  }
  const registry = new ToolRegistry().register(
    ...discoverTools({ toolsets: [Views] }),
    show({
      uri: 'https://example.org',
      html: '',
      csp: { connectDomains: ['https://a.example; script-src *'], scriptDomains: [] },
      permissions: { camera: true },
      prefersBorder: 'yes',
      visibility: ['app'],
    }),
  );
  let thrown: unknown;
  try {
    createMcpServer(registry);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(ToolDeclarationError);
  const { faults } = thrown as ToolDeclarationError;
  expect(faults.map(({ where, problem }) => `${where}: ${problem}`)).toEqual([
    'Views.list: it has a `ui`, but its output does not describe an object, which the view needs for its data',
    'Views.other: its view ui://shop/order-card differs from that of Views.list',
    'Views.taken: its view ui://taken has the URI of a @Resource',
    "show: its `ui` is wrong: uri is 'https://example.org'",
    "show: its `ui` is wrong: html is ''",
    "show: its `ui` is wrong: csp.connectDomains[0] is 'https://a.example; script-src *'",
    'show: its `ui` is wrong: csp.scriptDomains is not an option',
    'show: its `ui` is wrong: permissions.camera is true',
    "show: its `ui` is wrong: prefersBorder is 'yes'",
    'show: its `ui` is wrong: visibility is not an option of ui',
  ]);
  for (const { fix } of faults) expect(fix).not.toBe('');
});

test.each([
  ['https://api.example.org', true],
  ['https://*.example.org', true],
  ['http://localhost:3000', true],
  ['wss://[::1]:8080', true],
  ['https://api.example.org/path', false],
  ['https://*', false],
  ['api.example.org', false],
  ['*', false],
  ["'unsafe-eval'", false],
  ['https://api.example.org data:', false],
])('an origin in the policy of a view is validated: %s (accepted: %s)', (origin, isAccepted) => {
  const registry = new ToolRegistry().register(show({ ...OrderCard, csp: { frameDomains: [origin] } }));
  const create = () => createMcpServer(registry).close();
  if (isAccepted) expect(create).not.toThrow();
  else expect(create).toThrow('csp.frameDomains[0]');
});

test('a view that several tools share, or an equal copy of it, is listed once', async () => {
  const tools = [show(OrderCard), { ...show({ ...OrderCard }), name: 'again' }];
  const client = await connect(new ToolRegistry().register(...tools));
  expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual([OrderCard.uri]);
});

test('all views are listed after the resources, also with a page size of 1', async () => {
  const views = [1, 2, 3].map((number) => ({
    ...show({ uri: `ui://${number}`, html: '<p>' }),
    name: `t${number}`,
  }));
  const registry = shop().register(...views);
  const client = await connect(registry, '2026-07-28', { pageSize: 1 });
  const { resources } = await client.listResources();
  expect(resources.map(({ uri }) => uri)).toEqual([
    ...['shop://catalogue', OrderCard.uri],
    ...['ui://1', 'ui://2', 'ui://3'],
  ]);
});

test('a view that is registered later is served, and its subscribers are notified of changes', async () => {
  const registry = new ToolRegistry();
  const { url, mcp } = await start(registry);
  registry.register(show(OrderCard));
  const client = await connectClient(url, { options: ERAS['2025-11-25'] });
  ends.push(() => client.close());
  const changed = new Promise((resolve) =>
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => resolve(params.uri)),
  );
  await client.subscribeResource({ uri: OrderCard.uri });
  mcp.resourceChanged(OrderCard.uri);
  expect(await changed).toBe(OrderCard.uri);
});

describe('on a protected server', () => {
  const RESOURCE = 'https://api.example.org/mcp';
  const PublicCard: McpApp = { uri: 'ui://shop/hours', html: '<p>hours' };
  const SecretCard: McpApp = { uri: 'ui://shop/refund', html: '<p>refund' };

  @Toolset()
  class ProtectedShop {
    @Public()
    @Tool({ description: 'Opening hours', output: ORDER, ui: PublicCard })
    hours() {}

    @Tool({ description: 'Show an order', output: ORDER, ui: OrderCard })
    show() {}

    @Tool({ description: 'Refund', output: ORDER, ui: SecretCard, scopes: ['money'] })
    refund() {}

    @Tool({ description: 'Change the hours', output: ORDER, ui: PublicCard, scopes: ['admin'] })
    change() {}
  }

  test('a view requires the least rights that one of its tools requires: none, a token, or scopes', async () => {
    const issuer = await tokenIssuer(RESOURCE);
    const registry = new ToolRegistry().register(...discoverTools({ toolsets: [ProtectedShop] }));
    const oauth = { resource: RESOURCE, issuer: issuer.issuer, verify: jwks(issuer.keys) };
    const { url } = await start(registry, { oauth, onError: () => {} });
    const viewsOf = async (token?: string) => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const client = new Client({ name: 'a', version: '1' }, ERAS['2026-07-28']);
      await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
      ends.push(() => client.close());
      const { resources } = await client.listResources();
      const reads = [PublicCard, OrderCard, SecretCard].map(({ uri }) =>
        client.readResource({ uri }).then(
          () => [uri],
          () => [],
        ),
      );
      expect((await Promise.all(reads)).flat()).toEqual(resources.map(({ uri }) => uri));
      return resources.map(({ uri }) => uri);
    };
    expect(await viewsOf()).toEqual([PublicCard.uri]);
    expect(await viewsOf(await issuer.issue())).toEqual([PublicCard.uri, OrderCard.uri]);
    const all = [PublicCard.uri, OrderCard.uri, SecretCard.uri];
    expect(await viewsOf(await issuer.issue({ scope: 'money' }))).toEqual(all);
  });
});
