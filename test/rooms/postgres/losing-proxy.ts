import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Stands between a store and its server, and loses answers: the server has done what it was told by then. */
export class LosingProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** How many answers come through before one is lost. */
  #untilLost: number | undefined;
  #isRefusing = false;
  #refused: (() => void) | undefined;
  /** How many answers were lost. */
  lost = 0;

  private constructor(url: URL) {
    this.#server = createServer((client) => {
      if (this.#isRefusing) {
        client.destroy();
        this.#refused?.();
        return;
      }
      const server = connect(Number(url.port || '5432'), url.hostname);
      for (const [socket, other] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
      }
      client.on('data', (data) => server.write(data));
      server.on('data', (data) => this.#answer(client, data));
    });
  }

  static async before(url: string): Promise<LosingProxy> {
    const proxy = new LosingProxy(new URL(url));
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  /** The server's address by way of the proxy. */
  through(url: string): string {
    const changed = new URL(url);
    changed.hostname = '127.0.0.1';
    changed.port = String((this.#server.address() as AddressInfo).port);
    return changed.href;
  }

  /** The next answer is lost, and the connection with it. */
  loseNextAnswer(): void {
    this.loseAnswerAfter(0);
  }

  /** So many answers come through, over whatever connections, and the next one is lost. */
  loseAnswerAfter(count: number): void {
    this.#untilLost = count;
  }

  /** Cuts all connections, and lets none through; resolves when one has been refused. */
  refuse(): Promise<void> {
    this.#isRefusing = true;
    for (const socket of this.#sockets) socket.destroy();
    return new Promise((resolve) => {
      this.#refused = resolve;
    });
  }

  accept(): void {
    this.#isRefusing = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #answer(client: Socket, data: Buffer): void {
    if (this.#untilLost !== 0) {
      if (this.#untilLost !== undefined) this.#untilLost -= 1;
      client.write(data);
      return;
    }
    this.#untilLost = undefined;
    this.lost += 1;
    client.destroy();
  }
}
