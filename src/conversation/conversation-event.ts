import type { TaskEvent } from '../contract/background-task.js';
import type { UserMessage } from '../contract/message.js';
import type { LoopEvent } from '../loop/loop-event.js';
import type { ToolLoopResult } from '../loop/loop-result.js';

/** Somebody said something to the model. */
export interface PromptOrigin {
  readonly kind: 'prompt';
  readonly content: UserMessage['content'];
}

/** Work that a tool had started has completed. */
export interface CompletionOrigin {
  readonly kind: 'completion';
  readonly tool: string;
  /** Of the call that started the work; models use such ids again. */
  readonly callId: string;
  readonly taskId?: string;
  /** What the model is told. */
  readonly text: string;
}

/** What waits for a turn of its own, or has begun one; plain JSON. */
export type TurnOrigin = PromptOrigin | CompletionOrigin;

/** A turn of a conversation: from what began it until the model has answered. */
export interface Turn {
  /** Counts the turns of the conversation from 1. A turn that goes on keeps its number. */
  readonly number: number;
  readonly origin: TurnOrigin;
  /** Why it goes on, where it had begun before; without it, this is its beginning. */
  readonly resumedBy?: 'answer' | 'abort' | 'restore';
}

/** What happens in a conversation, in the order in which it happens: all events of its runs and of
 * the work that they start, and these. */
export type ConversationEvent =
  | LoopEvent
  | TaskEvent
  | { readonly type: 'turn-start'; readonly turn: Turn }
  | {
      /** The turn has ended; where `result` is suspended, for now. */
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
      /** A tool has words for the user: `forUser` of a result or of a completion, unless silent or empty. */
      readonly type: 'user-message';
      readonly text: string;
      readonly tool: string;
      readonly callId: string;
      /** Of work that the call started. */
      readonly taskId?: string;
    };
