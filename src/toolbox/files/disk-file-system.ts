import { closeSync, constants, mkdirSync, openSync, readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, posix } from 'node:path';
import { checkOptions, type InvalidOption, InvalidOptionsError } from '../../errors/author-fault.js';
import { FILLED_TEXT, optionTable, required } from '../../kernel/options.js';
import { folderPath, isWithin } from '../paths/folder-path.js';
import {
  canHoldFolders,
  codeOf,
  type FolderAccess,
  type HeldFolder,
  kindOf,
  moveOnDisk,
  openFolder,
  readOpen,
  removeFromDisk,
  ScratchReader,
  statsAt,
  told,
  writeToDisk,
} from './disk-access.js';
import {
  type ByteRange,
  type FileBytes,
  type FileInfo,
  FileSystem,
  FileSystemError,
  type FolderEntry,
  type FolderVisitor,
  isRoot,
  missing,
  type WalkedFolder,
  type WalkOptions,
  type WriteCondition,
  wrongKind,
} from './file-system.js';

/** What a {@link DiskFileSystem} is made from. */
export interface DiskFileSystemOptions {
  /** The folder, absolute; it has to be there. Links on the way to it are followed once, now. */
  readonly root: string;
}

const OPTIONS = optionTable<DiskFileSystemOptions>(
  'DiskFileSystem',
  {
    root: required({
      accepts: (value) => FILLED_TEXT.accepts(value) && isAbsolute(String(value)),
      fix: "the absolute path of a folder: process.cwd() or '/srv/project'",
    }),
  },
  { folder: 'root: …', path: 'root: …', cwd: 'root: …' },
);

// A pipe would wait for its other end; Windows has no such flags.
const { O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY } = constants;

function notOpened(root: string, cause: unknown): InvalidOption {
  const code = codeOf(cause);
  const why = code === 'ENOTDIR' ? 'which is no folder' : `which cannot be opened (${code ?? 'unknown'})`;
  return {
    where: 'DiskFileSystem',
    option: 'root',
    problem: `root names ${root}, ${code === 'ENOENT' ? 'which is not there' : why}`,
    fix: 'root: the absolute path of a folder that is there',
  };
}

/**
 * A folder on disk. On Linux every step of a path is taken from a folder that is held open, and none through a link:
 * also where another process swaps folders and links meanwhile, nothing outside is reached. Elsewhere each step is
 * looked at before it is taken ({@link DiskFileSystem.closesRaces}). Only files and folders are opened, never
 * devices, pipes or sockets.
 *
 * @example
 * ```ts
 * const files = new DiskFileSystem({ root: '/srv/project' });
 * const { bytes } = await files.read('src/index.ts');
 * ```
 */
export class DiskFileSystem extends FileSystem {
  readonly #root: string;
  readonly #access: FolderAccess;
  /** Changes of one file wait for each other. */
  readonly #changes = new Map<string, Promise<unknown>>();

  /** @throws InvalidOptionsError (521), also where the folder is not there or cannot be opened. */
  constructor(options: DiskFileSystemOptions) {
    super();
    checkOptions(options, OPTIONS);
    this.#access = canHoldFolders() ? 'handles' : 'names';
    try {
      this.#root = realpathSync.native(options.root);
      openFolder(this.#root, this.#access).close();
    } catch (cause) {
      throw Object.assign(new InvalidOptionsError([notOpened(options.root, cause)]), { cause });
    }
  }

  /** Whether nothing outside can be reached also where another process swaps folders for links at that moment. */
  get closesRaces(): boolean {
    return this.#access === 'handles';
  }

  /** Whether a place on this machine, absolute, is in the folder, links followed; it need not be there yet. */
  holds(place: string): boolean {
    const real = realPathOf(place);
    return real === this.#root || isWithin(real, this.#root);
  }

  override pathOf(given: string): string {
    const read = folderPath(given, { root: this.#root });
    if (!read.ok) throw new FileSystemError('outside', `${read.problem}.`);
    return read.path;
  }

  override async info(path: string): Promise<FileInfo | undefined> {
    const known = this.pathOf(path);
    const place = splitPath(known);
    try {
      return this.#inFolder(
        place?.folder ?? '.',
        (folder) => statsAt(place === undefined ? `${folder.self}/.` : folder.at(place.name)),
        known,
      );
    } catch (error) {
      if (error instanceof FileSystemError && error.problem === 'missing') return undefined;
      throw error;
    }
  }

  override async read(
    path: string,
    { from = 0, most = Number.POSITIVE_INFINITY }: ByteRange = {},
  ): Promise<FileBytes> {
    const known = this.pathOf(path);
    const place = splitPath(known);
    if (place === undefined) throw wrongKind(known, 'folder', 'file');
    const read = (folder: HeldFolder): FileBytes => {
      const info = statsAt(folder.at(place.name));
      if (info === undefined) throw missing(known);
      if (info.kind === 'link') throw this.#linkAt(folder, known, place.name);
      if (info.kind !== 'file') throw wrongKind(known, info.kind, 'file');
      const file = openSync(folder.at(place.name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      try {
        return readOpen(file, { path: known, from, most });
      } finally {
        closeSync(file);
      }
    };
    return this.#inFolder(place.folder, read, known);
  }

  override async list(path: string): Promise<readonly FolderEntry[]> {
    const known = this.pathOf(path);
    return this.#inFolder(known, entriesOf);
  }

  override async walk(path: string, visit: FolderVisitor, { signal }: WalkOptions = {}): Promise<void> {
    const known = this.pathOf(path);
    const reader = new ScratchReader();
    const go = async (folder: HeldFolder, at: string): Promise<boolean> => {
      signal?.throwIfAborted();
      const names = await visit(new VisitedFolder(folder, at, reader));
      for (const name of names ?? []) {
        const inner = entered(folder, name);
        if (inner === undefined) continue;
        try {
          if (!(await go(inner, posix.join(at, name)))) return false;
        } finally {
          inner.close();
        }
      }
      return names !== undefined;
    };
    const start = this.#open(known);
    try {
      await go(start, known);
    } finally {
      start.close();
    }
  }

  override write(path: string, bytes: Uint8Array, condition: WriteCondition = {}): Promise<FileInfo> {
    const known = this.pathOf(path);
    const place = splitPath(known);
    if (place === undefined) throw isRoot(known);
    return this.#alone(known, async () => {
      const folder = this.#open(place.folder, 'made');
      try {
        return await writeToDisk({ folder, name: place.name, path: known }, bytes, condition);
      } catch (error) {
        throw told(error, known);
      } finally {
        folder.close();
      }
    });
  }

  override move(from: string, to: string): Promise<void> {
    const [source, target] = [this.pathOf(from), this.pathOf(to)];
    const [start, end] = [splitPath(source), splitPath(target)];
    if (start === undefined) throw isRoot(source);
    if (end === undefined) throw isRoot(target);
    return this.#alone(source, async () => {
      const before = this.#open(start.folder);
      try {
        if (this.#statsIn(before, start.name, source) === undefined) throw missing(source);
        const after = this.#open(end.folder, 'made');
        try {
          moveOnDisk(
            { folder: before, name: start.name, path: source },
            { folder: after, name: end.name, path: target },
          );
        } catch (error) {
          throw told(error, target);
        } finally {
          after.close();
        }
      } finally {
        before.close();
      }
    });
  }

  override remove(
    path: string,
    { withContents = false }: { readonly withContents?: boolean } = {},
  ): Promise<void> {
    const known = this.pathOf(path);
    const place = splitPath(known);
    if (place === undefined) throw isRoot(known);
    return this.#alone(known, async () =>
      this.#inFolder(
        place.folder,
        (folder) =>
          removeFromDisk({ folder, name: place.name, path: known }, withContents ? 'with contents' : 'alone'),
        known,
      ),
    );
  }

  #statsIn(folder: HeldFolder, name: string, path: string): FileInfo | undefined {
    try {
      return statsAt(folder.at(name));
    } catch (error) {
      throw told(error, path);
    }
  }

  /** One after the other for one path; what fails is told to who did it. */
  #alone<Value>(path: string, change: () => Promise<Value>): Promise<Value> {
    const before = this.#changes.get(path) ?? Promise.resolve();
    const done = before.then(change, change);
    const settled = done.catch(() => {});
    this.#changes.set(path, settled);
    settled.then(() => {
      if (this.#changes.get(path) === settled) this.#changes.delete(path);
    });
    return done;
  }

  /** `about`: the path that messages name; that of the folder where nothing else is meant. */
  #inFolder<Value>(path: string, work: (folder: HeldFolder) => Value, about: string = path): Value {
    const folder = this.#open(path);
    try {
      return work(folder);
    } catch (error) {
      throw told(error, about);
    } finally {
      folder.close();
    }
  }

  /** Goes to a folder step by step, and makes what is missing of it where that is wanted. */
  #open(path: string, missingFolders: 'made' | 'told' = 'told'): HeldFolder {
    let folder = openFolder(this.#root, this.#access);
    let at = '.';
    for (const name of path === '.' ? [] : path.split('/')) {
      at = posix.join(at, name);
      try {
        const inner = step(folder, name, missingFolders);
        folder.close();
        folder = inner;
      } catch (error) {
        const explained = this.#explain(error, folder, { path: at, name });
        folder.close();
        throw explained;
      }
    }
    return folder;
  }

  #explain(
    error: unknown,
    folder: HeldFolder,
    { path, name }: { readonly path: string; readonly name: string },
  ): unknown {
    const code = codeOf(error);
    if (code !== 'ENOTDIR' && code !== 'ELOOP') return told(error, path);
    const kind = statsAt(folder.at(name))?.kind;
    if (kind === undefined) return missing(path);
    return kind === 'link' ? this.#linkAt(folder, path, name) : wrongKind(path, kind, 'folder');
  }

  /** Says where a link leads, if that is within the folder: then its path can be used instead. */
  #linkAt(folder: HeldFolder, path: string, name: string): FileSystemError {
    let to: string | undefined;
    try {
      const target = readlinkSync(folder.at(name));
      const read = folderPath(isAbsolute(target) ? target : posix.join(posix.dirname(path), target), {
        root: this.#root,
      });
      to = read.ok ? read.path : undefined;
    } catch {
      // It is gone again.
    }
    const way = to === undefined ? 'it leads out of the folder' : `use '${to}', to which it leads`;
    return new FileSystemError('link', `'${path}' is a link, and links are not followed: ${way}.`);
  }
}

function step(folder: HeldFolder, name: string, missingFolders: 'made' | 'told'): HeldFolder {
  try {
    return folder.enter(name);
  } catch (error) {
    if (missingFolders === 'told' || codeOf(error) !== 'ENOENT') throw error;
  }
  makeFolder(folder.at(name));
  return folder.enter(name);
}

function entered(folder: HeldFolder, name: string): HeldFolder | undefined {
  try {
    return folder.enter(name);
  } catch {
    // Gone, replaced by a link, or not for us: a walk goes on without it.
    return undefined;
  }
}

function entriesOf(folder: HeldFolder): readonly FolderEntry[] {
  const entries = readdirSync(folder.self, { withFileTypes: true });
  return entries
    .map((entry) => ({ name: entry.name, kind: kindOf(entry) }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

class VisitedFolder implements WalkedFolder {
  readonly path: string;
  readonly #folder: HeldFolder;
  readonly #reader: ScratchReader;
  #entries: readonly FolderEntry[] | undefined;

  constructor(folder: HeldFolder, path: string, reader: ScratchReader) {
    this.#folder = folder;
    this.path = path;
    this.#reader = reader;
  }

  get entries(): readonly FolderEntry[] {
    try {
      this.#entries ??= entriesOf(this.#folder);
    } catch {
      this.#entries = [];
    }
    return this.#entries;
  }

  read(name: string, most: number): Uint8Array | undefined {
    let file: number | undefined;
    try {
      file = openSync(this.#folder.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      return this.#reader.read(file, most);
    } catch {
      return undefined;
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }
}

/** Makes a folder, unless somebody else has just made it. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** With the links followed that are there; the rest of the path is made later. */
function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    const parent = dirname(path);
    if (codeOf(error) !== 'ENOENT' || parent === path) throw error;
    return join(realPathOf(parent), basename(path));
  }
}

/** The folder of a path and its last name; `undefined` for the root. */
function splitPath(path: string): { readonly folder: string; readonly name: string } | undefined {
  return path === '.' ? undefined : { folder: posix.dirname(path), name: posix.basename(path) };
}
