import type { JsonObject } from '../contract/json-schema.js';
import { MAX_TIMER_MS } from '../kernel/async.js';
import { isRecord } from '../kernel/json.js';
import type { DescribeError } from './shown-calls.js';
import type { ReadEvent } from './turn-readings.js';
import { type UiMessageChunk, UNTOLD, uiMessageChunks } from './ui-message-chunks.js';

/** The events of a turn as the AI SDK's UI message stream, in frames of server-sent events. */
export async function* uiMessageFrames(
  events: AsyncIterable<ReadEvent>,
  { describeError, greets }: { readonly describeError: DescribeError; readonly greets: boolean },
): AsyncGenerator<string, undefined> {
  let told = UNTOLD;
  let isGreeted = !greets;
  for await (const { number, event, isNews } of events) {
    const before = told;
    const { chunks, ...after } = uiMessageChunks(told, event, describeError);
    told = after.told;
    if (!isNews) continue;
    if (!isGreeted && before.messageId !== '') yield frame({ type: 'start', messageId: before.messageId });
    isGreeted = true;
    if (event.type === 'answers-refused') yield frame({ type: 'error', errorText: refusalText(event) });
    for (const [index, chunk] of chunks.entries())
      yield index === chunks.length - 1 ? `id: ${number}\n${frame(chunk)}` : frame(chunk);
  }
  yield 'data: [DONE]\n\n';
}

/** Numbered events as they are, in frames of server-sent events. */
export async function* eventFrames(events: AsyncIterable<ReadEvent>): AsyncGenerator<string, undefined> {
  for await (const { number, event, isNews } of events)
    if (isNews) yield `id: ${number}\ndata: ${JSON.stringify(event)}\n\n`;
}

export const ANSWERED_ALREADY = 'Somebody else has answered already.';

/** Why answers were refused after they had entered, for whoever gave them. */
export function refusalText({ isLate, error }: JsonObject): string {
  return isLate === false && isRecord(error) ? String(error.message) : ANSWERED_ALREADY;
}

function frame(chunk: UiMessageChunk): string {
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

/** What a stream of frames needs to know of its reader. */
interface FrameStreamOptions {
  readonly heartbeatMs: number;
  /** The reader has left before the end. */
  readonly onLeave: () => void;
}

/**
 * Frames as a body, read one by one as the reader asks for them: whoever does not read costs what one page of events
 * does. A silence is broken by comments.
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
        const read = await orSilence(next, heartbeatMs);
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

async function orSilence<Value>(work: Promise<Value>, heartbeatMs: number): Promise<Value | undefined> {
  const silence = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => silence.resolve(undefined), Math.min(heartbeatMs, MAX_TIMER_MS));
  try {
    return await Promise.race([work, silence.promise]);
  } finally {
    clearTimeout(timer);
  }
}
