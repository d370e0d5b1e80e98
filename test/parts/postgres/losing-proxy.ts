import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** The server's last word when a connection may be used. */
const READY = Buffer.from('Z\0\0\0\x05I');

/** Stands between a store and its server, and loses answers: the server has done what it was told by then. */
export class LosingProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** How many answers come through before one is lost. */
  #untilLost: number | undefined;
  /** Hears of the connection whose answers are held back, once it may be used, and how many come through before. */
  #held: { readonly hear: (serverPort: number) => void; after: number } | undefined;
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
      server.on('data', (data) => this.#answer(client, data, server));
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

  /**
   * The next connection hears that it may be used only when the server has ended it, together with that. Resolves with
   * the port that the server knows it by. With `after`, so many answers come through before, over whatever connections.
   */
  holdUntilEnded(after = 0): Promise<number> {
    return new Promise((hear) => {
      this.#held = { hear, after };
    });
  }

  /** Cuts all connections that there are. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Cuts all connections, and lets none through; resolves when one has been refused. */
  refuse(): Promise<void> {
    this.#isRefusing = true;
    this.cut();
    return new Promise((resolve) => {
      this.#refused = resolve;
    });
  }

  accept(): void {
    this.#isRefusing = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #answer(client: Socket, data: Buffer, server: Socket): void {
    if (this.#held !== undefined && data.subarray(-READY.length).equals(READY) && this.#held.after-- === 0) {
      this.#held.hear(server.localPort as number);
      this.#held = undefined;
      const parts = [data];
      server.removeAllListeners('data').on('data', (part) => parts.push(part));
      server.removeAllListeners('close').on('end', () => client.end(Buffer.concat(parts)));
      return;
    }
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
