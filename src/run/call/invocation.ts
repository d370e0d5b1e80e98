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
import type { Hooks } from '../../core/contract/hooks.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { Logger, TracePlace } from '../../core/contract/ports.js';
import type { McpArrival, Telemetry } from '../../core/contract/telemetry.js';
import type { ArgumentFault, AsyncCallback, ToolDefinition } from '../../core/contract/tool.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import type { ReadArguments } from '../../tools/checking/read-arguments.js';
import type { CallPlace } from './effect-key.js';
import type { JobDispatch } from './job-dispatch.js';
import type { ToolEntry } from './plan.js';
import type { Redaction } from './redact.js';
import type { DescribeError } from './result-text.js';
import type { TaskQueue } from './task-queue.js';

/** A call to be made; `arguments` is an object or raw JSON text. */
export interface CallRequest {
  readonly id: string;
  readonly name: string;
  readonly arguments: unknown;
  /** The arguments as they were read, where the caller needed that too. */
  readonly read?: ReadArguments;
  /** JSON text to read them from again, repaired if needed: the tool cannot change it. */
  readonly text?: string;
  /** What is known of the call from when it was suspended; with it, the call is made again. */
  readonly journal?: CallJournal;
  /** The arguments are as `@Transform` left them, and are not transformed again. */
  readonly isTransformed?: boolean;
  /** Where in a run it stands. */
  readonly place?: CallPlace;
  /** The key of its effect, where that was settled before: of work on an engine. */
  readonly idempotencyKey?: string;
  /** It was made before, its process died, and what came of it is not known. */
  readonly hasBegun?: boolean;
  /** Whether it was to be a job then; default: whether its tool starts jobs now. */
  readonly asJob?: boolean;
  /** Its tool only read then. */
  readonly readOnly?: true;
  /** Keeps what `context.once` has done before the tool goes on. */
  readonly keepOnce?: KeepOnce;
  /** Where it came as a message of the Model Context Protocol. */
  readonly mcp?: McpArrival;
  /** The call that started it as a job. */
  readonly startedBy?: TracePlace;
}

/** Keeps one value of `context.once`; rejects where it cannot be kept. */
export type KeepOnce = (done: OnceValue) => Promise<void>;

/** One value of `context.once`, made for these arguments. */
export interface OnceValue {
  readonly key: string;
  readonly value?: unknown;
  readonly arguments: JsonObject;
}

/** The steps of a call that are timed; reading the arguments counts as a part of their check. */
export type CallStep = 'find' | 'check' | 'allow' | 'run' | 'write';

/** What happens to a call that had begun, if its tool cannot find out the outcome. */
export type OnUnknown = 'ask' | 'error' | 'rerun';

/** Where a call comes from. */
export interface CallSource {
  readonly scope: CallScope;
  /** The number of this attempt of the model at this tool; 1 is the first. */
  readonly attempt?: number;
}

/** A call that needs an approval, as standing ones are looked for. */
export interface StandingCall {
  readonly tool: ToolDefinition;
  readonly arguments: JsonObject;
  readonly conversationId: string | undefined;
  /** Whether somebody who gave a standing approval could approve this call. */
  readonly mayHaveGiven: (answeredBy: unknown) => boolean;
}

/** What the calls of a registry or of a run have in common. */
export interface CallEnvironment {
  readonly find: (name: string) => ToolEntry | undefined;
  /** The names of the tools that there are, for those who ask for another one. */
  readonly names?: () => readonly string[];
  readonly logger?: Logger;
  /** Records calls. */
  readonly telemetry?: Telemetry;
  /** `false`: arguments are not logged. */
  readonly logArguments?: boolean;
  /** Keeps secrets out of the log; default: what is known to be one. */
  readonly redact?: Redaction;
  /** Milliseconds for tools that set no `timeoutMs` of their own; none: no limit. */
  readonly toolTimeoutMs?: number;
  /** Calls are answered by an {@link Invocation} with the record of the call; otherwise by the result alone. */
  readonly isRecorded?: boolean;
  readonly describeError?: DescribeError;
  /** All of them must allow a call. */
  readonly policies?: readonly ToolPolicy[];
  /** `false`: types are coerced only for tools that ask for it. */
  readonly coerce?: boolean;
  /** Characters of a result that the model sees at most, for tools that set no limit of their own. */
  readonly maxResultChars?: number;
  /** Hears of completions; with it, tools may answer now and complete later. */
  readonly onAsyncResult?: AsyncCallback;
  /** Runs last on what started work completes with, in the async context of the call. */
  readonly finalizeCompletion?: (tool: string, result: ToolResult) => ToolResult;
  /** What the work that tools start goes through; default: one without a limit. */
  readonly tasks?: TaskQueue;
  /** The records of calls carry the keys of their effects. */
  readonly recordsKeys?: boolean;
  /** Default: an approval is requested. */
  readonly onUnknown?: OnUnknown;
  /** Where the work of background tools goes, in place of this process. */
  readonly jobs?: JobDispatch;
  /** A call that starts a job is answered with the result of the job. */
  readonly awaitsJobs?: boolean;
  /** Aborted once there is no listener for its outcome. */
  readonly followUntil?: AbortSignal;
  /** Hears of the end of each step of a call. */
  readonly onStep?: (step: CallStep) => void;
  /** What surrounds each call, in order. */
  readonly hooks?: readonly Hooks[];
  /** The standing approval that lets a call through which needs one; it may fail, and then there is none. */
  readonly standing?: (call: StandingCall) => Promise<StandingYes | undefined>;
  /** What runs that its tool began wait for; asked when a body has ended, in the async context of the call. */
  readonly innerWaits?: () => readonly Wait[];
  /** Milliseconds for answers, where neither tool nor question sets them; default: no limit. */
  readonly answerWithinMs?: number;
  /** Somebody can be asked: a call that waits for an answer is suspended instead of failing. */
  readonly canSuspend?: boolean;
}

/** The same where the record of a call is wanted. */
export type RecordedEnvironment = CallEnvironment & { readonly isRecorded: true };

/** A call that has its answer: its result, or an acknowledgement with a completion to come. */
export interface AnsweredInvocation {
  readonly status: 'settled' | 'started';
  readonly result: ToolResult;
  readonly record: CallRecord;
}

/** A call that waits. It is made again with the journal, once its waits are answered (`answerWait`). */
export interface SuspendedInvocation {
  readonly status: 'suspended';
  readonly suspension: Suspension;
  /** The error that stands for it where nobody can be asked. */
  readonly result: ToolResult;
  readonly record: CallRecord;
}

/** How a call ended: there is no fourth way. */
export type Invocation = AnsweredInvocation | SuspendedInvocation;

/** How the body of a tool ended, or why it did not begin. */
export type BodyOutcome =
  | { readonly type: 'returned'; readonly value: unknown }
  | { readonly type: 'error'; readonly error: unknown }
  /** `hasBegun`: within the body, which may have done something by then. */
  | { readonly type: 'timed_out'; readonly timeoutMs: number; readonly hasBegun?: boolean }
  | { readonly type: 'aborted'; readonly hasBegun?: boolean }
  | {
      readonly type: 'refused';
      readonly reason: string;
      readonly isExpired?: boolean;
      /** Whoever was asked has said so, or nobody in time. */
      readonly isAnswer?: true;
    };

/** What keeps a body from running: the end that its call has without it, or what it waits for. */
export type Block =
  | Extract<BodyOutcome, { readonly type: 'returned' | 'refused' | 'aborted' | 'error' }>
  /** `because`: what the policy that asks has said. */
  | { readonly type: 'waits'; readonly wait: Wait; readonly because?: string }
  /** A hook holds it until its run goes on. */
  | { readonly type: 'held' };

/** What came of a call. */
export interface CallOutcome {
  /** Of arguments that were rejected: what is wrong with them. */
  readonly faults?: readonly ArgumentFault[];
  readonly status: CallStatus;
  /** Of a suspended call: the error that stands for it where nobody can be asked. */
  readonly result: ToolResult;
  /** An abort came before its method: there is no effect that a key could name. */
  readonly isNotBegun?: true;
  /** Only with status `suspended`. */
  readonly suspension?: Suspension;
  /** Of the work that completes later. */
  readonly taskId?: string;
}

/** What the loop adds to a call; wins over the registry's own options. */
export interface InvokeOptions
  extends Pick<
    CallEnvironment,
    | ('logger' | 'telemetry' | 'toolTimeoutMs' | 'maxResultChars' | 'answerWithinMs' | 'onUnknown')
    | ('onAsyncResult' | 'finalizeCompletion' | 'tasks' | 'jobs' | 'awaitsJobs' | 'followUntil')
    | ('recordsKeys' | 'innerWaits' | 'standing')
  > {
  readonly attempt?: number;
  readonly policy?: ToolPolicy;
  /** Behind those of the registry. */
  readonly hooks?: readonly Hooks[];
}

/** Makes a call; synchronous where its tool is. Never throws or rejects. */
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
  /** Makes the call, with what the watcher adds to it. To be called once. */
  make(added?: WatcherAdditions): Invocation | Promise<Invocation>;
}

/** What a watcher adds to a call. */
export interface WatcherAdditions {
  /** Asked after all others; the model receives its refusal. */
  readonly policy?: ToolPolicy;
  /** Hears of the end of each step. */
  readonly onStep?: (step: CallStep) => void;
}

/**
 * Sees the calls of a registry and of its views, whoever makes them, and may hold them: an inspector. What it gives is
 * what `make` gave.
 */
export interface CallWatcher {
  aroundCall(call: WatchedCall): Invocation | Promise<Invocation>;
}
