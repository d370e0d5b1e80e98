import { isObject, isPlainObject, ownerText, withoutUndefined } from '../kernel/json.js';
import {
  FUNCTION,
  LIST,
  type OptionRule,
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

/** Receives progress of running calls, with the call that reported it. */
export type UpdateListener = (
  update: ProgressUpdate,
  call: { readonly callId: string; readonly tool: string },
) => void;

/** Receives the messages that a tool logs through `context.logger`; the logger receives them as well. */
export type LogListener = (
  entry: { readonly level: LogLevel; readonly message: string; readonly fields?: LogFields },
  call: { readonly callId: string; readonly tool: string },
) => void;

/** The environment of a call or a run: the caller, the channel and the application's data. */
export interface CallScope {
  readonly channel?: string;
  readonly chatId?: string;
  readonly conversationId?: string;
  /** Id of the call; calls without an id are numbered. */
  readonly callId?: string;
  /**
   * The owner of the run: any JSON, such as `{ user: 'u1', tenant: 't1' }`. It is stored with a suspended run, which
   * can only be resumed with a scope that has the same owner. Tools read it as `context.owner`.
   */
  readonly owner?: unknown;
  /** The OAuth scopes of the caller. Tools that declare `scopes` are refused without them. */
  readonly scopes?: readonly string[];
  readonly messages?: readonly Message[];
  readonly signal?: AbortSignal;
  readonly onUpdate?: UpdateListener;
  readonly onLog?: LogListener;
  /** The application's own data. Passed on unchanged, never serialized. */
  readonly data?: ToolContextData;
  /** Resolves scoped tools and `context.resolve`. */
  readonly container?: Pick<InstanceResolver, 'resolve'>;
}

/** A key per owner and conversation. Calls of an owner outside of conversations share a key. */
export function keyOfPlace(
  place: Pick<CallScope, 'channel' | 'chatId' | 'conversationId' | 'owner'> | undefined,
): string {
  const { channel, chatId, conversationId, owner } = place ?? {};
  return JSON.stringify([ownerText(owner), channel, chatId, conversationId]);
}

/**
 * Whether an owner contains no data, as in a session without a user: `null`, a blank string, `false`, or JSON that
 * contains nothing else. Otherwise all users who are not signed in would be the same owner.
 */
export function isNobody(owner: unknown): boolean {
  try {
    return saysNothing(JSON.parse(JSON.stringify(owner) ?? 'null'));
  } catch {
    // Not JSON; another check reports this.
    return false;
  }
}

function saysNothing(value: unknown): boolean {
  if (isObject(value)) return Object.values(value).every(saysNothing);
  return value === null || value === false || (typeof value === 'string' && value.trim() === '');
}

/**
 * An owner: JSON that contains data. A value that JSON would change is refused, because it could make different users
 * the same owner: a promise and a `Map` both become `{}`.
 */
export const OWNER: OptionRule = {
  accepts: (value) => membersNotJson(value, '', []).length === 0 && !isNobody(value),
  fix: "JSON that identifies the owner: { user: 'u1' }",
  explain: (value, option) => {
    const odd = membersNotJson(value, option, []);
    // An id that was not found, as in `session.user ?? null`, would make all users without an id one owner.
    const problems =
      odd.length > 0 ? odd : [`${option} is ${JSON.stringify(value)}, which identifies no owner`];
    return problems.map((problem) => ({ option, problem, fix: `${option}: ${OWNER.fix}` }));
  },
};

function membersNotJson(member: unknown, path: string, around: readonly unknown[]): readonly string[] {
  if (around.includes(member)) return [`${path} contains itself`];
  if (!isObject(member)) {
    const isScalar = member === null || typeof member === 'string' || typeof member === 'boolean';
    if (isScalar || Number.isFinite(member)) return [];
    const word = member === undefined || typeof member === 'number' ? String(member) : `a ${typeof member}`;
    return [`${path} is ${word}`];
  }
  if (!Array.isArray(member) && !isPlainObject(member))
    return [`${path} is an instance of ${member.constructor?.name || 'a class'}, which JSON would change`];
  const inner = [...around, member];
  return Object.entries(member).flatMap(([key, part]) => membersNotJson(part, `${path}.${key}`, inner));
}

/** The rules for the fields of a scope. */
export const SCOPE_RULES: RulesOf<CallScope> = {
  channel: TEXT,
  chatId: TEXT,
  conversationId: TEXT,
  callId: TEXT,
  owner: protecting(OWNER),
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

/** A scope whose fields are its own: a class, such as `ToolContext`, may define them as getters. */
export function scopeFields(scope: CallScope = {}): CallScope {
  if (isPlainObject(scope)) return scope;
  const fields = Array.from(SCOPE.rules.keys(), (name) => [name, Reflect.get(scope, name)]);
  return { ...scope, ...withoutUndefined(Object.fromEntries(fields)) };
}

/** The rule for the option `scope`. */
export const SCOPE_OPTION = protecting(objectOf<CallScope>(SCOPE_RULES, { fix: '{ data: { userId } }' }));

/**
 * How a call ended: `success`, `error` (the tool failed), `rejected` (unknown tool or invalid arguments: the model
 * may try again), `refused` (not allowed), `timed_out`, `aborted`, `not_run` (the reply was cut off), `started`
 * (continues in the background), `suspended` (waits for an answer).
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

/** The history of one call: the request, how it was processed, and the result. */
export interface CallRecord {
  readonly id: string;
  readonly name: string;
  /** As the model sent them: an object or text. */
  readonly rawArguments: unknown;
  /** After the check, in JSON form; absent if the arguments could not be used. */
  readonly arguments?: JsonObject;
  /** The repairs that made the arguments usable. */
  readonly repairs: readonly string[];
  /** Paths of keys that were removed because the schema does not contain them. */
  readonly removed: readonly string[];
  /** The number of the model's attempt at this tool; 1 is the first. */
  readonly attempts: number;
  readonly durationMs: number;
  readonly status: CallStatus;
  /** Id of the work that the call started and that completes later (`TaskQueue`). */
  readonly taskId?: string;
  /**
   * Who gave the answer that the call waited for, if the resume named them (`answeredBy`); if there are several
   * answers, the last.
   */
  readonly answeredBy?: unknown;
  /** Who gave each answer, in order of arrival. */
  readonly answers?: readonly GivenAnswer[];
  /**
   * Set if the approver changed the arguments: the original arguments. `arguments` contains the ones that were used.
   */
  readonly edited?: EditedCall;
  /** The standing approval that allowed the call, or that its own approval was stored as. */
  readonly standing?: StandingYes;
  /** The call's `context.idempotencyKey`; only if a store saves the steps of the run. */
  readonly idempotencyKey?: string;
  /** Actions of hooks, in order; absent if there were no actions. */
  readonly hooks?: readonly HookNote[];
  /**
   * Set if the effects of the call are unknown although `status` says otherwise: its tool failed, and a hook replaced
   * the error; or its tool had begun earlier, and the call was then refused, or answered by a hook.
   */
  readonly effects?: 'unknown';
  readonly result: ToolResult;
}

/** An action of a hook. */
export interface HookNote {
  readonly hook: string;
  readonly did: 'noted' | 'rewrote' | 'refused' | 'answered' | 'withheld' | 'failed';
  /** The function of the hook. */
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

/** A call that is about to run: its arguments are valid, and nothing was executed yet. */
export interface PolicyRequest {
  readonly tool: ToolDefinition;
  readonly arguments: JsonObject;
  readonly context: ToolContext;
}

/**
 * The decision of a policy. The reason of a refusal is sent to the model. `ask` makes the call wait for an approval;
 * its reason is shown to the approver (`PendingCall.message`).
 */
export type PolicyDecision =
  | boolean
  | { readonly allow: boolean; readonly reason?: string }
  | {
      readonly ask: true;
      readonly reason?: string;
      /** Which later calls an approval may cover; the policy stores it and allows those calls. */
      readonly remember?: PolicyRemember;
    };

/** How a policy stores an approval. */
export interface PolicyRemember {
  readonly scopes: readonly RememberScope[];
  /** The longest validity in milliseconds; default: no limit. */
  readonly maxMs?: number;
  /** Called after the approval and before the call runs; errors are only logged. */
  keep(remember: Remember): unknown;
}

/**
 * Decides whether a call may run. A policy that throws, or returns anything other than a decision, refuses the call.
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
 * Why a call waits: `client` (the client executes it), `approval` (a user must approve it first), `question` (the
 * tool asked the user a question), `outcome` (its process crashed while it ran, and a user must state its outcome).
 */
export type PendingKind = 'client' | 'approval' | 'question' | 'outcome';

/** An answer that a suspended run waits for. A call has several only if its tool asked several questions. */
export interface PendingCall {
  /** The id that the answer names. It is a digest of run, call, tool and arguments, so that it matches nothing else. */
  readonly id: string;
  /** Id of the call in the assistant message. */
  readonly callId: string;
  readonly kind: PendingKind;
  readonly tool: string;
  /** As the tool would receive them: checked, repaired, with defaults; JSON. */
  readonly arguments: JsonObject;
  /** For a question: its text. For an outcome: the known facts about the call. For an approval: why a policy asks. */
  readonly message?: string;
  /** For a question: the schema of the answer's value. */
  readonly schema?: JsonSchema;
  /** For an approval: the tool's text for the approver; the description ends with its preview of the call. */
  readonly title?: string;
  readonly description?: string;
  readonly risk?: 'low' | 'medium' | 'high';
  /** For an approval: the possible decisions, if the tool does not allow all of them. */
  readonly decisions?: readonly ApprovalDecision[];
  /** For an approval: whether it may be remembered for later calls, and for how many milliseconds at most. */
  readonly mayRemember?: MayRemember;
  /**
   * For an approval or an outcome: a restriction of who may give it; everybody may refuse. `function`: a function of
   * the tool decides.
   */
  readonly approver?: 'not-the-owner' | 'function';
  /** Deadline for the answer (ISO 8601). After it, the next resume continues without an answer. */
  readonly expiresAt?: string;
  /**
   * For a run inside a call: the calls around it, starting with the outermost; `callId` and `tool` are those of the
   * inner run.
   */
  readonly path?: readonly EnclosingCall[];
}

/** Which later calls an approval may cover. */
export interface MayRemember {
  readonly scopes: readonly RememberScope[];
  /** Milliseconds. */
  readonly maxMs?: number;
  /** If set, the policy that asked stores it; otherwise the store of the run does. */
  readonly by?: 'policy';
}

/** A call that started its own run. */
export interface EnclosingCall {
  readonly callId: string;
  readonly tool: string;
}

/** The result of a call that the client executed: any JSON value, or a serialized `ToolResult`. */
export interface ClientAnswer {
  readonly id: string;
  readonly result: unknown;
}

/**
 * An approval or a refusal. A refusal answers any kind of pending call; its reason becomes the call's result. An
 * approval may contain other arguments. They are checked like a model's, and the model is informed of the change.
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
  /** All arguments of the call; they replace the pending ones. */
  readonly arguments?: JsonObject;
  /** Remembers the approval for later calls, if `mayRemember` of the pending call allows it. */
  readonly remember?: Remember;
}

/** The user's answer to a question; checked against its schema. */
export interface QuestionAnswer {
  readonly id: string;
  readonly value: unknown;
}

/**
 * The outcome of a call whose process crashed. `done`: it was executed, with its result (any JSON value, or a
 * serialized `ToolResult`). `not-done`: it was not executed; it runs now.
 */
export type OutcomeAnswer =
  | { readonly id: string; readonly outcome: 'done'; readonly result?: unknown }
  | { readonly id: string; readonly outcome: 'not-done' };

/** An answer to a {@link PendingCall}. */
export type Answer = ClientAnswer | ApprovalAnswer | QuestionAnswer | OutcomeAnswer;

/** Something that a suspended call waits for, before a run assigns an id. */
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
   * For a question: its index among the questions of the call, from 0. For an outcome: the call's `reruns`. For an
   * approval: the call's `reasks`. Otherwise 0.
   */
  readonly index: number;
  /** For a question: a refusal is an answer for the method, and does not end the call. */
  readonly onRefusal?: 'throw';
  /** The pending call of a run inside this call: the number of the run, and the call in it. */
  readonly inner?: Pick<PendingCall, 'id' | 'callId' | 'tool' | 'arguments' | 'path'> & {
    readonly run: number;
  };
}

/** Arguments that were edited by the approver. */
export interface EditedCall {
  /** The arguments of the model, as the tool would have received them. */
  readonly original: JsonObject;
  /** Who changed them, if the resume named them (`answeredBy`). */
  readonly editedBy?: unknown;
}

/** The standing approval that allowed a call. */
export interface StandingYes {
  readonly id: string;
  readonly answeredBy?: unknown;
}

/** Who gave an answer; recorded separately from the owner of the run. */
export interface GivenAnswer {
  readonly kind: PendingKind;
  /** For a question: its index among the questions of the call, from 0. Otherwise 0. */
  readonly index: number;
  /** Any JSON, as given to the resume. */
  readonly answeredBy: unknown;
}

/**
 * The stored facts of a suspended call; plain JSON. They are used when the call is executed again: answers and
 * finished `context.once` work replay, and the rest of the method repeats.
 */
export interface CallJournal {
  /** The arguments that the journal belongs to; it does not apply to other arguments. */
  readonly arguments: JsonObject;
  readonly approved?: true;
  /**
   * Set if the arguments come from the approver and not from the model. `isChecked`: they are as the tool receives
   * them.
   */
  readonly edited?: { readonly original: JsonObject; readonly isChecked?: true };
  /** The request to remember the approval for later calls. Once it is stored, `standing` has its id. */
  readonly remember?: Remember & Pick<MayRemember, 'by'>;
  readonly standing?: StandingYes;
  /** The call was refused; `expired`: there was no decision before the deadline. */
  readonly refused?: { readonly reason?: string; readonly expired?: true };
  /** The client's result of the call. */
  readonly result?: { readonly value: unknown };
  /** The outcome of an earlier execution of the call that was not recorded; `unknown` if its report was refused. */
  readonly outcome?:
    | { readonly status: 'done'; readonly value?: unknown }
    | { readonly status: 'not-done' | 'unknown' };
  /**
   * How often the call was restarted because an answer stated that it was not done. Earlier outcomes do not apply to
   * the next restart.
   */
  readonly reruns?: number;
  /** How often an approval was requested again because the tool no longer accepted the approved arguments. */
  readonly reasks?: number;
  /** Answered questions, with their index in the call. */
  readonly answers: readonly {
    readonly index: number;
    readonly message: string;
    readonly value?: unknown;
    /** Set if the user refused, and the method handles refusals (`onRefusal: 'throw'`). */
    readonly refused?: { readonly reason?: string };
  }[];
  /** Who gave the answers so far, if known. */
  readonly given?: readonly GivenAnswer[];
  /** Values of finished `context.once` work, by key; without `value` if there was no value. */
  readonly once: readonly { readonly key: string; readonly value?: unknown }[];
}

/** What a suspended call waits for, and the journal for its next execution. */
export interface Suspension {
  readonly waits: readonly Wait[];
  readonly journal: CallJournal;
}
