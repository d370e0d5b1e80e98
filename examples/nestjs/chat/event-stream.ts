import type { ServerResponse } from 'node:http';

/** A response as server-sent events. */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #left = new AbortController();

  constructor(response: ServerResponse) {
    this.#response = response;
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.on('close', () => this.#left.abort());
  }

  /** Aborted when the client disconnects. */
  get signal(): AbortSignal {
    return this.#left.signal;
  }

  send(type: string, data: object): void {
    this.#response.write(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  end(): void {
    this.#response.end();
  }
}
