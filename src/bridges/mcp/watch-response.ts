/** How a response is watched. */
export interface ResponseWatcher {
  /** Called once, when the body has been read to the end or is not wanted any more. */
  readonly onEnd: () => void;
  /** What is put before the body. */
  readonly first?: Uint8Array;
  /** Aborted when the client is gone: adapters may notice that no earlier than at the next chunk. */
  readonly signal: AbortSignal;
}

/** The same response, watched. */
export function watchResponse(response: Response, { onEnd, first, signal }: ResponseWatcher): Response {
  const reader = response.body?.getReader();
  if (reader === undefined) {
    onEnd();
    return response;
  }
  let isOver = false;
  const end = (): void => {
    if (!isOver) onEnd();
    isOver = true;
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      if (first !== undefined) controller.enqueue(first);
      // Cancelling ends a read that is under way, and with it the body.
      const leave = (): void => {
        end();
        reader.cancel().catch(() => {});
      };
      if (signal.aborted) leave();
      signal.addEventListener('abort', leave, { once: true });
    },
    async pull(controller) {
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
    cancel(reason) {
      end();
      return reader.cancel(reason);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}
