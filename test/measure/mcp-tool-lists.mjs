// Tool lists of real MCP servers, imported over HTTP, validated, and exported again over HTTP by both revisions:
// schemas and descriptions must come out byte for byte.
// npm run measure:mcp -- <folder with the tool lists, or with mcp-tool-lists/>
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { ToolRegistry } from '../../dist/src/index.js';
import { createMcpServer, mcpTools } from '../../dist/src/surfaces/mcp/index.js';

const given = process.argv[2] ?? process.env.TOOLWRIGHT_SUITES ?? '.';
const folder = [join(given, 'mcp-tool-lists'), given].find(
  (path) => existsSync(path) && readdirSync(path).some((name) => name.endsWith('.json')),
);
if (folder === undefined) {
  console.log(`${given} has no tool lists: nothing measured.`);
  process.exit(0);
}

const ERAS = { '2025-11-25': 'legacy', '2026-07-28': { pin: '2026-07-28' } };
const AS_SENT = { '~standard': { version: 1, vendor: 'measure', validate: (value) => ({ value }) } };
const total = { tools: 0, imported: 0, usable: 0, equal: 0 };
for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  const { server: name, tools } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const source = await listen(answering(tools));
  const client = await connect(source.url, ERAS['2025-11-25']);
  const imported = await mcpTools(client, { prefix: name });
  const registry = new ToolRegistry().register(...imported);
  const usable = await Promise.all(imported.map(isUsable));
  const equal = await Promise.all(Object.values(ERAS).map((mode) => equalOnes(registry, mode, tools)));
  add({ tools: tools.length, imported: imported.length, usable: count(usable), equal: Math.min(...equal) });
  console.log(`${name}: ${tools.length} tools, ${Math.min(...equal)} byte for byte`);
  await client.close();
  source.close();
}
console.log(
  `${total.imported} of ${total.tools} tools imported, ${total.usable} with a schema that validates, ` +
    `${total.equal} re-exported byte for byte`,
);
process.exitCode = total.equal === total.tools && total.usable === total.tools ? 0 : 1;

/** Whether calls are checked against the schema: no arguments at all are either right or a fault of the model's. */
async function isUsable(tool) {
  const registry = new ToolRegistry().register({ ...tool, execute: () => 'ran', output: undefined });
  const { isError, error } = await registry.execute(tool.name, {});
  return !isError || error.name === 'InvalidArguments';
}

/** How many of the tools are exported as they were imported. */
async function equalOnes(registry, mode, sent) {
  const mcp = createMcpServer(registry, { pageSize: 7 });
  const served = await listen(mcp.node);
  const client = await connect(served.url, mode);
  const shown = [];
  let cursor;
  do {
    const params = cursor === undefined ? {} : { cursor };
    const page = await client.request({ method: 'tools/list', params }, AS_SENT);
    shown.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  await client.close();
  await mcp.close();
  served.close();
  return count(sent.map((tool, position) => bytesOf(tool) === bytesOf(shown[position] ?? {})));
}

function bytesOf({ description, inputSchema, outputSchema }) {
  return JSON.stringify([description, inputSchema, outputSchema]);
}

async function connect(url, mode) {
  const client = new Client({ name: 'measure', version: '0.0.0' }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
}

/** A server that says these tools, as the bytes that they are. */
function answering(tools) {
  const results = {
    initialize: {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'recorded', version: '0.0.0' },
    },
    'tools/list': { tools },
  };
  return async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { id, method } = body === '' ? {} : JSON.parse(body);
    if (request.method !== 'POST') return response.writeHead(405).end();
    if (id === undefined) return response.writeHead(202).end();
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }));
  };
}

async function listen(handler) {
  const server = createServer(handler);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(`http://127.0.0.1:${server.address().port}/mcp`);
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url, close };
}

function add(figures) {
  for (const [name, figure] of Object.entries(figures)) total[name] += figure;
}

function count(values) {
  return values.filter(Boolean).length;
}
