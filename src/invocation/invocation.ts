import type { ReadArguments } from '../checking/read-arguments.js';
import type { CallRecord } from '../contract/call-record.js';
import type { CallScope } from '../contract/call-scope.js';
import type { Logger } from '../contract/logger.js';
import type { CallJournal, Suspension } from '../contract/suspension.js';
import type { AsyncCallback } from '../contract/tool.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import type { ToolPolicy } from '../contract/tool-policy.js';
import type { ToolResult } from '../contract/tool-result.js';
import type { Redaction } from './redact.js';
import type { TaskQueue } from './task-queue.js';

/** A call to be made; `arguments` is an object or raw JSON text. */
export interface CallRequest {
  readonly id: string;
  readonly name: string;
  readonly arguments: unknown;
  /** The arguments as they were read, where the caller needed that too. */
  readonly read?: ReadArguments;
  /** The same as JSON text, where the caller has it: what the tool does to its arguments does not reach it. */
  readonly text?: string;
  /** What is known of the call from when it was suspended; with it, the call is made again. */
  readonly journal?: CallJournal;
}

/** What the model is told of something a tool threw; default: its message. */
export type DescribeError = (thrown: unknown, tool: string) => string;

/** What surrounds a call. */
export interface CallEnvironment {
  readonly find: (name: string) => ToolDefinition | undefined;
  /** The names of the tools that there are, for those who ask for another one. */
  readonly names?: () => readonly string[];
  readonly scope: CallScope;
  readonly logger?: Logger;
  /** `false`: arguments are not logged. */
  readonly logArguments?: boolean;
  /** Keeps secrets out of the log; default: what is known to be one. */
  readonly redact?: Redaction;
  /** Milliseconds for tools that set no `timeoutMs` of their own; none: no limit. */
  readonly toolTimeoutMs?: number;
  /** Somebody wants to know how long the call took, or its record. */
  readonly isTimed?: boolean;
  /** Which try of the model at this tool this is; 1 is the first. */
  readonly attempt?: number;
  readonly describeError?: DescribeError;
  /** All of them must allow a call. */
  readonly policies?: readonly ToolPolicy[];
  /** `false`: types are mended for no tool that does not ask for it. */
  readonly coerce?: boolean;
  /** Characters of a result that the model sees at most, for tools that set no limit of their own. */
  readonly maxResultChars?: number;
  /** Hears of completions; with it, tools may answer now and complete later. */
  readonly onAsyncResult?: AsyncCallback;
  /** Has the last word on what started work completes with; runs in the async context of the call. */
  readonly judgeCompletion?: (tool: string, result: ToolResult) => ToolResult;
  /** What the work that tools start goes through; default: one without a limit. */
  readonly tasks?: TaskQueue;
  /** Somebody can be asked: a call that waits for an answer is suspended instead of failing. */
  readonly canSuspend?: boolean;
}

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

/** How a call left the staircase: there is no fourth way. */
export type Invocation = AnsweredInvocation | SuspendedInvocation;
