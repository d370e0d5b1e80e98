import type { JsonObject } from './json-schema.js';
import type { SchemaSource } from './standard-schema.js';
import type { ToolContext } from './tool-context.js';

/** Hints about what a tool does, with MCP's meanings; what is not set stays unset. */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnly?: boolean;
  readonly destructive?: boolean;
  readonly idempotent?: boolean;
  readonly openWorld?: boolean;
}

/** Whether a call needs somebody's yes first. */
export type Approval = boolean | ((args: JsonObject, context: ToolContext) => boolean | Promise<boolean>);

/** How calls of a tool are treated; the part of the options that is not schema. */
export interface ToolBehaviour {
  /** Milliseconds after which a call is answered as timed out (default: the run's `toolTimeoutMs`). */
  readonly timeoutMs?: number;
  /** Calls run alone, in call order. */
  readonly sequential?: boolean;
  readonly approval?: Approval;
  /** The whole method runs in the background. */
  readonly background?: boolean;
  /** `client`: the body never runs here; the caller's side executes it. */
  readonly execution?: 'server' | 'client';
  /** `false`: arguments that needed repair are refused; default `true`, for `destructive` tools `false`. */
  readonly repair?: boolean;
  /** `false`: types are not mended, so that the text `"5"` is no number; default `true`. */
  readonly coerce?: boolean;
  /** Characters of a result that the model sees at most; the rest is in `details` (default: the registry's). */
  readonly maxResultChars?: number;
  /** How often the model may correct itself; overrides the loop's `maxRetries`. */
  readonly retries?: number;
  readonly annotations?: ToolAnnotations;
  /** Ask providers for strict schemas. */
  readonly strict?: boolean;
  /** The result is the run's answer; the model is not asked again. */
  readonly returnDirect?: boolean;
}

/** Options of `@Tool`. */
export interface ToolOptions extends ToolBehaviour {
  /** Default: the toolset's prefix, `_`, and the method's name in snake_case. */
  readonly name?: string;
  readonly description?: string;
  /** Explicit schema of the arguments; wins over everything that was derived. */
  readonly parameters?: SchemaSource;
  /** Schema of the result; `false`: none, also where the generated file has one. */
  readonly output?: SchemaSource | false;
}
