import { closeSync, constants, fstatSync, openSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, posix, relative, resolve, sep } from 'node:path';
import { FILLED_TEXT, type OptionRule } from '../../core/kernel/options.js';

/** The absolute path of a folder. */
export const FOLDER: OptionRule = {
  accepts: (value) => FILLED_TEXT.accepts(value) && isAbsolute(String(value)),
  fix: "the absolute path of a folder: process.cwd() or '/srv/project'",
};

/** A normalized path within a folder, with `/` and without `.` and `..`, or an error. `.` is the folder itself. */
type FolderPath =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly problem: string };

const MOST_CHARACTERS = 4_096;

/** Control characters, and characters that change how a name looks to the person who approves it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/u;

/** On Windows: an alternate data stream (`a:b`), a short name, or a device with any extension. */
const FOREIGN_ON_WINDOWS =
  /[<>:"|?*]|[. ]$|^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\.|$)/i;

/**
 * Parses a path that a person or a model wrote: relative to a folder, or absolute within it. This reads only the text;
 * the code that opens the path must check for links.
 */
export function folderPath(
  given: string,
  { root, platform = process.platform }: { readonly root?: string; readonly platform?: NodeJS.Platform } = {},
): FolderPath {
  const isWindows = platform === 'win32';
  const wrong = (problem: string): FolderPath => ({ ok: false, problem });
  if (given.length > MOST_CHARACTERS) return wrong(`a path has at most ${MOST_CHARACTERS} characters`);
  if (UNSEEN.test(given) || !given.isWellFormed())
    return wrong(`${JSON.stringify(given)} contains invisible characters`);
  const text = isWindows ? given.replaceAll('\\', '/') : given;
  const relative = withoutRoot(text, root?.replaceAll(isWindows ? '\\' : '/', '/'), isWindows);
  if (relative === undefined) return wrong(`'${given}' is outside of the folder`);
  const segments: string[] = [];
  for (const segment of relative.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment !== '..') segments.push(segment);
    else if (segments.pop() === undefined) return wrong(`'${given}' leads out of the folder`);
  }
  const foreign = isWindows ? segments.find((segment) => FOREIGN_ON_WINDOWS.test(segment)) : undefined;
  if (foreign !== undefined) return wrong(`'${foreign}' is not a valid file name on Windows`);
  return { ok: true, path: segments.join('/') || '.' };
}

/** `undefined` if it is absolute and outside of the folder. */
function withoutRoot(text: string, root: string | undefined, isWindows: boolean): string | undefined {
  if (!text.startsWith('/') && !(isWindows && /^[a-z]:/i.test(text))) return text;
  if (root === undefined) return undefined;
  const [path, folder] = isWindows ? [text.toLowerCase(), root.toLowerCase()] : [text, root];
  if (path === folder) return '';
  const start = folder.endsWith('/') ? folder : `${folder}/`;
  return path.startsWith(start) ? text.slice(start.length) : undefined;
}

/** Files and folders that can make programs run automatically. */
export const PROTECTED_NAMES = ['.git', '.npmrc', '.yarnrc', '.yarnrc.yml', '.pnpmfile.cjs'] as const;

/** A common form of paths, for file systems that ignore case and Unicode forms. For comparison, not to open files. */
export function foldedPath(path: string): string {
  return path.normalize('NFKC').toUpperCase().toLowerCase();
}

/** The text of an untrusted file, or why it is not read. */
export type BroughtText =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problem: string };

const MOST_BYTES = 1_048_576;

// O_NONBLOCK is missing on Windows, where opening a file cannot block.
const { O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY } = constants;

/**
 * Reads a small untrusted file. It must be a regular file that is in the folder after links are resolved.
 *
 * @throws the system's error if the file is missing or not readable.
 */
export function readBroughtFile(path: string, folder: string): BroughtText {
  const real = realpathSync.native(path);
  if (!isWithin(real, realpathSync.native(folder)))
    return { ok: false, problem: `it is a link that leads out of ${resolve(folder)}` };
  const file = openSync(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) return { ok: false, problem: 'it is not a regular file' };
    if (stat.size > MOST_BYTES)
      return { ok: false, problem: `it has ${stat.size} bytes; the limit is ${MOST_BYTES}` };
    return { ok: true, text: readFileSync(file, 'utf8').replace(/^\uFEFF/, '') };
  } finally {
    closeSync(file);
  }
}

/** The result of the work; `undefined` if it throws. */
export function ifPossible<Value>(work: () => Value): Value | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** The path with links resolved; `undefined` if nothing exists there. */
export function realPath(path: string): string | undefined {
  return ifPossible(() => realpathSync.native(path));
}

const MOST_LINKS = 40;

/**
 * An absolute path with links resolved, also those whose target does not exist yet. `..` starts at a link's target.
 *
 * @throws Error if the path is too long.
 */
export function realPathOf(path: string, links = 0): string {
  if (path.length > MOST_CHARACTERS) throw new Error(`a path has at most ${MOST_CHARACTERS} characters`);
  const real = realPath(path);
  const parent = dirname(path);
  if (real !== undefined || parent === path) return real ?? path;
  const folder = realPathOf(parent, links);
  const target = links < MOST_LINKS ? ifPossible(() => readlinkSync(path)) : undefined;
  if (target === undefined) return join(folder, basename(path));
  return realPathOf(isAbsolute(target) ? target : folder + sep + target, links + 1);
}

/** Whether an absolute path is inside of a folder, by its text; false for the folder itself. */
export function isWithin(path: string, folder: string): boolean {
  return pathWithin(path, folder) !== undefined;
}

/** The relative path, with `/`, of an entry of a folder; both arguments are absolute. */
export function pathWithin(path: string, folder: string): string | undefined {
  const found = relative(folder, path);
  // On Windows, the result is absolute if the drives differ.
  if (found === '' || isAbsolute(found)) return undefined;
  const names = found.split(sep);
  return names[0] === '..' ? undefined : names.join('/');
}

/** Whether a normalized path of a tool is absolute or leaves the folder. */
export function isOutside(path: string): boolean {
  return isAbsolute(path) || leavesFolder(path);
}

/** Whether a normalized relative path leads out of the folder. */
export function leavesFolder(path: string): boolean {
  return /^\.\.(\/|$)/.test(path);
}

/**
 * The normalized form of a path that is relative to a folder, or absolute: with `/`, and relative if it is in the
 * folder. If the folder is unknown, a path that leaves it begins with `..`. A `/` at the end is preserved.
 */
export function pathFrom(folder: string | undefined, given: string): string {
  const path = posix.normalize(given.split(sep).join('/'));
  if (folder === undefined || !isOutside(path)) return path;
  const start = posix.join(folder, '/');
  const full = isAbsolute(path) ? path : posix.join(folder, path);
  return `${full}/`.startsWith(start) ? posix.normalize(`.${full.slice(start.length - 1)}`) : full;
}
