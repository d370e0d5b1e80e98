import type { ServedAs, ToolBehaviour, ToolsetTitle } from './declaration.js';
import type { JsonObject, JsonSchema } from './json-schema.js';
import type { Message } from './llm-provider.js';
import type { InstanceResolver } from './ports.js';
import type { ToolContext } from './tool-context.js';
import type { Content, ToolResult } from './tool-result.js';
import type { Touches } from './touch.js';

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

/** What an agent tool answers: `content` goes to the model, `details` to the application only. */
export interface AgentToolResult<Details = unknown> {
  readonly content: Content;
  readonly details: Details;
}

/** Sends a partial result to whoever listens, any number of times; never to the model. */
export type AgentToolUpdateCallback<Details = unknown> = (partial: AgentToolResult<Details>) => void;

/** What an agent tool may read of the conversation, besides all else of the call's context. */
export type ToolExecutionContext = ToolContext & { readonly messages: readonly Message[] };

/** A call by its effect: what was to be done, and the key under which other systems know it. */
export interface Effect {
  readonly callId: string;
  /** That of the call's `context.idempotencyKey`. */
  readonly idempotencyKey: string;
  /** As the tool got them, in JSON form; of a call that had begun, as this version of the tool gets them. */
  readonly arguments: JsonObject;
}

/** What a tool knows of a call that had begun when its process died, or that was cut off in a run that is undone. */
export type Reconciliation =
  /** It was done, and gave this. */
  | { readonly status: 'done'; readonly result?: unknown }
  /** It was not: it is made, or there is nothing to undo. */
  | { readonly status: 'not-done' }
  | { readonly status: 'unknown' };

/**
 * Says what came of a call that had begun when its process died, or that was cut off or failed in a run that is undone
 * (`compensateRun`). What it throws means that it is not known.
 */
export type Reconcile = (effect: Effect, context: ToolContext) => Reconciliation | Promise<Reconciliation>;

/** Undoes what a call has done. May be called again under the same key, and must then do nothing more. */
export type Compensate = (effect: Effect & { readonly result: ToolResult }, context: ToolContext) => unknown;

/**
 * Says what a call would come to, for whoever is asked for a yes: a text, such as a difference, of which 20,000 characters
 * are shown; nothing where there is nothing to say. It changes nothing; what it throws is as nothing.
 */
export type Preview = (
  args: JsonObject,
  context: ToolContext,
) => string | undefined | Promise<string | undefined>;

/** Arguments in the form the tool takes, or what is wrong with them. */
export type Hydrated =
  | {
      readonly ok: true;
      readonly value: unknown;
      /** The arguments in JSON form, where `@Transform` of class-transformer changed them before their check. */
      readonly transformed?: JsonObject;
    }
  | { readonly ok: false; readonly faults: readonly ArgumentFault[] };

/** From arguments that fit the schema to what `execute` takes: class instances, dates, parsed values. */
export interface Hydrate {
  /** `isTransformed`: the arguments are those that an earlier hydration gave as `transformed`. */
  (args: JsonObject, isTransformed?: boolean): Hydrated | Promise<Hydrated>;
  /** The schema that arguments have to fit before; default: that of the tool's parameters. */
  readonly accepts?: JsonSchema;
  /** What rules of the author report about arguments that do not fit the schema: the model sees all faults at once. */
  readonly review?: (args: JsonObject) => Promise<readonly ReviewFault[]>;
}

/** A fault that a rule of a class has found. */
export interface ReviewFault extends ArgumentFault {
  /** The message is the author's own, not the rule's. */
  readonly isAuthored: boolean;
}

/**
 * A tool with all that the framework knows about it: what discovery and `defineTool` make (frozen), and
 * what a hand-written {@link Tool} may carry of it.
 */
export interface ToolDefinition extends Tool, ToolBehaviour {
  /** The toolset that it belongs to, where that has a name or a description of its own. */
  readonly toolset?: ToolsetTitle;
  /** No tool of a model, but a prompt, a resource or a completion of MCP servers. */
  readonly served?: ServedAs;
  /** JSON Schema of the result, where one was declared. */
  readonly output?: JsonSchema;
  /** `output` was read from types: a result that does not fit is only a warning. */
  readonly isOutputInferred?: boolean;
  /** Its results are content parts and details, whatever else stands beside them. */
  readonly returnsContent?: boolean;
  /** Runs after the check against `parameters` and before `execute`. */
  readonly hydrate?: Hydrate;
  /** The tool takes the abort signal: after an abort it may wind up and answer for itself. */
  readonly observesSignal?: boolean;
  /** `execute` never looks at the context, so that none needs to be made. */
  readonly ignoresContext?: boolean;
  /** `false`: defaults of the schema are not filled in, because who executes it knows them. */
  readonly fillsDefaults?: boolean;
  /** What is checked instead of `parameters` and `output`: what of them is safe to check here. */
  readonly checkedAs?: { readonly parameters?: JsonSchema; readonly output?: JsonSchema };
  /** Asked what came of a call that had begun when its process died, or that is to be undone and was cut off. */
  readonly reconcile?: Reconcile;
  /** Undoes a call that was done (`compensateRun`). */
  readonly compensate?: Compensate;
  /** Says what a call would touch, to policies that ask. */
  readonly touches?: Touches;
  /** Describes what a call would do, for its approver. */
  readonly preview?: Preview;
  /** Where `context.resolve` looks when the call brings no container of its own. */
  readonly container?: InstanceResolver;
}

/** One thing that is wrong with the arguments of a call. */
export interface ArgumentFault {
  /** Where, with dots: `items.0.sku`; empty for the arguments as a whole. */
  readonly path: string;
  /** What, as the second half of a sentence: `must be string`. */
  readonly message: string;
  /** What the author's own code threw; for logs, never sent to a model. */
  readonly cause?: unknown;
}
