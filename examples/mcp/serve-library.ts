import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpServer, jwks } from 'toolwright/mcp';
import { startAuthorizationServer } from './authorization-server.js';
import { tools } from './tools.js';

/** A running library server on this machine. */
export interface ServedLibrary {
  readonly url: URL;
  close(): Promise<void>;
}

/**
 * Serves the library’s tools over streamable HTTP, with an authorization server on the next port. Port 0 means any
 * free ports.
 */
export async function serveLibrary(port: number): Promise<ServedLibrary> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  const authorization = await startAuthorizationServer({
    port: port === 0 ? 0 : port + 1,
    api: { resource: url.href, scopes: ['books:borrow'] },
  });
  const { issuer } = authorization;
  const mcp = createMcpServer(tools, {
    name: 'library',
    version: '1.0.0',
    instructions: 'Search before you borrow.',
    oauth: { resource: url.href, issuer, verify: jwks(`${issuer}/jwks`), unauthorised: 'show' },
    // The verified token is the only source of information about the caller.
    scope: ({ authInfo }) => (authInfo ? { data: { reader: String(authInfo.extra?.sub) } } : {}),
    onError: (error) => console.error(error),
  });
  server.on('request', mcp.node);
  return {
    url,
    async close() {
      await mcp.close();
      await authorization.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
