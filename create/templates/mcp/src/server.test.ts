import assert from 'node:assert/strict';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createServer } from './server.js';

const mcp = createServer();
const http = createHttpServer(mcp.node);
const client = new Client({ name: 'test', version: '1.0.0' });

before(async () => {
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)));
});

after(async () => {
  await client.close();
  await mcp.close();
  http.close();
});

test('lists the tools of the library', async () => {
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['search_books', 'borrow_book'],
  );
});

test('finds books over HTTP', async () => {
  const result = await client.callTool({ name: 'search_books', arguments: { words: 'austen' } });
  assert.match(JSON.stringify(result.content), /Pride and Prejudice/);
});
