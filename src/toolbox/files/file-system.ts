/** What lies at a path; `other` is what no tool opens: devices, pipes, sockets. */
export type FileKind = 'file' | 'folder' | 'link' | 'other';

/** What is known of something without opening it. */
export interface FileInfo {
  readonly kind: FileKind;
  /** In bytes. */
  readonly size: number;
  /** Milliseconds since 1970. */
  readonly changedAt: number;
  /** Another one whenever it was written or replaced; fit for comparing and nothing else. */
  readonly stamp: string;
  /** Who may do what with it, as POSIX has it (`0o644`); where that is known. */
  readonly mode?: number;
}

/** A name in a folder. */
export interface FolderEntry {
  readonly name: string;
  readonly kind: FileKind;
}

/** Bytes of a file, and of what file they are. */
export interface FileBytes {
  readonly bytes: Uint8Array;
  /** Of the whole file, in bytes. */
  readonly size: number;
  readonly stamp: string;
}

/** Which bytes to read. */
export interface ByteRange {
  /** The first; default: 0. */
  readonly from?: number;
  /** How many at most; default: all. */
  readonly most?: number;
}

/** What has to be there for a file to be written. */
export interface WriteCondition {
  /** `absent`: nothing; a stamp: the file that has it. Default: whatever is there is replaced. */
  readonly replaces?: 'absent' | { readonly stamp: string };
  /** Who may do what with the file then, where that can be said; default: as it was, or as new files are. */
  readonly mode?: number;
}

/** A folder that a walk has come to. */
export interface WalkedFolder {
  readonly path: string;
  /** Sorted by name. */
  readonly entries: readonly FolderEntry[];
  /**
   * The first bytes of a file in it, at most so many; `undefined` where it is none, or cannot be read. They last until
   * the next are read.
   */
  read(name: string, most: number): Uint8Array | undefined;
}

/**
 * Called for each folder of a walk; gives the names of the folders in it to go into, and nothing to end the walk.
 * What it is given serves it until it has answered.
 */
export type FolderVisitor = (
  folder: WalkedFolder,
) => readonly string[] | undefined | Promise<readonly string[] | undefined>;

/** How a walk is made. */
export interface WalkOptions {
  readonly signal?: AbortSignal;
}

/** Why something could not be done with a path. */
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
 * What a {@link FileSystem} throws. Its message is for the model: it names the path as it was given, never where the
 * folder is.
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
 * Where the file tools work: one folder and what is in it. Paths are relative to it, or absolute within it; nothing
 * outside of it is ever opened, whatever a path says. Links are not followed. An abstract class, so that it can be
 * injected: register {@link DiskFileSystem}, {@link MemoryFileSystem}, or one of your own.
 *
 * Everything it throws is a {@link FileSystemError}.
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
  /** Containers make an instance of any unregistered class. */
  constructor() {
    if (new.target === FileSystem)
      throw new TypeError(
        'no FileSystem is registered: register a DiskFileSystem for it, or use fileTools({ root })',
      );
  }

  /** The path in the one form that this file system knows it by: with `/`, and `.` for the folder itself. */
  abstract pathOf(given: string): string;
  /** What lies at a path; `undefined` where nothing does. */
  abstract info(path: string): Promise<FileInfo | undefined>;
  /** Bytes of a file. */
  abstract read(path: string, range?: ByteRange): Promise<FileBytes>;
  /** What is in a folder, sorted by name. */
  abstract list(path: string): Promise<readonly FolderEntry[]>;
  /** Goes through a folder and those in it, each before its own folders, in order of names. */
  abstract walk(path: string, visit: FolderVisitor, options?: WalkOptions): Promise<void>;
  /** Writes a file whole or not at all; makes the folders that it needs. */
  abstract write(path: string, bytes: Uint8Array, condition?: WriteCondition): Promise<FileInfo>;
  /**
   * Makes several changes that belong together, by the file system that `work` is given. Here that is this one; one that
   * keeps a journal undoes them together ({@link JournaledFileSystem}). `about` says for people what is done.
   */
  together<Value>(_about: string, work: (files: FileSystem) => Promise<Value>): Promise<Value> {
    return work(this);
  }
  /** Moves a file or a folder to where nothing is yet. */
  abstract move(from: string, to: string): Promise<void>;
  /** Removes a file, a link (not what it leads to), or a folder; one with something in it only where that is meant. */
  abstract remove(path: string, options?: { readonly withContents?: boolean }): Promise<void>;
}

const WORDS: Readonly<Record<FileKind, string>> = {
  file: 'a file',
  folder: 'a folder',
  link: 'a link',
  other: 'neither a file nor a folder',
};

/** Something lies at a path, and it is not what was wanted. */
export function wrongKind(path: string, kind: FileKind, wanted: FileKind): FileSystemError {
  return new FileSystemError('kind', `'${path}' is ${WORDS[kind]}, not ${WORDS[wanted]}.`);
}

/** Nothing lies at a path. */
export function missing(path: string): FileSystemError {
  return new FileSystemError('missing', `There is no '${path}'.`);
}

/** Something lies where nothing may. */
export function alreadyThere(path: string): FileSystemError {
  return new FileSystemError('exists', `There is a '${path}' already.`);
}

/** The folder itself cannot be written, moved or removed. */
export function isRoot(path: string): FileSystemError {
  return new FileSystemError('kind', `'${path}' is the folder itself.`);
}

/** A file is another one than it was. */
export function changed(path: string): FileSystemError {
  return new FileSystemError('changed', `'${path}' has changed since it was read. Read it again.`);
}
