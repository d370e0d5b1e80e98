import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync } from 'node:fs';
import { isAbsolute, relative, resolve, sep } from 'node:path';

/** Where a path has to stay. */
interface PathFrame {
  /** The folder, absolute: a path that begins with it is taken as one within it. */
  readonly root?: string;
  /** Whose names are meant; default: the machine's. */
  readonly platform?: NodeJS.Platform;
}

/** A path within a folder, or why it is none. */
type FolderPath =
  | {
      readonly ok: true /** With `/`, without `.` and `..`; `.` for the folder itself. */;
      readonly path: string;
    }
  | { readonly ok: false; readonly problem: string };

const MOST_CHARACTERS = 4_096;

/** Controls, and marks that change how a name looks to whoever is asked about it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/u;

/** Names of devices on Windows, in every folder and with any ending. */
const DEVICES = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\.|$)/i;

/**
 * Reads a path as somebody wrote it: relative to a folder, or absolute within it. It is read by its text alone;
 * whether there are links on the way is for who opens it.
 *
 * @example
 * ```ts
 * folderPath('src/../a.txt'); // { ok: true, path: 'a.txt' }
 * folderPath('../a.txt'); // { ok: false, problem: "'../a.txt' leads out of the folder" }
 * ```
 */
export function folderPath(given: string, frame: PathFrame = {}): FolderPath {
  const { platform = process.platform } = frame;
  const isWindows = platform === 'win32';
  if (given.length > MOST_CHARACTERS) return wrong(`a path has at most ${MOST_CHARACTERS} characters`);
  if (UNSEEN.test(given) || !given.isWellFormed())
    return wrong(`${JSON.stringify(given)} has characters in it that cannot be seen`);
  const text = isWindows ? given.replaceAll('\\', '/') : given;
  const relative = withoutRoot(text, frame.root?.replaceAll(isWindows ? '\\' : '/', '/'), isWindows);
  if (relative === undefined) return wrong(`'${given}' is outside of the folder`);
  const segments: string[] = [];
  for (const segment of relative.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment !== '..') segments.push(segment);
    else if (segments.pop() === undefined) return wrong(`'${given}' leads out of the folder`);
  }
  const foreign = isWindows ? segments.find(isForeignOnWindows) : undefined;
  if (foreign !== undefined) return wrong(`'${foreign}' is no name of a file on Windows`);
  return { ok: true, path: segments.join('/') || '.' };
}

function wrong(problem: string): FolderPath {
  return { ok: false, problem };
}

/** `undefined` where it is absolute and elsewhere. */
function withoutRoot(text: string, root: string | undefined, isWindows: boolean): string | undefined {
  const isAbsolute = text.startsWith('/') || (isWindows && /^[a-z]:/i.test(text));
  if (!isAbsolute) return text;
  if (root === undefined) return undefined;
  const [path, folder] = isWindows ? [text.toLowerCase(), root.toLowerCase()] : [text, root];
  if (path === folder) return '';
  const start = folder.endsWith('/') ? folder : `${folder}/`;
  return path.startsWith(start) ? text.slice(start.length) : undefined;
}

/** A stream of a file (`a:b`), a device, or a name that Windows takes for another one. */
function isForeignOnWindows(segment: string): boolean {
  return segment.includes(':') || /[. ]$/.test(segment) || DEVICES.test(segment) || /[<>"|?*]/.test(segment);
}

/** Files and folders whose texts name programs that run by themselves. */
export const PROTECTED_NAMES = ['.git', '.npmrc', '.yarnrc', '.yarnrc.yml', '.pnpmfile.cjs'] as const;

/** The folder of a path and its last name; nothing for the folder itself. */
export function splitPath(path: string): { readonly folder: string; readonly name: string } | undefined {
  if (path === '.') return undefined;
  const end = path.lastIndexOf('/');
  return end < 0 ? { folder: '.', name: path } : { folder: path.slice(0, end), name: path.slice(end + 1) };
}

/** A path of a name in a folder. */
export function joinPath(folder: string, name: string): string {
  return folder === '.' ? name : `${folder}/${name}`;
}

/**
 * A path in the one form that all forms of it share on file systems that do not tell capitals or Unicode forms
 * apart. For what must not be missed; never to open something by.
 */
export function foldedPath(path: string): string {
  return path.normalize('NFKC').toUpperCase().toLowerCase();
}

/** A text that somebody else may have put there, or why it is not read. */
export type BroughtText =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problem: string };

const MOST_BYTES = 1_048_576;

// Not on Windows: there is nothing there that an opening could wait for.
const { O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY } = constants;

/**
 * Reads a small text that a stranger may have written: a regular file that lies in a folder with links followed.
 * A pipe or a device is not waited for.
 *
 * @throws what the system says of a file that is not there, or may not be read.
 */
export function readBroughtFile(path: string, folder: string): BroughtText {
  const real = realpathSync.native(path);
  if (!isWithin(real, realpathSync.native(folder)))
    return { ok: false, problem: `it is a link that leads out of ${resolve(folder)}` };
  const file = openSync(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) return { ok: false, problem: 'it is no regular file' };
    if (stat.size > MOST_BYTES)
      return { ok: false, problem: `it has ${stat.size} bytes, and at most ${MOST_BYTES} are read` };
    return { ok: true, text: readFileSync(file, 'utf8').replace(/^\uFEFF/, '') };
  } finally {
    closeSync(file);
  }
}

/** Whether an absolute path is one in a folder, by its text: it is not the folder itself. */
export function isWithin(path: string, folder: string): boolean {
  return pathWithin(path, folder) !== undefined;
}

/** The path of something in a folder, with `/`; both are absolute. */
export function pathWithin(path: string, folder: string): string | undefined {
  const found = relative(folder, path);
  // On Windows it is absolute where the drive is another one.
  if (found === '' || isAbsolute(found)) return undefined;
  const names = found.split(sep);
  return names[0] === '..' ? undefined : names.join('/');
}
