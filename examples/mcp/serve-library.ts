import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpServer } from 'toolwright/mcp';
import { tools } from './tools.js';

/** The tokens of the readers; a real library asks its identity provider. */
const READERS: Readonly<Record<string, string>> = { 'token-of-ada': 'ada', 'token-of-grace': 'grace' };

/** A library that answers on a port of this machine. */
export interface ServedLibrary {
  readonly url: URL;
  close(): Promise<void>;
}

/** Serves the library’s tools over streamable HTTP; port 0 takes any that is free. */
export async function serveLibrary(port: number): Promise<ServedLibrary> {
  const mcp = createMcpServer(tools, {
    name: 'library',
    version: '1.0.0',
    instructions: 'Search before you borrow.',
    // What the token was found to stand for is all that is known of a caller.
    scope: ({ authInfo }) => (authInfo ? { data: { reader: authInfo.clientId } } : {}),
    onError: (error) => console.error(error),
  });
  const server = createServer((request, response) => void mcp.node(authenticated(request), response));
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const { port: actual } = server.address() as AddressInfo;
  return {
    url: new URL(`http://127.0.0.1:${actual}/mcp`),
    async close() {
      await mcp.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function authenticated(request: IncomingMessage) {
  const token = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
  if (!Object.hasOwn(READERS, token)) return request;
  return Object.assign(request, { auth: { token, clientId: READERS[token] ?? '', scopes: [] } });
}
