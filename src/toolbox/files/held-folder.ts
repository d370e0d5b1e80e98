import {
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readSync,
} from 'node:fs';
import { type FileBytes, type FileKind, FileSystemError, missing, wrongKind } from './file-system.js';

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

// Windows has no such flags.
const { O_DIRECTORY = 0, O_NOFOLLOW = 0, O_RDONLY } = constants;

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
