import type { CompletedCall } from '../call/job-dispatch.js';
import type { UserMessage } from '../contract/llm-provider.js';
import type { TaskEvent, ToolContext } from '../contract/tool-context.js';
import type { ToolResult } from '../contract/tool-result.js';
import { callListener } from '../kernel/async.js';
import type { LoopEvent, ToolLoopResult } from '../loop/events.js';

/** A message to the model. */
interface PromptOrigin {
  readonly kind: 'prompt';
  readonly content: UserMessage['content'];
}

/** Work that a tool had started has completed. */
interface CompletionOrigin {
  readonly kind: 'completion';
  readonly tool: string;
  /** Of the call that started the work; models use such ids again. */
  readonly callId: string;
  readonly taskId?: string;
  /** The message to the model. */
  readonly text: string;
}

/** No message: the model goes on from the history as it is. */
interface ContinueOrigin {
  readonly kind: 'continue';
}

/** What waits for a turn of its own, or has begun one; plain JSON. */
export type TurnOrigin = PromptOrigin | CompletionOrigin | ContinueOrigin;

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

/** Emits what a result says to the user: `forUser`, unless it is silent or empty. */
export function emitUserMessage(events: EventHub, { forUser, silent }: ToolResult, of: CompletedCall): void {
  if (!forUser || silent) return;
  const { tool, callId, taskId } = of;
  const task = taskId === undefined ? {} : { taskId };
  events.emit({ type: 'user-message', text: forUser, tool, callId, ...task });
}

/** The message to the model of what began a turn; none if it only goes on. */
export function turnMessage(origin: TurnOrigin): UserMessage | undefined {
  if (origin.kind === 'continue') return undefined;
  if (origin.kind === 'prompt') return { role: 'user', content: origin.content };
  return { role: 'user', content: `[System: async:${origin.tool}] ${origin.text}` };
}
