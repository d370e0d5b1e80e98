import type { CallScope } from '../contract/call-scope.js';
import type { Message } from '../contract/message.js';
import { driveLoop } from './drive-loop.js';
import { EventChannel } from './event-channel.js';
import type { ToolLoopConfig } from './loop-config.js';
import type { LoopEvent } from './loop-event.js';
import type { ToolLoopResult } from './loop-result.js';

/** A run that is watched: iterate it for its events, await `result` for its outcome. */
export interface ToolLoopStream extends AsyncIterable<LoopEvent> {
  /** The outcome; also after the iteration was left, which aborts the run. */
  readonly result: Promise<ToolLoopResult>;
}

/**
 * Runs the loop and yields what happens as it happens: text as the model writes it, calls with their
 * progress and their ends. A slow reader slows the run; leaving the iteration aborts it, and `result` is
 * then the aborted run with a valid history. The run begins with the iteration, or when `result` is asked
 * for; without an iteration nothing waits for a reader.
 *
 * @example
 * ```ts
 * const run = streamToolLoop({ provider, model: 'gpt-5', tools }, messages);
 * for await (const event of run) {
 *   if (event.type === 'text-delta') process.stdout.write(event.text);
 * }
 * const { status, usage } = await run.result;
 * ```
 */
export function streamToolLoop(
  config: ToolLoopConfig,
  messages: readonly Message[],
  scope: CallScope = {},
): ToolLoopStream {
  const channel = new EventChannel();
  const left = new AbortController();
  let isRead = false;
  let running: Promise<ToolLoopResult> | undefined;
  const start = (): Promise<ToolLoopResult> => {
    running ??= begin();
    return running;
  };
  const begin = async (): Promise<ToolLoopResult> => {
    // After the caller's next step: `stream.result` may be asked for before `for await` begins.
    await Promise.resolve();
    if (!isRead) channel.abandon();
    const signal = config.signal ? AbortSignal.any([config.signal, left.signal]) : left.signal;
    try {
      return await driveLoop({ ...config, signal }, messages, {
        scope,
        sink: (event) => channel.write(event),
      });
    } finally {
      channel.end();
    }
  };
  return {
    get result() {
      return start();
    },
    [Symbol.asyncIterator]() {
      if (isRead) throw new TypeError('The events of a run can be read once.');
      isRead = true;
      return {
        async next() {
          const next = start();
          // An author fault rejects the run; it is the reader's to see, once there is nothing left to read.
          next.catch(() => {});
          const read = await channel.read();
          return read.done ? next.then(() => read) : read;
        },
        async return() {
          left.abort(new DOMException('The reader of the run has left.', 'AbortError'));
          channel.abandon();
          await start().catch(() => {});
          return { value: undefined, done: true };
        },
      };
    },
  };
}
