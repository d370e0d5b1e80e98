import type { CallRecord } from '../../core/contract/call.js';
import type { InboxContent, LoggedEvent } from '../../core/contract/conversation-log.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { UserMessage } from '../../core/contract/llm-provider.js';
import type { StoredResult } from '../../core/contract/run-state.js';
import type { TaskEvent, ToolContext } from '../../core/contract/tool-context.js';
import { callListener } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { plainJson } from '../../core/kernel/json.js';
import type { CompletedCall } from '../call/job-dispatch.js';
import type { LoopEvent, ToolLoopResult } from '../loop/events.js';

/** What waits for a turn of its own, or has begun one; plain JSON. */
export type TurnOrigin =
  /** A message to the model. */
  | { readonly kind: 'prompt'; readonly content: UserMessage['content'] }
  /** Work that a tool had started has completed. */
  | {
      readonly kind: 'completion';
      readonly tool: string;
      /** Of the call that started the work; models use such ids again. */
      readonly callId: string;
      readonly taskId?: string;
      /** The message to the model. */
      readonly text: string;
    }
  /** No message: the model goes on from the history as it is. */
  | { readonly kind: 'continue' };

/** A turn of a conversation: from what began it until the model has answered. */
export interface Turn {
  /** Counts the turns of the conversation from 1. A turn that goes on keeps its number. */
  readonly number: number;
  readonly origin: TurnOrigin;
  /** Why it goes on, if it had begun before. */
  readonly resumedBy?: 'answer' | 'abort' | 'restore';
}

/** What happens in a conversation, in the order in which it happens: all events of its runs and of
 * the work that they start, and these. */
export type ConversationEvent =
  | LoopEvent
  | TaskEvent
  | { readonly type: 'turn-start'; readonly turn: Turn }
  | {
      /** The turn has ended, or waits for answers if `result` is suspended. */
      readonly type: 'turn-end';
      readonly turn: Turn;
      readonly result: ToolLoopResult;
      readonly error?: undefined;
    }
  | {
      /** The turn's run rejected: `onLimit: 'throw'`, or a store that has given the run to another process. */
      readonly type: 'turn-end';
      readonly turn: Turn;
      readonly result?: undefined;
      readonly error: unknown;
    }
  | {
      /** A tool has a message for the user: `forUser` of a result or of a completion, unless silent or empty. */
      readonly type: 'user-message';
      readonly text: string;
      readonly tool: string;
      readonly callId: string;
      /** Of work that the call started. */
      readonly taskId?: string;
    };

/** Receives what happens in a conversation; what it throws or returns changes nothing. */
export type ConversationListener = (event: ConversationEvent) => unknown;

/** Emits every event to every listener, in one order: what a listener sets off is emitted after the event it received. */
export class EventHub {
  readonly #subscriptions = new Set<{ readonly listener: ConversationListener }>();
  readonly #waiting: ConversationEvent[] = [];
  readonly #onError: (error: unknown) => void;
  #isEmitting = false;

  /** `onError` receives what listeners throw. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  get hasListeners(): boolean {
    return this.#subscriptions.size > 0;
  }

  /** A listener that is subscribed twice is called twice. */
  subscribe(listener: ConversationListener): () => void {
    const subscription = { listener };
    this.#subscriptions.add(subscription);
    return () => {
      this.#subscriptions.delete(subscription);
    };
  }

  emit(event: ConversationEvent): void {
    this.#waiting.push(event);
    if (this.#isEmitting) return;
    this.#isEmitting = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const emitted = next;
      for (const subscription of [...this.#subscriptions])
        if (this.#subscriptions.has(subscription))
          callListener(() => subscription.listener(emitted), this.#onError);
    }
    this.#isEmitting = false;
  }
}

/** The call of a context. */
export function callOfContext(context: ToolContext | undefined): CompletedCall {
  const { toolName = '', callId = '', taskId } = context ?? {};
  return { tool: toolName, callId, taskId };
}

/** The message to the model of what began a turn; none if it only goes on. */
export function turnMessage(origin: TurnOrigin): UserMessage | undefined {
  if (origin.kind === 'continue') return undefined;
  if (origin.kind === 'prompt') return { role: 'user', content: origin.content };
  return { role: 'user', content: `[System: async:${origin.tool}] ${origin.text}` };
}

/** An error as readers in other processes get it. */
interface StoredError {
  readonly name: string;
  readonly message: string;
  /** Of errors of this package. */
  readonly code?: number;
}

/** What came of a run, without its history: that is the conversation's. */
interface StoredOutcome extends Omit<RunOutcome, 'error'> {
  readonly error?: StoredError;
}

/** What came of a run, as this process or a store has it. */
type RunOutcome = Pick<
  ToolLoopResult,
  'status' | 'content' | 'output' | 'iterations' | 'usage' | 'spent' | 'pending'
> & { readonly error?: unknown };

/** How a call ended. Of edited arguments, also those that ran: `call-start` has the model's. */
interface StoredCallEnd extends Pick<CallRecord, 'status' | 'durationMs' | 'taskId' | 'edited'> {
  readonly type: 'call-end';
  readonly callId: string;
  readonly tool: string;
  readonly result: StoredResult;
  readonly arguments?: unknown;
}

type RunEvent<Type extends LoopEvent['type']> = Extract<LoopEvent, { readonly type: Type }>;

/** An event of a run: without what only its process can use. */
type StoredRunEvent =
  | Exclude<LoopEvent, { readonly type: 'call-end' | 'call-event' | 'run-end' | 'request-retry' }>
  | StoredCallEnd
  | (Omit<RunEvent<'call-event'>, 'event'> & { readonly event: StoredRunEvent })
  | ({ readonly type: 'run-end' } & StoredOutcome)
  | (Omit<RunEvent<'request-retry'>, 'error'> & { readonly error: StoredError });

/** A turn, the key of the entry that began it, and of which kind that was. */
interface TurnPlace {
  readonly turn: {
    readonly number: number;
    readonly key: string;
    readonly kind: InboxContent['kind'];
  };
}

/** What happens in a conversation, as readers in any process get it: plain JSON. */
export type KeptEvent = JsonObject &
  (
    | StoredRunEvent
    | ({ readonly type: 'turn-start' } & TurnPlace)
    /** The turn waits for answers. */
    | ({ readonly type: 'turn-suspended' } & TurnPlace & StoredOutcome)
    /** One that could never be run has a status and an error alone. */
    | ({ readonly type: 'turn-end' } & TurnPlace &
        Pick<StoredOutcome, 'status'> &
        Partial<Omit<StoredOutcome, 'status'>>)
    /** The turn goes on with the answers that entered under this key, to what has these ids. */
    | {
        readonly type: 'answers-taken';
        readonly key: string;
        readonly ids: readonly string[];
        readonly answeredBy?: unknown;
      }
    /** `isLate`: others were quicker, or the turn is over; otherwise the answers themselves are wrong. */
    | {
        readonly type: 'answers-refused';
        readonly key: string;
        readonly isLate: boolean;
        readonly error: StoredError;
      }
    | Extract<ConversationEvent, { readonly type: 'user-message' }>
  );

/** Something that happened in a conversation; numbers count from 1 without a gap. */
export interface NumberedEvent extends LoggedEvent {
  readonly event: KeptEvent;
}

/** An event of a run as a log has it: JSON without what only this process can use. */
export function eventJson(event: LoopEvent): KeptEvent {
  return plainJson(storedOf(event)) as KeptEvent;
}

function storedOf(event: LoopEvent): StoredRunEvent {
  switch (event.type) {
    case 'call-end': {
      const { type, callId, tool, record } = event;
      const { status, durationMs, result, taskId, edited, arguments: args } = record;
      const { forLLM, forUser, silent, isError, async, content, details } = result;
      // All of a result that JSON can hold, except the error, which is for logs.
      const fields = { forLLM, forUser, silent, isError, async, content, details: plainJson(details) };
      const ran = edited === undefined ? {} : { arguments: args, edited };
      return { type, callId, tool, status, durationMs, result: fields as StoredResult, taskId, ...ran };
    }
    case 'call-event':
      return { ...event, event: storedOf(event.event) };
    case 'run-end':
      return { type: event.type, ...outcomeJson(event.result) };
    case 'request-retry':
      return { ...event, error: errorJson(event.error) };
    default:
      return event;
  }
}

/** What came of a run, without its history: that is the conversation's. */
export function outcomeJson(result: RunOutcome): StoredOutcome {
  const { status, content, output, iterations, usage, spent, pending, error: given } = result;
  const error = given === undefined ? undefined : errorJson(given);
  return plainJson({ status, content, output, iterations, usage, spent, pending, error }) as StoredOutcome;
}

/** An error as readers in other processes get it. */
export function errorJson(error: unknown): StoredError {
  const { name = 'Error', code } = Object(error) as { readonly name?: unknown; readonly code?: unknown };
  return { name: String(name), message: errorMessage(error), ...(typeof code === 'number' ? { code } : {}) };
}
