import type { ArgsOptions } from '../contract/args-options.js';
import type { ParamOptions } from '../contract/param-options.js';
import type { ToolOptions } from '../contract/tool-options.js';

/** What a decorator said about one parameter of a method. */
export type ParameterRecord =
  | { readonly role: 'property'; readonly options: ParamOptions }
  | { readonly role: 'arguments'; readonly options: ArgsOptions }
  /** `isFilled`: not with the context itself, but by the framework around it (a parameter decorator of NestJS). */
  | { readonly role: 'context'; readonly isFilled?: boolean };

/** What the decorators said about one method: a record only; nothing is checked or resolved yet. */
export interface ToolMethodRecord {
  readonly key: string | symbol;
  /** `@Tool`'s options; absent where only parameters were decorated. */
  readonly tool?: ToolOptions;
  /** What `@Tool` found there: a decorator above it may have put another function in its place. */
  readonly method?: unknown;
  /** `@Tool` stands on a static method, which has no instance to inject into. */
  readonly isStatic: boolean;
  /** By position. More than one record at a position is a mistake that discovery reports. */
  readonly parameters: ReadonlyMap<number, readonly ParameterRecord[]>;
}
