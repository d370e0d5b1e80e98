import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { type Client, InMemoryTransport, Client as SdkClient } from '@modelcontextprotocol/client';
import { type CallToolResult, type Tool as McpTool, Server } from '@modelcontextprotocol/server';
import {
  defineTool,
  InvalidOptionsError,
  ToolRegistry,
  ToolResult,
  toolToSchema,
  userResult,
} from 'toolwright';
import { mcpTools } from 'toolwright/mcp';
import { connectClient, ERAS, type Listening, listen } from './mcp-connections.js';

/** A server that returns the given tools and answers, unchecked. */
async function connectTo(tools: unknown[], answer: (name: string, args: unknown) => CallToolResult) {
  const server = new Server({ name: 'foreign', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({ tools: tools as McpTool[] }));
  server.setRequestHandler('tools/call', ({ params }) => answer(params.name, params.arguments));
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far);
  const client = new SdkClient({ name: 'a-client', version: '1' });
  await client.connect(near);
  return client;
}

const text = (words: string): CallToolResult => ({ content: [{ type: 'text', text: words }] });
const tool = (name: string, others: object = {}) => ({ name, inputSchema: { type: 'object' }, ...others });

let client: Client | undefined;
let listening: Listening | undefined;
afterEach(async () => {
  await client?.close();
  await listening?.close();
  listening = undefined;
});

test('tools of a server become tools of a registry, and their calls run through its pipeline', async () => {
  const calls: unknown[] = [];
  client = await connectTo(
    [
      tool('shop.find', {
        description: 'Finds',
        inputSchema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
      }),
    ],
    (name, args) => {
      calls.push([name, args]);
      return text('found');
    },
  );
  const registry = new ToolRegistry().register(...(await mcpTools(client, { prefix: 'acme' })));
  expect(registry.list()).toEqual(['acme_shop_dot_find']);
  expect((await registry.execute('acme_shop_dot_find', '{"n": "3"}')).forLLM).toBe('found');
  const wrong = await registry.execute('acme_shop_dot_find', { n: 'three' });
  expect(wrong.forLLM).toContain('n: must be integer');
  expect(calls).toEqual([['shop.find', { n: 3 }]]);
});

test('schemas are imported byte for byte', async () => {
  const inputSchema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    required: ['b'],
    properties: { b: { type: 'string', 'x-ui': [1, { z: 1, a: 2 }] } },
  };
  client = await connectTo([tool('odd', { inputSchema, outputSchema: inputSchema })], () => text(''));
  const [odd] = await mcpTools(client);
  expect(JSON.stringify(odd?.parameters)).toBe(JSON.stringify(inputSchema));
  expect(JSON.stringify(odd?.output)).toBe(JSON.stringify(inputSchema));
  expect(toolToSchema(odd ?? ({} as never)).function.parameters).toBe(odd?.parameters);
});

test('allow and deny select tools by their names on the server', async () => {
  client = await connectTo(
    ['read_file', 'read_all', 'write_file'].map((name) => tool(name)),
    () => text(''),
  );
  const tools = await mcpTools(client, { allow: ['read_*'], deny: ['*_all'], prefix: 'fs' });
  expect(tools.map(({ name }) => name)).toEqual(['fs_read_file']);
});

test('mcpTools: content that is only for the user goes to the user, and not to the model', async () => {
  const audience = ['user'] as const;
  const answers: CallToolResult[] = [
    {
      content: [
        { type: 'text', text: 'for both', annotations: { audience: ['user', 'assistant'] } },
        { type: 'text', text: 'for you', annotations: { audience: [...audience] } },
        { type: 'text', text: 'for all' },
        { type: 'image', data: 'AA==', mimeType: 'image/png', annotations: { audience: [...audience] } },
      ],
    },
    { content: [{ type: 'text', text: 'for you alone', annotations: { audience: [...audience] } }] },
  ];
  client = await connectTo([tool('show')], () => answers.shift() ?? text(''));
  const registry = new ToolRegistry().register(...(await mcpTools(client)));
  const both = await registry.execute('show', {});
  expect([both.forLLM, both.forUser, both.content]).toEqual([
    'for both\nfor all',
    'for you\n[image/png]',
    undefined,
  ]);
  const alone = await registry.execute('show', {});
  expect([alone.forLLM, alone.forUser]).toEqual(['Done. The result was sent to the user.', 'for you alone']);
});

test('createMcpServer: an imported tool without a description is exported without one', async () => {
  client = await connectTo([tool('mute')], () => text(''));
  const registry = new ToolRegistry().register(...(await mcpTools(client)));
  listening = await listen(registry);
  const second = await connectClient(listening.url);
  const { tools } = await second.listTools();
  expect(tools.map((shown) => [shown.name, 'description' in shown])).toEqual([['mute', false]]);
  await second.close();
});

test('createMcpServer: forUser is sent as a block for the user', async () => {
  const results = [
    new ToolResult({ forLLM: 'found 3', forUser: 'Three orders were found.' }),
    userResult('The same for both'),
    new ToolResult({ forLLM: 'found 3', forUser: 'Nobody hears of it', silent: true }),
  ];
  const find = defineTool({ name: 'find', description: 'Finds', execute: () => results.shift() });
  listening = await listen(new ToolRegistry().register(find));
  client = await connectClient(listening.url);
  const said = [];
  for (let count = 0; count < 3; count += 1) said.push((await client.callTool({ name: 'find' })).content);
  expect(said).toEqual([
    [
      { type: 'text', text: 'found 3' },
      { type: 'text', text: 'Three orders were found.', annotations: { audience: ['user'] } },
    ],
    [{ type: 'text', text: 'The same for both' }],
    [{ type: 'text', text: 'found 3' }],
  ]);
});

test('annotations that a server does not send default to the riskier value', async () => {
  client = await connectTo(
    [
      tool('unknown'),
      tool('reader', { title: 'Reader', annotations: { readOnlyHint: true, openWorldHint: false } }),
    ],
    () => text(''),
  );
  const tools = await mcpTools(client);
  expect(tools.map(({ annotations }) => annotations)).toEqual([
    { readOnly: false, destructive: true, idempotent: false, openWorld: true },
    { title: 'Reader', readOnly: true, destructive: false, idempotent: false, openWorld: false },
  ]);
});

test('a tool that is listed twice is imported once', async () => {
  client = await connectTo([tool('good'), tool('good')], () => text(''));
  expect((await mcpTools(client)).map(({ name }) => name)).toEqual(['good']);
});

test('an input schema without a type is accepted as an object', async () => {
  client = await connectTo([tool('loose', { inputSchema: { properties: {} } })], () => text('done'));
  const registry = new ToolRegistry().register(...(await mcpTools(client)));
  expect(JSON.stringify(registry.offered('loose')?.parameters)).toBe('{"properties":{}}');
  expect((await registry.execute('loose', {})).forLLM).toBe('done');
});

test('a list with many pages is read completely and in order', async () => {
  const names = Array.from({ length: 7 }, (_, index) => `tool_${index}`);
  const remote = new ToolRegistry();
  for (const name of names) remote.register(defineTool({ name, description: name, execute: () => name }));
  listening = await listen(remote, { pageSize: 2 });
  for (const options of Object.values(ERAS)) {
    const own = await connectClient(listening.url, { options });
    expect((await mcpTools(own)).map(({ name }) => name)).toEqual(names);
    await own.close();
  }
});

test('importing tools leaves no handler on the client', async () => {
  client = await connectTo([tool('good')], () => text(''));
  const { onclose } = client;
  await mcpTools(client);
  expect(client.onclose).toBe(onclose);
});

test('different definitions have different fingerprints, and the order of keys does not matter', async () => {
  const fingerprints: string[] = [];
  const defaults = [
    { a: 1, b: 2 },
    { b: 2, a: 1 },
    [['a', 1]],
    { a: 1 },
    { pairs: [['a', 1]] },
    null,
    'null',
  ];
  for (const value of defaults) {
    const one = await connectTo([tool('t', { inputSchema: { type: 'object', default: value } })], () =>
      text(''),
    );
    await mcpTools(one, { approve: ({ fingerprint }) => Boolean(fingerprints.push(fingerprint)) });
    await one.close();
  }
  expect(fingerprints[0]).toBe(fingerprints[1]);
  expect(new Set(fingerprints).size).toBe(defaults.length - 1);
});

test('text, images, audio, resources and data are imported', async () => {
  client = await connectTo([tool('all', { outputSchema: { type: 'object' } })], () => ({
    content: [
      { type: 'text', text: 'words' },
      { type: 'image', data: 'aQ==', mimeType: 'image/png' },
      { type: 'audio', data: 'aQ==', mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: 'a://text', text: 'inside' } },
      { type: 'resource', resource: { uri: 'a://blob', blob: 'aQ==', mimeType: 'application/pdf' } },
      { type: 'resource_link', uri: 'a://link', name: 'Linked', description: 'elsewhere' },
    ],
    structuredContent: { n: 1 },
  }));
  const registry = new ToolRegistry().register(...(await mcpTools(client)));
  const result = await registry.execute('all');
  expect(result.forLLM).toBe('words\na://text\ninside\na://link\nLinked\nelsewhere');
  expect(result.details).toEqual({ n: 1 });
  expect(result.content?.filter(({ type }) => type !== 'text')).toEqual([
    { type: 'image', data: 'aQ==', mimeType: 'image/png' },
    { type: 'file', data: 'aQ==', mimeType: 'audio/wav', filename: 'audio' },
    { type: 'file', data: 'aQ==', mimeType: 'application/pdf', filename: 'a://blob' },
  ]);
});

test('data that violates the declared output is an error result', async () => {
  const outputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
  client = await connectTo([tool('liar', { outputSchema })], () => ({
    content: [],
    structuredContent: { n: 'many' },
  }));
  const result = await new ToolRegistry().register(...(await mcpTools(client))).execute('liar');
  expect(result).toMatchObject({ isError: true, error: { code: 513 } });
});

test('errors of a tool and of the protocol are error results', async () => {
  client = await connectTo([tool('fails'), tool('gone')], (name) => {
    if (name === 'gone') throw new Error('no such thing');
    return { ...text('out of stock'), isError: true };
  });
  const registry = new ToolRegistry().register(...(await mcpTools(client)));
  expect(await registry.execute('fails')).toMatchObject({ isError: true, forLLM: 'out of stock' });
  expect(await registry.execute('gone')).toMatchObject({ isError: true, error: { code: 501 } });
});

test('mcpTools never loads a remote reference: tools that have one are left out', async () => {
  let requests = 0;
  const site = createServer((_request, response) => {
    requests += 1;
    response.end('{"type":"string"}');
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  const $ref = `http://127.0.0.1:${(site.address() as AddressInfo).port}/schema.json`;
  const schema = { type: 'object', properties: { a: { $ref } } };
  client = await connectTo(
    [tool('far_input', { inputSchema: schema }), tool('near'), tool('far_output', { outputSchema: schema })],
    () => text('called'),
  );
  const logger = { debug() {}, info() {}, warn: jest.fn(), error() {} };
  expect((await mcpTools(client, { logger })).map(({ name }) => name)).toEqual(['near']);
  expect(logger.warn).toHaveBeenCalledTimes(2);
  expect(requests).toBe(0);
  site.close();
});

test('a tool that is not approved is left out and reported', async () => {
  const changes: string[] = [];
  client = await connectTo([tool('safe'), tool('new'), tool('odd')], () => text(''));
  const first = new Map<string, string>();
  await mcpTools(client, { approve: ({ name, fingerprint }) => Boolean(first.set(name, fingerprint)) });
  first.set('new', 'another definition');
  const tools = await mcpTools(client, {
    approve({ name, fingerprint }) {
      if (name === 'odd') throw new Error('cannot tell');
      return first.get(name) === fingerprint;
    },
    onChange: ({ kind, name, reason }) => changes.push(`${name} ${kind}: ${reason}`),
  });
  expect(tools.map(({ name }) => name)).toEqual(['safe']);
  expect(changes).toEqual(['new withheld: not approved', 'odd withheld: not approved']);
});

test('invalid options are refused', async () => {
  client = await connectTo([], () => text(''));
  for (const options of [{ allow: undefined }, { prefix: 'my shop' }, { timeoutMs: 0 }])
    await expect(mcpTools(client, options)).rejects.toThrow(InvalidOptionsError);
});

describe.each(Object.entries(ERAS))('over HTTP with %s', (_era, options) => {
  const slow = () => {
    const aborted = Promise.withResolvers<void>();
    const running = Promise.withResolvers<void>();
    const registry = new ToolRegistry().register(
      defineTool({
        name: 'slow',
        description: 'Takes its time',
        execute(_args, context) {
          context.progress({ progress: 1, total: 2, message: 'halfway' });
          running.resolve();
          context.signal.addEventListener('abort', () => aborted.resolve());
          return aborted.promise;
        },
      }),
    );
    return { registry, aborted: aborted.promise, running: running.promise };
  };

  test('progress is reported, and an abort reaches the server', async () => {
    const { registry, aborted, running } = slow();
    listening = await listen(registry);
    client = await connectClient(listening.url, { options });
    const tools = new ToolRegistry().register(...(await mcpTools(client)));
    const updates: unknown[] = [];
    const controller = new AbortController();
    const call = tools.executeWithContext(
      'slow',
      {},
      {
        signal: controller.signal,
        onUpdate: (update) => {
          updates.push(update);
          void running.then(() => controller.abort());
        },
      },
    );
    expect(await call).toMatchObject({ isError: true, error: { code: 508 } });
    await aborted;
    expect(updates).toEqual([{ progress: 1, total: 2, message: 'halfway' }]);
  });

  test('a call that times out ends on both sides', async () => {
    const { registry, aborted } = slow();
    listening = await listen(registry);
    client = await connectClient(listening.url, { options });
    const tools = new ToolRegistry().register(...(await mcpTools(client, { timeoutMs: 1_000 })));
    expect(await tools.execute('slow')).toMatchObject({ isError: true, error: { code: 507 } });
    await aborted;
  });
});
