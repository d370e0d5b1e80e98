/** The kind of an entry. `other` is never opened: devices, pipes, sockets. */
export type FileKind = 'file' | 'folder' | 'link' | 'other';

/** Information about an entry, without opening it. */
export interface FileInfo {
  readonly kind: FileKind;
  /** In bytes. */
  readonly size: number;
  /** Milliseconds since 1970. */
  readonly changedAt: number;
  /** Changes whenever the file is written or replaced; use it only for comparison. */
  readonly stamp: string;
  /** Permissions in POSIX form (`0o644`), if the system has them. */
  readonly mode?: number;
}

/** An entry of a folder. */
export interface FolderEntry {
  readonly name: string;
  readonly kind: FileKind;
}

/** Bytes of a file, and information about it. */
export interface FileBytes {
  readonly bytes: Uint8Array;
  /** Size of the whole file in bytes. */
  readonly size: number;
  readonly stamp: string;
}

/** Which bytes to read. */
export interface ByteRange {
  /** Offset of the first byte; default: 0. */
  readonly from?: number;
  /** The most bytes to read; default: all. */
  readonly most?: number;
}

/** A condition for writing a file. */
export interface WriteCondition {
  /** `absent`: nothing may exist at the path; a stamp: the file must have it. Default: replaces any file. */
  readonly replaces?: 'absent' | { readonly stamp: string };
  /** Permissions of the written file, if the system has them. Default: those of the old file, or of a new one. */
  readonly mode?: number;
}

/** A folder that a walk visits. */
export interface WalkedFolder {
  readonly path: string;
  /** Sorted by name. */
  readonly entries: readonly FolderEntry[];
  /**
   * At most `most` bytes from the start of a file in the folder; `undefined` if it is not a file or cannot be read.
   * They are valid until the next read.
   */
  read(name: string, most: number): Uint8Array | undefined;
}

/**
 * Called for each folder of a walk; returns the names of the subfolders to visit, or `undefined` to end the walk. The
 * folder object is valid until the visitor returns.
 */
export type FolderVisitor = (
  folder: WalkedFolder,
) => readonly string[] | undefined | Promise<readonly string[] | undefined>;

/** Options of a walk. */
export interface WalkOptions {
  readonly signal?: AbortSignal;
}

/** Why an operation on a path failed. */
export type FileProblem =
  | 'outside'
  | 'missing'
  | 'link'
  | 'kind'
  | 'exists'
  | 'changed'
  | 'not-empty'
  | 'not-permitted'
  | 'failed';

/**
 * The error of a {@link FileSystem}. Its message is for the model: it contains the path as it was given, never the
 * location of the folder.
 */
export class FileSystemError extends Error {
  override readonly name = 'FileSystemError';
  readonly problem: FileProblem;

  constructor(problem: FileProblem, message: string, options?: ErrorOptions) {
    super(message, options);
    this.problem = problem;
  }
}

/**
 * The file system of the file tools: one folder with its contents. Paths are relative to it, or absolute within it;
 * nothing outside of it is ever opened. Links are not followed. It is an abstract class, so that it can be injected:
 * register {@link DiskFileSystem}, {@link MemoryFileSystem}, or your own.
 *
 * All errors are {@link FileSystemError}s.
 *
 * @example
 * ```ts
 * import { container, type InjectionToken } from 'tsyringe';
 *
 * container.register(FileSystem as InjectionToken<FileSystem>, { useValue: new DiskFileSystem({ root: '/srv/project' }) });
 * tools.register(...discoverTools({ toolsets: [FileTools] }));
 * ```
 */
export abstract class FileSystem {
  /** Throws if the abstract class itself is instantiated: containers do that with unregistered classes. */
  constructor() {
    if (new.target === FileSystem)
      throw new TypeError(
        'no FileSystem is registered: register a DiskFileSystem for it, or use fileTools({ root })',
      );
  }

  /** The canonical form of a path: with `/`, and `.` for the folder itself. */
  abstract pathOf(given: string): string;
  /** The absolute path of the folder, with `/` and with links resolved; `undefined` if it is not on a disk. */
  folderOnDisk(): string | undefined {
    return undefined;
  }
  /** Information about a path; `undefined` if nothing exists there. */
  abstract info(path: string): Promise<FileInfo | undefined>;
  /** Reads bytes of a file. */
  abstract read(path: string, range?: ByteRange): Promise<FileBytes>;
  /** The entries of a folder, sorted by name. */
  abstract list(path: string): Promise<readonly FolderEntry[]>;
  /** Walks a folder and its subfolders in order of names; each folder is visited before its subfolders. */
  abstract walk(path: string, visit: FolderVisitor, options?: WalkOptions): Promise<void>;
  /** Writes a whole file atomically; creates missing folders. */
  abstract write(path: string, bytes: Uint8Array, condition?: WriteCondition): Promise<FileInfo>;
  /**
   * Makes several changes that belong together, with the file system that `work` receives. By default that is this one;
   * a {@link JournaledFileSystem} undoes them together. `about` describes the change for people.
   */
  together<Value>(_about: string, work: (files: FileSystem) => Promise<Value>): Promise<Value> {
    return work(this);
  }
  /** Moves a file or a folder to a path where nothing exists. */
  abstract move(from: string, to: string): Promise<void>;
  /** Removes a file, a link (not its target), or a folder; `withContents` is needed if the folder is not empty. */
  abstract remove(path: string, options?: { readonly withContents?: boolean }): Promise<void>;
}

const WORDS: Readonly<Record<FileKind, string>> = {
  file: 'a file',
  folder: 'a folder',
  link: 'a link',
  other: 'neither a file nor a folder',
};

/** The error for an entry of the wrong kind. */
export function wrongKind(path: string, kind: FileKind, wanted: FileKind): FileSystemError {
  return new FileSystemError('kind', `'${path}' is ${WORDS[kind]}, not ${WORDS[wanted]}.`);
}

/** The error for a path where nothing exists. */
export function missing(path: string): FileSystemError {
  return new FileSystemError('missing', `There is no '${path}'.`);
}

/** The error for a path that must be free. */
export function alreadyThere(path: string): FileSystemError {
  return new FileSystemError('exists', `'${path}' already exists.`);
}

/** The error for writing, moving or removing the folder itself. */
export function isRoot(path: string): FileSystemError {
  return new FileSystemError('kind', `'${path}' is the root folder itself.`);
}

/** The error for a file that has changed. */
export function changed(path: string): FileSystemError {
  return new FileSystemError('changed', `'${path}' has changed since it was read. Read it again.`);
}
