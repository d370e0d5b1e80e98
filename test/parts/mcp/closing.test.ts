import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { agentTool, defineTool, type ToolContext, ToolRegistry } from 'toolwright';
import { createMcpServer, type McpServerOptions } from 'toolwright/mcp';
import { connectClient, ERAS, type Listening, listen } from './mcp-connections.js';
import { HEADERS, INITIALIZE } from './raw-requests.js';

const callOf = (id: number, name: string) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } });
const LARGE = 1_000_000;

let isRunning = Promise.withResolvers<void>();
let isFinished = Promise.withResolvers<void>();
beforeEach(() => {
  [isRunning, isFinished] = [Promise.withResolvers(), Promise.withResolvers()];
});

const NOTHING = { type: 'object', properties: {} } as const;
const say = (content: string) => ({ content: [{ type: 'text' as const, content }], details: undefined });

/** After an abort, tools that take the signal get a moment to end; other calls are answered at once. */
const registry = new ToolRegistry().register(
  agentTool({
    ...{ name: 'wind_up', label: 'Wind up', description: 'Needs a moment after it was told to stop' },
    parameters: NOTHING,
    execute: (_id, _args, signal, onUpdate) =>
      new Promise((resolve) => {
        onUpdate?.(say('begun'));
        isRunning.resolve();
        signal?.addEventListener('abort', () => void wait(50).then(() => resolve(say('half done'))));
      }),
  }),
  agentTool({
    ...{ name: 'leave_stream', label: 'Leave', description: 'Sends its client away' },
    parameters: NOTHING,
    execute: (_id, _args, signal, _onUpdate, context) =>
      new Promise((resolve) => {
        (context as ToolContext).data.mcp?.closeStream?.();
        isRunning.resolve();
        signal?.addEventListener('abort', () => resolve(say('half done')));
      }),
  }),
  agentTool({
    ...{ name: 'stubborn', label: 'Stubborn', description: 'Takes its signal and goes on' },
    parameters: NOTHING,
    execute: () => {
      isRunning.resolve();
      return new Promise<never>(() => {});
    },
  }),
  defineTool({
    name: 'deaf',
    description: 'Takes no signal',
    execute: () => {
      isRunning.resolve();
      return new Promise(() => {});
    },
  }),
  defineTool({
    name: 'large',
    maxResultChars: Number.POSITIVE_INFINITY,
    description: 'Says much',
    execute: async () => {
      await wait(20);
      queueMicrotask(isFinished.resolve);
      return 'x'.repeat(LARGE);
    },
  }),
  defineTool({
    name: 'approved',
    description: 'Waits for its user',
    approval: true,
    execute: () => 'ran',
  }),
);

let listening: Listening | undefined;
const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  await listening?.close();
  listening = undefined;
});

const MODES = [
  ['2025-11-25', {}, ERAS['2025-11-25']],
  ['2025-11-25 without sessions', { sessions: false }, ERAS['2025-11-25']],
  ['2026-07-28', {}, ERAS['2026-07-28']],
] as const;

describe.each(MODES)('closing over HTTP, with a client of %s', (_mode, options, era) => {
  async function open() {
    listening = await listen(registry, options);
    const client = await connectClient(listening.url, { options: era });
    clients.push(client);
    return { client, at: listening };
  }

  test.each([
    ['as one message', {}],
    ['after its progress', { onprogress: () => {} }],
  ])('an aborted call is answered with the result of its tool, %s', async (_how, how) => {
    const { client, at } = await open();
    const answer = client.callTool({ name: 'wind_up' }, how);
    await isRunning.promise;
    await at.close();
    expect(await answer).toMatchObject({ content: [{ text: 'half done' }] });
  });

  test.each(['deaf', 'stubborn'])(
    'a call that ignores the abort is answered with an error: %s',
    async (name) => {
      const { client, at } = await open();
      const answer = client.callTool({ name });
      await isRunning.promise;
      await at.close();
      expect(await answer).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining('abort') }],
      });
    },
  );

  test('a call that has just finished is answered completely', async () => {
    const { client, at } = await open();
    const answer = client.callTool({ name: 'large' });
    await isFinished.promise;
    await at.close();
    const { content } = await answer;
    expect(content[0]?.type === 'text' && content[0].text.length).toBe(LARGE);
  });

  test('a request that arrives while the server waits for answers is refused', async () => {
    const { client, at } = await open();
    const answer = client.callTool({ name: 'wind_up' });
    await isRunning.promise;
    const closing = at.mcp.close();
    const late = await fetch(at.url, { method: 'POST', headers: HEADERS, body: JSON.stringify(INITIALIZE) });
    expect(late.status).toBe(503);
    await closing;
    await answer;
  });
});

test('a client whose stream was closed gets the answer when it reconnects', async () => {
  listening = await listen(registry);
  const client = await connectClient(listening.url);
  clients.push(client);
  const answer = client.callTool({ name: 'leave_stream' });
  await isRunning.promise;
  await listening.close();
  expect(await answer).toMatchObject({ content: [{ text: 'half done' }] });
});

test('a call that waits for its user is answered with an error', async () => {
  listening = await listen(registry);
  const isAsked = Promise.withResolvers<void>();
  const client = await connectClient(listening.url, {
    options: { capabilities: { elicitation: {} } },
    prepare: (one) =>
      one.setRequestHandler('elicitation/create', () => {
        isAsked.resolve();
        return new Promise(() => {});
      }),
  });
  clients.push(client);
  const answer = client.callTool({ name: 'approved' });
  await isAsked.promise;
  await listening.close();
  expect(await answer).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('the server is shutting down') }],
  });
});

test('a response without a socket can be read after the server was closed', async () => {
  const mcp = createMcpServer(registry);
  const post = (body: object, headers: Record<string, string> = {}) =>
    mcp.fetch(
      new Request('http://localhost/mcp', {
        method: 'POST',
        headers: { ...HEADERS, ...headers },
        body: JSON.stringify(body),
      }),
    );
  const begun = await post(INITIALIZE);
  const session = { 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
  const response = await post(callOf(2, 'wind_up'), session);
  await isRunning.promise;
  await mcp.close();
  expect(await response.text()).toContain('half done');
});

test('close can be called at any time and repeatedly, and closes once', async () => {
  const mcp = createMcpServer(registry);
  const closing = mcp.close();
  expect(mcp.close()).toBe(closing);
  await closing;
  await mcp.close();
});

test('closing does not wait for a call whose visibility is never decided', async () => {
  const isAsked = Promise.withResolvers<void>();
  listening = await listen(registry, {
    visible: () => {
      isAsked.resolve();
      return new Promise(() => {});
    },
  });
  const client = await connectClient(listening.url);
  clients.push(client);
  const answer = client.callTool({ name: 'deaf' }, { timeout: 3_600_000 }).catch(() => 'lost');
  await isAsked.promise;
  await listening.mcp.close();
  await client.close();
  await answer;
});

describe('closing over stdio', () => {
  function connect(options: McpServerOptions = {}) {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const mcp = createMcpServer(registry, options);
    const connection = mcp.stdio({ input, output });
    const said = text(output);
    const write = (...lines: readonly object[]) =>
      input.write(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    return {
      ...{ mcp, connection, input, write },
      async answers() {
        await connection.closed;
        output.end();
        const messages = (await said).split('\n').filter(Boolean);
        return new Map(
          messages.map((line) => JSON.parse(line)).map((message) => [message.id, message.result]),
        );
      },
    };
  }
  const ENDS = {
    'mcp.close()': ({ mcp }: ReturnType<typeof connect>) => mcp.close(),
    'connection.close()': ({ connection }: ReturnType<typeof connect>) => connection.close(),
    'the end of the input': ({ input }: ReturnType<typeof connect>) => void input.end(),
    'the loss of the input': ({ input }: ReturnType<typeof connect>) => void input.destroy(),
  };

  test.each(Object.entries(ENDS))('%s still answers running calls', async (_name, end) => {
    const connected = connect();
    connected.write(INITIALIZE, callOf(2, 'wind_up'), callOf(3, 'deaf'));
    await isRunning.promise;
    await end(connected);
    const answers = await connected.answers();
    expect(answers.get(2)).toMatchObject({ content: [{ text: 'half done' }] });
    expect(answers.get(3)).toMatchObject({ isError: true });
  });

  test('requests that arrive with the end of the input are answered', async () => {
    const connected = connect();
    connected.input.end(`${JSON.stringify(INITIALIZE)}\n${JSON.stringify(callOf(2, 'approved'))}\n`);
    const answers = await connected.answers();
    expect(answers.get(2)).toMatchObject({ isError: true });
  });

  test('nothing more is read once the connection is closing', async () => {
    const connected = connect();
    connected.write(INITIALIZE, callOf(2, 'wind_up'));
    await isRunning.promise;
    const closing = connected.connection.close();
    expect(connected.connection.close()).toBe(closing);
    connected.write(callOf(3, 'approved'));
    await closing;
    expect([...(await connected.answers()).keys()].sort()).toEqual([1, 2]);
  });
});

test('a transport of the SDK answers running calls on close, and accepts no new requests', async () => {
  const mcp = createMcpServer(registry);
  const [mine, theirs] = InMemoryTransport.createLinkedPair();
  const heard = new Map<unknown, unknown>();
  mine.onmessage = (message) => 'id' in message && heard.set(message.id, message);
  await mine.start();
  await mine.send(INITIALIZE as never);
  await mine.send(callOf(2, 'wind_up') as never);
  mcp.connect(theirs);
  await isRunning.promise;
  const closing = mcp.close();
  await mine.send(callOf(3, 'wind_up') as never);
  await closing;
  expect([...heard.keys()]).toEqual([1, 2]);
  expect(heard.get(2)).toMatchObject({ result: { content: [{ text: 'half done' }] } });
});

test('a 2026-07-28 client that listens for changes over stdio does not delay closing', async () => {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { notifications: { toolsListChanged: true }, _meta };
  // A wait would take a second in every attempt; a busy machine delays only some of them.
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 5 && least > 500; attempt += 1) {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const connection = createMcpServer(registry).stdio({ input, output });
    const said = text(output);
    input.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params })}\n`);
    await once(output, 'data');
    const began = performance.now();
    await connection.close();
    least = Math.min(least, performance.now() - began);
    output.end();
    expect(JSON.parse((await said).trim().split('\n').at(-1) ?? '')).toMatchObject({ id: 1, result: {} });
  }
  expect(least).toBeLessThan(500);
});
