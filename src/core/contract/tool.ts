import type { ServedAs, ToolBehaviour, ToolsetTitle } from './declaration.js';
import type { JsonObject, JsonSchema } from './json-schema.js';
import type { Message } from './llm-provider.js';
import type { InstanceResolver } from './ports.js';
import type { ToolContext } from './tool-context.js';
import type { Content, ToolResult } from './tool-result.js';
import type { Touches } from './touch.js';

/**
 * The interface of hand-written tools: an object with these four members can be registered unchanged. `execute`
 * receives checked arguments and may return any value, or a promise of a value.
 */
export interface Tool {
  /** Unique key in the registry and for the model; `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`. */
  readonly name: string;
  /** The purpose of the tool, and when to use it. */
  readonly description: string;
  /** JSON Schema of the arguments; offered to the model unchanged. */
  readonly parameters: JsonSchema;
  // biome-ignore lint/suspicious/noExplicitAny: implementations name their own argument types
  execute(args: any, context: ToolContext): unknown;
}

/**
 * A tool that needs to know the conversation. `setContext` is called before `execute` if channel and chat id are both
 * set. The context is stored on a shared object, so the calls of the tool run one at a time. If a call makes another
 * call of the same tool, the inner call does not wait, and the outer call's context is set again after it. Prefer the
 * `context` argument of `execute`.
 */
export interface ContextualTool extends Tool {
  setContext(channel: string, chatId: string): void;
}

/** Reports the completion of work that a tool started; the context is that of the call. */
export type AsyncCallback = (context: ToolContext | undefined, result: ToolResult) => void;

/**
 * A tool that may return `asyncResult(...)` immediately and complete later through the callback. Its calls run one at
 * a time, like those of a {@link ContextualTool}, without waiting for completions. Each call has its own callback:
 * save the callback that was set when `execute` began, or pass the context of `execute` to it.
 */
export interface AsyncTool extends Tool {
  setCallback(callback: AsyncCallback): void;
}

/** The result of an agent tool: `content` is for the model, `details` only for the application. */
export interface AgentToolResult<Details = unknown> {
  readonly content: Content;
  readonly details: Details;
}

/** Sends a partial result to listeners, any number of times; never to the model. */
export type AgentToolUpdateCallback<Details = unknown> = (partial: AgentToolResult<Details>) => void;

/** The context of an agent tool: the call's context, with its messages. */
export type ToolExecutionContext = ToolContext & { readonly messages: readonly Message[] };

/** The effect of a call: its arguments, and the key that identifies it to other systems. */
export interface Effect {
  readonly callId: string;
  /** The call's `context.idempotencyKey`. */
  readonly idempotencyKey: string;
  /**
   * As the tool received them, in JSON form. For a call that had begun: as this version of the tool would receive
   * them.
   */
  readonly arguments: JsonObject;
}

/** A tool's finding about a call that was interrupted by a crash, or that was cut off in a run that is undone. */
export type Reconciliation =
  /** The call was executed, with this result. */
  | { readonly status: 'done'; readonly result?: unknown }
  /** The call was not executed: it runs now, or there is nothing to undo. */
  | { readonly status: 'not-done' }
  | { readonly status: 'unknown' };

/**
 * Determines the outcome of a call that was interrupted by a crash, or that was cut off or failed in a run that is
 * undone (`compensateRun`). If it throws, the outcome is unknown.
 */
export type Reconcile = (effect: Effect, context: ToolContext) => Reconciliation | Promise<Reconciliation>;

/** Undoes a call. It may be called again under the same key, and must then have no further effect. */
export type Compensate = (effect: Effect & { readonly result: ToolResult }, context: ToolContext) => unknown;

/**
 * Describes for approvers what a call would do: a text, such as a diff, of which 20,000 characters are shown; or
 * `undefined`. It must not change anything; if it throws, there is no preview.
 */
export type Preview = (
  args: JsonObject,
  context: ToolContext,
) => string | undefined | Promise<string | undefined>;

/** Arguments in the tool's form, or the faults in them. */
export type Hydrated =
  | {
      readonly ok: true;
      readonly value: unknown;
      /** The arguments in JSON form, if `@Transform` of class-transformer changed them before the check. */
      readonly transformed?: JsonObject;
    }
  | { readonly ok: false; readonly faults: readonly ArgumentFault[] };

/** Converts arguments that match the schema to the arguments of `execute`: class instances, dates, parsed values. */
export interface Hydrate {
  /** `isTransformed`: the arguments are the `transformed` of an earlier hydration. */
  (args: JsonObject, isTransformed?: boolean): Hydrated | Promise<Hydrated>;
  /** The schema that arguments must match first; default: that of the tool's parameters. */
  readonly accepts?: JsonSchema;
  /**
   * Applies the author's own rules to arguments that do not match the schema, so that the model receives all faults
   * together.
   */
  readonly review?: (args: JsonObject) => Promise<readonly ReviewFault[]>;
}

/** A fault that a rule of a class found. */
export interface ReviewFault extends ArgumentFault {
  /** The message is the author's own, not the rule's. */
  readonly isAuthored: boolean;
}

/**
 * A tool with everything that the framework uses. Discovery and `defineTool` create it (frozen); a hand-written
 * {@link Tool} may have any part of it.
 */
export interface ToolDefinition extends Tool, ToolBehaviour {
  /** The toolset of the tool, if that has its own name or description. */
  readonly toolset?: ToolsetTitle;
  /** Set if it is a prompt, a resource or a completion of MCP servers, and not a tool for models. */
  readonly served?: ServedAs;
  /** JSON Schema of the result, if declared. */
  readonly output?: JsonSchema;
  /** `output` was inferred from types: a result that does not match is only a warning. */
  readonly isOutputInferred?: boolean;
  /** Its results are content parts and details, even if they have other fields. */
  readonly returnsContent?: boolean;
  /** Runs after the check against `parameters` and before `execute`. */
  readonly hydrate?: Hydrate;
  /** The tool takes the abort signal: after an abort it may finish and return its own result. */
  readonly observesSignal?: boolean;
  /** `execute` never reads the context, so the context is not created. */
  readonly ignoresContext?: boolean;
  /** `false`: defaults of the schema are not filled in, because the executing side fills them in. */
  readonly fillsDefaults?: boolean;
  /** Schemas that are checked instead of `parameters` and `output`: only their parts that are safe to check here. */
  readonly checkedAs?: { readonly parameters?: JsonSchema; readonly output?: JsonSchema };
  /** Determines the outcome of an interrupted call. Both `recoverRuns` and `compensateRun` use it. */
  readonly reconcile?: Reconcile;
  /** Undoes an executed call (`compensateRun`). */
  readonly compensate?: Compensate;
  /** Lists the resources that a call would access, for policies. */
  readonly touches?: Touches;
  /** Describes what a call would do, for its approver. */
  readonly preview?: Preview;
  /** Used by `context.resolve` if the call has no container. */
  readonly container?: InstanceResolver;
  /**
   * Set on a tool that is not offered any more, because these tools took its place. Calls that have begun still find
   * it, and a run that was offered it may call those tools.
   */
  readonly replacedBy?: () => readonly string[];
}

/** A fault in the arguments of a call. */
export interface ArgumentFault {
  /** The path with dots: `items.0.sku`; empty for the arguments as a whole. */
  readonly path: string;
  /** The fault as the second half of a sentence: `must be string`. */
  readonly message: string;
  /** The error of the author's own code; for logs, never sent to a model. */
  readonly cause?: unknown;
}
