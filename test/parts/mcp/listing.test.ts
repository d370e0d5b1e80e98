import { afterEach, describe, expect, test } from '@jest/globals';
import { Client, InMemoryTransport, type StandardSchemaV1 } from '@modelcontextprotocol/client';
import { defineTool, ToolRegistry } from 'toolwright';
import { createMcpServer, type McpServerOptions } from 'toolwright/mcp';
import { connectClient, ERAS, type Listening, listen } from './mcp-connections.js';

const plain = (name: string) => defineTool({ name, description: `Does ${name}`, execute: () => 'done' });
const ODD_SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  required: ['z'],
  type: 'object',
  $defs: { street: { $anchor: 'street', type: 'string' } },
  properties: { z: { $ref: '#street' }, a: { type: ['string', 'null'], 'x-own': { deep: [1, null] } } },
  if: { properties: { a: { const: null } } },
  additionalProperties: false,
} as const;

const AS_SENT: StandardSchemaV1<unknown, { readonly tools: unknown }> = {
  '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value: value as { tools: unknown } }) },
};

let listening: Listening | undefined;
let client: Client | undefined;
afterEach(async () => {
  await client?.close();
  await listening?.close();
  listening = undefined;
});

async function connect(registry: ToolRegistry, options?: McpServerOptions, era: object = {}) {
  listening = await listen(registry, options);
  client = await connectClient(listening.url, { options: era });
  return client;
}

test('createMcpServer: reading all pages lists the tools once, even if callers see different tools', async () => {
  const registry = new ToolRegistry().register(
    ...Array.from({ length: 200 }, (_, index) => plain(`t${index}`)),
  );
  let lists = 0;
  let views = 0;
  const [tools, view] = [registry.tools.bind(registry), registry.view.bind(registry)];
  registry.tools = () => {
    lists += 1;
    return tools();
  };
  registry.view = (filter) => {
    views += 1;
    return view(filter);
  };
  const everything = await connect(registry, { pageSize: 10 });
  expect((await everything.listTools()).tools).toHaveLength(200);
  // Once each: the check of their views, their later changes, the definitions, the pages.
  expect(lists).toBe(4);
  await everything.close();
  await listening?.close();
  const some = await connect(registry, { pageSize: 10, visible: () => ({ deny: ['*7'] }) });
  expect((await some.listTools()).tools).toHaveLength(180);
  expect(views).toBe(1);
});

test('createMcpServer: an inferred output is not declared, and a result that violates it is sent', async () => {
  const output = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] } as const;
  const execute = () => ({ id: null });
  const inferred = { ...plain('inferred'), output, isOutputInferred: true, execute };
  const declared = { ...plain('declared'), output, execute };
  const connected = await connect(new ToolRegistry().register(inferred, declared));
  const { tools } = await connected.listTools();
  expect(tools.map(({ outputSchema }) => outputSchema)).toEqual([undefined, output]);
  const passed = await connected.callTool({ name: 'inferred' });
  expect(passed).toMatchObject({ content: [{ type: 'text', text: '{"id":null}' }] });
  expect(passed.isError).not.toBe(true);
  expect(await connected.callTool({ name: 'declared' })).toMatchObject({
    isError: true,
    content: [{ type: 'text', text: expect.stringMatching(/^The tool ran, but/) }],
  });
});

test('createMcpServer: descriptions of toolsets are the default instructions of the server', async () => {
  const ofShop = { ...plain('find'), toolset: { name: 'Shop', description: 'Orders and invoices' } };
  const registry = new ToolRegistry().register(ofShop, plain('other'));
  const [told, own, hidden] = [undefined, { instructions: 'Be brief' }, { visible: () => ({}) }];
  expect((await connect(registry, told)).getInstructions()).toBe('Shop: Orders and invoices');
  for (const [options, instructions] of [
    [own, 'Be brief'],
    [hidden, undefined],
  ] as const) {
    await client?.close();
    await listening?.close();
    expect((await connect(registry, options)).getInstructions()).toBe(instructions);
  }
});

describe.each(Object.entries(ERAS))('a client of %s', (_era, options) => {
  test('gets titles, hints and schemas byte for byte, and nothing that was not declared', async () => {
    const output = { type: 'object', properties: { n: { type: 'number' } } } as const;
    const registry = new ToolRegistry().register(
      defineTool({
        name: 'odd',
        description: 'Odd',
        parameters: ODD_SCHEMA,
        output,
        annotations: { title: 'An odd one', readOnly: true, openWorld: false },
        execute: () => ({ n: 1 }),
      }),
      plain('bare'),
      defineTool({ name: 'elsewhere', description: 'Is run by the client’s side, which MCP has no way for' }),
    );
    const connected = await connect(registry, {}, options);
    // The client’s own reader sorts keys; this test compares what was sent.
    const { tools } = await connected.request({ method: 'tools/list' }, AS_SENT);
    expect(JSON.stringify(tools)).toBe(
      JSON.stringify([
        {
          name: 'odd',
          title: 'An odd one',
          description: 'Odd',
          inputSchema: ODD_SCHEMA,
          outputSchema: output,
          annotations: { title: 'An odd one', readOnlyHint: true, openWorldHint: false },
        },
        {
          name: 'bare',
          description: 'Does bare',
          inputSchema: { type: 'object', properties: {}, required: [] },
        },
      ]),
    );
  });

  test('reads pages in the order of registration, even if tools are registered meanwhile', async () => {
    const registry = new ToolRegistry().register(...['e', 'b', 'd', 'a', 'c'].map(plain));
    const connected = await connect(registry, { pageSize: 2 }, options);
    const first = await connected.listTools({ cursor: undefined as never });
    expect(first.tools.map(({ name }) => name)).toEqual(['e', 'b', 'd', 'a', 'c']);

    const pages: string[][] = [];
    const requestPage = (cursor?: string) =>
      connected.request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } });
    let page = await requestPage();
    pages.push(page.tools.map(({ name }) => name));
    registry.unregister('e').register(plain('f'));
    while (page.nextCursor !== undefined) {
      page = await requestPage(page.nextCursor);
      pages.push(page.tools.map(({ name }) => name));
    }
    expect(pages).toEqual([
      ['e', 'b'],
      ['d', 'a'],
      ['c', 'f'],
    ]);
    await expect(requestPage('nonsense')).rejects.toMatchObject({ code: -32602 });
  });

  test('is notified once when several tools are added or removed', async () => {
    const registry = new ToolRegistry().register(plain('a'));
    listening = await listen(registry);
    const lists: string[][] = [];
    const told = Promise.withResolvers<void>();
    client = await connectClient(listening.url, {
      options: {
        ...options,
        listChanged: {
          tools: {
            onChanged: (_error, tools) => {
              lists.push((tools ?? []).map(({ name }) => name));
              told.resolve();
            },
          },
        },
      },
    });
    await client.listTools();
    await client.callTool({ name: 'a' });
    registry.register(plain('b')).register(plain('c')).unregister('a');
    await told.promise;
    expect(lists).toEqual([['b', 'c']]);
  });
});

describe.each(Object.entries(ERAS))('over a lasting connection, a client of %s', (_era, options) => {
  test('lists, calls, and is notified of changes until it disconnects', async () => {
    const registry = new ToolRegistry().register(plain('a'));
    const server = createMcpServer(registry);
    const [near, far] = InMemoryTransport.createLinkedPair();
    const connection = server.connect(far);
    const told = Promise.withResolvers<readonly string[]>();
    const lasting = new Client(
      { name: 'a-client', version: '1.0.0' },
      {
        ...options,
        listChanged: {
          tools: { onChanged: (_error, tools) => told.resolve((tools ?? []).map(({ name }) => name)) },
        },
      },
    );
    await lasting.connect(near);
    expect(await lasting.callTool({ name: 'a' })).toMatchObject({ content: [{ text: 'done' }] });
    registry.register(plain('b'));
    expect(await told.promise).toEqual(['a', 'b']);
    await lasting.close();
    await connection.closed;
    await server.close();
  });
});
