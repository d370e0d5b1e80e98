import { MAX_TIMER_MS } from '../../kernel/async.js';

/** Sends one event, and waits while the client reads nothing; `id` is what it may name as the last one it saw. */
type SendEvent = (event: string, data: unknown, id?: string) => Promise<void>;

/** Options of {@link eventStreamResponse}. */
interface EventStreamOptions {
  /** Milliseconds between two comments; a client that reads nothing for so many times as long is gone. */
  readonly heartbeatMs: number;
  /** Ends the work as well as a client that goes away does. */
  readonly signal: AbortSignal;
}

/** Bytes that wait for a slow reader; its work waits for the rest. */
const MOST_WAITING = 64 * 1024;

const SILENT_HEARTBEATS = 4;

/**
 * A response of server-sent events. It begins at once, so that proxies and clients see it live; `work` must not
 * reject, and the stream ends when it does.
 */
export function eventStreamResponse(
  work: (send: SendEvent, signal: AbortSignal) => Promise<void>,
  { heartbeatMs, signal }: EventStreamOptions,
): Response {
  const source = new EventSource(heartbeatMs);
  const body = new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        source.open(controller);
        void work((...event) => source.send(...event), AbortSignal.any([signal, source.gone])).finally(() =>
          source.end(),
        );
      },
      pull: () => source.resume(),
      cancel: (reason) => source.leave(reason),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: MOST_WAITING }),
  );
  // No proxy is to collect the events before it hands them on.
  const headers = {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no',
  };
  return new Response(body, { headers });
}

/** What writes into the body of a response. */
class EventSource {
  readonly #heartbeatMs: number;
  readonly #gone = new AbortController();
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  /** Somebody waits until the client reads on. */
  #reading: PromiseWithResolvers<void> | undefined;

  constructor(heartbeatMs: number) {
    this.#heartbeatMs = heartbeatMs;
  }

  /** Aborted when nobody reads any more. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  open(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
    this.#heartbeat = setInterval(() => this.#beat(), Math.min(this.#heartbeatMs, MAX_TIMER_MS));
  }

  async send(event: string, data: unknown, id?: string): Promise<void> {
    const name = id === undefined ? '' : `id: ${id}\n`;
    this.#write(`event: ${event}\n${name}data: ${JSON.stringify(data)}\n\n`);
    if (this.#isFull) await this.#waitForReader();
  }

  /** The client has read something. */
  resume(): void {
    this.#reading?.resolve();
    this.#reading = undefined;
  }

  leave(reason: unknown): void {
    clearInterval(this.#heartbeat);
    this.#gone.abort(reason);
    this.resume();
  }

  end(): void {
    clearInterval(this.#heartbeat);
    if (!this.gone.aborted) this.#controller?.close();
  }

  get #isFull(): boolean {
    return !this.gone.aborted && (this.#controller?.desiredSize ?? 0) <= 0;
  }

  /** Who does not read needs no sign of life, and it would wait with the rest. */
  #beat(): void {
    if (!this.#isFull) this.#write(': still there\n\n');
  }

  #write(text: string): void {
    if (!this.gone.aborted) this.#controller?.enqueue(this.#encoder.encode(text));
  }

  async #waitForReader(): Promise<void> {
    this.#reading ??= Promise.withResolvers<void>();
    const limit = Math.min(this.#heartbeatMs * SILENT_HEARTBEATS, MAX_TIMER_MS);
    const timer = setTimeout(() => this.#giveUp(), limit).unref();
    await this.#reading.promise;
    clearTimeout(timer);
  }

  #giveUp(): void {
    const reason = new Error('the client does not read its events');
    this.#controller?.error(reason);
    this.leave(reason);
  }
}
