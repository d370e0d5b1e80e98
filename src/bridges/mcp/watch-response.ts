import type { UnderlyingSource } from 'node:stream/web';
import type { UnderWay } from './under-way.js';
import type { UnreadBytes, UnreadStream } from './unread-bytes.js';

/** How a response is watched. */
export interface ResponseWatcher {
  /** Where it counts from the moment when somebody reads it. */
  readonly deliveries: UnderWay;
  /** Where its bytes count until they are read. */
  readonly unread: UnreadBytes;
  /** Called once, when the body has been read to the end or is not wanted any more. */
  readonly onEnd?: () => void;
  /** What is put before the body. */
  readonly first?: Uint8Array;
  /** Aborted when the client is gone: adapters may notice that no earlier than at the next chunk. */
  readonly signal: AbortSignal;
}

/** What is handed on at a time, so that no adapter holds a large message of which nobody reads anything. */
const CHUNK_BYTES = 64 * 1024;

/** The same response, watched. */
export function watchResponse(response: Response, watcher: ResponseWatcher): Response {
  if (response.body === null) {
    watcher.onEnd?.();
    return response;
  }
  const { status, statusText, headers } = response;
  // Nothing is handed on ahead: what nobody reads is nothing to wait for.
  const body = new ReadableStream(new WatchedBody(response.body, watcher), { highWaterMark: 0 });
  return new Response(body, { status, statusText, headers });
}

/** Takes what is written as soon as it is written, so that all of what nobody reads is known. */
class WatchedBody implements UnderlyingSource<Uint8Array>, UnreadStream {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #watcher: ResponseWatcher;
  readonly #queue: Uint8Array[] = [];
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #delivered: (() => void) | undefined;
  #wake: (() => void) | undefined;
  #isOver = false;
  /** All of the body is written: read to its end, or broken. */
  #ending: { readonly error?: unknown } | undefined;

  constructor(body: ReadableStream<Uint8Array>, watcher: ResponseWatcher) {
    this.#reader = body.getReader();
    this.#watcher = watcher;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
    const { first, signal } = this.#watcher;
    if (first !== undefined) controller.enqueue(first);
    // Cancelling ends a read that is under way, and with it the body.
    const leave = (): void => void this.cancel(signal.reason).catch(() => {});
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    void this.#take();
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (!this.#isOver) this.#delivered ??= this.#watcher.deliveries.begin();
    while (this.#queue.length === 0 && this.#ending === undefined) await this.#written();
    const chunk = this.#queue.shift();
    if (chunk !== undefined) {
      if (chunk.length > CHUNK_BYTES) this.#queue.unshift(chunk.subarray(CHUNK_BYTES));
      const part = chunk.length > CHUNK_BYTES ? chunk.slice(0, CHUNK_BYTES) : chunk;
      this.#watcher.unread.read(this, part.length);
      return controller.enqueue(part);
    }
    this.#end();
    if (this.#ending !== undefined && 'error' in this.#ending) return controller.error(this.#ending.error);
    controller.close();
  }

  async cancel(reason?: unknown): Promise<void> {
    this.#end();
    await this.#reader.cancel(reason);
  }

  drop(): void {
    const error = new Error('The response was ended: its client has not read it');
    this.#controller?.error(error);
    this.cancel(error).catch(() => {});
  }

  async #take(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await this.#reader.read();
        if (done || this.#isOver) break;
        this.#queue.push(value);
        this.#watcher.unread.add(this, value.length);
        this.#wake?.();
      }
      this.#ending = {};
    } catch (error) {
      this.#ending = { error };
    }
    this.#wake?.();
  }

  #written(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#queue.length = 0;
    this.#ending ??= {};
    this.#wake?.();
    this.#watcher.unread.end(this);
    this.#watcher.onEnd?.();
    this.#delivered?.();
  }
}
