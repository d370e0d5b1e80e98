import type {
  CallJournal,
  CallRecord,
  CallScope,
  CallStatus,
  StandingYes,
  Suspension,
  ToolPolicy,
  Wait,
} from '../../core/contract/call.js';
import { type ServedAs } from '../../core/contract/declaration.js';
import type { Hooks } from '../../core/contract/hooks.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { Logger, TracePlace } from '../../core/contract/ports.js';
import type { McpArrival, Telemetry } from '../../core/contract/telemetry.js';
import type { ArgumentFault, AsyncCallback, ToolDefinition } from '../../core/contract/tool.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import type { InvalidOptionsError } from '../../core/errors/author-fault.js';
import type { ReadArguments } from '../../tools/checking/read-arguments.js';
import type { CallPlace } from './effect-key.js';
import type { JobDispatch } from './job-dispatch.js';
import type { ToolEntry } from './plan.js';
import type { Redaction } from './redact.js';
import type { DescribeError } from './result-text.js';
import type { TaskQueue } from './task-queue.js';

/** A value, or a promise of it: most calls need no promise. */
export type MaybeLater<Value> = Value | Promise<Value>;

/** A call to be made; `arguments` is an object or raw JSON text. */
export interface CallRequest {
  readonly id: string;
  readonly name: string;
  readonly arguments: unknown;
  /** The parsed arguments, if the caller already parsed them. */
  readonly read?: ReadArguments;
  /** JSON text from which to read them again, repaired if needed: the tool cannot change it. */
  readonly text?: string;
  /** The journal of a suspended call, which is executed again with it. */
  readonly journal?: CallJournal;
  /** `@Transform` was already applied to the arguments, and is not applied again. */
  readonly isTransformed?: boolean;
  /** Its position in the run. */
  readonly place?: CallPlace;
  /** The key of its effect, if it already has one: for work on an engine. */
  readonly idempotencyKey?: string;
  /** It was started before, its process crashed, and its outcome is unknown. */
  readonly hasBegun?: boolean;
  /** The runs that its tool had started when it was suspended. */
  readonly inner?: readonly unknown[] | undefined;
  /** Whether it was to run as a job then; default: whether its tool starts jobs now. */
  readonly asJob?: boolean;
  /** Its tool was `readOnly` then. */
  readonly readOnly?: true;
  /** Stores a value of `context.once` before the tool continues. */
  readonly keepOnce?: KeepOnce;
  /** Set if it arrived as a message of the Model Context Protocol. */
  readonly mcp?: McpArrival;
  /** The call that started it as a job. */
  readonly startedBy?: TracePlace;
  /** What is wrong with the scope that its caller passed: the call ends with this error. */
  readonly scopeError?: InvalidOptionsError;
}

/** Whether a call is executed again. */
export function isRepeated({ journal, hasBegun }: CallRequest): boolean {
  return journal !== undefined || hasBegun === true;
}

/** Whether an earlier execution of a call may have had an effect. */
export function hadBegun({
  hasBegun,
  journal,
  inner = [],
}: Pick<CallRequest, 'hasBegun' | 'journal' | 'inner'>): boolean {
  const { outcome, once = [] } = journal ?? {};
  return hasBegun === true || outcome?.status === 'unknown' || once.length + inner.length > 0;
}

/** Stores a value of `context.once`; rejects if that fails. */
export type KeepOnce = (done: OnceValue) => Promise<void>;

/** A value of `context.once`, for these arguments. */
export interface OnceValue {
  readonly key: string;
  readonly value?: unknown;
  readonly arguments: JsonObject;
}

/** The timed steps of a call; reading the arguments is part of their check. */
export type CallStep = 'find' | 'check' | 'allow' | 'run' | 'write';

/** What happens to a call that had begun, if its tool cannot determine the outcome. */
export type OnUnknown = 'ask' | 'error' | 'rerun';

/** The origin of a call. */
export interface CallSource {
  readonly scope: CallScope;
  /** The number of the model's attempt at this tool; 1 is the first. */
  readonly attempt?: number;
}

/** A call that needs an approval, for the lookup of standing approvals. */
export interface StandingCall {
  readonly tool: ToolDefinition;
  readonly arguments: JsonObject;
  readonly conversationId: string | undefined;
  /** Whether the user who gave a standing approval could approve this call. */
  readonly mayHaveGiven: (answeredBy: unknown) => boolean;
}

/** The settings shared by all calls of a registry or of a run. */
export interface CallEnvironment {
  readonly find: (name: string) => ToolEntry | undefined;
  /** The names of all tools, for messages about unknown tools. */
  readonly names?: () => readonly string[];
  /** What has these names, if it is not a tool. */
  readonly kind?: ServedAs['kind'];
  readonly logger?: Logger;
  /** Records calls. */
  readonly telemetry?: Telemetry;
  /** `false`: arguments are not logged. */
  readonly logArguments?: boolean;
  /** Hides secrets in the log; default: known ones. */
  readonly redact?: Redaction;
  /** Milliseconds for tools without their own `timeoutMs`; absent: no limit. */
  readonly toolTimeoutMs?: number;
  /** Calls return an {@link Invocation} with the record of the call; otherwise only the result. */
  readonly isRecorded?: boolean;
  readonly describeError?: DescribeError;
  /** All of them must allow a call. */
  readonly policies?: readonly ToolPolicy[];
  /** `false`: types are coerced only for tools that request it. */
  readonly coerce?: boolean;
  /** The most characters of a result that the model receives, for tools without their own limit. */
  readonly maxResultChars?: number;
  /** Receives completions. If set, tools may answer now and complete later. */
  readonly onAsyncResult?: AsyncCallback;
  /** Runs last on completions of started work, in the async context of the call. */
  readonly finalizeCompletion?: (tool: string, result: ToolResult) => ToolResult;
  /** The queue of work that tools start; set if there is a listener for completions. */
  readonly tasks?: TaskQueue;
  /** The records of calls contain the keys of their effects. */
  readonly recordsKeys?: boolean;
  /** Default: an approval is requested. */
  readonly onUnknown?: OnUnknown;
  /** Runs the work of background tools outside this process. */
  readonly jobs?: JobDispatch;
  /** A call that starts a job waits for the job's result. */
  readonly awaitsJobs?: boolean;
  /** Aborted once no listener for the outcome is left. */
  readonly followUntil?: AbortSignal;
  /** Called at the end of each step of a call. */
  readonly onStep?: (step: CallStep) => void;
  /** Hooks around each call, in order. */
  readonly hooks?: readonly Hooks[];
  /** The last of the hooks: counts the calls of a run. */
  readonly budget?: Hooks;
  /** The standing approval that allows a call; if the lookup fails, there is none. */
  readonly standing?: (call: StandingCall) => Promise<StandingYes | undefined>;
  /** The waits of runs that its tool started; called when a body has ended, in the async context of the call. */
  readonly innerWaits?: () => readonly Wait[];
  /** Milliseconds for answers, if neither tool nor question sets them; default: no limit. */
  readonly answerWithinMs?: number;
  /** A user can be asked: a call that waits for an answer is suspended instead of failing. */
  readonly canSuspend?: boolean;
}

/** The same, with records of calls. */
export type RecordedEnvironment = CallEnvironment & { readonly isRecorded: true };

/** A call that has its answer: its result, or an acknowledgement with a completion to follow. */
export interface AnsweredInvocation {
  readonly status: 'settled' | 'started';
  readonly result: ToolResult;
  readonly record: CallRecord;
}

/** A call that waits. It is executed again with the journal, once its waits are answered (`answerWait`). */
export interface SuspendedInvocation {
  readonly status: 'suspended';
  readonly suspension: Suspension;
  /** The error that replaces it if no user can be asked. */
  readonly result: ToolResult;
  readonly record: CallRecord;
}

/** The possible outcomes of a call. */
export type Invocation = AnsweredInvocation | SuspendedInvocation;

/** How the body of a tool ended, or why it did not start. */
export type BodyOutcome =
  | { readonly type: 'returned'; readonly value: unknown }
  | { readonly type: 'error'; readonly error: unknown }
  /** `hasBegun`: the body had started and may have had an effect. */
  | { readonly type: 'timed_out'; readonly timeoutMs: number; readonly hasBegun?: boolean }
  | { readonly type: 'aborted'; readonly hasBegun?: boolean }
  | {
      readonly type: 'refused';
      readonly reason: string;
      readonly isExpired?: boolean;
      /** An answer, or the expiry of a question, decided this. */
      readonly isAnswer?: true;
    };

/** What prevents a body from running: the outcome of its call, or what it waits for. */
export type Block =
  | Extract<BodyOutcome, { readonly type: 'returned' | 'refused' | 'aborted' | 'error' }>
  /** `because`: the reason of the policy that asks. */
  | { readonly type: 'waits'; readonly wait: Wait; readonly because?: string }
  /** A hook holds the call until its run continues. */
  | { readonly type: 'held' };

/** The outcome of a call. */
export interface CallOutcome {
  /** The faults of rejected arguments. */
  readonly faults?: readonly ArgumentFault[];
  readonly status: CallStatus;
  /** For a suspended call: the error that replaces it if no user can be asked. */
  readonly result: ToolResult;
  /** It was aborted before its method started: it has no effect that needs a key. */
  readonly isNotBegun?: true;
  /** Only with status `suspended`. */
  readonly suspension?: Suspension;
  /** The work that completes later. */
  readonly taskId?: string;
}

/** Settings of the loop for its calls; they override the registry's own options. */
export interface InvokeOptions
  extends Pick<
    CallEnvironment,
    | ('logger' | 'telemetry' | 'toolTimeoutMs' | 'maxResultChars' | 'answerWithinMs' | 'onUnknown')
    | ('onAsyncResult' | 'finalizeCompletion' | 'tasks' | 'jobs' | 'awaitsJobs' | 'followUntil')
    | ('recordsKeys' | 'innerWaits' | 'standing' | 'budget')
  > {
  readonly attempt?: number;
  readonly policy?: ToolPolicy;
  /** Run after those of the registry. */
  readonly hooks?: readonly Hooks[];
}

/** Makes a call; synchronous if its tool is. Never throws or rejects. */
export type Invoker = (
  call: CallRequest,
  scope: CallScope,
  attempt?: number,
) => Invocation | Promise<Invocation>;

/** A watched call, before it is made. */
export interface WatchedCall {
  readonly request: CallRequest;
  readonly scope: CallScope;
  readonly attempt: number | undefined;
  /** Makes the call, with the additions of the watcher. Call it once. */
  make(added?: WatcherAdditions): Invocation | Promise<Invocation>;
}

/** The additions of a watcher to a call. */
export interface WatcherAdditions {
  /** Evaluated after all others; the model receives its refusal. */
  readonly policy?: ToolPolicy;
  /** Called at the end of each step. */
  readonly onStep?: (step: CallStep) => void;
}

/**
 * Observes the calls of a registry and of its views, from all callers, and may hold them: an inspector. It must
 * return the result of `make`.
 */
export interface CallWatcher {
  aroundCall(call: WatchedCall): Invocation | Promise<Invocation>;
}
