import { Socket } from 'node:net';

/** The part of a `pg` client that reports its loss. */
interface Client {
  on(event: 'error', listener: () => void): unknown;
}

const watched = new WeakSet<object>();

/** Ignores the loss of a `pg` client, which its requests report: an `error` event without a listener ends the process. */
export function watchClient(client: Client): void {
  if (!watched.has(client)) client.on('error', () => {});
  watched.add(client);
}

/** Watches the clients of a pool: a connection can be lost before the caller of `connect` receives it. */
export function watchPool(pool: object): void {
  const { on } = pool as { on?(event: 'acquire', listener: typeof watchClient): void };
  if (on !== undefined && !watched.has(pool)) on.call(pool, 'acquire', watchClient);
  watched.add(pool);
}

/** The connections that this package opened in a pool of `pg`, and may close. */
export class OwnConnections {
  readonly #open = new Set<Socket>();
  #isCut = false;

  /** Creates the socket of a `pg` connection. */
  readonly stream = (): Socket => {
    const socket = new Socket();
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    socket.once('connect', () => this.#isCut && socket.destroy());
    return socket;
  };

  /** All later queries reject. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#open) socket.destroy();
  }
}
