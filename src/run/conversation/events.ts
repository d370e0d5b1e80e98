import type { CallRecord } from '../../core/contract/call.js';
import type { InboxContent, LoggedEvent } from '../../core/contract/conversation-log.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { UserMessage } from '../../core/contract/llm-provider.js';
import type { StoredResult } from '../../core/contract/run-state.js';
import type { TaskEvent, ToolContext } from '../../core/contract/tool-context.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { plainJson, withoutUndefined } from '../../core/kernel/json.js';
import type { CompletedCall } from '../call/job-dispatch.js';
import type { LoopEvent, ToolLoopResult } from '../loop/events.js';
import { errorJson, type StoredError } from '../loop/run-errors.js';

/** The reason for a turn; plain JSON. */
export type TurnOrigin =
  /** A message to the model. */
  | { readonly kind: 'prompt'; readonly content: UserMessage['content'] }
  /** Work that a tool had started is completed. */
  | {
      readonly kind: 'completion';
      readonly tool: string;
      /** The call that started the work; models reuse such ids. */
      readonly callId: string;
      readonly taskId?: string;
      /** The message to the model. */
      readonly text: string;
    }
  /** No message: the model continues from the history. */
  | { readonly kind: 'continue' };

/** A turn of a conversation: from its origin until the model has answered. */
export interface Turn {
  /** Counts the turns of the conversation from 1. A turn that continues keeps its number. */
  readonly number: number;
  readonly origin: TurnOrigin;
  /** Why it continues, if it had begun before. */
  readonly resumedBy?: 'answer' | 'abort' | 'restore';
}

/** The events of a conversation, in order: all events of its runs and of the work that they start, and these. */
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
      /** The turn's run rejected: `onLimit: 'throw'`, or the store gave the run to another process. */
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
      /** Set for work that the call started. */
      readonly taskId?: string;
    };

/** Receives the events of a conversation. Errors and return values have no effect. */
export type ConversationListener = (event: ConversationEvent) => unknown;

/** The call of a context. */
export function callOfContext(context: ToolContext | undefined): CompletedCall {
  const { toolName = '', callId = '', taskId } = context ?? {};
  return { tool: toolName, callId, taskId };
}

/** The error for answers to a conversation whose turn does not wait for any. */
export function nothingAsked(): ToolwrightError {
  return new ToolwrightError('InvalidAnswer', 'The conversation is not waiting for an answer.');
}

/** The message to the model at the start of a turn; `undefined` if it only continues. */
export function turnMessage(origin: TurnOrigin): UserMessage | undefined {
  if (origin.kind === 'continue') return undefined;
  if (origin.kind === 'prompt') return { role: 'user', content: origin.content };
  return { role: 'user', content: `[System: async:${origin.tool}] ${origin.text}` };
}

/** The event of a message to the user. */
export function userMessage(
  text: string,
  { tool, callId, taskId }: CompletedCall,
): Extract<ConversationEvent, { readonly type: 'user-message' }> {
  return withoutUndefined({ type: 'user-message', text, tool, callId, taskId });
}

/** The outcome of a run, without its history, which is in the conversation. */
interface StoredOutcome extends Omit<RunOutcome, 'error'> {
  /** `filesRefused`: the provider refused the first request, whose message has files. */
  readonly error?: StoredError & { readonly filesRefused?: true };
}

/** The outcome of a run, in this process or a store. */
export type RunOutcome = Pick<
  ToolLoopResult,
  'status' | 'content' | 'output' | 'iterations' | 'usage' | 'spent' | 'pending'
> & { readonly error?: unknown };

/** The end of a call. For edited arguments, it contains those that were used; `call-start` contains the model's. */
interface StoredCallEnd extends Pick<CallRecord, 'status' | 'durationMs' | 'taskId' | 'edited'> {
  readonly type: 'call-end';
  readonly callId: string;
  readonly tool: string;
  readonly result: StoredResult;
  readonly arguments?: unknown;
}

type RunEvent<Type extends LoopEvent['type']> = Extract<LoopEvent, { readonly type: Type }>;

/** An event of a run, without parts that only its process can use. */
type StoredRunEvent =
  | Exclude<LoopEvent, { readonly type: 'call-end' | 'call-event' | 'run-end' | 'request-retry' }>
  | StoredCallEnd
  | (Omit<RunEvent<'call-event'>, 'event'> & { readonly event: StoredRunEvent })
  | ({ readonly type: 'run-end' } & StoredOutcome)
  | (Omit<RunEvent<'request-retry'>, 'error'> & { readonly error: StoredError });

/** A turn, with the key and kind of its entry. */
interface TurnPlace {
  readonly turn: {
    readonly number: number;
    readonly key: string;
    readonly kind: InboxContent['kind'];
  };
}

/** An event of a conversation for readers in any process: plain JSON. */
export type KeptEvent = JsonObject &
  (
    | StoredRunEvent
    | ({ readonly type: 'turn-start' } & TurnPlace)
    /** The turn waits for answers. */
    | ({ readonly type: 'turn-suspended' } & TurnPlace & StoredOutcome)
    /** A turn that could never run has only a status and an error. */
    | ({ readonly type: 'turn-end' } & TurnPlace &
        Pick<StoredOutcome, 'status'> &
        Partial<Omit<StoredOutcome, 'status'>>)
    /** The turn continues with the answers under this key, for the waits with these ids. */
    | {
        readonly type: 'answers-taken';
        readonly key: string;
        readonly ids: readonly string[];
        /** Reasons of refusals, by the ids of what was refused. */
        readonly reasons?: Readonly<Record<string, string>>;
        readonly answeredBy?: unknown;
      }
    /** `isLate`: other answers were faster, or the turn is over; otherwise the answers themselves are wrong. */
    | {
        readonly type: 'answers-refused';
        readonly key: string;
        readonly isLate: boolean;
        readonly error: StoredError;
      }
    | Extract<ConversationEvent, { readonly type: 'user-message' }>
  );

/** An event of a conversation; numbers count from 1 without a gap. */
export interface NumberedEvent extends LoggedEvent {
  readonly event: KeptEvent;
}

/** An event of a run for a log: JSON without parts that only this process can use. */
export function eventJson(event: LoopEvent): KeptEvent {
  return plainJson(storedOf(event)) as KeptEvent;
}

function storedOf(event: LoopEvent): StoredRunEvent {
  switch (event.type) {
    case 'call-end': {
      const { type, callId, tool, record } = event;
      const { status, durationMs, result, taskId, edited, arguments: args } = record;
      const { forLLM, forUser, silent, isError, async, content, details } = result;
      // Everything in a result that JSON can represent, except the error, which is for logs.
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

/** The outcome of a run, without its history, which is in the conversation. */
export function outcomeJson(result: RunOutcome): StoredOutcome {
  const { status, content, iterations, usage, spent, pending, error: given } = result;
  const error = given === undefined ? undefined : errorJson(given);
  // It may have values that JSON cannot represent.
  const output = plainJson(result.output);
  return plainJson({ status, content, output, iterations, usage, spent, pending, error }) as StoredOutcome;
}
