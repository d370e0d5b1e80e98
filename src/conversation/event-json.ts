import type { CallRecord } from '../contract/call.js';
import type { InboxContent, InboxEntry, LoggedEvent } from '../contract/conversation-log.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { StoredResult } from '../contract/run-state.js';
import type { ToolResult } from '../contract/tool-result.js';
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
interface KeptOutcome
  extends Pick<
    ToolLoopResult,
    'status' | 'content' | 'output' | 'iterations' | 'usage' | 'spent' | 'pending'
  > {
  readonly error?: KeptError;
}

/** How a call ended. Of edited arguments, also those that ran: `call-start` told of the model's. */
interface KeptCallEnd extends Pick<CallRecord, 'status' | 'durationMs' | 'taskId' | 'edited'> {
  readonly type: 'call-end';
  readonly callId: string;
  readonly tool: string;
  readonly result: StoredResult;
  readonly arguments?: unknown;
}

type AsInRuns = Exclude<
  LoopEvent,
  { readonly type: 'call-end' | 'call-event' | 'run-end' | 'request-retry' }
>;
type RequestRetry = Extract<LoopEvent, { readonly type: 'request-retry' }>;
type CallEvent = Extract<LoopEvent, { readonly type: 'call-event' }>;

/** An event of a run: without what only its process can use. */
type KeptRunEvent =
  | AsInRuns
  | KeptCallEnd
  | (Omit<CallEvent, 'event'> & { readonly event: KeptRunEvent })
  | ({ readonly type: 'run-end' } & KeptOutcome)
  | (Omit<RequestRetry, 'error'> & { readonly error: KeptError });

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

/** An event of a run as a log keeps it: JSON without what only this process can use. */
export function eventJson(event: LoopEvent): KeptEvent {
  return plain(keptOf(event));
}

function keptOf(event: LoopEvent): KeptRunEvent {
  switch (event.type) {
    case 'call-end': {
      const { type, callId, tool, record } = event;
      const { status, durationMs, result, taskId, edited, arguments: args } = record;
      const ran = edited === undefined ? {} : { arguments: args, edited };
      const task = taskId === undefined ? {} : { taskId };
      return { type, callId, tool, status, durationMs, result: resultJson(result), ...task, ...ran };
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

/** The outcome of a run, or what a store knows of it. */
type RunOutcome = Omit<KeptOutcome, 'error'> & { readonly error?: unknown };

/** What came of a run, without its history: that is the conversation's. */
export function outcomeJson(result: RunOutcome): KeptOutcome {
  const { status, content, output, iterations, usage, spent, pending, error } = result;
  const told = error === undefined ? undefined : errorJson(error);
  return plain({ status, content, output, iterations, usage, spent, pending, error: told });
}

/** An error as readers in other processes get it. */
export function errorJson(error: unknown): KeptError {
  const { name = 'Error', code } = Object(error) as { readonly name?: unknown; readonly code?: unknown };
  return { name: String(name), message: errorMessage(error), ...(typeof code === 'number' ? { code } : {}) };
}

/** All of a result that JSON can say, except the error, which is for logs. */
function resultJson({ forLLM, forUser, silent, isError, async, content, details }: ToolResult): StoredResult {
  return plain({ forLLM, forUser, silent, isError, async, content, details: plainJson(details) });
}

function plain<Kept>(value: object): Kept {
  return plainJson(value) as Kept;
}

/**
 * Whoever sent answers knows from it, by their key, where the turn goes on with them, or that they were `refused`: they
 * were wrong, or too late.
 */
export function answersJson(
  { key, content }: InboxEntry,
  refused?: { readonly error: unknown; readonly isLate: boolean },
): KeptEvent {
  if (refused !== undefined)
    return { type: 'answers-refused', key, isLate: refused.isLate, error: errorJson(refused.error) };
  const { answers, answeredBy } = content.kind === 'answers' ? content : { answers: [] };
  return plain({ type: 'answers-taken', key, ids: answers.map(({ id }) => id), answeredBy });
}
