import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import {
  type AuthInfo,
  Client,
  type ClientOptions,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import type { ToolRegistry } from 'toolwright';
import { createMcpServer, type McpServerOptions, type McpToolServer } from 'toolwright/mcp';
import { serve } from '../../setup/loopback.js';

/** A server on its own port. */
export interface Listening {
  readonly mcp: McpToolServer;
  readonly url: URL;
  readonly http: Server;
  close(): Promise<void>;
}

/** The token is the user’s name: the application verifies tokens, and this one accepts all. */
function authOf({ headers }: IncomingMessage): AuthInfo | undefined {
  const token = headers.authorization?.replace('Bearer ', '');
  return token === undefined ? undefined : { token, clientId: 'an-app', scopes: [], extra: { sub: token } };
}

/** Serves a registry over real HTTP on loopback; port 0 is any free port. */
export async function listen(
  registry: ToolRegistry,
  options?: McpServerOptions,
  port = 0,
): Promise<Listening> {
  const mcp = createMcpServer(registry, options);
  const server = await serve((request, response) => {
    const auth = authOf(request);
    void mcp.node(auth ? Object.assign(request, { auth }) : request, response);
  }, port);
  return {
    mcp,
    http: server.http,
    url: new URL('/mcp', server.url),
    async close() {
      await mcp.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** The protocol revisions that are served, and how a client asks for each. */
export const ERAS = {
  '2025-11-25': {},
  '2026-07-28': { versionNegotiation: { mode: { pin: '2026-07-28' } } },
} as const satisfies Readonly<Record<string, ClientOptions>>;

/** How a client connects. */
export interface Connecting {
  readonly options?: ClientOptions;
  /** The user whose token it sends. */
  readonly user?: string;
  readonly prepare?: (client: Client) => void;
}

/** An SDK client that is connected over HTTP. */
export async function connectClient(
  url: URL,
  { options = {}, user, prepare = () => {} }: Connecting = {},
): Promise<Client> {
  const client = new Client({ name: 'a-client', version: '1.0.0' }, options);
  prepare(client);
  const headers = { 'x-tenant': 'acme', ...(user === undefined ? {} : { authorization: `Bearer ${user}` }) };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

/** Forwards requests to a server, and changes its responses. */
export async function serveForwarding(
  target: () => URL,
  change = (body: string, _request: string) => body,
): Promise<{ readonly url: URL; close(): Promise<void> }> {
  let failures = 0;
  const server = await serve(async (request, response) => {
    const { method, headers, url = '/' } = request;
    const forwarded = httpRequest(new URL(url, target()), {
      method,
      headers: { ...headers, host: target().host },
    });
    request.pipe(forwarded);
    try {
      const [answer] = await once(forwarded, 'response');
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk);
      const { 'content-length': _, ...others } = answer.headers;
      response
        .writeHead(answer.statusCode ?? 500, others)
        .end(change(Buffer.concat(chunks).toString(), String(headers['mcp-method'])));
    } catch {
      // Some proxies answer with an error, and some close the connection.
      failures += 1;
      if (failures % 2 === 0) response.destroy();
      else response.writeHead(502).end('Bad gateway');
    }
  });
  return { url: new URL('/mcp', server.url), close: async () => server[Symbol.asyncDispose]() };
}
