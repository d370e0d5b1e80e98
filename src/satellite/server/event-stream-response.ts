import { MAX_TIMER_MS } from '../../invocation/max-timer-ms.js';

/** Sends one event; `id` is what the client may name as the last one it saw. */
export type SendEvent = (event: string, data: unknown, id?: string) => void;

/** Options of {@link eventStreamResponse}. */
export interface EventStreamOptions {
  readonly heartbeatMs: number;
  /** Ends the work as well as a client that goes away does. */
  readonly signal: AbortSignal;
}

/**
 * A response of server-sent events. It begins at once, so that proxies and clients see it live; `work` must not
 * reject, and the stream ends when it does.
 */
export function eventStreamResponse(
  work: (send: SendEvent, signal: AbortSignal) => Promise<void>,
  { heartbeatMs, signal }: EventStreamOptions,
): Response {
  const gone = new AbortController();
  const encoder = new TextEncoder();
  let heartbeat: NodeJS.Timeout | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (text: string): void => {
        if (!gone.signal.aborted) controller.enqueue(encoder.encode(text));
      };
      const send: SendEvent = (event, data, id) => {
        const name = id === undefined ? '' : `id: ${id}\n`;
        write(`event: ${event}\n${name}data: ${JSON.stringify(data)}\n\n`);
      };
      heartbeat = setInterval(() => write(': still there\n\n'), Math.min(heartbeatMs, MAX_TIMER_MS));
      void work(send, AbortSignal.any([signal, gone.signal])).finally(() => {
        clearInterval(heartbeat);
        if (!gone.signal.aborted) controller.close();
      });
    },
    cancel(reason) {
      clearInterval(heartbeat);
      gone.abort(reason);
    },
  });
  // No proxy is to collect the events before it hands them on.
  const headers = {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no',
  };
  return new Response(body, { headers });
}
