import { lookup } from 'node:dns/promises';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse, request as sendHttp } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { fitsHost, type HostPattern, isPublicAddress } from '../network/web-access.js';

/**
 * A proxy for HTTP that connects to named hosts only, on a socket in a folder of its own. A host that a pattern with `*`
 * names is not connected to in a private network.
 *
 * @returns The path of the socket.
 */
export function startHostProxy(hosts: readonly HostPattern[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-proxy-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const socket = join(folder, 'proxy.sock');
  const server = createServer((request, response) => void forward(request, response, hosts));
  server.on(
    'connect',
    (request: IncomingMessage, client: Duplex, head: Buffer) => void tunnel(request, client, { head, hosts }),
  );
  server.listen(socket).unref();
  return socket;
}

/** The address to connect to, which is the very one that was looked at; nothing where it may not be. */
async function addressFor(url: URL, hosts: readonly HostPattern[]): Promise<string | undefined> {
  if (!fitsHost(hosts, url)) return undefined;
  const { address } = await lookup(url.hostname.replace(/^\[(.*)\]$/, '$1'));
  const isNamed = fitsHost(
    hosts.filter((pattern) => !pattern.includes('*')),
    url,
  );
  return isNamed || isPublicAddress(address) ? address : undefined;
}

async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  hosts: readonly HostPattern[],
): Promise<void> {
  try {
    const url = new URL(request.url ?? '');
    const address = url.protocol === 'http:' ? await addressFor(url, hosts) : undefined;
    if (address === undefined) {
      response.writeHead(403).end('The sandbox lets no command connect to this host.\n');
      return;
    }
    const { 'proxy-connection': _, ...headers } = request.headers;
    const outgoing = sendHttp({
      ...{ host: address, port: url.port || 80, path: url.pathname + url.search, method: request.method },
      headers: { ...headers, host: url.host },
    });
    outgoing.on('response', (incoming) => {
      response.writeHead(incoming.statusCode ?? 502, incoming.headers);
      incoming.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    request.pipe(outgoing);
  } catch {
    response.writeHead(502).end();
  }
}

async function tunnel(
  { url = '' }: IncomingMessage,
  client: Duplex,
  { head, hosts }: { readonly head: Buffer; readonly hosts: readonly HostPattern[] },
): Promise<void> {
  client.on('error', () => client.destroy());
  try {
    const target = new URL(`https://${url}`);
    const address = await addressFor(target, hosts);
    if (address === undefined) {
      client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
      return;
    }
    const server = connect(Number(target.port) || 443, address, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      server.write(head);
      server.pipe(client).pipe(server);
    });
    server.on('error', () => client.destroy());
    client.on('close', () => server.destroy());
  } catch {
    client.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  }
}
