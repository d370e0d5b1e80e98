import type { JsonSchema } from './json-schema.js';
import type { ToolContext } from './tool-context.js';
import type { ToolResult } from './tool-result.js';

/**
 * The hand-written contract: an object with these four members is a tool and can be registered
 * as it is. `execute` gets checked arguments and may return any value, or a promise of one.
 */
export interface Tool {
  /** Unique key in the registry and for the model; `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`. */
  readonly name: string;
  /** What it does, and when to use it. */
  readonly description: string;
  /** JSON Schema of the arguments; offered to the model unchanged. */
  readonly parameters: JsonSchema;
  // biome-ignore lint/suspicious/noExplicitAny: implementations name their own argument types
  execute(args: any, context: ToolContext): unknown;
}

/**
 * A tool that wants to know the conversation. `setContext` is called before `execute` when
 * channel and chat id are both given. It stores on a shared object, so calls of such a tool run one at a
 * time; prefer the `context` argument of `execute`.
 */
export interface ContextualTool extends Tool {
  setContext(channel: string, chatId: string): void;
}

/** Reports the completion of work that a tool started; the context is that of the call. */
export type AsyncCallback = (context: ToolContext | undefined, result: ToolResult) => void;

/**
 * A tool that may answer `asyncResult(...)` at once and complete later through the callback. Calls
 * of such an object run one at a time, like those of a {@link ContextualTool}.
 */
export interface AsyncTool extends Tool {
  setCallback(callback: AsyncCallback): void;
}
