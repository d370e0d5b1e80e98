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
import { encodeText } from './read-files.js';

/** Options of a {@link JournaledFileSystem}. */
export interface JournalOptions {
  /**
   * An absolute folder, created if it is missing. It must not be within the folder that is changed, and only one
   * journal at a time may use it. Default: in memory, until the process ends.
   */
  readonly folder?: string;
  /** Bytes of stored contents. Default: 100,000,000. */
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

/** Reads from the underlying file system. */
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
 * A file system that records its changes, so that they can be undone. It stores the old content of a file before the
 * file is written, removed or moved. It does not record changes made in another way, by a command or in an editor.
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

  /** @throws InvalidOptionsError (521), and system errors if the journal's folder cannot be created. */
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

  /** Changes that can be undone, the newest last. */
  changes(): readonly JournaledChange[] {
    return this.#journal.changes();
  }

  /**
   * Undoes the newest change completely or not at all; resolves with undefined if there is no change.
   *
   * @throws FileSystemError `changed` or `exists` if the files are not as the change left them; `failed` if the old
   * content could not be stored. The change stays the newest then; `forget` removes it.
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

  /** Removes the newest change from the journal without undoing it, so that `undo` continues with the one before. */
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

/** A file that was read and is not stored yet. */
interface ReadFile {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly mode: number | undefined;
}

/** Records each step before it is made; all steps are one change of the journal. */
class NotingFileSystem extends ReadingThrough {
  readonly #files: FileSystem;
  readonly #journal: ChangeJournal;
  readonly #how: { readonly about: string; readonly most: number };
  /** Id of the change in the journal, once a step is recorded. */
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
      ([before]) => ({ kind: 'write', path, before, after, made, lost }),
      // Replaces exactly the version that was read.
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
    const isLink = links.length > 0 ? `${links[0]} was a link` : undefined;
    return this.#noted(
      files,
      (kept) => ({ kind: 'remove', path, files: kept, folders, lost: isLink ?? lost }),
      () => this.#files.remove(path, { withContents }),
    );
  }

  /** Stores what was read and records the step, both synchronously; then makes the change. */
  async #noted<Value>(
    files: readonly ReadFile[],
    stepOf: (kept: readonly KeptFile[]) => ChangeStep,
    work: () => Promise<Value>,
  ): Promise<Value> {
    const kept = files.map(({ path, bytes, mode }) => ({
      path,
      content: this.#journal.keep(bytes),
      mode,
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

  /** Folders that a write would create, the outermost first. */
  async #missingFolders(path: string): Promise<readonly string[]> {
    const missing: string[] = [];
    for (let at = posix.dirname(path); at !== '.'; at = posix.dirname(at)) {
      if ((await this.#files.info(at)) !== undefined) break;
      missing.unshift(at);
    }
    return missing;
  }

  /** The contents of files, unless they are larger than the journal's limit. */
  async #readAll(found: readonly FoundFile[]): Promise<{
    readonly files: readonly ReadFile[];
    readonly stamp?: string;
    readonly lost?: string;
  }> {
    const bytes = found.reduce((sum, { size }) => sum + size, 0);
    const [first] = found;
    if (bytes > this.#how.most)
      return {
        files: [],
        lost: `what was there is too large to be kept: ${bytes} bytes`,
        stamp: first?.stamp,
      };
    const files: ReadFile[] = [];
    let stamp: string | undefined;
    for (const { path, mode } of found) {
      const read = await this.#files.read(path);
      stamp ??= read.stamp;
      files.push({ path, bytes: read.bytes, mode });
    }
    return { files, stamp };
  }

  /** Everything that a removal would remove. */
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

/** The stored content of a digest. */
type ContentOf = (digest: string) => Uint8Array | undefined;

/**
 * Undoes steps, the last first. All steps are checked before the first is undone. A step that an interrupted undo has
 * already undone is skipped.
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
    // If a later step changed the same path, the current state is the result of that step.
    const isAsLeft = !paths.some((path) => seen.has(path));
    for (const path of paths) seen.add(path);
    if (isAsLeft) await planUndo(files, step, contentOf);
  }
  for (const step of backwards) await (await planUndo(files, step, contentOf))();
}

/** Prepares the undoing of a step. */
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
    await files.write(path, bytes, { replaces: { stamp: now.stamp }, mode: before.mode });
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
      await files.write(file.path, bytes, { replaces: 'absent', mode: file.mode });
    for (const folder of folders) await makeFolder(files, folder);
  };
}

/** A file system creates folders only for files, so this writes a file and removes it. */
async function makeFolder(files: FileSystem, folder: string): Promise<void> {
  if ((await files.info(folder)) !== undefined) return;
  const draft = posix.join(folder, '.undone.tmp');
  await files.write(draft, encodeText(''), { replaces: 'absent' });
  await files.remove(draft);
}

/** Folders that are no longer empty stay. */
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

/** If a parent folder has become a file, the path has changed. */
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

function changedSince(path: string): FileSystemError {
  return new FileSystemError('changed', `'${path}' is not as the change has left it; it was not undone.`);
}
