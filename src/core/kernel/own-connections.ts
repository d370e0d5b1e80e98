import { Socket } from 'node:net';

/** The connections that this package made in a pool of `pg`, and may cut. */
export class OwnConnections {
  readonly #open = new Set<Socket>();
  #isCut = false;

  /** What `pg` makes a connection from. */
  readonly stream = (): Socket => {
    const socket = new Socket();
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    socket.once('connect', () => this.#isCut && socket.destroy());
    return socket;
  };

  /** All that is asked rejects from now on. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#open) socket.destroy();
  }
}
