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
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmdirSync,
  unlinkSync,
  write,
} from 'node:fs';
import { promisify } from 'node:util';
import { nodeCrypto } from '../../kernel/node-module.js';
import {
  alreadyThere,
  changed,
  type FileBytes,
  type FileInfo,
  type FileKind,
  FileSystemError,
  missing,
  type WriteCondition,
  wrongKind,
} from './file-system.js';

// Windows has neither of the flags that are 0 here.
const { O_CREAT, O_DIRECTORY = 0, O_EXCL, O_NOFOLLOW = 0, O_RDONLY, O_WRONLY } = constants;

const writeBytes = promisify(write);
const syncFile = promisify(fsync);
const closeFile = promisify(close);

/** A name in a folder that is held, and its path for messages. */
interface HeldPlace {
  readonly folder: HeldFolder;
  readonly name: string;
  readonly path: string;
}

/** What the system says of a name, which is told apart by the time of its last change too. */
interface Stats extends FileInfo {
  readonly mode: number;
  readonly owner: readonly [number, number];
}

/** What lies there; `undefined` where nothing does. */
export function statsAt(path: string): Stats | undefined {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  return {
    kind: kindOf(stats),
    size: Number(stats.size),
    changedAt: Number(stats.mtimeMs),
    stamp: [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(':'),
    mode: Number(stats.mode & 0o7777n),
    owner: [Number(stats.uid), Number(stats.gid)],
  };
}

/**
 * Writes beside the place and puts it there in one step: whoever looks sees the old file or the new one, also after
 * a crash. What a killed process leaves behind is a file named `.….tmp` beside it.
 */
export async function writeToDisk(
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
    if (before !== undefined) keepOwnerAndMode(file, before);
    if (condition.mode !== undefined) fchmodSync(file, condition.mode);
    await syncFile(file);
    isOpen = false;
    await closeFile(file);
    // The bytes took their time: somebody may have been faster.
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

function keepOwnerAndMode(file: number, { mode, owner }: Stats): void {
  try {
    fchownSync(file, ...owner);
  } catch {
    // Only an administrator may give files away; the file is then the writer's.
  }
  fchmodSync(file, mode);
}

/** What is new takes the place of nothing: a link to it fails where somebody was faster. */
function putInPlace(draft: string, { folder, name, path }: HeldPlace, how: 'new' | 'replacing'): void {
  if (how === 'new' && linked(draft, { folder, name, path })) unlinkSync(draft);
  else renameSync(draft, folder.at(name));
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It has its place already, or is gone.
  }
}

/** Moves to where nothing is; a file in one step in which nobody can be faster, where the system has hard links. */
export function moveOnDisk(from: HeldPlace, to: HeldPlace): void {
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

/** Whether it has a second name now; not every file system can do that. */
function linked(from: string, to: HeldPlace): boolean {
  try {
    linkSync(from, to.folder.at(to.name));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw alreadyThere(to.path);
    return false;
  }
}

/** Removes a file, a link, or a folder; what is in a folder is gone through without following a link. */
export function removeFromDisk({ folder, name, path }: HeldPlace, how: 'with contents' | 'alone'): void {
  const there = statsAt(folder.at(name));
  if (there === undefined) throw missing(path);
  if (there.kind !== 'folder') unlinkSync(folder.at(name));
  else {
    if (how === 'with contents') removeContents(folder, name);
    try {
      rmdirSync(folder.at(name));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
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

/** A folder that is open: what is looked up in it is in that folder, whatever becomes of its path meanwhile. */
export interface HeldFolder {
  /** How the system names something in it. */
  at(name: string): string;
  /** How the system names the folder itself. */
  readonly self: string;
  /** The folder of that name in it; throws what the system says where it is none, or a link. */
  enter(name: string): HeldFolder;
  /** Makes what was done in it last. */
  sync(): void;
  close(): void;
}

/** Where Linux shows what a process has open: a path through it begins at the folder that is open. */
const HANDLES = '/proc/self/fd';

/** Whether folders can be held here. Elsewhere each step is looked at before it is taken, which leaves a gap. */
export function canHoldFolders(): boolean {
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

/** How folders are gone through: `handles` where they can be held, `names` elsewhere. */
export type FolderAccess = 'handles' | 'names';

/** Opens a folder by its absolute path, in which no links are. */
export function openFolder(path: string, access: FolderAccess): HeldFolder {
  return access === 'handles' ? new OpenFolder(path) : new NamedFolder(path);
}

/** What something is, by what the system says of it. */
export function kindOf(stats: Pick<BigIntStats, 'isFile' | 'isDirectory' | 'isSymbolicLink'>): FileKind {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'folder';
  return stats.isSymbolicLink() ? 'link' : 'other';
}

/** Most files fit into it, so that a walk through many allocates once. */
const SCRATCH_BYTES = 256 * 1024;

/** Bytes of a file that is open, of which part, and its path for messages. */
interface OpenRange {
  readonly path: string;
  readonly from: number;
  readonly most: number;
}

/** Reads of a file that is open; it is looked at now that nobody can replace it. */
export function readOpen(file: number, { path, from, most }: OpenRange): FileBytes {
  const stats = fstatSync(file, { bigint: true });
  const kind = kindOf(stats);
  if (kind !== 'file') throw wrongKind(path, kind, 'file');
  const size = Number(stats.size);
  const wanted = Math.max(0, Math.min(most, size - from));
  // A file of this size has no place in memory; whoever asks for all of it is told.
  if (wanted > MOST_BYTES)
    throw new FileSystemError('failed', `'${path}' is too large to be read at once: ${size} bytes.`);
  const bytes = fill(file, new Uint8Array(wanted), from);
  return { bytes, size, stamp: [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(':') };
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

/** Reads many files, one after the other, into the same memory. */
export class ScratchReader {
  readonly #scratch = new Uint8Array(SCRATCH_BYTES);

  /** The first bytes of a file; `undefined` where it is none. They last until the next are read. */
  read(file: number, most: number): Uint8Array | undefined {
    const stats = fstatSync(file);
    if (!stats.isFile()) return undefined;
    const wanted = Math.min(most, stats.size);
    const room = wanted <= SCRATCH_BYTES ? this.#scratch.subarray(0, wanted) : new Uint8Array(wanted);
    return fill(file, room, 0);
  }
}

/** What the system called it. */
export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}

const TOLD: Readonly<Record<string, string>> = {
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

/** An error of the system as one for the model, which learns nothing from it of where the folder is. */
export function told(error: unknown, path: string): FileSystemError {
  if (error instanceof FileSystemError) return error;
  const code = codeOf(error) ?? 'unknown';
  if (code === 'ENOENT') return missing(path);
  if (code === 'EISDIR') return wrongKind(path, 'folder', 'file');
  if (code === 'ENOTDIR') return wrongKind(path, 'file', 'folder');
  if (code === 'ELOOP')
    return new FileSystemError('link', `'${path}' is a link, and links are not followed.`);
  const isForbidden = code === 'EACCES' || code === 'EPERM' || code === 'EROFS';
  const reason = TOLD[code] ?? `the system says ${code}`;
  return new FileSystemError(
    isForbidden ? 'not-permitted' : 'failed',
    `Nothing was done with '${path}': ${reason}.`,
    {
      cause: error,
    },
  );
}
