import { Socket } from 'node:net';

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
