import type { UnderlyingSource } from 'node:stream/web';
import { Pending } from './open-requests.js';

interface ResponseWatcher {
  /** Counts the response while it is read, and its bytes until they are read. */
  readonly deliveries: Deliveries;
  /** Called once, when nothing more will be written to the body. */
  readonly onEnd?: () => void;
  /** Sent before the body. */
  readonly first?: Uint8Array | undefined;
  /** Aborted when the client has left; adapters may notice this only with the next chunk. */
  readonly signal: AbortSignal;
}

/** Chunk size, so that an adapter never buffers a large unread message. */
const CHUNK_BYTES = 64 * 1024;

export function watchResponse(response: Response, watcher: ResponseWatcher): Response {
  if (response.body === null) {
    watcher.onEnd?.();
    return response;
  }
  const { status, statusText, headers } = response;
  // Nothing is buffered ahead, so that an unread response is never waited for.
  const body = new ReadableStream(new WatchedBody(response.body, watcher), { highWaterMark: 0 });
  return new Response(body, { status, statusText, headers });
}

/** Reads the source immediately, so that the number of unread bytes is known. */
class WatchedBody implements UnderlyingSource<Uint8Array> {
  /** Bytes that were written but not read. */
  unread = 0;
  /** When the client last read, or had nothing to read. */
  readAt = 0;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #watcher: ResponseWatcher;
  readonly #queue: Uint8Array[] = [];
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #wake: (() => void) | undefined;
  #isOver = false;
  /** Set once the source has ended or failed. */
  #ending: { readonly error?: unknown } | undefined;

  constructor(body: ReadableStream<Uint8Array>, watcher: ResponseWatcher) {
    this.#reader = body.getReader();
    this.#watcher = watcher;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
    const { first, signal } = this.#watcher;
    if (first !== undefined) controller.enqueue(first);
    // Cancelling also ends a pending read, and with it the body.
    const leave = (): void => void this.cancel(signal.reason).catch(() => {});
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    void this.#take();
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (!this.#isOver) this.#watcher.deliveries.begin(this);
    while (this.#queue.length === 0 && this.#ending === undefined)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    const chunk = this.#queue.shift();
    if (chunk !== undefined) {
      if (chunk.length > CHUNK_BYTES) this.#queue.unshift(chunk.subarray(CHUNK_BYTES));
      const part = chunk.length > CHUNK_BYTES ? chunk.slice(0, CHUNK_BYTES) : chunk;
      this.readAt = performance.now();
      this.#watcher.deliveries.change(this, -part.length);
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

  /** Ends the response because its client does not read it and memory is needed. */
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
        if (this.unread === 0) this.readAt = performance.now();
        this.#watcher.deliveries.change(this, value.length);
        this.#wake?.();
      }
      this.#ending = {};
    } catch (error) {
      this.#ending = { error };
    }
    this.#watcher.onEnd?.();
    this.#wake?.();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#queue.length = 0;
    this.#ending ??= {};
    this.#wake?.();
    this.#watcher.deliveries.change(this, -this.unread);
    this.#watcher.deliveries.end(this);
  }
}

/**
 * The responses that are being read, with their unread bytes. If there are too many, the responses that have not been
 * read for the longest time are ended; a single response may have any size.
 */
export class Deliveries extends Pending<object> {
  readonly #max: number;
  readonly #unread = new Set<WatchedBody>();
  #total = 0;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  /** Adds written bytes of a body, or subtracts read ones. */
  change(body: WatchedBody, bytes: number): void {
    body.unread += bytes;
    this.#total += bytes;
    if (body.unread > 0) this.#unread.add(body);
    else this.#unread.delete(body);
    while (this.#total > this.#max && this.#unread.size > 1)
      Array.from(this.#unread)
        .reduce((stalled, other) => (other.readAt < stalled.readAt ? other : stalled))
        .drop();
  }
}
