import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A real server on loopback, closed with the block that uses it. */
export interface RunningServer extends AsyncDisposable {
  readonly url: string;
}

/** Where a server on loopback listens. */
export interface Listening extends RunningServer {
  readonly http: Server;
}

/** Serves a listener; port 0 is any free one. */
export async function serve(listener: RequestListener, port = 0): Promise<Listening> {
  const http = keepConnections(createServer(listener)).listen(port, '127.0.0.1');
  await once(http, 'listening');
  return {
    http,
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections();
      http.close();
      await once(http, 'close');
    },
  };
}

/**
 * A server that closes no idle or slow connection. On a busy machine a process may stand still until that is due, and
 * then it sends a request over the connection that its own server resets in the same moment.
 */
export function keepConnections(http: Server): Server {
  return Object.assign(http, { keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 });
}

/** A port for a process that cannot be given 0. */
export async function freePort(): Promise<number> {
  await using server = await serve(() => {});
  return Number(new URL(server.url).port);
}
