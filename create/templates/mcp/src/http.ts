import { createServer as createHttpServer } from 'node:http';
import { createServer } from './server.js';

const mcp = createServer();
const port = Number(process.env.PORT || 3000);
const http = createHttpServer(mcp.node);
http.once('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EADDRINUSE') throw error;
  console.error(`Port ${port} is taken. Choose another, for example PORT=${port + 1}.`);
  process.exitCode = 1;
  void mcp.close();
});
http.listen(port, '127.0.0.1', () => console.log(`MCP over HTTP: http://127.0.0.1:${port}/mcp`));

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, async () => {
    await mcp.close();
    http.close();
  });
