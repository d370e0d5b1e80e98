/**
 * How long an instance of a toolset class lives: one for all calls, one per resolution, or one per call
 * in a child container that is disposed when the call has completed.
 */
export type ToolsetScope = 'singleton' | 'transient' | 'scoped';

/** What `@Toolset({ name, description })` said of the class that a tool belongs to. */
export interface ToolsetTitle {
  readonly name: string;
  readonly description?: string;
}

/** Options of `@Toolset`. */
export interface ToolsetOptions {
  /** Name for people, as in `toolwright list` and for MCP clients; default: the class's name. */
  readonly name?: string;
  /** Put before each tool's derived name, with `_`; explicit names stay as they are. */
  readonly prefix?: string;
  /** What its tools are about and how they belong together, in a sentence or two. */
  readonly description?: string;
  /** Default: what the container already says of the class, otherwise `singleton`. */
  readonly scope?: ToolsetScope;
}
