import type { SchemaSource, ValueOf } from './json-schema.js';
import type { Message } from './llm-provider.js';
import type { InjectionToken, Logger } from './ports.js';
import type { ToolResult } from './tool-result.js';

/**
 * The application's own data of a call (user, tenant …), given as `scope.data`. Type it by augmenting:
 *
 * ```ts
 * declare module 'toolwright' {
 *   interface ToolContextData { userId: string }
 * }
 * ```
 */
export interface ToolContextData {
  readonly [key: string]: unknown;
}

/** News from inside a running call; either text, or what the `onUpdate` of an agent tool carries. */
export type ProgressUpdate = unknown;

/** A question to the user (`context.ask`). */
export interface Question<Source extends SchemaSource = SchemaSource> {
  readonly message: string;
  /** What the answer must fit: JSON Schema, TypeBox, or a Standard Schema that can give JSON Schema. */
  readonly schema?: Source;
  /** Milliseconds for an answer; default: the run's `answerWithinMs`. */
  readonly expiresInMs?: number;
}

/**
 * What a tool can read about the call it serves. One per call, read-only, built only when a tool asks for
 * it. A runtime class, so that decorator metadata can name it: a parameter typed `ToolContext` is
 * injected and never part of the schema.
 *
 * @example
 * ```ts
 * @Tool('Who am I?')
 * whoAmI(context: ToolContext) {
 *   return String(context.data.userId);
 * }
 * ```
 */
export abstract class ToolContext {
  /** Id of the call, as the model gave it, or `call_1`, `call_2`, … */
  abstract readonly callId: string;
  /** Name under which the tool was called. */
  abstract readonly toolName: string;
  /** Where the conversation takes place, e.g. `telegram`. */
  abstract readonly channel: string | undefined;
  /** The conversation within the channel. */
  abstract readonly chatId: string | undefined;
  /** The conversation, across channels. */
  abstract readonly conversationId: string | undefined;
  /** On whose behalf the call is made: the scope's `owner`; `undefined` where it names none. */
  abstract readonly owner: unknown;
  /** The OAuth scopes of the caller: the scope's `scopes`; `undefined` where they are not known. */
  abstract readonly scopes: readonly string[] | undefined;
  /** Id of the run that makes the call, the same through its suspensions; none outside of a run. */
  abstract readonly runId: string | undefined;
  /** The history up to and including the assistant message with this call; frozen. */
  abstract readonly messages: readonly Message[];
  /** Aborted when the run is aborted, the call timed out or the work it started is cancelled. */
  abstract readonly signal: AbortSignal;
  /** The application's own data, the same object that was given with the call. */
  abstract readonly data: ToolContextData;
  /**
   * 1 for the first attempt of the model at this tool, 2 after one rejected, …; of a job, which beginning it is: those
   * that a dying worker did not end count, so that it may be above `attempts`.
   */
  abstract readonly attempt: number;
  /** The arguments exactly as they came: an object or text. */
  abstract readonly rawArguments: unknown;
  /**
   * What makes the effect of this call known to other systems, such as a payment API: the same whenever the same call
   * is made again, after a suspension, a crash, on another machine or by another version of its tool, and also in the
   * work that it started. It is a digest of run, step, index in the step, tool and the arguments as the model sent them,
   * or as somebody edited them; outside a run of the scope's `callId`, tool and arguments, or random where there is
   * none. 43 characters.
   */
  abstract readonly idempotencyKey: string;
  /** Id of the work that the call started (`TaskQueue`); none where it started no work that outlives it. */
  abstract readonly taskId: string | undefined;
  /** The registry's logger. */
  abstract readonly logger: Logger;

  /** Sends news of the call to whoever listens; never to the model. */
  abstract progress(update: ProgressUpdate): void;
  /** An instance from the container of this call. Throws where there is no container. */
  abstract resolve<Instance>(token: InjectionToken<Instance>): Instance;
  /**
   * Starts work that outlives the reply: return what this gives. With somebody who hears of completions
   * (`onAsyncResult`), `acknowledgement` goes to the model now and what the work gives later, exactly once;
   * without, the work is awaited and its result given here. The tool's `timeoutMs` limits the work, from when
   * it begins to run; what this context gives (`signal`, `progress`, `resolve`) serves it until it has ended.
   * Called inside such work, it runs what it is given as a part of that.
   *
   * Throws `ToolExecutionFailed` (501) where the call has started work already, or has been answered.
   */
  abstract background(work: () => unknown, acknowledgement?: string): ToolResult | Promise<ToolResult>;
  /**
   * Asks the user. Where the answer is not there yet, the run ends as suspended, and when it is resumed the
   * method runs again from its start with the same arguments: questions that were answered give their
   * answers, and all else repeats, except what {@link once} guards. Let the error that `ask` throws meanwhile
   * pass; a method that catches it is suspended all the same.
   *
   * Throws `NotExecutableHere` (511) if there is no user to ask: in `registry.execute`, and in work that goes
   * on after the call was answered.
   */
  abstract ask<Source extends SchemaSource = SchemaSource>(
    question: Question<Source>,
  ): Promise<ValueOf<Source>>;
  /**
   * Runs `work` once per call, also when the method runs again after a suspension: then `key` gives the value
   * of the first time. The value must be JSON, and is given as JSON gives it (a `Date` as its text) the first
   * time too. It is kept with the suspended run, and at once where the run has `checkpoint: 'call'`: work that
   * failed, or that a crash cut off, is done again, under the same `idempotencyKey`, which is its own.
   */
  abstract once<Value>(key: string, work: (part: OncePart) => Value | Promise<Value>): Promise<Value>;
}

/** What the work of `context.once` is given. */
export interface OncePart {
  /** Of this piece of work: a digest of the call's key and that of `once`. */
  readonly idempotencyKey: string;
}

/** Work of a call that was started and has not completed yet. Plain data, so that it can be stored. */
export interface BackgroundTask {
  /** `task_` and a UUID: no two processes give the same. */
  readonly id: string;
  /** The call that started it. */
  readonly callId: string;
  readonly tool: string;
  /** Of the call's scope, where that had one. */
  readonly conversationId?: string;
  /** `waiting` for its turn in the queue, or `running`: also while its result is not delivered yet. */
  readonly status: 'waiting' | 'running';
}

/**
 * What becomes of started work. `task-start`: it begins to run; `task-progress`: its tool reported something;
 * `task-end`: its completion was delivered. A task that is cancelled while it waits has no `task-start`.
 */
export type TaskEvent =
  | { readonly type: 'task-start'; readonly task: BackgroundTask }
  | { readonly type: 'task-progress'; readonly task: BackgroundTask; readonly update: unknown }
  | { readonly type: 'task-end'; readonly task: BackgroundTask; readonly result: ToolResult };

/** Hears of started work. One that throws or rejects changes nothing. */
export type TaskListener = (event: TaskEvent) => void;
