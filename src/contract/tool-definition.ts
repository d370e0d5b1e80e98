import type { ArgumentFault } from './argument-fault.js';
import type { InstanceResolver } from './instance-resolver.js';
import type { JsonObject, JsonSchema } from './json-schema.js';
import type { Tool } from './tool.js';
import type { ToolBehaviour } from './tool-options.js';
import type { ToolsetTitle } from './toolset-options.js';

/** Arguments in the form the tool takes, or what is wrong with them. */
export type Hydrated =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly faults: readonly ArgumentFault[] };

/** From arguments that fit the schema to what `execute` takes: class instances, dates, parsed values. */
export interface Hydrate {
  (args: JsonObject): Hydrated | Promise<Hydrated>;
  /** What rules of the author say about arguments that do not fit the schema, so that all is told at once. */
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
  /** Where `context.resolve` looks when the call brings no container of its own. */
  readonly container?: InstanceResolver;
}
