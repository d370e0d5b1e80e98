import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** The last bytes that the server sends when a connection is ready. */
const READY = Buffer.from('Z\0\0\0\x05I');

/** A proxy between a store and its server that loses responses after the server has executed the requests. */
export class LosingProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** How many responses pass before one is lost. */
  #untilLost: number | undefined;
  /** Called with the connection whose responses are held once it is ready; `after` counts responses that pass first. */
  #held: { readonly hear: (serverPort: number) => void; after: number } | undefined;
  #isRefusing = false;
  #refused: (() => void) | undefined;
  /** How many responses were lost. */
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

  /** The address of the server through the proxy. */
  through(url: string): string {
    const changed = new URL(url);
    changed.hostname = '127.0.0.1';
    changed.port = String((this.#server.address() as AddressInfo).port);
    return changed.href;
  }

  /** Loses the next response and its connection. */
  loseNextAnswer(): void {
    this.loseAnswerAfter(0);
  }

  /** Loses one response after `count` responses, over all connections. */
  loseAnswerAfter(count: number): void {
    this.#untilLost = count;
  }

  /**
   * Holds the ready message of the next connection until the server has ended that connection. Resolves with the port
   * by which the server identifies it. `after` responses pass first, over all connections.
   */
  holdUntilEnded(after = 0): Promise<number> {
    return new Promise((hear) => {
      this.#held = { hear, after };
    });
  }

  /** Cuts all open connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Cuts all connections and refuses new ones; resolves when one was refused. */
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
