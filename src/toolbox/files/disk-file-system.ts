import {
  type BigIntStats,
  close,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  rmdirSync,
  unlinkSync,
  write,
} from 'node:fs';
import { basename, dirname, isAbsolute, join, posix } from 'node:path';
import { promisify } from 'node:util';
import { checkOptions, type InvalidOption, InvalidOptionsError } from '../../core/errors/author-fault.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';
import { FILLED_TEXT, optionTable, required } from '../../core/kernel/options.js';
import { folderPath, isWithin } from '../paths/folder-path.js';
import {
  alreadyThere,
  type ByteRange,
  changed,
  type FileBytes,
  type FileInfo,
  type FileKind,
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

/** Options of {@link DiskFileSystem}. */
export interface DiskFileSystemOptions {
  /** The absolute path of an existing folder. Links in it are resolved once, at construction. */
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

// O_NONBLOCK: opening a pipe must not wait for its other end. Windows lacks the flags that default to 0.
const { O_CREAT, O_DIRECTORY = 0, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY, O_WRONLY } = constants;

const writeBytes = promisify(write);
const syncFile = promisify(fsync);
const closeFile = promisify(close);

function notOpened(root: string, cause: unknown): InvalidOption {
  const code = codeOf(cause);
  const why = code === 'ENOTDIR' ? 'which is not a folder' : `which cannot be opened (${code ?? 'unknown'})`;
  return {
    where: 'DiskFileSystem',
    option: 'root',
    problem: `root names ${root}, ${code === 'ENOENT' ? 'which is not there' : why}`,
    fix: 'root: the absolute path of a folder that is there',
  };
}

/**
 * A folder on disk. On Linux, each step of a path is resolved in an open folder handle, and never through a link. Even
 * if another process swaps folders and links meanwhile, nothing outside is reached. On other systems, each step is
 * checked before it is taken ({@link DiskFileSystem.closesRaces}). Only files and folders are opened, never devices,
 * pipes or sockets.
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
  /** Changes of the same file run one after another. */
  readonly #changes = new Map<string, Promise<unknown>>();

  /** @throws InvalidOptionsError (521), also if the folder does not exist or cannot be opened. */
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

  /** Whether the folder is safe even if another process replaces folders with links at the same moment. */
  get closesRaces(): boolean {
    return this.#access === 'handles';
  }

  /** Whether an absolute path, with links resolved, is in the folder; it need not exist yet. */
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
        throw modelError(error, known);
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
          throw modelError(error, target);
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
      throw modelError(error, path);
    }
  }

  /** Runs the changes of a path one after another; an error rejects only its own change. */
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

  /** `about`: the path in error messages; default: the folder's path. */
  #inFolder<Value>(path: string, work: (folder: HeldFolder) => Value, about: string = path): Value {
    const folder = this.#open(path);
    try {
      return work(folder);
    } catch (error) {
      throw modelError(error, about);
    } finally {
      folder.close();
    }
  }

  /** Opens a folder step by step; with `made`, creates missing folders. */
  #open(path: string, missingFolders: 'made' | 'reported' = 'reported'): HeldFolder {
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
    if (code !== 'ENOTDIR' && code !== 'ELOOP') return modelError(error, path);
    const kind = statsAt(folder.at(name))?.kind;
    if (kind === undefined) return missing(path);
    return kind === 'link' ? this.#linkAt(folder, path, name) : wrongKind(path, kind, 'folder');
  }

  /** The error for a link; states its target if that is within the folder, so that its path can be used instead. */
  #linkAt(folder: HeldFolder, path: string, name: string): FileSystemError {
    let to: string | undefined;
    try {
      const target = readlinkSync(folder.at(name));
      const read = folderPath(isAbsolute(target) ? target : posix.join(posix.dirname(path), target), {
        root: this.#root,
      });
      to = read.ok ? read.path : undefined;
    } catch {
      // The link no longer exists.
    }
    const way = to === undefined ? 'it leads out of the folder' : `use '${to}', to which it leads`;
    return new FileSystemError('link', `'${path}' is a link, and links are not followed: ${way}.`);
  }
}

function step(folder: HeldFolder, name: string, missingFolders: 'made' | 'reported'): HeldFolder {
  try {
    return folder.enter(name);
  } catch (error) {
    if (missingFolders === 'reported' || codeOf(error) !== 'ENOENT') throw error;
  }
  makeFolder(folder.at(name));
  return folder.enter(name);
}

function entered(folder: HeldFolder, name: string): HeldFolder | undefined {
  try {
    return folder.enter(name);
  } catch {
    // Missing, replaced by a link, or not accessible: the walk skips it.
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

/** Creates a folder, unless another process has just created it. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/** Resolves links in the existing part of a path; the rest is created later. */
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

/** A name in an open folder, with its path for messages. */
interface HeldPlace {
  readonly folder: HeldFolder;
  readonly name: string;
  readonly path: string;
}

/** File information; its stamp includes the time of the last change of the inode. */
interface Stats extends FileInfo {
  readonly mode: number;
  readonly owner: readonly [number, number];
}

/** `undefined` if nothing exists at the path. */
function statsAt(path: string): Stats | undefined {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  return {
    kind: kindOf(stats),
    size: Number(stats.size),
    changedAt: Number(stats.mtimeMs),
    stamp: stampOf(stats),
    mode: Number(stats.mode & 0o7777n),
    owner: [Number(stats.uid), Number(stats.gid)],
  };
}

function stampOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(':');
}

/**
 * Writes a temporary file and renames it: other processes see the old file or the new one, even after a crash. A killed
 * process may leave a file `.….tmp` in the folder.
 */
async function writeToDisk(
  place: HeldPlace,
  bytes: Uint8Array,
  condition: WriteCondition,
): Promise<FileInfo> {
  const { folder, name, path } = place;
  const before = statsAt(folder.at(name));
  refuseUnlessFits(place, before, condition);
  const draft = folder.at(`.${nodeCrypto().randomUUID()}.tmp`);
  const file = openSync(
    draft,
    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
    before === undefined ? 0o666 : 0o600,
  );
  let isOpen = true;
  try {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await writeBytes(file, bytes, done, bytes.length - done, null);
      done += bytesWritten;
    }
    if (before !== undefined) restoreOwnerAndMode(file, before);
    if (condition.mode !== undefined) fchmodSync(file, condition.mode);
    await syncFile(file);
    isOpen = false;
    await closeFile(file);
    // Another process may have changed the file while this one wrote.
    refuseUnlessFits(place, statsAt(folder.at(name)), condition);
    putInPlace(draft, place, condition.replaces === 'absent' ? 'new' : 'replacing');
  } catch (error) {
    if (isOpen) closeSync(file);
    removeQuietly(draft);
    throw error;
  }
  folder.sync();
  const after = statsAt(folder.at(name));
  if (after === undefined) throw missing(path);
  return after;
}

function refuseUnlessFits({ path }: HeldPlace, there: Stats | undefined, { replaces }: WriteCondition): void {
  if (there !== undefined && there.kind === 'link')
    throw new FileSystemError('link', `'${path}' is a link; it can be removed, and not written.`);
  if (there !== undefined && there.kind !== 'file') throw wrongKind(path, there.kind, 'file');
  if (replaces === undefined) return;
  if (replaces === 'absent') {
    if (there !== undefined) throw alreadyThere(path);
  } else if (there?.stamp !== replaces.stamp) throw changed(path);
}

function restoreOwnerAndMode(file: number, { mode, owner }: Stats): void {
  try {
    fchownSync(file, ...owner);
  } catch {
    // Only an administrator may give files away. Otherwise, the file belongs to the writer.
  }
  fchmodSync(file, mode);
}

/** A new file is put in place with a hard link, which fails if another process was faster. */
function putInPlace(draft: string, { folder, name, path }: HeldPlace, how: 'new' | 'replacing'): void {
  if (how === 'new' && linked(draft, { folder, name, path })) unlinkSync(draft);
  else renameSync(draft, folder.at(name));
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It was put in place already, or no longer exists.
  }
}

/** Moves to a path where nothing exists. Where the system has hard links, a file moves without a race. */
function moveOnDisk(from: HeldPlace, to: HeldPlace): void {
  const there = statsAt(from.folder.at(from.name));
  if (there === undefined) throw missing(from.path);
  if (there.kind === 'link')
    throw new FileSystemError('link', `'${from.path}' is a link; it can be removed, and not moved.`);
  if (statsAt(to.folder.at(to.name)) !== undefined) throw alreadyThere(to.path);
  if (there.kind === 'file' && linked(from.folder.at(from.name), to)) unlinkSync(from.folder.at(from.name));
  else renameSync(from.folder.at(from.name), to.folder.at(to.name));
  from.folder.sync();
  to.folder.sync();
}

/** Creates a hard link; false if the file system has none. */
function linked(from: string, to: HeldPlace): boolean {
  try {
    linkSync(from, to.folder.at(to.name));
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw alreadyThere(to.path);
    return false;
  }
}

/** Removes a file, a link, or a folder; removes the contents of a folder without following links. */
function removeFromDisk({ folder, name, path }: HeldPlace, how: 'with contents' | 'alone'): void {
  const there = statsAt(folder.at(name));
  if (there === undefined) throw missing(path);
  if (there.kind !== 'folder') unlinkSync(folder.at(name));
  else {
    if (how === 'with contents') removeContents(folder, name);
    try {
      rmdirSync(folder.at(name));
    } catch (error) {
      if (!['ENOTEMPTY', 'EEXIST'].includes(codeOf(error) ?? '')) throw error;
      throw new FileSystemError('not-empty', `'${path}' is a folder with something in it.`);
    }
  }
  folder.sync();
}

function removeContents(folder: HeldFolder, name: string): void {
  const inner = folder.enter(name);
  try {
    for (const entry of readdirSync(inner.self, { withFileTypes: true })) {
      if (entry.isDirectory()) {
        removeContents(inner, entry.name);
        rmdirSync(inner.at(entry.name));
      } else unlinkSync(inner.at(entry.name));
    }
  } finally {
    inner.close();
  }
}

/** An open folder: names are resolved in it, even if its path changes meanwhile. */
interface HeldFolder {
  /** The system path of a name in the folder. */
  at(name: string): string;
  /** The system path of the folder itself. */
  readonly self: string;
  /** Opens a subfolder; throws the system's error if it is not a folder, or a link. */
  enter(name: string): HeldFolder;
  /** Flushes changes in the folder to disk. */
  sync(): void;
  close(): void;
}

/** Where Linux lists the open files of a process: a path through it starts at an open folder. */
const HANDLES = '/proc/self/fd';

/** Whether folder handles are available. Otherwise, each step is checked before it is taken, which leaves a race. */
function canHoldFolders(): boolean {
  return process.platform === 'linux' && existsSync(HANDLES);
}

class OpenFolder implements HeldFolder {
  readonly self: string;
  readonly #handle: number;

  constructor(path: string) {
    this.#handle = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    this.self = `${HANDLES}/${this.#handle}`;
  }

  at(name: string): string {
    return `${this.self}/${name}`;
  }

  enter(name: string): HeldFolder {
    return new OpenFolder(this.at(name));
  }

  sync(): void {
    fsyncSync(this.#handle);
  }

  close(): void {
    closeSync(this.#handle);
  }
}

class NamedFolder implements HeldFolder {
  readonly self: string;

  constructor(path: string) {
    const kind = kindOf(lstatSync(path, { bigint: true }));
    if (kind !== 'folder')
      throw Object.assign(new Error('not a folder'), { code: kind === 'link' ? 'ELOOP' : 'ENOTDIR' });
    this.self = path;
  }

  at(name: string): string {
    return `${this.self}/${name}`;
  }

  enter(name: string): HeldFolder {
    return new NamedFolder(this.at(name));
  }

  sync(): void {}

  close(): void {}
}

/** `handles` if folder handles are available, otherwise `names`. */
type FolderAccess = 'handles' | 'names';

/** Opens a folder by its absolute path, which must contain no links. */
function openFolder(path: string, access: FolderAccess): HeldFolder {
  return access === 'handles' ? new OpenFolder(path) : new NamedFolder(path);
}

function kindOf(stats: Pick<BigIntStats, 'isFile' | 'isDirectory' | 'isSymbolicLink'>): FileKind {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'folder';
  return stats.isSymbolicLink() ? 'link' : 'other';
}

/** Large enough for most files, so that a walk allocates memory once. */
const SCRATCH_BYTES = 256 * 1024;

/** A byte range of an open file, and its path for messages. */
interface OpenRange {
  readonly path: string;
  readonly from: number;
  readonly most: number;
}

/** Reads from an open file, so that it cannot be replaced between the check and the read. */
function readOpen(file: number, { path, from, most }: OpenRange): FileBytes {
  const stats = fstatSync(file, { bigint: true });
  const kind = kindOf(stats);
  if (kind !== 'file') throw wrongKind(path, kind, 'file');
  const size = Number(stats.size);
  const wanted = Math.max(0, Math.min(most, size - from));
  // A file of this size does not fit into memory.
  if (wanted > MOST_BYTES)
    throw new FileSystemError('failed', `'${path}' is too large to be read at once: ${size} bytes.`);
  const bytes = fill(file, new Uint8Array(wanted), from);
  return { bytes, size, stamp: stampOf(stats) };
}

const MOST_BYTES = 512 * 1024 * 1024;

function fill(file: number, into: Uint8Array, from: number): Uint8Array {
  let done = 0;
  while (done < into.length) {
    const read = readSync(file, into, done, into.length - done, from + done);
    if (read === 0) break;
    done += read;
  }
  return done === into.length ? into : into.subarray(0, done);
}

/** Reads many files, one after another, into the same memory. */
class ScratchReader {
  readonly #scratch = new Uint8Array(SCRATCH_BYTES);

  /** The first bytes of a file; `undefined` if it is not a regular file. They are valid until the next read. */
  read(file: number, most: number): Uint8Array | undefined {
    const stats = fstatSync(file);
    if (!stats.isFile()) return undefined;
    const wanted = Math.min(most, stats.size);
    const room = wanted <= SCRATCH_BYTES ? this.#scratch.subarray(0, wanted) : new Uint8Array(wanted);
    return fill(file, room, 0);
  }
}

/** The system's error code. */
function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'the system does not permit it',
  EPERM: 'the system does not permit it',
  EROFS: 'it is on a disk that cannot be written',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk is full',
  ENAMETOOLONG: 'its name is too long',
  EINVAL: 'the system does not know how: a folder cannot go into itself, and not every name is one',
  EBUSY: 'it is in use',
  EMFILE: 'too many files are open',
  EXDEV: 'it lies on another disk',
};

/** Converts a system error to one for the model, without the location of the folder. */
function modelError(error: unknown, path: string): FileSystemError {
  if (error instanceof FileSystemError) return error;
  const code = codeOf(error) ?? 'unknown';
  if (code === 'ENOENT') return missing(path);
  if (code === 'EISDIR') return wrongKind(path, 'folder', 'file');
  if (code === 'ENOTDIR') return wrongKind(path, 'file', 'folder');
  if (code === 'ELOOP')
    return new FileSystemError('link', `'${path}' is a link, and links are not followed.`);
  const isForbidden = code === 'EACCES' || code === 'EPERM' || code === 'EROFS';
  const reason = REASONS[code] ?? `the system says ${code}`;
  return new FileSystemError(
    isForbidden ? 'not-permitted' : 'failed',
    `Nothing was done with '${path}': ${reason}.`,
    {
      cause: error,
    },
  );
}
