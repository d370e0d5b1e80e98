import type { InjectionToken } from './instance-resolver.js';
import type { JsonSchema } from './json-schema.js';
import type { Logger } from './logger.js';
import type { Message } from './message.js';
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

/** News from inside a running call; either text, or what seed 3's `onUpdate` carries. */
export type ProgressUpdate = unknown;

/** A question to the user (`context.ask`); the answer is checked against `schema`. */
export interface Question {
  readonly message: string;
  readonly schema?: JsonSchema;
}

/**
 * What a tool is told about the call it serves. One per call, read-only, built only when a tool asks for
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
  /** The history up to and including the assistant message with this call; frozen. */
  abstract readonly messages: readonly Message[];
  /** Aborted when the run is aborted or the call timed out. */
  abstract readonly signal: AbortSignal;
  /** The application's own data, the same object that was given with the call. */
  abstract readonly data: ToolContextData;
  /** 1 for the first attempt of the model at this tool, 2 after one rejected, … */
  abstract readonly attempt: number;
  /** The arguments exactly as they came: an object or text. */
  abstract readonly rawArguments: unknown;
  /** The registry's logger. */
  abstract readonly logger: Logger;

  /** Sends news of the call to whoever listens; never to the model. */
  abstract progress(update: ProgressUpdate): void;
  /** An instance from the container of this call. Throws where there is no container. */
  abstract resolve<Instance>(token: InjectionToken<Instance>): Instance;
  /** Starts work that outlives the reply; `acknowledgement` goes to the model now, the result later. */
  abstract background(work: () => unknown, acknowledgement?: string): ToolResult | Promise<ToolResult>;
  /** Suspends the run until the user has answered. */
  abstract ask(question: Question): Promise<unknown>;
  /** Runs `work` once per call, also when the call is run again after a suspension. */
  abstract once<Value>(key: string, work: () => Value | Promise<Value>): Promise<Value>;
}
