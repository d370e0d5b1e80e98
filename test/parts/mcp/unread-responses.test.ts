import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { defineTool, ToolRegistry } from 'toolwright';
import { connectClient, ERAS, type Listening, listen } from './mcp-connections.js';
import { HEADERS } from './raw-requests.js';

const MEGABYTE = 1024 * 1024;
const SIZE = 16 * MEGABYTE;

const registry = new ToolRegistry().register(
  defineTool({
    name: 'picture',
    description: 'Is large',
    execute: () => ({
      content: [{ type: 'image' as const, data: 'A'.repeat(SIZE), mimeType: 'image/png' }],
    }),
  }),
);

const CALL = {
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: {
    name: 'picture',
    arguments: {},
    _meta: {
      progressToken: 1,
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
};

let listening: Listening | undefined;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await listening?.close();
  listening = undefined;
});

/** A client that sends its request and then reads nothing. */
async function callUnread({ url }: Listening): Promise<Socket> {
  const body = JSON.stringify(CALL);
  const headers = {
    ...HEADERS,
    host: url.host,
    connection: 'close',
    'content-length': String(Buffer.byteLength(body)),
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'picture',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const socket = connect(Number(url.port), '127.0.0.1').pause();
  socket.on('error', () => {});
  sockets.push(socket);
  socket.write(`POST ${url.pathname} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
  await new Promise((resolve) => socket.once('readable', resolve).once('close', resolve));
  return socket;
}

async function readAll(socket: Socket): Promise<number> {
  let bytes = 0;
  const ended = socket.closed || new Promise((resolve) => socket.once('close', resolve));
  socket.on('data', (chunk) => {
    bytes += chunk.length;
  });
  socket.resume();
  await ended;
  return bytes;
}

test('createMcpServer: unread responses use bounded memory, and read responses arrive completely', async () => {
  listening = await listen(registry, { maxUnreadBytes: 20 * MEGABYTE });
  const unread: Socket[] = [];
  for (let count = 0; count < 4; count += 1) unread.push(await callUnread(listening));
  const client = await connectClient(listening.url, { options: ERAS['2026-07-28'] });
  const { content } = await client.callTool({ name: 'picture' });
  expect(content).toMatchObject([{ type: 'image', data: expect.any(String) }]);
  expect((content[0] as { data: string }).data).toHaveLength(SIZE);
  await client.close();
  const bytes = await Promise.all(unread.map(readAll));
  const whole = bytes.filter((count) => count >= SIZE);
  expect(whole.length).toBeLessThanOrEqual(1);
});
