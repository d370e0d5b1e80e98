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
 * channel and chat id are both given. It stores on a shared object, so the bodies of its calls run one at a
 * time; one that such a body makes itself does not wait for it, and the outer call's context is set again
 * behind it. Prefer the `context` argument of `execute`.
 */
export interface ContextualTool extends Tool {
  setContext(channel: string, chatId: string): void;
}

/** Reports the completion of work that a tool started; the context is that of the call. */
export type AsyncCallback = (context: ToolContext | undefined, result: ToolResult) => void;

/**
 * A tool that may answer `asyncResult(...)` at once and complete later through the callback. Bodies run one at a
 * time, as those of a {@link ContextualTool}, and nobody waits for a completion. Each call has a callback of its
 * own: keep the one that was set when `execute` began, or pass the context of `execute` on to it.
 */
export interface AsyncTool extends Tool {
  setCallback(callback: AsyncCallback): void;
}
