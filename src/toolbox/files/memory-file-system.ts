import { posix } from 'node:path';
import { folderPath } from '../paths/folder-path.js';
import {
  alreadyThere,
  type ByteRange,
  changed,
  type FileBytes,
  type FileInfo,
  FileSystem,
  FileSystemError,
  type FolderEntry,
  type FolderVisitor,
  isRoot,
  missing,
  type WalkOptions,
  type WriteCondition,
  wrongKind,
} from './file-system.js';

/** A file, with a stamp that identifies its version. */
interface KeptFile {
  readonly bytes: Uint8Array;
  readonly changedAt: number;
  readonly stamp: string;
}

/**
 * A folder in memory, for tests and for agents without a disk. A folder exists as long as it contains something.
 *
 * @example
 * ```ts
 * const files = new MemoryFileSystem({ 'src/a.ts': 'export const a = 1;\n' });
 * files.texts(); // { 'src/a.ts': 'export const a = 1;\n' }
 * ```
 */
export class MemoryFileSystem extends FileSystem {
  readonly #files = new Map<string, KeptFile>();
  #writes = 0;

  constructor(files: Readonly<Record<string, string | Uint8Array>> = {}) {
    super();
    for (const [path, content] of Object.entries(files)) {
      const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content.slice();
      this.#keep(this.pathOf(path), bytes);
    }
  }

  /** All files as text, by path, sorted. */
  texts(): Readonly<Record<string, string>> {
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    const files = [...this.#files].sort(([one], [other]) => (one < other ? -1 : 1));
    return Object.fromEntries(files.map(([path, { bytes }]) => [path, decoder.decode(bytes)]));
  }

  override pathOf(given: string): string {
    const read = folderPath(given, { root: '/', platform: 'linux' });
    if (!read.ok) throw new FileSystemError('outside', `${read.problem}.`);
    return read.path;
  }

  override async info(path: string): Promise<FileInfo | undefined> {
    const known = this.pathOf(path);
    const file = this.#files.get(known);
    if (file !== undefined) return infoOf(file);
    this.#refuseBelowFile(known);
    return this.#isFolder(known) ? { kind: 'folder', size: 0, changedAt: 0, stamp: '' } : undefined;
  }

  override async read(
    path: string,
    { from = 0, most = Number.POSITIVE_INFINITY }: ByteRange = {},
  ): Promise<FileBytes> {
    const file = this.#fileAt(this.pathOf(path));
    const { bytes, stamp } = file;
    return { bytes: bytes.slice(from, Math.min(bytes.length, from + most)), size: bytes.length, stamp };
  }

  override async list(path: string): Promise<readonly FolderEntry[]> {
    const known = this.pathOf(path);
    if (this.#files.has(known)) throw wrongKind(known, 'file', 'folder');
    if (!this.#isFolder(known)) throw missing(known);
    return this.#entries(known);
  }

  override async walk(path: string, visit: FolderVisitor, { signal }: WalkOptions = {}): Promise<void> {
    const start = this.pathOf(path);
    await this.list(start);
    const rest = [start];
    for (let at = rest.pop(); at !== undefined; at = rest.pop()) {
      signal?.throwIfAborted();
      const folder = at;
      const names = await visit({
        path: folder,
        entries: this.#entries(folder),
        read: (name, most) => this.#files.get(posix.join(folder, name))?.bytes.slice(0, most),
      });
      if (names === undefined) return;
      rest.push(...names.map((name) => posix.join(folder, name)).reverse());
    }
  }

  override async write(
    path: string,
    bytes: Uint8Array,
    { replaces }: WriteCondition = {},
  ): Promise<FileInfo> {
    const known = this.pathOf(path);
    if (known === '.') throw isRoot(known);
    this.#refuseBelowFile(known);
    const there = this.#files.get(known);
    if (there === undefined && this.#isFolder(known)) throw wrongKind(known, 'folder', 'file');
    if (replaces === 'absent' && there !== undefined) throw alreadyThere(known);
    if (typeof replaces === 'object' && there?.stamp !== replaces.stamp) throw changed(known);
    return infoOf(this.#keep(known, bytes.slice()));
  }

  override async move(from: string, to: string): Promise<void> {
    const [source, target] = [this.pathOf(from), this.pathOf(to)];
    if (source === '.' || target === '.') throw isRoot('.');
    if ((await this.info(source)) === undefined) throw missing(source);
    if ((await this.info(target)) !== undefined) throw alreadyThere(target);
    this.#refuseBelowFile(target);
    if (target.startsWith(`${source}/`))
      throw new FileSystemError('failed', `'${source}' cannot be moved into itself.`);
    for (const path of this.#within(source)) {
      const { bytes } = this.#fileAt(path);
      this.#files.delete(path);
      this.#keep(target + path.slice(source.length), bytes);
    }
  }

  override async remove(
    path: string,
    { withContents = false }: { readonly withContents?: boolean } = {},
  ): Promise<void> {
    const known = this.pathOf(path);
    if (known === '.') throw isRoot(known);
    if (this.#files.delete(known)) return;
    if (!this.#isFolder(known)) throw missing(known);
    if (!withContents) throw new FileSystemError('not-empty', `The folder '${known}' is not empty.`);
    for (const inner of this.#within(known)) this.#files.delete(inner);
  }

  #keep(path: string, bytes: Uint8Array): KeptFile {
    this.#writes += 1;
    const file = { bytes, changedAt: Date.now(), stamp: String(this.#writes) };
    this.#files.set(path, file);
    return file;
  }

  #fileAt(path: string): KeptFile {
    const file = this.#files.get(path);
    if (file !== undefined) return file;
    this.#refuseBelowFile(path);
    throw this.#isFolder(path) ? wrongKind(path, 'folder', 'file') : missing(path);
  }

  #isFolder(path: string): boolean {
    return path === '.' || this.#within(path).some((inner) => inner !== path);
  }

  #within(path: string): readonly string[] {
    return [...this.#files.keys()].filter((one) => one === path || one.startsWith(`${path}/`));
  }

  #refuseBelowFile(path: string): void {
    for (let folder = posix.dirname(path); folder !== '.'; folder = posix.dirname(folder))
      if (this.#files.has(folder)) throw wrongKind(folder, 'file', 'folder');
  }

  #entries(folder: string): readonly FolderEntry[] {
    const start = folder === '.' ? '' : `${folder}/`;
    const kinds = new Map<string, FolderEntry['kind']>();
    for (const path of this.#files.keys()) {
      if (!path.startsWith(start)) continue;
      const [name = '', ...deeper] = path.slice(start.length).split('/');
      kinds.set(name, deeper.length > 0 ? 'folder' : 'file');
    }
    return [...kinds]
      .map(([name, kind]) => ({ name, kind }))
      .sort((one, other) => (one.name < other.name ? -1 : 1));
  }
}

function infoOf({ bytes, changedAt, stamp }: KeptFile): FileInfo {
  return { kind: 'file', size: bytes.length, changedAt, stamp };
}
