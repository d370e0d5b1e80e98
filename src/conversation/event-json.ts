import type { CallRecord } from '../contract/call.js';
import type { InboxContent, InboxEntry, LoggedEvent } from '../contract/conversation-log.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { StoredResult } from '../contract/run-state.js';
import { errorMessage } from '../kernel/error-message.js';
import { plainJson } from '../kernel/json.js';
import type { LoopEvent, ToolLoopResult } from '../loop/events.js';
import type { ConversationEvent } from './events.js';

/** An error as readers in other processes get it. */
interface KeptError {
  readonly name: string;
  readonly message: string;
  /** Of errors of this package. */
  readonly code?: number;
}

/** What came of a run, without its history: that is the conversation's. */
interface KeptOutcome extends Omit<RunOutcome, 'error'> {
  readonly error?: KeptError;
}

/** What came of a run, as this process or a store has it. */
type RunOutcome = Pick<
  ToolLoopResult,
  'status' | 'content' | 'output' | 'iterations' | 'usage' | 'spent' | 'pending'
> & { readonly error?: unknown };

/** How a call ended. Of edited arguments, also those that ran: `call-start` has the model's. */
interface KeptCallEnd extends Pick<CallRecord, 'status' | 'durationMs' | 'taskId' | 'edited'> {
  readonly type: 'call-end';
  readonly callId: string;
  readonly tool: string;
  readonly result: StoredResult;
  readonly arguments?: unknown;
}

type RunEvent<Type extends LoopEvent['type']> = Extract<LoopEvent, { readonly type: Type }>;

/** An event of a run: without what only its process can use. */
type KeptRunEvent =
  | Exclude<LoopEvent, { readonly type: 'call-end' | 'call-event' | 'run-end' | 'request-retry' }>
  | KeptCallEnd
  | (Omit<RunEvent<'call-event'>, 'event'> & { readonly event: KeptRunEvent })
  | ({ readonly type: 'run-end' } & KeptOutcome)
  | (Omit<RunEvent<'request-retry'>, 'error'> & { readonly error: KeptError });

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
    | KeptRunEvent
    | ({ readonly type: 'turn-start' } & TurnPlace)
    /** The turn waits for answers. */
    | ({ readonly type: 'turn-suspended' } & TurnPlace & KeptOutcome)
    /** One that could never be run has a status and an error alone. */
    | ({ readonly type: 'turn-end' } & TurnPlace &
        Pick<KeptOutcome, 'status'> &
        Partial<Omit<KeptOutcome, 'status'>>)
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
        readonly error: KeptError;
      }
    | Extract<ConversationEvent, { readonly type: 'user-message' }>
  );

/** Something that happened in a conversation; numbers count from 1 without a gap. */
export interface NumberedEvent extends LoggedEvent {
  readonly event: KeptEvent;
}

/** An event of a run as a log has it: JSON without what only this process can use. */
export function eventJson(event: LoopEvent): KeptEvent {
  return plainJson(keptOf(event)) as KeptEvent;
}

function keptOf(event: LoopEvent): KeptRunEvent {
  switch (event.type) {
    case 'call-end': {
      const { type, callId, tool, record } = event;
      const { status, durationMs, result, taskId, edited, arguments: args } = record;
      const { forLLM, forUser, silent, isError, async, content, details } = result;
      // All of a result that JSON can hold, except the error, which is for logs.
      const fields = { forLLM, forUser, silent, isError, async, content, details: plainJson(details) };
      const stored = plainJson(fields) as StoredResult;
      const ran = edited === undefined ? {} : { arguments: args, edited };
      const task = taskId === undefined ? {} : { taskId };
      return { type, callId, tool, status, durationMs, result: stored, ...task, ...ran };
    }
    case 'call-event':
      return { ...event, event: keptOf(event.event) };
    case 'run-end':
      return { type: event.type, ...outcomeJson(event.result) };
    case 'request-retry':
      return { ...event, error: errorJson(event.error) };
    default:
      return event;
  }
}

/** What came of a run, without its history: that is the conversation's. */
export function outcomeJson(result: RunOutcome): KeptOutcome {
  const { status, content, output, iterations, usage, spent, pending, error: given } = result;
  const error = given === undefined ? undefined : errorJson(given);
  return plainJson({ status, content, output, iterations, usage, spent, pending, error }) as KeptOutcome;
}

/** An error as readers in other processes get it. */
export function errorJson(error: unknown): KeptError {
  const { name = 'Error', code } = Object(error) as { readonly name?: unknown; readonly code?: unknown };
  return { name: String(name), message: errorMessage(error), ...(typeof code === 'number' ? { code } : {}) };
}

/**
 * Tells whoever sent answers, by their key, where the turn goes on with them, or that they were `refused`: they were
 * wrong, or too late.
 */
export function answersJson(
  { key, content }: InboxEntry,
  refused?: { readonly error: unknown; readonly isLate: boolean },
): KeptEvent {
  if (refused !== undefined)
    return { type: 'answers-refused', key, isLate: refused.isLate, error: errorJson(refused.error) };
  const { answers, answeredBy } = content.kind === 'answers' ? content : { answers: [] };
  return plainJson({ type: 'answers-taken', key, ids: answers.map(({ id }) => id), answeredBy }) as KeptEvent;
}
