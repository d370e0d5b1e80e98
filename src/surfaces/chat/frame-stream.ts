import { MAX_TIMER_MS } from '../../core/kernel/async.js';

interface FrameStreamOptions {
  readonly heartbeatMs: number;
  /** The reader has left before the end. */
  readonly onLeave: () => void;
}

/**
 * Frames as a body, read one by one as the reader asks for them: a slow reader costs what one page of events does. A
 * silence is broken by comments.
 */
export function frameStream(
  frames: AsyncGenerator<string, undefined>,
  { heartbeatMs, onLeave }: FrameStreamOptions,
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
