/* The official MCP SDK: its own server with zod schemas for both revisions, asked over a transport in memory. */
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { zodSchemas } from '../schemas.mjs';
import { bodyOf } from '../workloads.mjs';
import { MemoryTransport, serverCandidate } from './memory-transport.mjs';

let opened;

/** `tools/call` of an `McpServer` with the three workloads. */
export async function sdkServerCall({ tool }) {
  opened ??= MemoryTransport.open((transport) => serveStdio(createServer, { transport }));
  return serverCandidate('MCP SDK `McpServer` (zod)', await opened, tool);
}

function createServer() {
  const server = new McpServer({ name: 'bench', version: '1.0.0' });
  for (const [name, inputSchema] of Object.entries(zodSchemas)) {
    const body = bodyOf(name);
    server.registerTool(name, { description: name, inputSchema }, async (input) => ({
      content: [{ type: 'text', text: String(body(input)) }],
    }));
  }
  return server;
}
