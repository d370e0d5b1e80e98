import type { JsonObject } from './json-schema.js';
import type { ToolContext } from './tool-context.js';

/**
 * One thing that a call would touch, for policies to judge before anything has happened. What a call touches is
 * said by its tool (`@Tool({ touches })`), which knows its arguments; whether that may be is said elsewhere.
 *
 * - `read` and `write`: a file or a folder, relative to the folder that the tool works in, with `/`, without `..`;
 *   an absolute path is outside of it. Whatever changes, creates or removes is `write`. `isDeep`: and all that is in
 *   the folder. `absolute`: where that is, of a path that is told from a folder of the user’s elsewhere: rules that
 *   name it hold, and nobody is asked about it because it is elsewhere.
 * - `run`: a program and its arguments, word by word; `undefined` stands for words that are not known before it
 *   runs. What a program starts in turn is an entry of its own. `mentions`: the paths that its words may be; one
 *   that ends in `/` is a folder with all that is in it. `patterns`: what the shell puts paths in for (`*.ts`).
 *   `program`: the file in the folder that its first word names by a path, with links followed.
 * - `open`: an address that is asked, as a URL.
 * - `unknown`: it cannot be told, and why.
 */
export type Touch =
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
      readonly patterns?: readonly string[];
      readonly program?: string;
    }
  | { readonly action: 'open'; readonly url: string }
  | { readonly action: 'unknown'; readonly why: string };

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
type SaidTouches = readonly Touch[] | 'as annotated';
