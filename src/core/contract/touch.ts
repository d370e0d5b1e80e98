import type { JsonObject } from './json-schema.js';
import type { ToolContext } from './tool-context.js';

/**
 * One resource that a call would access, for policies to decide about before anything has happened. The tool states it
 * (`@Tool({ touches })`), because it knows its arguments; what is allowed is decided elsewhere.
 *
 * - `read` and `write`: a file or a folder, relative to the folder that the tool works in, with `/`, without `../..`;
 *   an absolute path is outside of it. Whatever changes, creates or removes is `write`. `isDeep`: and all that is in
 *   the folder. `absolute`: where that is, of a path that is told from a folder of the user’s elsewhere: rules that
 *   name it hold, and it does not ask because it is elsewhere.
 * - `run`: a program and its arguments, word by word; `undefined` stands for words that are not known before it
 *   runs. `mentions`: the paths that its words may be, with links followed; one that ends in `/` is a folder with all
 *   that is in it. `isReadOnly`: the shell tools run it in a form that only reads. `isSandboxed`: it runs where the
 *   operating system keeps it away from what is not allowed.
 * - `open`: an address that is asked, as a URL.
 * - `unknown`: it cannot be determined, and why. `isSandboxed`: as of `run`.
 */
export type ResourceAccess =
  | {
      readonly action: 'read' | 'write';
      readonly path: string;
      readonly isDeep?: true;
      readonly absolute?: string;
    }
  | {
      readonly action: 'run';
      readonly words: readonly (string | undefined)[];
      readonly mentions?: readonly string[];
      readonly isReadOnly?: true;
      readonly isSandboxed?: true;
    }
  | { readonly action: 'open'; readonly url: string }
  | { readonly action: 'unknown'; readonly why: string; readonly isSandboxed?: true };

/** @deprecated The old name of {@link ResourceAccess}. */
export type Touch = ResourceAccess;

/**
 * Says what a call would touch: of arguments that fit the schema, before the call. It changes nothing. Where it
 * throws, the call touches what is unknown; a call that touches nothing gives an empty list. `'as annotated'`: of this
 * call, the annotations of its tool say enough, as of a tool without `touches`.
 *
 * @example
 * ```ts
 * const touches: Touches = ({ file }) => [{ action: 'write', path: String(file) }];
 * ```
 */
export type Touches = (args: JsonObject, context: ToolContext) => SaidTouches | Promise<SaidTouches>;

/** What {@link Touches} may give. */
type SaidTouches = readonly ResourceAccess[] | 'as annotated';
