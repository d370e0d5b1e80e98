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
import { isAbsolute, posix, sep } from 'node:path';
import { promisify } from 'node:util';
import { checkOptions, InvalidOptionsError } from '../../core/errors/author-fault.js';
import { KeyQueue } from '../../core/kernel/key-queue.js';
import { optionTable, required } from '../../core/kernel/options.js';
import { FOLDER, folderPath, ifPossible, isWithin, realPathOf } from '../paths/folder-path.js';
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
    root: required(FOLDER),
  },
  { folder: 'root: …', path: 'root: …', cwd: 'root: …' },
);

// O_NONBLOCK: opening a pipe must not wait for its other end. Windows lacks the flags that default to 0.
const { O_CREAT, O_DIRECTORY = 0, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY, O_WRONLY } = constants;

const writeBytes = promisify(write);
const syncFile = promisify(fsync);
const closeFile = promisify(close);

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
  readonly #changes = new KeyQueue();

  /** @throws InvalidOptionsError (521), also if the folder does not exist or cannot be opened. */
  constructor(options: DiskFileSystemOptions) {
    super();
    checkOptions(options, OPTIONS);
    // Without handles, each step is checked before it is taken, which leaves a race.
    this.#access = process.platform === 'linux' && existsSync(HANDLES) ? 'handles' : 'names';
    try {
      this.#root = realpathSync.native(options.root);
      new HeldFolder(this.#root, this.#access).close();
    } catch (cause) {
      const code = codeOf(cause);
      let why = `which cannot be opened (${code ?? 'unknown'})`;
      if (code === 'ENOTDIR') why = 'which is not a folder';
      if (code === 'ENOENT') why = 'which does not exist';
      const problem = `root is ${options.root}, ${why}`;
      const fix = 'root: the absolute path of an existing folder';
      const fault = { where: 'DiskFileSystem', option: 'root', problem, fix };
      throw Object.assign(new InvalidOptionsError([fault]), { cause });
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

  override folderOnDisk(): string {
    return this.#root.split(sep).join('/');
  }

  override async info(path: string): Promise<FileInfo | undefined> {
    const known = this.pathOf(path);
    try {
      return this.#inFolder(
        posix.dirname(known),
        (folder) => statsAt(folder.at(posix.basename(known))),
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
    const read = (folder: HeldFolder): FileBytes => {
      const at = folder.at(posix.basename(known));
      const info = statsAt(at);
      if (info === undefined) throw missing(known);
      if (info.kind === 'link') throw this.#linkAt(at, known);
      if (info.kind !== 'file') throw wrongKind(known, info.kind, 'file');
      const file = openSync(at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      try {
        // The open file cannot be replaced between the check and the read.
        const stats = fstatSync(file, { bigint: true });
        const kind = kindOf(stats);
        if (kind !== 'file') throw wrongKind(known, kind, 'file');
        const size = Number(stats.size);
        const wanted = Math.max(0, Math.min(most, size - from));
        // A file of this size does not fit into memory.
        if (wanted > MOST_BYTES)
          throw new FileSystemError('failed', `'${known}' is too large to read at once: ${size} bytes.`);
        const bytes = fill(file, new Uint8Array(wanted), from);
        return { bytes, size, stamp: stampOf(stats) };
      } finally {
        closeSync(file);
      }
    };
    return this.#inFolder(posix.dirname(known), read, known);
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
        // Skips a folder that is missing, replaced by a link, or not accessible.
        using inner = ifPossible(() => folder.enter(name));
        if (inner !== undefined && !(await go(inner, posix.join(at, name)))) return false;
      }
      return names !== undefined;
    };
    using start = this.#open(known);
    await go(start, known);
  }

  override write(path: string, bytes: Uint8Array, condition: WriteCondition = {}): Promise<FileInfo> {
    const known = this.#belowRoot(path);
    return this.#changes.run(known, async () => {
      using folder = this.#open(posix.dirname(known), 'made');
      try {
        return await writeToDisk(placeIn(folder, known), bytes, condition);
      } catch (error) {
        throw modelError(error, known);
      }
    });
  }

  override move(from: string, to: string): Promise<void> {
    const [source, target] = [this.#belowRoot(from), this.#belowRoot(to)];
    return this.#changes.run(source, async () => {
      using before = this.#open(posix.dirname(source));
      const place = placeIn(before, source);
      try {
        if (statsAt(place.at) === undefined) throw missing(source);
      } catch (error) {
        throw modelError(error, source);
      }
      using after = this.#open(posix.dirname(target), 'made');
      try {
        const to = placeIn(after, target);
        const there = statsAt(place.at);
        if (there === undefined) throw missing(source);
        if (there.kind === 'link')
          throw new FileSystemError('link', `'${source}' is a link; links can be removed, but not moved.`);
        if (statsAt(to.at) !== undefined) throw alreadyThere(target);
        // Where the system has hard links, a file moves without a race.
        if (there.kind === 'file' && linked(place.at, to)) unlinkSync(place.at);
        else renameSync(place.at, to.at);
        before.sync();
        after.sync();
      } catch (error) {
        throw modelError(error, target);
      }
    });
  }

  override remove(
    path: string,
    { withContents = false }: { readonly withContents?: boolean } = {},
  ): Promise<void> {
    const known = this.#belowRoot(path);
    const name = posix.basename(known);
    const remove = (folder: HeldFolder): void => {
      const at = folder.at(name);
      const there = statsAt(at);
      if (there === undefined) throw missing(known);
      if (there.kind !== 'folder') unlinkSync(at);
      else {
        if (withContents) removeContents(folder, name);
        try {
          rmdirSync(at);
        } catch (error) {
          if (!['ENOTEMPTY', 'EEXIST'].includes(codeOf(error) ?? '')) throw error;
          throw new FileSystemError('not-empty', `The folder '${known}' is not empty.`);
        }
      }
      folder.sync();
    };
    return this.#changes.run(known, async () => this.#inFolder(posix.dirname(known), remove, known));
  }

  /** The path of an entry that can be changed; the folder itself cannot. */
  #belowRoot(given: string): string {
    const path = this.pathOf(given);
    if (path === '.') throw isRoot(path);
    return path;
  }

  /** `about`: the path in error messages; default: the folder's path. */
  #inFolder<Value>(path: string, work: (folder: HeldFolder) => Value, about: string = path): Value {
    using folder = this.#open(path);
    try {
      return work(folder);
    } catch (error) {
      throw modelError(error, about);
    }
  }

  /** Opens a folder step by step; with `made`, creates missing folders. */
  #open(path: string, missingFolders: 'made' | 'reported' = 'reported'): HeldFolder {
    let folder = new HeldFolder(this.#root, this.#access);
    let at = '.';
    for (const name of path === '.' ? [] : path.split('/')) {
      at = posix.join(at, name);
      using outer = folder;
      try {
        folder = step(outer, name, missingFolders);
      } catch (error) {
        throw this.#explain(error, outer.at(name), at);
      }
    }
    return folder;
  }

  #explain(error: unknown, at: string, path: string): unknown {
    const code = codeOf(error);
    if (code !== 'ENOTDIR' && code !== 'ELOOP') return modelError(error, path);
    const kind = statsAt(at)?.kind;
    if (kind === undefined) return missing(path);
    // Another process has replaced a link or a file with a folder since.
    if (kind === 'folder') return new FileSystemError('changed', `'${path}' changed meanwhile. Try again.`);
    return kind === 'link' ? this.#linkAt(at, path) : wrongKind(path, kind, 'folder');
  }

  /** The error for a link; states its target if that is within the folder, so that its path can be used instead. */
  #linkAt(at: string, path: string): FileSystemError {
    // Without a target, the link no longer exists.
    const target = ifPossible(() => readlinkSync(at));
    const given = target && (isAbsolute(target) ? target : posix.join(posix.dirname(path), target));
    const to = given ? folderPath(given, { root: this.#root }) : undefined;
    const way = to?.ok ? `use its target '${to.path}'` : 'its target is outside of the folder';
    return new FileSystemError('link', `'${path}' is a link, and links are not followed: ${way}.`);
  }
}

function step(folder: HeldFolder, name: string, missingFolders: 'made' | 'reported'): HeldFolder {
  try {
    return folder.enter(name);
  } catch (error) {
    if (missingFolders === 'reported' || codeOf(error) !== 'ENOENT') throw error;
  }
  try {
    mkdirSync(folder.at(name));
  } catch (error) {
    // Another process may have just created it.
    if (codeOf(error) !== 'EEXIST') throw error;
  }
  return folder.enter(name);
}

function entriesOf(folder: HeldFolder): readonly FolderEntry[] {
  const entries = readdirSync(folder.self, { withFileTypes: true });
  return entries
    .map((entry) => ({ name: entry.name, kind: kindOf(entry) }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

class VisitedFolder implements WalkedFolder {
  #entries: readonly FolderEntry[] | undefined;

  constructor(
    private readonly folder: HeldFolder,
    readonly path: string,
    private readonly reader: ScratchReader,
  ) {}

  get entries(): readonly FolderEntry[] {
    this.#entries ??= ifPossible(() => entriesOf(this.folder)) ?? [];
    return this.#entries;
  }

  read(name: string, most: number): Uint8Array | undefined {
    let file: number | undefined;
    try {
      file = openSync(this.folder.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      return this.reader.read(file, most);
    } catch {
      return undefined;
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }
}

/** A name in an open folder. */
interface HeldPlace {
  readonly folder: HeldFolder;
  /** The system path. */
  readonly at: string;
  /** For messages. */
  readonly path: string;
}

function placeIn(folder: HeldFolder, path: string): HeldPlace {
  return { folder, at: folder.at(posix.basename(path)), path };
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
  const { folder, at, path } = place;
  const before = statsAt(at);
  refuseUnlessFits(place, before, condition);
  const draft = folder.at(`.${crypto.randomUUID()}.tmp`);
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
    if (before !== undefined) {
      try {
        fchownSync(file, ...before.owner);
      } catch {
        // Only an administrator may give files away. Otherwise, the file belongs to the writer.
      }
      fchmodSync(file, before.mode);
    }
    if (condition.mode !== undefined) fchmodSync(file, condition.mode);
    await syncFile(file);
    isOpen = false;
    await closeFile(file);
    // Another process may have changed the file while this one wrote.
    refuseUnlessFits(place, statsAt(at), condition);
    // A new file is put in place with a hard link, which fails if another process was faster.
    if (condition.replaces === 'absent' && linked(draft, place)) unlinkSync(draft);
    else renameSync(draft, at);
  } catch (error) {
    if (isOpen) closeSync(file);
    // It may have been put in place already.
    ifPossible(() => unlinkSync(draft));
    throw error;
  }
  folder.sync();
  const after = statsAt(at);
  if (after === undefined) throw missing(path);
  return after;
}

function refuseUnlessFits({ path }: HeldPlace, there: Stats | undefined, { replaces }: WriteCondition): void {
  if (there !== undefined && there.kind === 'link')
    throw new FileSystemError('link', `'${path}' is a link; links can be removed, but not written.`);
  if (there !== undefined && there.kind !== 'file') throw wrongKind(path, there.kind, 'file');
  if (replaces === undefined) return;
  if (replaces === 'absent') {
    if (there !== undefined) throw alreadyThere(path);
  } else if (there?.stamp !== replaces.stamp) throw changed(path);
}

/** Creates a hard link; false if the file system has none. */
function linked(from: string, to: HeldPlace): boolean {
  try {
    linkSync(from, to.at);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw alreadyThere(to.path);
    return false;
  }
}

/** Follows no links. */
function removeContents(folder: HeldFolder, name: string): void {
  using inner = folder.enter(name);
  for (const entry of readdirSync(inner.self, { withFileTypes: true })) {
    if (entry.isDirectory()) {
      removeContents(inner, entry.name);
      rmdirSync(inner.at(entry.name));
    } else unlinkSync(inner.at(entry.name));
  }
}

/** Where Linux lists the open files of a process: a path through it starts at an open folder. */
const HANDLES = '/proc/self/fd';

/** `handles` if folder handles are available, otherwise `names`. */
type FolderAccess = 'handles' | 'names';

/** An open folder: with a handle, names are resolved in it, even if its path changes meanwhile. */
class HeldFolder implements Disposable {
  /** The system path of the folder itself. */
  readonly self: string;
  readonly #handle: number | undefined;

  /** Takes an absolute path without links; throws the system's error if it is not a folder, or a link. */
  constructor(
    path: string,
    private readonly access: FolderAccess,
  ) {
    if (access === 'handles') {
      this.#handle = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      this.self = `${HANDLES}/${this.#handle}`;
      return;
    }
    const kind = kindOf(lstatSync(path, { bigint: true }));
    if (kind !== 'folder')
      throw Object.assign(new Error('not a folder'), { code: kind === 'link' ? 'ELOOP' : 'ENOTDIR' });
    this.self = path;
  }

  /** The system path of a name in the folder. */
  at(name: string): string {
    return `${this.self}/${name}`;
  }

  enter(name: string): HeldFolder {
    return new HeldFolder(this.at(name), this.access);
  }

  /** Flushes changes in the folder to disk. */
  sync(): void {
    if (this.#handle !== undefined) fsyncSync(this.#handle);
  }

  close(): void {
    if (this.#handle !== undefined) closeSync(this.#handle);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function kindOf(stats: Pick<BigIntStats, 'isFile' | 'isDirectory' | 'isSymbolicLink'>): FileKind {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'folder';
  return stats.isSymbolicLink() ? 'link' : 'other';
}

/** Large enough for most files, so that a walk allocates memory once. */
const SCRATCH_BYTES = 256 * 1024;

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
  EROFS: 'it is on a read-only disk',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk is full',
  ENAMETOOLONG: 'its name is too long',
  EINVAL: 'the system refuses it: a folder cannot be moved into itself, and some names are invalid',
  EBUSY: 'it is in use',
  EMFILE: 'too many files are open',
  EXDEV: 'it is on another disk',
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
  const problem = ['EACCES', 'EPERM', 'EROFS'].includes(code) ? 'not-permitted' : 'failed';
  const reason = REASONS[code] ?? `the system reported ${code}`;
  return new FileSystemError(problem, `Nothing was done with '${path}': ${reason}.`, { cause: error });
}
