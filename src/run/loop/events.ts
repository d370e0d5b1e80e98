import type { Spending } from '../../core/contract/budget.js';
import type { CallRecord, HookNote, PendingCall } from '../../core/contract/call.js';
import type { FinishReason, Message, ReplyAttachment, Usage } from '../../core/contract/llm-provider.js';
import type { RunState } from '../../core/contract/run-state.js';
import type { ProgressUpdate } from '../../core/contract/tool-context.js';
import type { ToolResult } from '../../core/contract/tool-result.js';

/** How the model ended one reply. */
interface EndedReply {
  readonly iteration: number;
  readonly finishReason: FinishReason;
  /** The provider's own name for it. */
  readonly rawFinishReason?: string;
  readonly usage?: Usage;
}

/** What happens in a run, in the order in which it happens. */
export type LoopEvent =
  | { readonly type: 'run-start' }
  | { readonly type: 'step-start'; readonly iteration: number }
  /** The provider failed; after `delayMs` the request is made again, of this model. */
  | {
      readonly type: 'request-retry';
      readonly iteration: number;
      readonly model: string;
      readonly delayMs: number;
      readonly error: Error;
    }
  | { readonly type: 'text-delta'; readonly text: string }
  /** What the model thinks, as text for people. */
  | { readonly type: 'reasoning-delta'; readonly text: string }
  /** A source that the model names, or a file that it made. */
  | { readonly type: 'attachment'; readonly attachment: ReplyAttachment }
  /** The model begins to write a call; its arguments come as text, and `call-start` follows when they are whole. */
  | { readonly type: 'call-input-start'; readonly callId: string; readonly tool: string }
  | { readonly type: 'call-input-delta'; readonly callId: string; readonly text: string }
  | { readonly type: 'call-input-end'; readonly callId: string }
  | {
      readonly type: 'call-start';
      readonly callId: string;
      readonly tool: string;
      /** As the model sent them. */
      readonly arguments: unknown;
    }
  | {
      readonly type: 'call-progress';
      readonly callId: string;
      readonly tool: string;
      readonly arguments: unknown;
      /** What the tool reported. */
      readonly update: ProgressUpdate;
    }
  | {
      readonly type: 'call-end';
      readonly callId: string;
      readonly tool: string;
      readonly result: ToolResult;
      readonly record: CallRecord;
    }
  /** The call waits for an answer, and the run will end as suspended; resumed, the call starts again. */
  | {
      readonly type: 'call-suspended';
      readonly callId: string;
      readonly tool: string;
      /** What it waits for, as the suspended run's `pending` will say it. */
      readonly pending: readonly PendingCall[];
    }
  /** What happens in the run of an agent that is a tool of this one (`agentAsTool`). */
  | { readonly type: 'call-event'; readonly callId: string; readonly tool: string; readonly event: LoopEvent }
  /** The reply is whole; its calls are made next. */
  | ({
      readonly type: 'reply-end';
      /** What hooks did about its request; absent where they did nothing. */
      readonly hooks?: readonly HookNote[];
    } & EndedReply)
  /** Its calls are answered. */
  | ({
      readonly type: 'step-end';
      /** What the run has spent so far; only where it has a `budget`. */
      readonly spent?: Spending;
    } & EndedReply)
  | { readonly type: 'run-end'; readonly result: ToolLoopResult };

/**
 * Takes the events of a run. The run waits for what it returns, so that a slow reader slows the run
 * instead of filling memory; progress is not waited for, because tools report it in passing.
 */
export type EventSink = (event: LoopEvent) => void | Promise<void>;

/** How a run ended. */
export type LoopStatus = 'completed' | 'limit' | 'suspended' | 'aborted' | 'failed' | 'budget';

/** The outcome of a run. */
export interface ToolLoopResult {
  /**
   * The model's final text; of an `aborted` run, what was streamed of the reply that was cut off. Otherwise empty,
   * unless answered at the limit.
   */
  readonly content: string;
  /** The final answer as data that fits the config's `output`. */
  readonly output?: unknown;
  /** Requests made to the model. */
  readonly iterations: number;
  readonly status: LoopStatus;
  /**
   * The whole history, the input included: always one that a strict provider accepts. That of a suspended run
   * ends before the assistant message whose calls wait.
   */
  readonly messages: readonly Message[];
  /** Every call that the model made and that has its result, rejected ones included, in order. */
  readonly toolCalls: readonly CallRecord[];
  /** Summed over all replies that reported theirs. */
  readonly usage: Usage;
  /** What the run has spent, with those that its tools began; only where it has a `budget`. */
  readonly spent?: Spending;
  /** Requests that were made again, or of another provider, because one had failed; absent where there were none. */
  readonly providerRetries?: number;
  /** The run's id in its store; only of a suspended run, and of a run whose steps are saved by `checkpoint`. */
  readonly runId?: string;
  /** What a suspended run waits for: one entry for each answer that `resumeToolLoop` takes. */
  readonly pending?: readonly PendingCall[];
  /** What `resumeToolLoop` goes on from; plain JSON. */
  readonly state?: RunState;
  /** Why the run did not complete. */
  readonly error?: Error;
}

/** The most unread progress reports; of more, the oldest are dropped. */
const MAX_WAITING_PROGRESS = 256;

type NextEvent = IteratorResult<LoopEvent, undefined>;

/** Hands events from a run to one reader, one at a time: the writer goes on when the reader has taken it. */
export class EventChannel {
  #waiting: { readonly event: LoopEvent; readonly taken: () => void }[] = [];
  #readers: ((next: NextEvent) => void)[] = [];
  #isClosed = false;
  #waitingProgress = 0;

  /** Resolves when the event was taken, or when the reader has stopped. */
  write(event: LoopEvent): Promise<void> | undefined {
    if (this.#isClosed) return undefined;
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader({ value: event, done: false });
      return undefined;
    }
    if (event.type === 'call-progress') {
      this.#waitingProgress += 1;
      if (this.#waitingProgress > MAX_WAITING_PROGRESS)
        this.#take(this.#waiting.findIndex((waiting) => waiting.event.type === 'call-progress'));
    }
    return new Promise((taken) => this.#waiting.push({ event, taken }));
  }

  /** The next event, as soon as there is one. Who asks again before the answer gets the one after it. */
  read(): Promise<NextEvent> {
    const event = this.#take(0);
    if (event !== undefined) return Promise.resolve({ value: event, done: false });
    if (this.#isClosed) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => {
      this.#readers.push(resolve);
    });
  }

  #take(index: number): LoopEvent | undefined {
    const [next] = index === 0 ? [this.#waiting.shift()] : this.#waiting.splice(index, 1);
    if (next?.event.type === 'call-progress') this.#waitingProgress -= 1;
    next?.taken();
    return next?.event;
  }

  /** No more events will be written; those that wait can still be read. */
  end(): void {
    this.#isClosed = true;
    for (const reader of this.#readers.splice(0)) reader({ value: undefined, done: true });
  }

  /** Nobody reads any more: whoever waits to be read goes on. */
  abandon(): void {
    this.end();
    for (const { taken } of this.#waiting) taken();
    this.#waiting = [];
  }
}

/** A run that is watched: iterate it for its events, await `result` for its outcome. */
export interface ToolLoopStream extends AsyncIterable<LoopEvent> {
  /** The outcome; also after the iteration was left, which aborts the run. */
  readonly result: Promise<ToolLoopResult>;
}

export type Drive = (signal: AbortSignal, sink: EventSink) => Promise<ToolLoopResult>;

interface ReadyRun {
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
  let isHeard = false;
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
  // One function for all events: an async one would take as long again as all that is done about an event.
  const given = (read: NextEvent): NextEvent | Promise<NextEvent> =>
    read.done ? start().then(() => read) : read;
  return {
    get result() {
      return start();
    },
    [Symbol.asyncIterator]() {
      if (isRead) throw new TypeError('The events of a run can be read once.');
      isRead = true;
      return {
        next() {
          // An author fault rejects the run; it is the reader's to see, once there is nothing left to read.
          if (!isHeard) start().catch(() => {});
          isHeard = true;
          return channel.read().then(given);
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
