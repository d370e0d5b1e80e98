import type { JsonObject } from './json-schema.js';
import type { ToolContext } from './tool-context.js';

/**
 * A resource that a call would access. Policies use it to decide before the call has any effect. The tool states it
 * (`@Tool({ touches })`), because it can interpret its arguments; policies decide what is allowed.
 *
 * - `read` and `write`: a file or a folder, relative to the working folder of the tool, with `/`. Permissions normalize
 *   it; a path that leaves the working folder is outside, as is an absolute path, unless `folder` shows that it is
 *   inside. `write` includes creating and removing. `isDeep`: includes everything in the folder. `folder`: the absolute
 *   path of the working folder, with `/` and with links resolved; links in `path` are then not followed. Default: the
 *   working directory of the process, and permissions also decide on the path with links resolved. `absolute`: the
 *   absolute path, if `path` is relative to another folder of the user. Rules that name it apply. It is no reason to
 *   ask that the path is outside the working folder.
 * - `run`: a program and its arguments, as a list of words; `undefined` stands for words that are unknown before it
 *   runs. `mentions`: paths that the words may contain, with links resolved; a path that ends in `/` is a folder with
 *   everything in it. `folder`: as above. `isReadOnly`: the shell tools run it in a form that only reads. `isSandboxed`: the operating
 *   system prevents access to everything that is not allowed.
 * - `open`: the URL of a request.
 * - `unknown`: the access cannot be determined, with the reason. `isSandboxed`: as in `run`.
 */
export type ResourceAccess =
  | {
      readonly action: 'read' | 'write';
      readonly path: string;
      readonly isDeep?: true;
      readonly absolute?: string;
      readonly folder?: string;
    }
  | {
      readonly action: 'run';
      readonly words: readonly (string | undefined)[];
      readonly mentions?: readonly string[];
      readonly folder?: string;
      readonly isReadOnly?: true;
      readonly isSandboxed?: true;
    }
  | { readonly action: 'open'; readonly url: string }
  | { readonly action: 'unknown'; readonly why: string; readonly isSandboxed?: true };

/** @deprecated The old name of {@link ResourceAccess}. */
export type Touch = ResourceAccess;

/**
 * Lists the resources that a call would access, before the call, from arguments that match the schema. It must not
 * change anything. If it throws, the access is unknown. A call without access returns an empty list.
 * `'as annotated'`: for this call, only the tool's annotations count, as for a tool without `touches`.
 *
 * @example
 * ```ts
 * const touches: Touches = ({ file }) => [{ action: 'write', path: String(file) }];
 * ```
 */
export type Touches = (args: JsonObject, context: ToolContext) => SaidTouches | Promise<SaidTouches>;

/** The result of {@link Touches}. */
type SaidTouches = readonly ResourceAccess[] | 'as annotated';
