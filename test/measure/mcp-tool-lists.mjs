// Imports tool lists of real MCP servers over HTTP, validates calls, and serves the tools again in both protocol
// revisions: schemas and descriptions must be identical byte for byte.
// npm run measure:mcp -- <folder with the tool lists, or with mcp-tool-lists/>
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { ToolRegistry } from '../../dist/src/index.js';
import { createMcpServer, mcpTools } from '../../dist/src/surfaces/mcp/index.js';

const path = process.argv[2] ?? process.env.TOOLWRIGHT_SUITES ?? '.';
const folder = [join(path, 'mcp-tool-lists'), path].find(
  (candidate) => existsSync(candidate) && readdirSync(candidate).some((name) => name.endsWith('.json')),
);
if (folder === undefined) {
  console.log(`${path} contains no tool lists; nothing was measured.`);
  process.exit(0);
}

const REVISIONS = { '2025-11-25': 'legacy', '2026-07-28': { pin: '2026-07-28' } };
const ANY_RESULT = { '~standard': { version: 1, vendor: 'measure', validate: (value) => ({ value }) } };
const total = { tools: 0, imported: 0, validated: 0, equal: 0 };
for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  const { server: name, tools } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const source = await listen(toolListHandler(tools));
  const client = await connect(source.url, REVISIONS['2025-11-25']);
  const imported = await mcpTools(client, { prefix: name });
  const registry = new ToolRegistry().register(...imported);
  const validated = await Promise.all(imported.map(validatesCalls));
  const equal = await Promise.all(Object.values(REVISIONS).map((mode) => countEqual(registry, mode, tools)));
  addToTotal({
    tools: tools.length,
    imported: imported.length,
    validated: count(validated),
    equal: Math.min(...equal),
  });
  console.log(`${name}: ${tools.length} tools, ${Math.min(...equal)} identical`);
  await client.close();
  source.close();
}
console.log(
  `${total.imported} of ${total.tools} tools imported, ${total.validated} with validated calls, ` +
    `${total.equal} served again byte for byte`,
);
process.exitCode = total.equal === total.tools && total.validated === total.tools ? 0 : 1;

/** Whether calls are validated: empty arguments must be accepted or rejected as a mistake of the model. */
async function validatesCalls(tool) {
  const registry = new ToolRegistry().register({ ...tool, execute: () => 'ran', output: undefined });
  const { isError, error } = await registry.execute(tool.name, {});
  return !isError || error.name === 'InvalidArguments';
}

/** Counts the tools that are served exactly as they were imported. */
async function countEqual(registry, mode, original) {
  const mcp = createMcpServer(registry, { pageSize: 7 });
  const endpoint = await listen(mcp.node);
  const client = await connect(endpoint.url, mode);
  const listed = [];
  let cursor;
  do {
    const params = cursor === undefined ? {} : { cursor };
    const page = await client.request({ method: 'tools/list', params }, ANY_RESULT);
    listed.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  await client.close();
  await mcp.close();
  endpoint.close();
  return count(original.map((tool, position) => bytesOf(tool) === bytesOf(listed[position] ?? {})));
}

function bytesOf({ description, inputSchema, outputSchema }) {
  return JSON.stringify([description, inputSchema, outputSchema]);
}

async function connect(url, mode) {
  const client = new Client({ name: 'measure', version: '0.0.0' }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
}

/** Handles requests like an MCP server with exactly these tools. */
function toolListHandler(tools) {
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

function addToTotal(figures) {
  for (const [name, figure] of Object.entries(figures)) total[name] += figure;
}

function count(values) {
  return values.filter(Boolean).length;
}
