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
      checkCount(found.length);
    }
  };
  if (patterns.length > 0) visit('');
  return found;
}

/** By relative path. */
export type ProtectedPaths = ReadonlyMap<string, 'file or folder' | 'link' | 'bare repository'>;

/**
 * Finds what has a protected name in subfolders, and bare repositories, which Git obeys without a `.git`. It does not
 * descend into `.git` and `node_modules`.
 */
export function findProtected(root: string, names: readonly string[]): ProtectedPaths {
  const found = new Map<string, 'file or folder' | 'link' | 'bare repository'>();
  const visit = (folder: string): void => {
    const entries = entriesOf(join(root, folder));
    const inside = new Set<string>();
    for (const entry of entries) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      const folded = foldedPath(entry.name);
      inside.add(folded);
      // The exact names in the root are protected even if they do not exist.
      if (names.includes(folded) && !(folder === '' && names.includes(entry.name)))
        found.set(path, entry.isSymbolicLink() ? 'link' : 'file or folder');
      else if (entry.isDirectory() && folded !== '.git' && entry.name !== 'node_modules') visit(path);
    }
    const isBare = inside.has('head') && (inside.has('objects') || inside.has('commondir'));
    if (isBare && names.includes('.git')) found.set(folder || '.', 'bare repository');
  };
  if (names.length > 0) visit('');
  return found;
}

/** The files and folders to close; of a link, its target. */
export function closeProtected(root: string, paths: ProtectedPaths): readonly ClosedPath[] {
  const closed = [...paths].flatMap(([path, kind]) =>
    kind === 'bare repository' ? [] : closedAt(root, path, 'unwritable'),
  );
  checkCount(closed.length);
  return closed;
}

function checkCount(count: number): void {
  if (count > MOST_CLOSED)
    throw new Error(
      `More than ${MOST_CLOSED} paths are closed to commands: close the folders that they are in.`,
    );
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
