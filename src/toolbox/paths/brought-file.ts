import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync } from 'node:fs';
import { isAbsolute, relative, resolve, sep } from 'node:path';

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
