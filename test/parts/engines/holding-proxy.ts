import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Server } from 'node:net';

/** A proxy in front of a service that holds back all requests from the first matching command on. */
export class HoldingProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #held = Promise.withResolvers<void>();
  readonly #goesOn = Promise.withResolvers<void>();

  private constructor(place: NetConnectOpts, fits: RegExp) {
    this.#server = createServer((client) => {
      const service = connect(place);
      let sent = Promise.resolve();
      client.on('data', (data) => {
        const isHeld = fits.test(data.toString('latin1'));
        if (isHeld) this.#held.resolve();
        sent = sent
          .then(() => (isHeld ? this.#goesOn.promise : undefined))
          .then(() => void service.write(data));
      });
      service.pipe(client);
      for (const socket of [client, service]) {
        socket.on('error', () => {});
        socket.on('close', () => {
          client.destroy();
          service.destroy();
        });
      }
    });
  }

  static async before(place: NetConnectOpts, fits: RegExp): Promise<HoldingProxy> {
    const proxy = new HoldingProxy(place, fits);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Resolves when a request is held back. */
  get holding(): Promise<void> {
    return this.#held.promise;
  }

  /** Forwards what was held back, and everything after it. */
  letGo(): void {
    this.#goesOn.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
  }
}
