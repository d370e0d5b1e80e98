import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { ToolRegistry } from 'toolwright';
import { connectMcp, followMcpTools, type McpConnectOptions, mcpTools } from 'toolwright/mcp';
import { serve } from '../../setup/loopback.js';

/** Like many servers, it writes its log to standard output; its tool `die` ends the process. */
const SERVER = `
import { createInterface } from 'node:readline';
const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
const names = ['die', 'add', ...process.argv.slice(2)];
console.log('server is starting');
console.log('{"neither": "a message"}');
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  console.log('received ' + method);
  if (method === 'initialize')
    answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'noisy', version: '1' } });
  if (method === 'tools/list')
    answer(id, { tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) });
  if (method !== 'tools/call') return;
  if (params.name === 'die') process.exit(1);
  answer(id, { content: [{ type: 'text', text: params.name + ' done by ' + process.pid }] });
});
`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-mcp-process-'));
  writeFileSync(join(folder, 'server.mjs'), SERVER);
});
afterAll(() => rmSync(folder, { recursive: true }));

const closing: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of closing.splice(0)) await one.close();
});

test('output of a process that is not MCP is ignored, and a process that died is restarted', async () => {
  let starts = 0;
  const start = async () => {
    const client = new Client({ name: 'a-client', version: '1' });
    const args = [join(folder, 'server.mjs'), ...(starts > 0 ? ['later'] : [])];
    starts += 1;
    closing.push(client);
    await client.connect(new StdioClientTransport({ command: process.execPath, args }));
    return client;
  };
  const tools = new ToolRegistry();
  const isFollowed = Promise.withResolvers<void>();
  closing.push(
    await followMcpTools(tools, start, {
      onChange: ({ kind, name }) => kind === 'added' && name === 'later' && isFollowed.resolve(),
    }),
  );
  expect(tools.list()).toEqual(['die', 'add']);
  const first = await tools.execute('add');
  expect(first.forLLM).toMatch(/^add done by \d+$/);

  expect(await tools.execute('die')).toMatchObject({
    isError: true,
    forLLM: expect.stringMatching(/outcome.*is unknown/),
  });
  const [one, other] = await Promise.all([tools.execute('add'), tools.execute('add')]);
  expect(one.forLLM).toMatch(/^add done by \d+$/);
  expect(one.forLLM).not.toBe(first.forLLM);
  expect(other.forLLM).toBe(one.forLLM);
  expect(starts).toBe(2);
  await isFollowed.promise;
  expect(tools.list()).toEqual(['die', 'add', 'later']);
});

const SILENT = `
import { createInterface } from 'node:readline';
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const error = { code: -32601, message: 'Method not found' };
  if (method === 'server/discover') console.log(JSON.stringify({ jsonrpc: '2.0', id, error }));
});
`;

test('a failed connection is reported with the command or the URL, without arguments and query', async () => {
  await using http = await serve((_request, response) => response.writeHead(403).end());
  const problemOf = (server: McpConnectOptions, prefix?: string) =>
    mcpTools(connectMcp(server), { prefix }).catch(({ message }) => message);
  const args = ['-e', 'process.exit(3)'];
  expect(await problemOf({ command: process.execPath, args })).toBe(
    `The MCP server (${process.execPath}) cannot be reached (CONNECTION_CLOSED).`,
  );
  expect(await problemOf({ url: `${http.url}/mcp?key=secret` }, 'far')).toBe(
    `The MCP server 'far' (${http.url}/mcp) answered with status 403.`,
  );
});

test('a server that never answers is reported with its name after 30 seconds', async () => {
  writeFileSync(join(folder, 'silent.mjs'), SILENT);
  await using http = await serve(() => {});
  const problemOf = (prefix: string, server: Parameters<typeof connectMcp>[0]) =>
    followMcpTools(new ToolRegistry(), connectMcp(server), { prefix }).catch(({ message }) => message);
  const [program, address] = await Promise.all([
    problemOf('shop', { command: process.execPath, args: [join(folder, 'silent.mjs')] }),
    problemOf('far', { url: `${http.url}/mcp?key=secret` }),
  ]);
  const ending = 'cannot be reached: no answer within 30 seconds.';
  expect(program).toBe(`The MCP server 'shop' (${process.execPath}) ${ending}`);
  expect(address).toBe(`The MCP server 'far' (${http.url}/mcp) ${ending}`);
}, 120_000);
