import { createServer as createHttpServer } from 'node:http';
import { createServer } from './server.js';

const mcp = createServer();
const port = Number(process.env.PORT ?? 3000);
const http = createHttpServer(mcp.node).listen(port, '127.0.0.1', () => {
  console.log(`MCP over HTTP: http://127.0.0.1:${port}/mcp`);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, async () => {
    await mcp.close();
    http.close();
  });
