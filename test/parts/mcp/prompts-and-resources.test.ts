import { afterEach, describe, expect, test } from '@jest/globals';
import { Client, InMemoryTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  Completion,
  discoverTools,
  Param,
  Prompt,
  Public,
  Resource,
  Tool,
  ToolContext,
  ToolRegistry,
  ToolResult,
  Toolset,
} from 'toolwright';
import { createMcpServer, jwks, type McpServerOptions } from 'toolwright/mcp';
import { ERAS, type Listening, listen } from './mcp-connections.js';
import { tokenIssuer } from './token-issuer.js';

const DOT =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';

class Orders {
  readonly all: Readonly<Record<string, { id: string; total: number }>> = { a1: { id: 'a1', total: 42 } };
}

@Toolset({ prefix: 'shop' })
class ShopTools {
  constructor(readonly orders: Orders = new Orders()) {}

  @Tool('Find orders')
  find() {
    return Object.keys(this.orders.all);
  }

  @Prompt({
    description: 'Plan a delivery',
    title: 'Delivery',
    icons: [{ src: 'https://example.org/i.png' }],
  })
  planDelivery(@Param('Order id') orderId: string, @Param({ required: false }) days: number = 7) {
    return `Plan ${orderId} within ${days + 1} days`;
  }

  @Prompt('Talk about a picture')
  describePicture(context: ToolContext) {
    return {
      description: 'A picture',
      messages: [
        { role: 'user', content: { type: 'image', data: DOT, mimeType: 'image/png' } },
        { role: 'assistant', content: `from ${context.data.mcp?.client?.name}` },
        {
          role: 'user',
          content: { type: 'resource', resource: { uri: 'a:b', mimeType: 'text/plain', text: 'embedded' } },
        },
      ],
    };
  }

  @Prompt('Fails')
  failing() {
    throw new Error('no orders today');
  }

  @Prompt('Asks its user')
  async askFirst(context: ToolContext) {
    const { name } = (await context.ask<{ type: 'object' }>({
      message: 'Who is it for?',
      schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    } as never)) as { name: string };
    return `For ${name}`;
  }

  @Resource('shop://catalogue', {
    description: 'All products',
    mimeType: 'text/csv',
    audience: ['user'],
    priority: 1,
  })
  catalogue() {
    return 'sku,price';
  }

  @Resource('shop://logo', { mimeType: 'image/png', ttlMs: 60_000, cacheScope: 'public' })
  logo() {
    return Buffer.from(DOT, 'base64');
  }

  @Resource('shop://parts')
  parts() {
    return new ToolResult({
      forLLM: 'two parts',
      content: [
        { type: 'text', content: 'a text' },
        { type: 'image', data: DOT, mimeType: 'image/png' },
      ],
    });
  }

  @Resource('orders://{orderId}', 'An order')
  order(orderId: string) {
    return this.orders.all[orderId];
  }

  @Completion('shop_plan_delivery', 'orderId')
  orderIds(value: string, @Param({ required: false }) days?: number) {
    return ['a1', 'a2', 'b1'].filter((id) => id.startsWith(value)).map((id) => (days ? `${id}-${days}` : id));
  }
}

const open = new Set<Listening>();

afterEach(async () => {
  for (const listening of open) await listening.close();
  open.clear();
});

async function start(
  options: McpServerOptions = {},
  registry = new ToolRegistry().register(...discoverTools({ toolsets: [ShopTools] })),
) {
  const listening = await listen(registry, options);
  open.add(listening);
  return { registry, listening };
}

async function connect({ url }: Listening, options = {}, token?: string): Promise<Client> {
  const client = new Client(
    { name: 'a-client', version: '1' },
    { capabilities: { elicitation: {} }, ...options },
  );
  client.setRequestHandler('elicitation/create', () => ({
    action: 'accept' as const,
    content: { name: 'Ada' },
  }));
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

describe.each(Object.entries(ERAS))('prompts and resources for a client of %s', (_, options) => {
  test('are listed apart from tools, and are not offered to models', async () => {
    const { registry, listening } = await start();
    expect(registry.list()).toEqual(['shop_find']);
    expect(registry.toProviderDefs()).toHaveLength(1);
    const client = await connect(listening, options);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['shop_find']);
    const { prompts } = await client.listPrompts();
    expect(prompts.map(({ name }) => name)).toEqual([
      'shop_plan_delivery',
      'shop_describe_picture',
      'shop_failing',
      'shop_ask_first',
    ]);
    expect(prompts[0]).toMatchObject({
      title: 'Delivery',
      description: 'Plan a delivery',
      icons: [{ src: 'https://example.org/i.png' }],
      arguments: [
        { name: 'orderId', description: 'Order id', required: true },
        { name: 'days', required: false },
      ],
    });
    const { resources } = await client.listResources();
    expect(resources).toMatchObject([
      {
        uri: 'shop://catalogue',
        name: 'shop_catalogue',
        mimeType: 'text/csv',
        annotations: { audience: ['user'], priority: 1 },
      },
      { uri: 'shop://logo' },
      { uri: 'shop://parts' },
    ]);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates).toMatchObject([{ uriTemplate: 'orders://{orderId}', description: 'An order' }]);
    await client.close();
  });

  test('validate and convert the arguments of a prompt', async () => {
    const { listening } = await start();
    const client = await connect(listening, options);
    const get = (args: Record<string, string>) =>
      client.getPrompt({ name: 'shop_plan_delivery', arguments: args });
    expect(await get({ orderId: 'a1', days: '2' })).toMatchObject({
      messages: [{ role: 'user', content: { type: 'text', text: 'Plan a1 within 3 days' } }],
    });
    expect(await get({ orderId: 'a1' })).toMatchObject({
      messages: [{ content: { text: 'Plan a1 within 8 days' } }],
    });
    await expect(get({ days: '2' })).rejects.toThrow('orderId');
    await expect(client.getPrompt({ name: 'shop_plan' })).rejects.toThrow('shop_plan_delivery');
    await expect(client.getPrompt({ name: 'shop_failing' })).rejects.toThrow('no orders today');
    await client.close();
  });

  test('may return several messages with pictures and resources, and may ask the user', async () => {
    const { listening } = await start();
    const client = await connect(listening, options);
    expect(await client.getPrompt({ name: 'shop_describe_picture' })).toMatchObject({
      description: 'A picture',
      messages: [
        { role: 'user', content: { type: 'image', data: DOT, mimeType: 'image/png' } },
        { role: 'assistant', content: { type: 'text', text: 'from a-client' } },
        { role: 'user', content: { type: 'resource', resource: { text: 'embedded' } } },
      ],
    });
    expect(await client.getPrompt({ name: 'shop_ask_first' })).toMatchObject({
      messages: [{ content: { text: 'For Ada' } }],
    });
    await client.close();
  });

  test('return text, bytes, content parts or JSON, by URI or by template', async () => {
    const { listening } = await start();
    const client = await connect(listening, options);
    const read = async (uri: string) => (await client.readResource({ uri })).contents;
    expect(await read('shop://catalogue')).toEqual([
      { uri: 'shop://catalogue', mimeType: 'text/csv', text: 'sku,price' },
    ]);
    expect(await read('shop://logo')).toEqual([{ uri: 'shop://logo', mimeType: 'image/png', blob: DOT }]);
    expect(await read('shop://parts')).toMatchObject([
      { text: 'a text' },
      { blob: DOT, mimeType: 'image/png' },
    ]);
    expect(await read('orders://a1')).toEqual([
      { uri: 'orders://a1', mimeType: 'application/json', text: '{"id":"a1","total":42}' },
    ]);
    await expect(read('orders://nope')).rejects.toThrow('orders://nope');
    await expect(read('other://x')).rejects.toThrow('other://x');
    await client.close();
  });

  test('complete arguments, also by the values of other arguments', async () => {
    const { listening } = await start();
    const client = await connect(listening, options);
    const complete = (argument: string, value: string, known?: Record<string, string>) =>
      client.complete({
        ref: { type: 'ref/prompt', name: 'shop_plan_delivery' },
        argument: { name: argument, value },
        ...(known && { context: { arguments: known } }),
      });
    expect((await complete('orderId', 'a')).completion).toMatchObject({ values: ['a1', 'a2'], total: 2 });
    expect((await complete('orderId', 'b', { days: '3' })).completion.values).toEqual(['b1-3']);
    expect((await complete('days', '1')).completion.values).toEqual([]);
    await client.close();
  });

  test('are neither listed nor read if a view hides them', async () => {
    const { listening } = await start({
      visible: () => ({ deny: ['shop_catalogue', 'shop_plan_delivery'] }),
    });
    const client = await connect(listening, options);
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).not.toContain('shop_plan_delivery');
    await expect(
      client.getPrompt({ name: 'shop_plan_delivery', arguments: { orderId: 'a' } }),
    ).rejects.toThrow();
    await expect(client.readResource({ uri: 'shop://catalogue' })).rejects.toThrow();
    await client.close();
  });
});

test('clients are notified of changes to the list of prompts and to resources they have subscribed to', async () => {
  const { registry, listening } = await start();
  const client = await connect(listening);
  const heard: unknown[] = [];
  client.setNotificationHandler(
    'notifications/resources/updated',
    ({ params }) => void heard.push(params.uri),
  );
  const changed = new Promise((resolve) => {
    client.setNotificationHandler('notifications/prompts/list_changed', () => resolve(undefined));
  });
  await client.subscribeResource({ uri: 'orders://a1' });
  listening.mcp.resourceChanged('orders://b1');
  listening.mcp.resourceChanged('orders://a1');
  registry.unregister('shop_failing');
  await changed;
  expect(heard).toEqual(['orders://a1']);
  expect((await client.listPrompts()).prompts).toHaveLength(3);
  await client.close();
});

test.each(Object.entries(ERAS))(
  'a client of %s cannot subscribe to a resource that it does not see',
  async (era, options) => {
    const { listening } = await start({ visible: () => ({ deny: ['shop_catalogue'] }) });
    const client = await connect(listening, options);
    const subscribe = (uri: string) =>
      era === '2025-11-25'
        ? client.subscribeResource({ uri })
        : client.listen({ resourceSubscriptions: [uri] }).then((subscription) => subscription.close());
    await subscribe('orders://a1');
    await expect(subscribe('shop://catalogue')).rejects.toThrow('shop://catalogue');
    await client.close();
  },
);

test.each(Object.entries(ERAS))(
  'a client of %s on a lasting connection is notified of the resources that it sees and subscribed to',
  async (era, options) => {
    const registry = new ToolRegistry().register(...discoverTools({ toolsets: [ShopTools] }));
    const mcp = createMcpServer(registry, { visible: () => ({ deny: ['shop_catalogue'] }) });
    const client = new Client({ name: 'a-client', version: '1' }, options);
    const [own, others] = InMemoryTransport.createLinkedPair();
    mcp.connect(others);
    await client.connect(own);
    const notified: string[] = [];
    const done = Promise.withResolvers<void>();
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
      notified.push(params.uri);
      if (params.uri === 'shop://logo') done.resolve();
    });
    const uris = ['shop://catalogue', 'orders://a1', 'shop://logo'];
    if (era === '2026-07-28') await client.listen({ resourceSubscriptions: uris });
    else for (const uri of uris) await client.subscribeResource({ uri }).catch(() => {});
    for (const uri of ['shop://catalogue', 'orders://b1', 'orders://a1', 'shop://logo'])
      mcp.resourceChanged(uri);
    await done.promise;
    expect(notified).toEqual(['orders://a1', 'shop://logo']);
    await client.close();
    await mcp.close();
  },
);

test.each(Object.entries(ERAS))(
  'a client of %s is notified only of the list that has changed',
  async (_, options) => {
    @Toolset()
    class More {
      @Tool('One more tool')
      more() {
        return 'more';
      }

      @Prompt('One more prompt')
      morePrompts() {
        return 'more';
      }

      @Resource('shop://more')
      moreResources() {
        return 'more';
      }
    }
    const { registry, listening } = await start();
    const heard: string[] = [];
    let next = Promise.withResolvers<void>();
    const onChanged = (list: string) => ({
      autoRefresh: false,
      debounceMs: 0,
      onChanged: () => {
        heard.push(list);
        next.resolve();
      },
    });
    const lists = {
      tools: onChanged('tools'),
      prompts: onChanged('prompts'),
      resources: onChanged('resources'),
    };
    const client = await connect(listening, { ...options, listChanged: lists });
    await client.listTools();
    const change = async (work: () => unknown) => {
      next = Promise.withResolvers();
      work();
      await next.promise;
    };
    const added = discoverTools({ toolsets: [More] });
    const named = (name: string) => added.filter((definition) => definition.name === name);
    await change(() => registry.register(...named('more_resources')));
    await change(() => registry.register(...named('more_prompts')));
    await change(() => registry.register(...named('more')));
    await change(() => registry.unregister('more_prompts'));
    expect(heard).toEqual(['resources', 'prompts', 'tools', 'prompts']);
    await client.close();
  },
);

test('registering the first prompt later is not an error for clients that connected before', async () => {
  @Toolset()
  class Late {
    @Prompt('Comes late')
    late() {
      return 'late';
    }
  }
  const errors: unknown[] = [];
  const registry = new ToolRegistry();
  const { listening } = await start({ onError: (error) => errors.push(error) }, registry);
  const client = await connect(listening);
  registry.register(...discoverTools({ toolsets: [Late] }));
  await client.listTools();
  expect(errors).toEqual([]);
  await client.close();
});

test('prompts and resources can require scopes and can be public, as tools can', async () => {
  @Toolset()
  class Secrets {
    @Public()
    @Resource('info://hours')
    hours() {
      return '9 to 18';
    }

    @Resource('info://{id}', { scopes: ['secret'] })
    secret(id: string) {
      return `secret ${id}`;
    }

    @Public()
    @Prompt('Greets')
    greet() {
      return 'Hello';
    }

    @Completion('info://{id}', 'id')
    secretIds(value: string) {
      return [`${value}-secret`];
    }

    @Prompt({ description: 'Reveals', scopes: ['secret'] })
    reveal() {
      return 'Reveal it';
    }
  }
  const resource = 'https://api.example.org/mcp';
  const issuer = await tokenIssuer(resource);
  const registry = new ToolRegistry().register(...discoverTools({ toolsets: [Secrets] }));
  const oauth = { resource, issuer: issuer.issuer, verify: jwks(issuer.keys) };
  const { listening } = await start({ oauth }, registry);
  const anybody = await connect(listening);
  expect((await anybody.listResources()).resources.map(({ uri }) => uri)).toEqual(['info://hours']);
  expect((await anybody.listPrompts()).prompts.map(({ name }) => name)).toEqual(['greet']);
  expect(await anybody.readResource({ uri: 'info://hours' })).toMatchObject({
    contents: [{ text: '9 to 18' }],
  });
  await expect(anybody.readResource({ uri: 'info://1' })).rejects.toThrow();
  await expect(anybody.getPrompt({ name: 'reveal' })).rejects.toThrow();
  // The name of a public prompt beside the URI must not make the completion of a protected resource public.
  const ref = { type: 'ref/resource' as const, uri: 'info://{id}', name: 'greet' };
  const argument = { name: 'id', value: 'a' };
  await expect(anybody.complete({ ref, argument })).rejects.toThrow();
  await anybody.close();
  const signedIn = await connect(listening, {}, await issuer.issue({ scope: 'secret' }));
  expect(await signedIn.readResource({ uri: 'info://1' })).toMatchObject({
    contents: [{ text: 'secret 1' }],
  });
  expect((await signedIn.complete({ ref, argument })).completion.values).toEqual(['a-secret']);
  await signedIn.close();
});
