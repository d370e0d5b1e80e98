import { MAX_TIMER_MS } from '../../core/kernel/async.js';

const DEFAULT_HEARTBEAT_MS = 15_000;

/**
 * A response body that reads frames only as fast as its reader: a slow reader buffers at most one page of events. Sends
 * comments during silence. `onLeave` is called if the reader disconnects before the end.
 */
export function frameStream(
  frames: AsyncGenerator<string, undefined>,
  onLeave: () => void,
  heartbeatMs = DEFAULT_HEARTBEAT_MS,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let next: Promise<IteratorResult<string, undefined>> | undefined;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        next ??= frames.next();
        const silence = Promise.withResolvers<undefined>();
        const timer = setTimeout(() => silence.resolve(undefined), Math.min(heartbeatMs, MAX_TIMER_MS));
        const read = await Promise.race([next, silence.promise]).finally(() => clearTimeout(timer));
        if (read === undefined) return controller.enqueue(encoder.encode(': still there\n\n'));
        next = undefined;
        if (read.done) controller.close();
        else controller.enqueue(encoder.encode(read.value));
      },
      cancel: onLeave,
    },
    { highWaterMark: 0 },
  );
}
