import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Client, Progress, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { defineTool, ToolRegistry } from 'toolwright';
import { connectClient, ERAS, type Listening, listen } from './mcp-connections.js';

const serverLog: string[] = [];
const note = (level: string) => (message: string) => void serverLog.push(`${level}: ${message}`);
const logger = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') };
let stopped = Promise.withResolvers<string>();
let started = Promise.withResolvers<void>();

const registry = new ToolRegistry({ logger }).register(
  defineTool({
    name: 'walk',
    description: 'Reports in every way',
    execute(_args, context) {
      context.progress({ progress: 0, total: 10, message: 'off' });
      context.progress(5);
      context.progress(5);
      context.progress('a text');
      context.progress({ content: [{ type: 'text', content: 'half way' }] });
      context.progress({ anything: 1 });
      return 'there';
    },
  }),
  defineTool({
    name: 'stroll',
    description: 'Yields on its way',
    async *execute() {
      yield { progress: 1, total: 2 };
      yield 'nearly';
      return 'there';
    },
  }),
  defineTool({
    name: 'send_away',
    description: 'Answers who comes back',
    execute(_args, { data: { mcp } }) {
      mcp?.closeStream?.();
      return 'welcome back';
    },
  }),
  defineTool({
    name: 'log',
    description: 'Logs',
    execute(_args, { logger: log }) {
      log.debug('first');
      log.warn('second', { shelf: 3 });
      log.error('third', { cycle: 10n });
      return 'logged';
    },
  }),
  defineTool({
    name: 'hang',
    description: 'Waits to be stopped',
    execute(_args, { signal }) {
      started.resolve();
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          stopped.resolve('stopped');
          reject(signal.reason);
        });
      });
    },
  }),
);

describe.each(Object.entries(ERAS))('while its call runs, a client of %s', (era, options) => {
  let listening: Listening;
  let client: Client;
  const entries: unknown[] = [];
  beforeEach(async () => {
    stopped = Promise.withResolvers();
    started = Promise.withResolvers();
    serverLog.length = 0;
    entries.length = 0;
    listening = await listen(registry);
    client = await connectClient(listening.url, {
      options,
      prepare: (one) =>
        one.setNotificationHandler('notifications/message', ({ params }) => void entries.push(params)),
    });
  });
  afterEach(async () => {
    await client.close();
    await listening.close();
  });

  test('receives progress, which only increases', async () => {
    const heard: Progress[] = [];
    await client.callTool({ name: 'walk' }, { onprogress: (progress) => void heard.push(progress) });
    expect(heard).toEqual([
      { progress: 0, total: 10, message: 'off' },
      { progress: 5 },
      { progress: 6, message: 'a text' },
      { progress: 7, message: 'half way' },
      { progress: 8 },
    ]);
  });

  test('receives what a generator yields', async () => {
    const heard: Progress[] = [];
    const { content } = await client.callTool(
      { name: 'stroll' },
      { onprogress: (progress) => void heard.push(progress) },
    );
    expect(heard).toEqual([
      { progress: 1, total: 2 },
      { progress: 2, message: 'nearly' },
    ]);
    expect(content).toEqual([{ type: 'text', text: 'there' }]);
  });

  test('gets the result even if the tool closes its stream', async () => {
    expect(await client.callTool({ name: 'send_away' })).toMatchObject({
      content: [{ text: 'welcome back' }],
    });
  });

  test('receives no progress if it does not ask for it', async () => {
    const unknown: unknown[] = [];
    client.fallbackNotificationHandler = async (notification) => void unknown.push(notification);
    await client.callTool({ name: 'walk' });
    expect(unknown).toEqual([]);
  });

  test('receives what a tool logs, and nothing that the framework logs about it', async () => {
    await client.callTool({
      name: 'log',
      ...(era === '2026-07-28' ? { _meta: { 'io.modelcontextprotocol/logLevel': 'debug' } } : {}),
    });
    expect(entries).toEqual([
      { level: 'debug', logger: 'log', data: 'first' },
      { level: 'warning', logger: 'log', data: { message: 'second', shelf: 3 } },
    ]);
    expect(serverLog).toEqual(
      expect.arrayContaining(['info: Tool started', 'debug: first', 'warn: second', 'error: third']),
    );
  });

  test('stops the tool when it cancels', async () => {
    const controller = new AbortController();
    const call = client.callTool({ name: 'hang' }, { signal: controller.signal });
    await started.promise;
    controller.abort('enough');
    await expect(call).rejects.toBeDefined();
    expect(await stopped.promise).toBe('stopped');
  });

  test('stops the tool when the server closes', async () => {
    const call = client.callTool({ name: 'hang' }, { timeout: 2_000 }).catch(() => 'gone');
    await started.promise;
    await listening.mcp.close();
    expect(await stopped.promise).toBe('stopped');
    await client.close();
    expect(await call).toBe('gone');
  });
});

test('the end of a session stops its running calls', async () => {
  stopped = Promise.withResolvers();
  started = Promise.withResolvers();
  const listening = await listen(registry);
  const client = await connectClient(listening.url);
  const call = client.callTool({ name: 'hang' }).catch(() => 'gone');
  await started.promise;
  await (client.transport as StreamableHTTPClientTransport).terminateSession();
  expect(await stopped.promise).toBe('stopped');
  await client.close();
  expect(await call).toBe('gone');
  await listening.close();
});

test('a session whose client vanished during a call ends after the idle time, and stops the call', async () => {
  stopped = Promise.withResolvers();
  started = Promise.withResolvers();
  const listening = await listen(registry, { sessions: { idleMs: 2_000 } });
  const client = await connectClient(listening.url);
  const call = client.callTool({ name: 'hang' }).catch(() => 'gone');
  await started.promise;
  await client.close();
  expect(await stopped.promise).toBe('stopped');
  expect(await call).toBe('gone');
  expect(listening.mcp.sessionCount).toBe(0);
  await listening.close();
});

test('a 2025-11-25 client chooses the log level that it receives', async () => {
  const listening = await listen(registry);
  const entries: unknown[] = [];
  const client = await connectClient(listening.url, {
    prepare: (one) =>
      one.setNotificationHandler('notifications/message', ({ params }) => void entries.push(params.data)),
  });
  await client.setLoggingLevel('warning');
  await client.callTool({ name: 'log' });
  expect(entries).toEqual([{ message: 'second', shelf: 3 }]);
  await client.close();
  await listening.close();
});
