import type { SchemaSource, ValueOf } from './json-schema.js';
import type { Message } from './llm-provider.js';
import type { InjectionToken, Logger } from './ports.js';
import type { ToolResult } from './tool-result.js';

/**
 * The application's own data of a call (user, tenant …), passed as `scope.data`. Add types by augmenting:
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

/** Progress of a running call: text, or the argument of the `onUpdate` of an agent tool. */
export type ProgressUpdate = unknown;

/** A question to the user (`context.ask`). */
export interface Question<Source extends SchemaSource = SchemaSource> {
  readonly message: string;
  /** The schema of the answer: JSON Schema, TypeBox, or a Standard Schema that can produce JSON Schema. */
  readonly schema?: Source;
  /** Milliseconds until the question expires; default: the run's `answerWithinMs`. */
  readonly expiresInMs?: number;
  /**
   * What a refusal does: `end` (default) ends the call with it; with `throw`, the method runs again, and `ask` throws
   * `ToolRefused` (512), so that it can undo or cancel what it has begun.
   */
  readonly onRefusal?: 'end' | 'throw';
}

/**
 * Information about the current call, for tools. There is one per call; it is read-only and created only if a tool
 * uses it. It is a runtime class, so that decorator metadata can refer to it: a parameter of type `ToolContext` is
 * injected and is never part of the schema.
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
  /** Id of the call: the model's, or `call_1`, `call_2`, … */
  abstract readonly callId: string;
  /** The name that was called. */
  abstract readonly toolName: string;
  /** The channel of the conversation, for example `telegram`. */
  abstract readonly channel: string | undefined;
  /** The conversation within the channel. */
  abstract readonly chatId: string | undefined;
  /** The conversation, across channels. */
  abstract readonly conversationId: string | undefined;
  /** The owner in the scope; `undefined` if there is no owner. */
  abstract readonly owner: unknown;
  /** The OAuth scopes of the caller: the scope's `scopes`; `undefined` if they are not known. */
  abstract readonly scopes: readonly string[] | undefined;
  /**
   * Id of the run that makes the call; it does not change when the run is suspended and resumed. `undefined` outside
   * a run.
   */
  abstract readonly runId: string | undefined;
  /** The history up to and including the assistant message with this call; frozen. */
  abstract readonly messages: readonly Message[];
  /** Aborted when the run is aborted, the call timed out, or the work it started is cancelled. */
  abstract readonly signal: AbortSignal;
  /** The application's own data: the object that was passed with the call. */
  abstract readonly data: ToolContextData;
  /**
   * The number of the model's attempt at this tool: 1 for the first, 2 after a rejected one, …. In a job, the number
   * of its start: starts that a crashed worker did not finish count, so that it may exceed `attempts`.
   */
  abstract readonly attempt: number;
  /** The arguments exactly as they arrived: an object or text. */
  abstract readonly rawArguments: unknown;
  /**
   * A key that identifies the effect of this call to other systems, such as a payment API. It does not change if the
   * same call is executed again: after a suspension or a crash, on another machine, with another version of the tool,
   * or in the work that it started. It is a digest of run, step, index in the step, tool, and the arguments as the
   * model sent them or as an approver edited them. Outside a run, it is a digest of the scope's `callId`, tool and
   * arguments, or random without a `callId`. 43 characters.
   */
  abstract readonly idempotencyKey: string;
  /** Id of the work that the call started (`TaskQueue`); `undefined` if no started work outlives the call. */
  abstract readonly taskId: string | undefined;
  /** The registry's logger. */
  abstract readonly logger: Logger;

  /** Sends progress of the call to listeners; never to the model. */
  abstract progress(update: ProgressUpdate): void;
  /** An instance from the container of this call. Throws if there is no container. */
  abstract resolve<Instance>(token: InjectionToken<Instance>): Instance;
  /**
   * Starts work that outlives the reply. Return the value of this function from the tool. If the application receives
   * completions (`onAsyncResult`), the model receives `acknowledgement` now and the result of the work later, exactly
   * once. Otherwise the call waits for the work and returns its result. The tool's `timeoutMs` limits the work,
   * starting when it begins to run. `signal`, `progress` and `resolve` of this context stay usable until the work
   * ends. If called inside such work, it runs the given work as a part of it.
   *
   * Throws `ToolExecutionFailed` (501) if the call has already started work, or was answered.
   */
  abstract background(work: () => unknown, acknowledgement?: string): ToolResult | Promise<ToolResult>;
  /**
   * Asks the user. If there is no answer yet, the run ends as suspended. When the run is resumed, the method runs
   * again from its start with the same arguments: answered questions return their answers, and everything else
   * repeats, except the work of {@link once}. Do not catch the error that `ask` throws meanwhile; if a method does,
   * its call is suspended all the same.
   *
   * Throws `NotExecutableHere` (511) if there is no user to ask: in `registry.execute`, and in work that continues
   * after the call was answered.
   */
  abstract ask<Source extends SchemaSource = SchemaSource>(
    question: Question<Source>,
  ): Promise<ValueOf<Source>>;
  /**
   * Runs `work` once per call. If the method runs again after a suspension, the value of the first time is returned
   * for `key`. The value must be JSON, and is returned in its JSON form (a `Date` as a string) also the first time.
   * It is stored with the suspended run, or immediately if the run has `checkpoint: 'call'`. Work that failed, or
   * that a crash interrupted, is repeated under the same `idempotencyKey`, which belongs to this work alone.
   */
  abstract once<Value>(key: string, work: (part: OncePart) => Value | Promise<Value>): Promise<Value>;
}

/** The argument of the work in `context.once`. */
export interface OncePart {
  /** A digest of the call's key and the key of `once`. */
  readonly idempotencyKey: string;
}

/** Work that a call started and that is not completed yet. Plain data, so that it can be stored. */
export interface BackgroundTask {
  /** `task_` and a UUID, unique across processes. */
  readonly id: string;
  /** The call that started it. */
  readonly callId: string;
  readonly tool: string;
  /** From the call's scope. */
  readonly conversationId?: string;
  /** `waiting` in the queue, or `running`, which includes the delivery of its result. */
  readonly status: 'waiting' | 'running';
}

/**
 * An event of started work. `task-start`: it begins to run; `task-progress`: its tool reported progress; `task-end`:
 * its completion was delivered. A task that is cancelled while it waits has no `task-start`.
 */
export type TaskEvent =
  | { readonly type: 'task-start'; readonly task: BackgroundTask }
  | { readonly type: 'task-progress'; readonly task: BackgroundTask; readonly update: unknown }
  | { readonly type: 'task-end'; readonly task: BackgroundTask; readonly result: ToolResult };

/** Receives events of started work. Errors and rejections have no effect. */
export type TaskListener = (event: TaskEvent) => void;
