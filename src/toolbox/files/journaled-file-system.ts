import { isAbsolute, posix } from 'node:path';
import { checkArguments, checkOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { FILLED_TEXT, optionTable, withMethods } from '../../core/kernel/options.js';
import {
  ChangeJournal,
  type ChangeStep,
  contentDigest,
  FolderJournalStorage,
  type JournaledChange,
  JournalStorage,
  type KeptFile,
} from './change-journal.js';
import { DiskFileSystem } from './disk-file-system.js';
import {
  type ByteRange,
  type FileBytes,
  type FileInfo,
  FileSystem,
  FileSystemError,
  type FolderEntry,
  type FolderVisitor,
  type WalkOptions,
  type WriteCondition,
} from './file-system.js';
import { encodeText } from './read-file.js';

/** Where a {@link JournaledFileSystem} keeps its journal, and how much of it. */
export interface JournalOptions {
  /**
   * A folder, absolute, made where it is not there; one within the folder that is changed is refused. One journal at
   * a time writes there. Default: in memory, for as long as the process lives.
   */
  readonly folder?: string;
  /** Bytes of contents; where there are more, the oldest changes are forgotten. Default: 100,000,000. */
  readonly mostBytes?: number;
}

const OUTSIDE = 'the absolute path of a folder outside of the one that is changed';

const OPTIONS = optionTable<JournalOptions>('JournaledFileSystem', {
  folder: {
    accepts: (value) => FILLED_TEXT.accepts(value) && isAbsolute(String(value)),
    fix: OUTSIDE,
  },
  mostBytes: {
    accepts: (value) => typeof value === 'number' && value > 0,
    fix: 'a number of bytes: 100_000_000',
  },
});

const FILES = withMethods(['pathOf', 'info', 'read', 'write', 'move', 'remove'], 'a FileSystem');

/** Reads as the file system behind it does. */
abstract class ReadingThrough extends FileSystem {
  readonly #behind: FileSystem;

  constructor(files: FileSystem) {
    super();
    this.#behind = files;
  }

  override pathOf(given: string): string {
    return this.#behind.pathOf(given);
  }

  override info(path: string): Promise<FileInfo | undefined> {
    return this.#behind.info(path);
  }

  override read(path: string, range?: ByteRange): Promise<FileBytes> {
    return this.#behind.read(path, range);
  }

  override list(path: string): Promise<readonly FolderEntry[]> {
    return this.#behind.list(path);
  }

  override walk(path: string, visit: FolderVisitor, options?: WalkOptions): Promise<void> {
    return this.#behind.walk(path, visit, options);
  }
}

/**
 * A file system that notes what is changed through it, so that it can be undone: what a file was before it is written,
 * removed or moved is kept first. Changes that were made another way (by a command, in an editor) it knows nothing of.
 *
 * @example
 * ```ts
 * const files = new JournaledFileSystem(new DiskFileSystem({ root: process.cwd() }));
 * tools.register(...fileTools(files));
 * const undone = await files.undo(); // { about: 'edit src/a.ts', … }
 * ```
 */
export class JournaledFileSystem extends ReadingThrough {
  readonly #files: FileSystem;
  readonly #journal: ChangeJournal;
  readonly #mostBytes: number;

  /** @throws InvalidOptionsError (521), and what the system says where the journal's folder cannot be made. */
  constructor(files: FileSystem, options: JournalOptions = {}) {
    super(files);
    checkArguments({ of: 'JournaledFileSystem', given: { files }, rules: { files: FILES } });
    checkOptions(options, OPTIONS);
    const { folder, mostBytes = 100_000_000 } = options;
    if (folder !== undefined && files instanceof DiskFileSystem && files.holds(folder)) {
      const problem = `folder names ${folder}, which is in the folder that is changed: tools could change the journal`;
      refuseOptions([{ where: 'JournaledFileSystem', option: 'folder', problem, fix: OUTSIDE }]);
    }
    this.#files = files;
    this.#mostBytes = mostBytes;
    const storage = folder === undefined ? new JournalStorage() : new FolderJournalStorage(folder);
    this.#journal = new ChangeJournal(storage, mostBytes);
  }

  /** What was changed and can be undone, the newest last. */
  changes(): readonly JournaledChange[] {
    return this.#journal.changes();
  }

  /**
   * Undoes the newest change, all of it or nothing; nothing where there is none.
   *
   * @throws FileSystemError `changed` or `exists` where the files are not as the change has left them, and `failed`
   *   where what was there before could not be kept. The change stays the newest then; `forget` takes it out.
   */
  async undo(): Promise<JournaledChange | undefined> {
    const newest = this.changes().at(-1);
    if (newest === undefined) return undefined;
    await undoSteps(this.#files, this.#journal.stepsOf(newest.id), (digest) =>
      this.#journal.contentOf(digest),
    );
    this.#journal.remove(newest.id);
    return newest;
  }

  /** Takes out the newest change and leaves the files as they are, so that the one before it can be undone. */
  forget(): JournaledChange | undefined {
    const newest = this.changes().at(-1);
    if (newest !== undefined) this.#journal.remove(newest.id);
    return newest;
  }

  override async together<Value>(about: string, work: (files: FileSystem) => Promise<Value>): Promise<Value> {
    const noting = new NotingFileSystem(this.#files, this.#journal, { about, most: this.#mostBytes });
    try {
      return await work(noting);
    } finally {
      this.#journal.settle(noting.id);
    }
  }

  override write(path: string, bytes: Uint8Array, condition?: WriteCondition): Promise<FileInfo> {
    return this.together(`write ${path}`, (files) => files.write(path, bytes, condition));
  }

  override move(from: string, to: string): Promise<void> {
    return this.together(`move ${from} to ${to}`, (files) => files.move(from, to));
  }

  override remove(path: string, options?: { readonly withContents?: boolean }): Promise<void> {
    return this.together(`delete ${path}`, (files) => files.remove(path, options));
  }
}

/** What was read, before it is kept. */
interface ReadFile {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly mode: number | undefined;
}

/** Notes each change before it makes it; all of them are one change of the journal. */
class NotingFileSystem extends ReadingThrough {
  readonly #files: FileSystem;
  readonly #journal: ChangeJournal;
  readonly #how: { readonly about: string; readonly most: number };
  /** Of the change in the journal, once there is something in it. */
  id: number | undefined;

  constructor(
    files: FileSystem,
    journal: ChangeJournal,
    how: { readonly about: string; readonly most: number },
  ) {
    super(files);
    this.#files = files;
    this.#journal = journal;
    this.#how = how;
  }

  override async write(given: string, bytes: Uint8Array, condition: WriteCondition = {}): Promise<FileInfo> {
    const path = this.pathOf(given);
    const info = await this.#files.info(path);
    const there = info?.kind === 'file' ? info : undefined;
    const { lost, files, stamp } = await this.#readAll(there === undefined ? [] : [{ path, ...there }]);
    const made = await this.#missingFolders(path);
    const after = contentDigest(bytes);
    return this.#noted(
      files,
      ([before]) => ({ kind: 'write', path, ...(before && { before }), after, made, ...lost }),
      // What was read is what is replaced.
      () =>
        this.#files.write(path, bytes, {
          ...condition,
          replaces: condition.replaces ?? (stamp === undefined ? 'absent' : { stamp }),
        }),
    );
  }

  override async move(source: string, target: string): Promise<void> {
    const [from, to] = [this.pathOf(source), this.pathOf(target)];
    const info = await this.#files.info(from);
    const isSmall = info?.kind === 'file' && info.size <= this.#how.most;
    const content = isSmall ? { content: contentDigest((await this.#files.read(from)).bytes) } : {};
    const made = await this.#missingFolders(to);
    return this.#noted(
      [],
      () => ({ kind: 'move', from, to, ...content, made }),
      () => this.#files.move(from, to),
    );
  }

  override async remove(
    given: string,
    { withContents = false }: { readonly withContents?: boolean } = {},
  ): Promise<void> {
    const path = this.pathOf(given);
    const found = await this.#contentsOf(path, withContents);
    const { lost, files } = await this.#readAll(found.files);
    const { folders, links } = found;
    const isLink = links.length > 0 ? { lost: `${links[0]} was a link` } : {};
    return this.#noted(
      files,
      (kept) => ({ kind: 'remove', path, files: kept, folders, ...lost, ...isLink }),
      () => this.#files.remove(path, { withContents }),
    );
  }

  /** Keeps what was read and notes the step, without anything else in between; then does it. */
  async #noted<Value>(
    files: readonly ReadFile[],
    stepOf: (kept: readonly KeptFile[]) => ChangeStep,
    work: () => Promise<Value>,
  ): Promise<Value> {
    const kept = files.map(({ path, bytes, mode }) => ({
      path,
      content: this.#journal.keep(bytes),
      ...(mode === undefined ? {} : { mode }),
    }));
    this.id ??= this.#journal.begin();
    const takeBack = this.#journal.note(this.id, this.#how.about, stepOf(kept));
    try {
      return await work();
    } catch (error) {
      takeBack();
      throw error;
    }
  }

  /** Folders that writing to a path makes, the outermost first. */
  async #missingFolders(path: string): Promise<readonly string[]> {
    const missing: string[] = [];
    for (let at = posix.dirname(path); at !== '.'; at = posix.dirname(at)) {
      if ((await this.#files.info(at)) !== undefined) break;
      missing.unshift(at);
    }
    return missing;
  }

  /** The contents of files, unless that is more than is ever kept. */
  async #readAll(found: readonly FoundFile[]): Promise<{
    readonly files: readonly ReadFile[];
    readonly stamp?: string;
    readonly lost?: { readonly lost: string };
  }> {
    const bytes = found.reduce((sum, { size }) => sum + size, 0);
    const [first] = found;
    if (bytes > this.#how.most)
      return {
        files: [],
        lost: { lost: `what was there is too large to be kept: ${bytes} bytes` },
        ...(first && { stamp: first.stamp }),
      };
    const files: ReadFile[] = [];
    let stamp: string | undefined;
    for (const { path, mode } of found) {
      const read = await this.#files.read(path);
      stamp ??= read.stamp;
      files.push({ path, bytes: read.bytes, mode });
    }
    return { files, ...(stamp === undefined ? {} : { stamp }) };
  }

  /** What goes when something is removed. */
  async #contentsOf(
    path: string,
    withContents: boolean,
  ): Promise<{
    readonly files: readonly FoundFile[];
    readonly folders: readonly string[];
    readonly links: readonly string[];
  }> {
    const info = await this.#files.info(path);
    if (info === undefined) return { files: [], folders: [], links: [] };
    if (info.kind === 'file') return { files: [{ path, ...info }], folders: [], links: [] };
    if (info.kind !== 'folder') return { files: [], folders: [], links: [path] };
    const found = { files: [] as FoundFile[], folders: [path], links: [] as string[] };
    if (!withContents) return found;
    await this.#files.walk(path, async ({ path: folder, entries }) => {
      for (const { name, kind } of entries) {
        const inner = `${folder}/${name}`;
        if (kind === 'folder') found.folders.push(inner);
        else if (kind !== 'file') found.links.push(inner);
        else {
          const file = await this.#files.info(inner);
          if (file !== undefined) found.files.push({ path: inner, ...file });
        }
      }
      return entries.filter(({ kind }) => kind === 'folder').map(({ name }) => name);
    });
    return found;
  }
}

interface FoundFile extends Pick<FileInfo, 'size' | 'stamp' | 'mode'> {
  readonly path: string;
}

/** What was kept under a digest. */
type ContentOf = (digest: string) => Uint8Array | undefined;

/**
 * Undoes steps, the last first. All of them are looked at before the first is undone; one that is undone already, by an
 * undoing that was cut off, is left as it is.
 */
async function undoSteps(
  files: FileSystem,
  steps: readonly ChangeStep[],
  contentOf: ContentOf,
): Promise<void> {
  const backwards = steps.toReversed();
  const seen = new Set<string>();
  for (const step of backwards) {
    const paths = step.kind === 'move' ? [step.from, step.to] : [step.path];
    // What a later step has done to the same path is still there now.
    const isAsLeft = !paths.some((path) => seen.has(path));
    for (const path of paths) seen.add(path);
    if (isAsLeft) await planUndo(files, step, contentOf);
  }
  for (const step of backwards) await (await planUndo(files, step, contentOf))();
}

/** What has to be done to undo a step. */
async function planUndo(
  files: FileSystem,
  step: ChangeStep,
  contentOf: ContentOf,
): Promise<() => Promise<void>> {
  if (step.lost !== undefined) throw new FileSystemError('failed', `It cannot be undone: ${step.lost}.`);
  if (step.kind === 'write') return planUnwrite(files, step, contentOf);
  return step.kind === 'move' ? planUnmove(files, step) : planUnremove(files, step, contentOf);
}

async function planUnwrite(
  files: FileSystem,
  { path, before, after, made }: ChangeStep & { readonly kind: 'write' },
  contentOf: ContentOf,
): Promise<() => Promise<void>> {
  const now = await fileAt(files, path);
  if (now === undefined) {
    if (before === undefined) return () => removeEmpty(files, made);
    throw changedSince(path);
  }
  if (now.digest === before?.content) return async () => {};
  if (now.digest !== after) throw changedSince(path);
  if (before === undefined)
    return async () => {
      await files.remove(path);
      await removeEmpty(files, made);
    };
  const bytes = contentIn(before, contentOf);
  return async () => {
    await files.write(path, bytes, { replaces: { stamp: now.stamp }, ...modeOf(before) });
  };
}

async function planUnmove(
  files: FileSystem,
  { from, to, content, made }: ChangeStep & { readonly kind: 'move' },
): Promise<() => Promise<void>> {
  const isBack = (await files.info(from)) !== undefined;
  const isThere = (await files.info(to)) !== undefined;
  if (isBack && isThere) throw new FileSystemError('exists', `There is a '${from}' again.`);
  if (isBack) return () => removeEmpty(files, made);
  if (!isThere || (content !== undefined && (await fileAt(files, to))?.digest !== content))
    throw changedSince(to);
  return async () => {
    await files.move(to, from);
    await removeEmpty(files, made);
  };
}

async function planUnremove(
  files: FileSystem,
  { files: kept, folders, path }: ChangeStep & { readonly kind: 'remove' },
  contentOf: ContentOf,
): Promise<() => Promise<void>> {
  const missing: (readonly [KeptFile, Uint8Array])[] = [];
  for (const file of kept) {
    const now = await fileAt(files, file.path);
    if (now === undefined) missing.push([file, contentIn(file, contentOf)]);
    else if (now.digest !== file.content)
      throw new FileSystemError('exists', `There is another '${file.path}' now.`);
  }
  const there = await files.info(path);
  if (there !== undefined && folders.includes(path) && there.kind !== 'folder')
    throw new FileSystemError('exists', `There is another '${path}' now.`);
  return async () => {
    for (const [file, bytes] of missing)
      await files.write(file.path, bytes, { replaces: 'absent', ...modeOf(file) });
    for (const folder of folders) await makeFolder(files, folder);
  };
}

/** A file system makes folders for what is written into them. */
async function makeFolder(files: FileSystem, folder: string): Promise<void> {
  if ((await files.info(folder)) !== undefined) return;
  const draft = posix.join(folder, '.undone.tmp');
  await files.write(draft, encodeText(''), { replaces: 'absent' });
  await files.remove(draft);
}

/** Those that have something else in them by now stay. */
async function removeEmpty(files: FileSystem, folders: readonly string[]): Promise<void> {
  for (const folder of folders.toReversed()) {
    try {
      await files.remove(folder);
    } catch (error) {
      const isLeft = error instanceof FileSystemError && ['missing', 'not-empty'].includes(error.problem);
      if (!isLeft) throw error;
    }
  }
}

async function fileAt(
  files: FileSystem,
  path: string,
): Promise<{ readonly digest: string; readonly stamp: string } | undefined> {
  const info = await infoAt(files, path);
  if (info === undefined) return undefined;
  if (info.kind !== 'file') throw changedSince(path);
  const { bytes, stamp } = await files.read(path);
  return { digest: contentDigest(bytes), stamp };
}

/** Where a folder on the way has become a file, nothing of it is as it was. */
async function infoAt(files: FileSystem, path: string) {
  try {
    return await files.info(path);
  } catch (error) {
    throw error instanceof FileSystemError && error.problem === 'kind' ? changedSince(path) : error;
  }
}

function contentIn({ path, content }: KeptFile, contentOf: ContentOf): Uint8Array {
  const bytes = contentOf(content);
  if (bytes !== undefined) return bytes;
  throw new FileSystemError('failed', `It cannot be undone: what '${path}' was is not kept any more.`);
}

function modeOf({ mode }: KeptFile): { readonly mode?: number } {
  return mode === undefined ? {} : { mode };
}

function changedSince(path: string): FileSystemError {
  return new FileSystemError('changed', `'${path}' is not as the change has left it; it was not undone.`);
}
