// A replica of the MCP server of `mcp-tasks.mjs`; sends its port to its parent.
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { PostgresRunStore } from '../../dist/src/durable/postgres/index.js';
import { defineTool, ToolRegistry } from '../../dist/src/index.js';
import { createMcpServer } from '../../dist/src/surfaces/mcp/index.js';

const { connectionString, bank, leaseMs } = JSON.parse(process.argv[2]);
const parameters = { type: 'object', properties: { label: { type: 'string' } }, required: ['label'] };

/** Changes the bank under the idempotency key of the call. */
async function act(label, { idempotencyKey }) {
  await pause(Math.random() * 200);
  const body = JSON.stringify({ key: idempotencyKey, call: label });
  await fetch(`${bank}/execute`, { method: 'POST', body });
  await pause(Math.random() * 200);
  return `${label} is done`;
}

const tools = [
  { name: 'transfer', description: 'Must not be repeated', background: true },
  { name: 'report', description: 'May be repeated', background: true, annotations: { idempotent: true } },
  { name: 'refund', description: 'Requires an approval', approval: true },
].map((tool) => defineTool({ ...tool, parameters, execute: ({ label }, context) => act(label, context) }));

const store = new PostgresRunStore({ connectionString, schema: 'chaos' });
const mcp = createMcpServer(new ToolRegistry().register(...tools), {
  tasks: { store, leaseMs },
  onError: (error) => console.error(error),
});
const http = createServer((request, response) => {
  const user = request.headers.authorization;
  const auth = { token: user, clientId: 'chaos', scopes: [], extra: { sub: user } };
  void mcp.node(Object.assign(request, { auth }), response);
}).listen(0, '127.0.0.1', () => process.send({ port: http.address().port }));

process.on('message', async () => {
  await mcp.close();
  await store.close();
  process.exit();
});
