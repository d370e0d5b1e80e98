/* The official MCP SDK: its own server with zod schemas for both revisions, asked over a transport in memory. */
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { zodSchemas } from '../schemas.mjs';
import { bodyOf } from '../workloads.mjs';
import { MemoryTransport, serverCandidate } from './memory-transport.mjs';

let opened;

/** `tools/call` of an `McpServer` with the three workloads. */
export async function sdkServerCall({ tool }) {
  opened ??= sdkServer(Object.keys(zodSchemas).map((name) => ({ name, like: name })));
  return serverCandidate('MCP SDK `McpServer` (zod)', await opened, tool);
}

/** A connection to an `McpServer` with some tools, each like one of the workloads. */
export function sdkServer(tools) {
  return MemoryTransport.open((transport) => serveStdio(() => createServer(tools), { transport }));
}

function createServer(tools) {
  const server = new McpServer({ name: 'bench', version: '1.0.0' });
  for (const { name, like } of tools) {
    const body = bodyOf(like);
    server.registerTool(name, { description: name, inputSchema: zodSchemas[like] }, async (input) => ({
      content: [{ type: 'text', text: String(body(input)) }],
    }));
  }
  return server;
}
