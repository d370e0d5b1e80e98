import {
  type Dirent,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { foldedPath, isWithin } from '../paths/folder-path.js';
import { globMatcher, globReaches } from '../paths/glob.js';

/** Something in the folder that commands may not read, or not write. */
export interface ClosedPath {
  /** Absolute, without links. */
  readonly path: string;
  readonly how: 'unreadable' | 'unwritable';
  readonly isFolder: boolean;
}

/** More than so many would make each command slow. */
const MOST_CLOSED = 1_000;

/**
 * What in a folder fits patterns now, in capitals of any kind; of a link, what it leads to.
 *
 * @throws Error where that is too much.
 */
export function findClosed(
  root: string,
  patterns: readonly string[],
  how: ClosedPath['how'],
): readonly ClosedPath[] {
  const inside = patterns.map((pattern) =>
    foldedPath(pattern.startsWith(`${root}/`) ? pattern.slice(root.length + 1) : pattern),
  );
  const fits = inside.map(globMatcher);
  const reaches = inside.map(globReaches);
  const found: ClosedPath[] = [];
  const visit = (folder: string): void => {
    for (const entry of entriesOf(join(root, folder))) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      const folded = foldedPath(path);
      if (fits.some((one) => one(folded))) found.push(...closedAt(root, path, how));
      else if (entry.isDirectory() && reaches.some((one) => one(folded))) visit(path);
      if (found.length > MOST_CLOSED)
        throw new Error(
          `More than ${MOST_CLOSED} paths are closed to commands: close the folders that they are in.`,
        );
    }
  };
  if (patterns.length > 0) visit('');
  return found;
}

function closedAt(root: string, path: string, how: ClosedPath['how']): readonly ClosedPath[] {
  try {
    const real = realpathSync.native(join(root, path));
    // What a link leads to elsewhere is not there for commands.
    return isWithin(real, root) ? [{ path: real, how, isFolder: statSync(real).isDirectory() }] : [];
  } catch {
    return [];
  }
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** How many running commands need what was made for them, by its path. */
const made = new Map<string, number>();

/**
 * Keeps a name in a folder from being made or replaced: what is not there is made empty until `release`, so that
 * something can be mounted over it.
 *
 * @throws Error where it is a link, which cannot be mounted over.
 */
export function protect(root: string, name: string): ClosedPath & { readonly release: () => void } {
  const path = join(root, name);
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isSymbolicLink())
    throw new Error(`'${name}' is a link, which a sandbox cannot protect: remove it.`);
  const isFolder = stat === undefined ? name === '.git' : stat.isDirectory();
  if (stat === undefined) {
    if (isFolder) mkdirSync(path);
    else writeFileSync(path, '', { flag: 'wx' });
    made.set(path, 0);
  }
  const isMade = made.has(path);
  if (isMade) made.set(path, (made.get(path) ?? 0) + 1);
  const release = (): void => {
    const left = (made.get(path) ?? 0) - 1;
    made.set(path, left);
    if (left > 0) return;
    made.delete(path);
    removeEmpty(path, isFolder);
  };
  return { path, how: 'unwritable', isFolder, release: isMade ? release : () => {} };
}

function removeEmpty(path: string, isFolder: boolean): void {
  try {
    if (isFolder) rmdirSync(path);
    else if (lstatSync(path).size === 0) rmSync(path);
  } catch {
    // Somebody has put something in it, or has removed it.
  }
}
