import {
  ANY_VALUE,
  FUNCTION,
  LIST,
  objectOf,
  optionTable,
  protecting,
  RECORD,
  type RulesOf,
  SIGNAL,
  TEXT,
  withMethods,
} from '../kernel/options.js';
import type { ApprovalDecision } from './declaration.js';
import type { JsonObject, JsonSchema } from './json-schema.js';
import type { Message } from './llm-provider.js';
import type { InstanceResolver, LogFields, LogLevel } from './ports.js';
import type { Remember, RememberScope } from './standing-approvals.js';
import type { ToolDefinition } from './tool.js';
import type { ProgressUpdate, ToolContext, ToolContextData } from './tool-context.js';
import type { ToolResult } from './tool-result.js';

/** Hears of news from inside running calls, and of which call they are. */
export type UpdateListener = (
  update: ProgressUpdate,
  call: { readonly callId: string; readonly tool: string },
) => void;

/** Hears of what a tool logs through `context.logger`; the logger gets it as well. */
export type LogListener = (
  entry: { readonly level: LogLevel; readonly message: string; readonly fields?: LogFields },
  call: { readonly callId: string; readonly tool: string },
) => void;

/** The surroundings of a call or a run: who asks, where, and with what. */
export interface CallScope {
  readonly channel?: string;
  readonly chatId?: string;
  readonly conversationId?: string;
  /** Id of the call; the framework numbers calls that come without one. */
  readonly callId?: string;
  /**
   * On whose behalf a run takes place: any JSON, such as `{ user: 'u1', tenant: 't1' }`. A suspended run keeps it,
   * and goes on only where the scope names the same owner again. Tools read it as `context.owner`.
   */
  readonly owner?: unknown;
  /** The OAuth scopes of whoever calls; tools that declare `scopes` are refused without them. */
  readonly scopes?: readonly string[];
  readonly messages?: readonly Message[];
  readonly signal?: AbortSignal;
  readonly onUpdate?: UpdateListener;
  readonly onLog?: LogListener;
  /** The application's own data; handed on as it is, never serialised. */
  readonly data?: ToolContextData;
  /** Resolves what scoped tools and `context.resolve` ask for, e.g. the container of a request. */
  readonly container?: Pick<InstanceResolver, 'resolve'>;
}

/**
 * Whether an owner is nobody, as of a session without a user: `null`, a blank text, `false`, and JSON in which there is
 * nothing else. All who are not signed in would be one owner.
 */
export function isNobody(owner: unknown): boolean {
  try {
    return saysNothing(JSON.parse(JSON.stringify(owner) ?? 'null'));
  } catch {
    // It is no JSON, which is another mistake.
    return false;
  }
}

function saysNothing(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).every(saysNothing);
  return value === null || value === false || (typeof value === 'string' && value.trim() === '');
}

/** What each part of a scope may be. */
export const SCOPE_RULES: RulesOf<CallScope> = {
  channel: TEXT,
  chatId: TEXT,
  conversationId: TEXT,
  callId: TEXT,
  owner: protecting({ ...ANY_VALUE, fix: "JSON that says who it is: { user: 'u1' }" }),
  scopes: { ...LIST, fix: "['orders:read']" },
  messages: LIST,
  signal: SIGNAL,
  onUpdate: FUNCTION,
  onLog: FUNCTION,
  data: { accepts: RECORD.accepts, fix: 'an object: { userId }' },
  container: withMethods(['resolve'], 'an object with resolve(token)'),
};

export const SCOPE = optionTable<CallScope>('the scope', SCOPE_RULES, {
  user: 'data: { user }',
  userId: 'data: { userId }',
  tenantId: 'data: { tenantId }',
  context: 'data: { … }',
});

/** A scope among other options. */
export const SCOPE_OPTION = protecting(objectOf<CallScope>(SCOPE_RULES, { fix: '{ data: { userId } }' }));

/**
 * How a call ended: `success`, `error` (the tool failed), `rejected` (unknown tool or unusable arguments:
 * the model may try again), `refused` (not allowed here), `timed_out`, `aborted`, `not_run` (the reply was
 * cut off), `started` (goes on in the background), `suspended` (waits for an answer).
 */
export type CallStatus =
  | 'success'
  | 'error'
  | 'rejected'
  | 'refused'
  | 'timed_out'
  | 'aborted'
  | 'not_run'
  | 'started'
  | 'suspended';

/** The history of one call: what was asked, what was made of it, and what came of it. */
export interface CallRecord {
  readonly id: string;
  readonly name: string;
  /** As the model sent them: an object or text. */
  readonly rawArguments: unknown;
  /** After the check, in JSON form; absent where there was nothing usable. */
  readonly arguments?: JsonObject;
  /** What had to be repaired before the arguments could be used. */
  readonly repairs: readonly string[];
  /** Paths of keys that the schema does not know and that were taken away. */
  readonly removed: readonly string[];
  /** Which attempt of the model at this tool this was; 1 is the first. */
  readonly attempts: number;
  readonly durationMs: number;
  readonly status: CallStatus;
  /** Id of the work that the call started and that will complete (`TaskQueue`). */
  readonly taskId?: string;
  /** Who gave the answer that the call waited for, where the resume said who (`answeredBy`); of several, the last. */
  readonly answeredBy?: unknown;
  /** Who gave each of the answers, in the order in which they came. */
  readonly answers?: readonly GivenAnswer[];
  /** Where whoever approved the call changed its arguments: what they were before. `arguments` has what ran. */
  readonly edited?: EditedCall;
  /** The standing approval that the call was let through by, or that its own approval has become. */
  readonly standing?: StandingYes;
  /** The call's `context.idempotencyKey`; only if a store saves the steps of the run. */
  readonly idempotencyKey?: string;
  /** What hooks did about it, in order; absent where they did nothing. */
  readonly hooks?: readonly HookNote[];
  readonly result: ToolResult;
}

/** What a hook did. */
export interface HookNote {
  readonly hook: string;
  readonly did: 'noted' | 'rewrote' | 'refused' | 'answered' | 'withheld' | 'failed';
  /** Of these functions of the hook. */
  readonly in: HookMoment;
  readonly note?: unknown;
}

/** The functions of a hook. */
export type HookMoment =
  | 'beforeCall'
  | 'beforeRun'
  | 'afterCall'
  | 'beforeRequest'
  | 'afterResponse'
  | 'onError';

/** A call that is about to run: its arguments are checked, and nothing has happened yet. */
export interface PolicyRequest {
  readonly tool: ToolDefinition;
  readonly arguments: JsonObject;
  readonly context: ToolContext;
}

/**
 * A policy's word. The reason of a refusal goes to the model; that of an `ask`, which makes the call wait for an
 * approval, to whoever gives it (`PendingCall.message`).
 */
export type PolicyDecision =
  | boolean
  | { readonly allow: boolean; readonly reason?: string }
  | {
      readonly ask: true;
      readonly reason?: string;
      /** Which later calls an approval may cover; the policy itself stores it, and allows those. */
      readonly remember?: PolicyRemember;
    };

/** How a policy stores an approval. */
export interface PolicyRemember {
  readonly scopes: readonly RememberScope[];
  /** Milliseconds for which it may stand at most; default: no limit. */
  readonly maxMs?: number;
  /** Called once the call was approved so, before it runs; errors that it throws are only logged. */
  keep(remember: Remember): unknown;
}

/**
 * Decides whether a call may run. Fails closed: whatever is not plainly a yes is a no, a policy that throws
 * included.
 *
 * @example
 * ```ts
 * const policy: ToolPolicy = ({ tool, context }) =>
 *   tool.annotations?.readOnly || context.data.role === 'admin'
 *     ? true
 *     : { allow: false, reason: 'only administrators may change data' };
 * ```
 */
export type ToolPolicy = (request: PolicyRequest) => PolicyDecision | Promise<PolicyDecision>;

/**
 * Why a call waits: `client` (the caller's side executes it), `approval` (a user must approve it first),
 * `question` (the tool asked the user something), `outcome` (its process died while it ran, and somebody must say
 * what came of it).
 */
export type PendingKind = 'client' | 'approval' | 'question' | 'outcome';

/** Something that a suspended run waits for. A call has several only where its tool asked several questions. */
export interface PendingCall {
  /** What the answer names. It is a digest of run, call, tool and arguments, so that it fits nothing else. */
  readonly id: string;
  /** Id of the call in the assistant message. */
  readonly callId: string;
  readonly kind: PendingKind;
  readonly tool: string;
  /** As the tool would get them: checked, repaired, defaults filled in; JSON. */
  readonly arguments: JsonObject;
  /** Of a question: its text. Of an outcome: what is known of the call. Of an approval: why a policy asks. */
  readonly message?: string;
  /** Of a question: what the answer's value must fit. */
  readonly schema?: JsonSchema;
  /** Of an approval: what its tool says to whoever is asked; the description ends with its preview of the call. */
  readonly title?: string;
  readonly description?: string;
  readonly risk?: 'low' | 'medium' | 'high';
  /** Of an approval: what the answer may be, where its tool does not take every decision. */
  readonly decisions?: readonly ApprovalDecision[];
  /** Of an approval: whether it may be remembered for later calls, and for how many milliseconds at most. */
  readonly mayRemember?: MayRemember;
  /**
   * Of an approval, or of an outcome that lets the call run again: that not everybody may give it who may answer;
   * `function`: a function of the tool decides.
   */
  readonly approver?: 'not-the-owner' | 'function';
  /** Until when it may be answered (ISO 8601); later, the next resume goes on without an answer. */
  readonly expiresAt?: string;
  /** Of a run inside a call: the calls around it, from the outermost; `callId` and `tool` are the inner run's. */
  readonly path?: readonly EnclosingCall[];
}

/** Which later calls an approval may cover. */
export interface MayRemember {
  readonly scopes: readonly RememberScope[];
  /** Milliseconds. */
  readonly maxMs?: number;
  /** Where it is stored: by the policy that asked; otherwise in the store of the run. */
  readonly by?: 'policy';
}

/** A call that began a run of its own. */
export interface EnclosingCall {
  readonly callId: string;
  readonly tool: string;
}

/** What the caller's side made of a call that it executes: any JSON value, or a serialised `ToolResult`. */
export interface ClientAnswer {
  readonly id: string;
  readonly result: unknown;
}

/**
 * A yes or a no. A no answers any kind of pending call; its reason becomes the call's result. A yes to an approval
 * may come with other arguments, which are checked as a model's are, and the model is informed of the change.
 *
 * @example
 * ```ts
 * const answer: ApprovalAnswer = { id: 'approval_…', approved: true, arguments: { invoice: 'A-1', amount: 40 } };
 * ```
 */
export interface ApprovalAnswer {
  readonly id: string;
  readonly approved: boolean;
  readonly reason?: string;
  /** All arguments of the call, in place of those that are pending; the same ones change nothing. */
  readonly arguments?: JsonObject;
  /** Of an approval, if `mayRemember` of the pending call allows it: it is remembered for later calls. */
  readonly remember?: Remember;
}

/** The user's answer to a question; checked against its schema. */
export interface QuestionAnswer {
  readonly id: string;
  readonly value: unknown;
}

/**
 * What came of a call whose process died: it was done, with what it gave (any JSON value, or a serialised
 * `ToolResult`), or it was not, and then it is made.
 */
export type OutcomeAnswer =
  | { readonly id: string; readonly outcome: 'done'; readonly result?: unknown }
  | { readonly id: string; readonly outcome: 'not-done' };

/** An answer to one {@link PendingCall}. */
export type Answer = ClientAnswer | ApprovalAnswer | QuestionAnswer | OutcomeAnswer;

/** One thing that a suspended call waits for, before a run gives it an id. */
export interface Wait
  extends Pick<
    PendingCall,
    | 'kind'
    | 'message'
    | 'schema'
    | 'title'
    | 'description'
    | 'risk'
    | 'decisions'
    | 'mayRemember'
    | 'approver'
    | 'expiresAt'
  > {
  /**
   * Of a question: its index among those of its call, from 0. Of an outcome: its call's `reruns`. Of an approval: its
   * call's `reasks`. Otherwise 0.
   */
  readonly index: number;
  /** What a run inside the call waits for: the number of the run, and the call in it. */
  readonly inner?: Pick<PendingCall, 'id' | 'callId' | 'tool' | 'arguments' | 'path'> & {
    readonly run: number;
  };
}

/** Arguments of a call that were edited by its approver. */
export interface EditedCall {
  /** What the model had sent, as the tool would have got it. */
  readonly original: JsonObject;
  /** Who changed them, where the resume said who (`answeredBy`). */
  readonly editedBy?: unknown;
}

/** The standing approval that let a call through. */
export interface StandingYes {
  readonly id: string;
  readonly answeredBy?: unknown;
}

/** Who gave an answer; recorded apart from on whose behalf the run goes on. */
export interface GivenAnswer {
  readonly kind: PendingKind;
  /** Of a question: its index among those of its call, from 0. Otherwise 0. */
  readonly index: number;
  /** Any JSON, as the resume gave it. */
  readonly answeredBy: unknown;
}

/**
 * What is known of a call that was suspended; plain JSON. With it the call is made again: answered questions
 * and finished `context.once` work replay, everything else of the method repeats.
 */
export interface CallJournal {
  /** What all of this was said about: it counts for no other arguments. */
  readonly arguments: JsonObject;
  readonly approved?: true;
  /** The arguments are not the model's but those of whoever approved the call; checked: as the tool gets them. */
  readonly edited?: { readonly original: JsonObject; readonly isChecked?: true };
  /** The approval is to be remembered for later calls: until it is stored, and then its id. */
  readonly remember?: Remember & Pick<MayRemember, 'by'>;
  readonly standing?: StandingYes;
  /** The call was refused; `expired`: no decision came in time. */
  readonly refused?: { readonly reason?: string; readonly expired?: true };
  /** What the client's side made of the call. */
  readonly result?: { readonly value: unknown };
  /** The outcome of an earlier execution of the call that was not recorded. */
  readonly outcome?: { readonly status: 'done'; readonly value?: unknown } | { readonly status: 'not-done' };
  /** How often it began again because it was said not to be done: a word of before counts for that beginning alone. */
  readonly reruns?: number;
  /** How often it was asked about again because its tool took the approved arguments no more. */
  readonly reasks?: number;
  /** Questions that were answered, and where in the call they were asked. */
  readonly answers: readonly { readonly index: number; readonly message: string; readonly value: unknown }[];
  /** Who gave the answers so far, where that was said. */
  readonly given?: readonly GivenAnswer[];
  /** Values of finished `context.once` work, by key; without `value` where there was none. */
  readonly once: readonly { readonly key: string; readonly value?: unknown }[];
}

/** What a suspended call waits for, and the journal for when it is made again. */
export interface Suspension {
  readonly waits: readonly Wait[];
  readonly journal: CallJournal;
}
