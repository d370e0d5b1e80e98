import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A server on loopback, which `await using` closes. */
export interface RunningServer extends AsyncDisposable {
  readonly url: string;
}

/** A server on loopback and its `http.Server`. */
export interface Listening extends RunningServer {
  readonly http: Server;
}

/** Starts a server; port 0 means any free port. */
export async function serve(listener: RequestListener, port = 0): Promise<Listening> {
  // Floods open more connections than Node's backlog of 511 while the machine is busy.
  const http = disableTimeouts(createServer(listener)).listen(port, '127.0.0.1', 4096);
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
 * Makes a server keep idle and slow connections open. On a busy machine, a process may pause until a timeout is due and
 * then send a request over a connection that its own server closes at the same moment.
 */
export function disableTimeouts(http: Server): Server {
  return Object.assign(http, { keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 });
}

/** A free port, for processes that do not accept port 0. */
export async function freePort(): Promise<number> {
  await using server = await serve(() => {});
  return Number(new URL(server.url).port);
}
