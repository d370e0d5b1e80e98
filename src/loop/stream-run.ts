import { EventChannel } from './event-channel.js';
import type { EventSink, LoopEvent } from './loop-event.js';
import type { ToolLoopResult } from './loop-result.js';

/** A run that is watched: iterate it for its events, await `result` for its outcome. */
export interface ToolLoopStream extends AsyncIterable<LoopEvent> {
  /** The outcome; also after the iteration was left, which aborts the run. */
  readonly result: Promise<ToolLoopResult>;
}

/** Drives a run with this signal, and tells the sink of it. */
export type Drive = (signal: AbortSignal, sink: EventSink) => Promise<ToolLoopResult>;

/** A run whose options have been checked. */
export interface ReadyRun {
  readonly signal: AbortSignal | undefined;
  readonly drive: Drive;
}

/** Watches a run: one reader, whose leaving aborts it. What `prepare` throws rejects the reading and the result. */
export function streamRun(prepare: () => ReadyRun): ToolLoopStream {
  const channel = new EventChannel();
  const left = new AbortController();
  let isRead = false;
  /** An abort would reach only the work that the run has started, and that outlives it. */
  let isOver = false;
  let running: Promise<ToolLoopResult> | undefined;
  const start = (): Promise<ToolLoopResult> => {
    running ??= begin();
    return running;
  };
  const begin = async (): Promise<ToolLoopResult> => {
    // After the caller's next step: `stream.result` may be asked for before `for await` begins.
    await Promise.resolve();
    if (!isRead) channel.abandon();
    try {
      const { signal: outer, drive } = prepare();
      const signal = outer ? AbortSignal.any([outer, left.signal]) : left.signal;
      return await drive(signal, (event) => {
        if (event.type === 'run-end') isOver = true;
        return channel.write(event);
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
          if (!isOver) left.abort(new DOMException('The reader of the run has left.', 'AbortError'));
          channel.abandon();
          await start().catch(() => {});
          return { value: undefined, done: true };
        },
      };
    },
  };
}
