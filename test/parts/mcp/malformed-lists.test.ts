import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import type { Client } from '@modelcontextprotocol/client';
import { mcpTools } from 'toolwright/mcp';
import { serve } from '../../setup/loopback.js';
import { connectClient, ERAS } from './mcp-connections.js';

const ENVELOPE = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
const ABOUT = { capabilities: { tools: {} }, serverInfo: { name: 'foreign', version: '1' } };

const closing: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of closing.splice(0)) await one.close();
});

/** A client of a server over HTTP that lists whatever it is told to, of either revision. */
async function connectToLister(tools: readonly unknown[], options: object): Promise<Client> {
  const results: Readonly<Record<string, object>> = {
    initialize: { protocolVersion: '2025-11-25', ...ABOUT },
    'server/discover': { ...ENVELOPE, ...ABOUT, supportedVersions: ['2026-07-28'] },
    'tools/list': { ...ENVELOPE, tools },
  };
  const server = await serve(async (request, response) => {
    const { id, method } = JSON.parse((await text(request)) || '{}');
    if (id === undefined) return response.writeHead(request.method === 'POST' ? 202 : 405).end();
    const answer = JSON.stringify({ jsonrpc: '2.0', id, result: results[method] });
    return response.writeHead(200, { 'Content-Type': 'application/json' }).end(answer);
  });
  const client = await connectClient(new URL('/mcp', server.url), { options });
  closing.push(client, { close: () => server[Symbol.asyncDispose]() });
  return client;
}

const tool = (name: string, others: object = {}) => ({ name, inputSchema: { type: 'object' }, ...others });
const namesOf = async (client: Client) => (await mcpTools(client)).map(({ name }) => name);

describe.each(Object.entries(ERAS))('of a server of %s', (_era, options) => {
  test.each([
    null,
    'a tool',
    { name: 'no schema' },
    tool(''),
    ...[
      { description: 5 },
      { description: null },
      { title: 5 },
      { annotations: null },
      { annotations: { readOnlyHint: 'yes' } },
      { inputSchema: [] },
      { inputSchema: { type: 'string' } },
      { inputSchema: { type: 'object', properties: null } },
      { inputSchema: { type: 'object', required: 'a' } },
      { outputSchema: null },
      { icons: 5 },
      { _meta: 'text' },
    ].map((others) => tool('odd', others)),
  ])('%j is passed over, and its neighbours come', async (odd) => {
    expect(await namesOf(await connectToLister([tool('one'), odd, tool('other')], options))).toEqual([
      'one',
      'other',
    ]);
  });
});

test('a header that is declared wrongly costs its own tool, also beside what is not a tool at all', async () => {
  const warned = jest.spyOn(console, 'warn').mockImplementation(() => {});
  const withHeader = (name: string, header: string) =>
    tool(name, {
      inputSchema: { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': header } } },
    });
  const loose = { name: 'loose', inputSchema: { properties: {} } };
  const tools = [null, loose, withHeader('wrong', 'two words'), withHeader('right', 'Region'), tool('plain')];
  expect(await namesOf(await connectToLister(tools, ERAS['2026-07-28']))).toEqual(['right', 'plain']);
  warned.mockRestore();
});
