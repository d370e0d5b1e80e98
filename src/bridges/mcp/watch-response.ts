import type { UnderWay } from './under-way.js';

/** How a response is watched. */
export interface ResponseWatcher {
  /** Where it counts from the moment when somebody reads it. */
  readonly deliveries: UnderWay;
  /** Called once, when the body has been read to the end or is not wanted any more. */
  readonly onEnd?: () => void;
  /** What is put before the body. */
  readonly first?: Uint8Array;
  /** Aborted when the client is gone: adapters may notice that no earlier than at the next chunk. */
  readonly signal: AbortSignal;
}

/** The same response, watched. */
export function watchResponse(response: Response, watcher: ResponseWatcher): Response {
  const { deliveries, onEnd, first, signal } = watcher;
  const reader = response.body?.getReader();
  if (reader === undefined) {
    onEnd?.();
    return response;
  }
  let isOver = false;
  let delivered: (() => void) | undefined;
  const end = (): void => {
    if (!isOver) onEnd?.();
    isOver = true;
    delivered?.();
  };
  const source = {
    start(controller: ReadableStreamDefaultController<Uint8Array>): void {
      if (first !== undefined) controller.enqueue(first);
      // Cancelling ends a read that is under way, and with it the body.
      const leave = (): void => {
        end();
        reader.cancel().catch(() => {});
      };
      if (signal.aborted) leave();
      signal.addEventListener('abort', leave, { once: true });
    },
    async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
      if (!isOver) delivered ??= deliveries.begin();
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        end();
        controller.close();
      } catch (error) {
        end();
        controller.error(error);
      }
    },
    cancel(reason: unknown): Promise<void> {
      end();
      return reader.cancel(reason);
    },
  };
  // Nothing is read ahead: what nobody reads is nothing to wait for.
  const body = new ReadableStream(source, { highWaterMark: 0 });
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}
