import type { Spending } from '../../core/contract/budget.js';
import type { CallRecord, HookNote, PendingCall } from '../../core/contract/call.js';
import type { SchemaSource, ValueOf } from '../../core/contract/json-schema.js';
import type { FinishReason, Message, ReplyAttachment, Usage } from '../../core/contract/llm-provider.js';
import type { RunState } from '../../core/contract/run-state.js';
import type { ProgressUpdate } from '../../core/contract/tool-context.js';
import type { ToolResult } from '../../core/contract/tool-result.js';

/** The end of one reply. */
interface EndedReply {
  readonly iteration: number;
  readonly finishReason: FinishReason;
  /** The provider's own value. */
  readonly rawFinishReason?: string;
  readonly usage?: Usage;
}

/** The call that an event belongs to. */
interface CallEvent {
  readonly callId: string;
  readonly tool: string;
}

/** The events of a run, in order. */
export type LoopEvent =
  | { readonly type: 'run-start' }
  | { readonly type: 'step-start'; readonly iteration: number }
  /** The provider failed; after `delayMs` the request to this model is retried. */
  | {
      readonly type: 'request-retry';
      readonly iteration: number;
      readonly model: string;
      readonly delayMs: number;
      readonly error: Error;
    }
  | { readonly type: 'text-delta'; readonly text: string }
  /** The model's reasoning, as text for people. */
  | { readonly type: 'reasoning-delta'; readonly text: string }
  /** A source that the model cites, or a file that it created. */
  | { readonly type: 'attachment'; readonly attachment: ReplyAttachment }
  /**
   * The model starts to write a call; its arguments arrive as text, and `call-start` follows when they are complete.
   */
  | ({ readonly type: 'call-input-start' } & CallEvent)
  | { readonly type: 'call-input-delta'; readonly callId: string; readonly text: string }
  | { readonly type: 'call-input-end'; readonly callId: string }
  | ({
      readonly type: 'call-start';
      /** As the model sent them. */
      readonly arguments: unknown;
    } & CallEvent)
  | ({
      readonly type: 'call-progress';
      readonly arguments: unknown;
      /** The progress that the tool reported. */
      readonly update: ProgressUpdate;
    } & CallEvent)
  | ({ readonly type: 'call-end'; readonly result: ToolResult; readonly record: CallRecord } & CallEvent)
  /** The call waits for an answer, and the run will end as suspended; when resumed, the call starts again. */
  | ({
      readonly type: 'call-suspended';
      /** Its waits, as in `pending` of the suspended run. */
      readonly pending: readonly PendingCall[];
    } & CallEvent)
  /** An event of the run of an agent that is a tool of this run (`agentAsTool`). */
  | ({ readonly type: 'call-event'; readonly event: LoopEvent } & CallEvent)
  /** The reply is complete; its calls are made next. */
  | ({
      readonly type: 'reply-end';
      /** Actions of hooks on its request; absent if there are none. */
      readonly hooks?: readonly HookNote[];
    } & EndedReply)
  /** Its calls are answered. */
  | ({
      readonly type: 'step-end';
      /** The amounts spent so far; only if the run has a `budget`. */
      readonly spent?: Spending;
    } & EndedReply)
  | { readonly type: 'run-end'; readonly result: ToolLoopResult };

/**
 * Receives the events of a run. The run waits for the returned promise, so that a slow reader slows the run instead
 * of filling memory. It does not wait for progress events, because tools report them synchronously.
 */
export type EventSink = (event: LoopEvent) => void | Promise<void>;

/** How a run ended. */
export type LoopStatus = 'completed' | 'limit' | 'suspended' | 'aborted' | 'failed' | 'budget';

/** The outcome of a run. */
export interface ToolLoopResult {
  /**
   * The model's final text; for an `aborted` run, the streamed text of the interrupted reply. Otherwise empty, unless
   * answered at the limit.
   */
  readonly content: string;
  /** The final answer as data that matches the config's `output`. */
  readonly output?: unknown;
  /** The number of requests to the model. */
  readonly iterations: number;
  readonly status: LoopStatus;
  /**
   * The whole history, including the input: always valid for a strict provider. For a suspended run, it ends before
   * the assistant message whose calls wait.
   */
  readonly messages: readonly Message[];
  /** Every call of the model that has its result, including rejected ones, in order. */
  readonly toolCalls: readonly CallRecord[];
  /** The sum of all replies with usage. */
  readonly usage: Usage;
  /** The amounts spent by the run and the runs that its tools started; only if it has a `budget`. */
  readonly spent?: Spending;
  /** The number of requests that were retried, or sent to another provider, after a failure; absent if 0. */
  readonly providerRetries?: number;
  /** The run's id in its store; only for a suspended run, or if its steps are saved by `checkpoint`. */
  readonly runId?: string;
  /** The waits of a suspended run: one entry for each answer of `resumeToolLoop`. */
  readonly pending?: readonly PendingCall[];
  /** The state for `resumeToolLoop`; plain JSON. */
  readonly state?: RunState;
  /** Why the run did not complete. */
  readonly error?: Error;
}

/** The outcome of a run, with the type of its `output`. */
export type TypedResult<Source extends SchemaSource> = ToolLoopResult & { readonly output?: ValueOf<Source> };

/** How a run ends; its result has the rest. */
export type LoopEnd = Pick<ToolLoopResult, 'status'> &
  Partial<Pick<ToolLoopResult, 'content' | 'output' | 'state' | 'error'>>;

/** The most unread progress reports; older ones are dropped. */
const MAX_WAITING_PROGRESS = 256;

type NextEvent = IteratorResult<LoopEvent, undefined>;

/** Passes events from a run to one reader, one at a time: the writer continues when the reader has taken it. */
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

  /** The next event, as soon as there is one. A second call before the answer returns the following event. */
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

  /** No more events will be written; waiting events can still be read. */
  end(): void {
    this.#isClosed = true;
    for (const reader of this.#readers.splice(0)) reader({ value: undefined, done: true });
  }

  /** The reader has stopped: waiting writers continue. */
  abandon(): void {
    this.end();
    for (const { taken } of this.#waiting) taken();
    this.#waiting = [];
  }
}

/** A streamed run: iterate it for its events, await `result` for its outcome. */
export interface ToolLoopStream<Source extends SchemaSource = SchemaSource> extends AsyncIterable<LoopEvent> {
  /** The outcome; also after the iteration was left, which aborts the run. */
  readonly result: Promise<TypedResult<Source>>;
}

type Drive = (signal: AbortSignal, sink: EventSink) => Promise<ToolLoopResult>;

interface ReadyRun {
  readonly signal: AbortSignal | undefined;
  readonly drive: Drive;
}

/**
 * Streams a run to one reader, which aborts the run by leaving. Errors of `prepare` reject the reading and the
 * result.
 */
export function streamRun<Source extends SchemaSource>(prepare: () => ReadyRun): ToolLoopStream<Source> {
  const channel = new EventChannel();
  const left = new AbortController();
  let isRead = false;
  /** After the end, an abort would only reach work that the run has started and that outlives it. */
  let isOver = false;
  let isHeard = false;
  let running: Promise<ToolLoopResult> | undefined;
  const start = (): Promise<ToolLoopResult> => {
    running ??= begin();
    return running;
  };
  const begin = async (): Promise<ToolLoopResult> => {
    // After the caller's next step, because `stream.result` may be read before `for await` begins.
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
  // One function for all events: an async function would double the cost of an event.
  const given = (read: NextEvent): NextEvent | Promise<NextEvent> =>
    read.done ? start().then(() => read) : read;
  return {
    get result() {
      return start() as Promise<TypedResult<Source>>;
    },
    [Symbol.asyncIterator]() {
      if (isRead) throw new TypeError('The events of a run can be read only once.');
      isRead = true;
      return {
        next() {
          // An author fault rejects the run; the reader receives it when there are no more events.
          if (!isHeard) start().catch(() => {});
          isHeard = true;
          return channel.read().then(given);
        },
        async return() {
          if (!isOver)
            left.abort(new DOMException('The reader of the run’s events has stopped reading.', 'AbortError'));
          channel.abandon();
          await start().catch(() => {});
          return { value: undefined, done: true };
        },
      };
    },
  };
}
