import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join, posix } from 'node:path';
import { checkArguments, checkOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { isRecord, parsedJson } from '../../core/kernel/json.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';
import { optionTable, withMethods } from '../../core/kernel/options.js';
import { FOLDER } from '../paths/folder-path.js';
import { DiskFileSystem } from './disk-file-system.js';
import {
  type ByteRange,
  type FileBytes,
  type FileInfo,
  type FileKind,
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

const OUTSIDE = 'the absolute path of a folder outside of the changed folder';

const OPTIONS = optionTable<JournalOptions>('JournaledFileSystem', {
  folder: { ...FOLDER, fix: OUTSIDE },
  mostBytes: {
    accepts: (value) => typeof value === 'number' && value > 0,
    fix: 'a number of bytes: 100_000_000',
  },
});

const FILES = withMethods(['pathOf', 'info', 'read', 'write', 'move', 'remove'], 'a FileSystem');

/** Reads from the underlying file system. */
abstract class ReadingThrough extends FileSystem {
  constructor(protected readonly files: FileSystem) {
    super();
  }

  override pathOf(given: string): string {
    return this.files.pathOf(given);
  }

  override folderOnDisk(): string | undefined {
    return this.files.folderOnDisk?.();
  }

  override info(path: string): Promise<FileInfo | undefined> {
    return this.files.info(path);
  }

  override read(path: string, range?: ByteRange): Promise<FileBytes> {
    return this.files.read(path, range);
  }

  override list(path: string): Promise<readonly FolderEntry[]> {
    return this.files.list(path);
  }

  override walk(path: string, visit: FolderVisitor, options?: WalkOptions): Promise<void> {
    return this.files.walk(path, visit, options);
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
  readonly #journal: ChangeJournal;
  readonly #mostBytes: number;

  /** @throws InvalidOptionsError (521), and system errors if the journal's folder cannot be created. */
  constructor(files: FileSystem, options: JournalOptions = {}) {
    super(files);
    checkArguments({ of: 'JournaledFileSystem', given: { files }, rules: { files: FILES } });
    checkOptions(options, OPTIONS);
    const { folder, mostBytes = 100_000_000 } = options;
    if (folder !== undefined && files instanceof DiskFileSystem && files.holds(folder)) {
      const problem = `folder is ${folder}, which is in the changed folder: tools could change the journal`;
      refuseOptions([{ where: 'JournaledFileSystem', option: 'folder', problem, fix: OUTSIDE }]);
    }
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
    await new ChangeUndo(this.files, this.#journal).undo(newest.id);
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
    const noting = new NotingFileSystem(this.files, this.#journal, { about, most: this.#mostBytes });
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
  /** Id of the change in the journal, once a step is recorded. */
  id: number | undefined;

  constructor(
    files: FileSystem,
    private readonly journal: ChangeJournal,
    private readonly how: { readonly about: string; readonly most: number },
  ) {
    super(files);
  }

  override async write(given: string, bytes: Uint8Array, condition: WriteCondition = {}): Promise<FileInfo> {
    const path = this.pathOf(given);
    const info = await this.info(path);
    const { lost, files, stamp } = await this.#readAll(info?.kind === 'file' ? [{ path, ...info }] : []);
    const made = await this.#missingFolders(path);
    const after = contentDigest(bytes);
    return this.#noted(
      files,
      ([before]) => ({ kind: 'write', path, before, after, made, lost }),
      // Replaces exactly the version that was read.
      () => {
        const replaces = condition.replaces ?? (stamp === undefined ? 'absent' : { stamp });
        return this.files.write(path, bytes, { ...condition, replaces });
      },
    );
  }

  override async move(source: string, target: string): Promise<void> {
    const [from, to] = [this.pathOf(source), this.pathOf(target)];
    const info = await this.info(from);
    const isSmall = info?.kind === 'file' && info.size <= this.how.most;
    const content = isSmall ? contentDigest((await this.read(from)).bytes) : undefined;
    const made = await this.#missingFolders(to);
    return this.#noted(
      [],
      () => ({ kind: 'move', from, to, content, made }),
      () => this.files.move(from, to),
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
      () => this.files.remove(path, { withContents }),
    );
  }

  /** Stores what was read and records the step, both synchronously; then makes the change. */
  async #noted<Value>(
    files: readonly ReadFile[],
    stepOf: (kept: readonly KeptFile[]) => ChangeStep,
    work: () => Promise<Value>,
  ): Promise<Value> {
    const kept = files.map(({ path, bytes, mode }) => ({ path, content: this.journal.keep(bytes), mode }));
    this.id ??= this.journal.begin();
    const takeBack = this.journal.note(this.id, this.how.about, stepOf(kept));
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
      if ((await this.info(at)) !== undefined) break;
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
    const size = found.reduce((sum, file) => sum + file.size, 0);
    const lost = `the previous content is too large to store: ${size} bytes`;
    if (size > this.how.most) return { files: [], lost, stamp: found[0]?.stamp };
    const files: ReadFile[] = [];
    let stamp: string | undefined;
    for (const { path, mode } of found) {
      const read = await this.read(path);
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
    const found = { files: [] as FoundFile[], folders: [] as string[], links: [] as string[] };
    const add = async (at: string, kind: FileKind | undefined): Promise<void> => {
      if (kind === 'folder') found.folders.push(at);
      else if (kind !== undefined && kind !== 'file') found.links.push(at);
      else {
        const file = await this.info(at);
        if (file !== undefined) found.files.push({ path: at, ...file });
      }
    };
    const kind = (await this.info(path))?.kind;
    await add(path, kind);
    if (kind !== 'folder' || !withContents) return found;
    await this.walk(path, async ({ path: folder, entries }) => {
      for (const { name, kind } of entries) await add(`${folder}/${name}`, kind);
      return entries.filter(({ kind }) => kind === 'folder').map(({ name }) => name);
    });
    return found;
  }
}

interface FoundFile extends Pick<FileInfo, 'size' | 'stamp' | 'mode'> {
  readonly path: string;
}

/** Undoes changes of the journal. */
class ChangeUndo {
  constructor(
    private readonly files: FileSystem,
    private readonly journal: ChangeJournal,
  ) {}

  /**
   * Undoes the steps of a change, the last first. All steps are checked before the first is undone. A step that an
   * interrupted undo has already undone is skipped.
   */
  async undo(id: number): Promise<void> {
    const backwards = this.journal.stepsOf(id).toReversed();
    const seen = new Set<string>();
    for (const step of backwards) {
      const paths = pathsOf(step);
      // If a later step changed the same path, the current state is the result of that step.
      const isAsLeft = !paths.some((path) => seen.has(path));
      for (const path of paths) seen.add(path);
      if (isAsLeft) await this.#plan(step);
    }
    for (const step of backwards) await (await this.#plan(step))();
  }

  /** Prepares the undoing of a step. */
  async #plan(step: ChangeStep): Promise<() => Promise<unknown>> {
    if (step.lost !== undefined)
      throw new FileSystemError('failed', `The change cannot be undone: ${step.lost}.`);
    if (step.kind === 'write') return this.#planUnwrite(step);
    return step.kind === 'move' ? this.#planUnmove(step) : this.#planUnremove(step);
  }

  async #planUnwrite({ path, before, after, made }: ChangeStep & { readonly kind: 'write' }) {
    const now = await this.#fileAt(path);
    if (now === undefined) {
      if (before === undefined) return () => this.#removeEmpty(made);
      throw changedSince(path);
    }
    if (now.digest === before?.content) return async () => {};
    if (now.digest !== after) throw changedSince(path);
    if (before === undefined)
      return async () => {
        await this.files.remove(path);
        await this.#removeEmpty(made);
      };
    const bytes = this.#contentOf(before);
    return () => this.files.write(path, bytes, { replaces: { stamp: now.stamp }, mode: before.mode });
  }

  async #planUnmove({ from, to, content, made }: ChangeStep & { readonly kind: 'move' }) {
    const isBack = (await this.files.info(from)) !== undefined;
    const isThere = (await this.files.info(to)) !== undefined;
    if (isBack && isThere) throw new FileSystemError('exists', `'${from}' exists again.`);
    if (isBack) return () => this.#removeEmpty(made);
    if (!isThere || (content !== undefined && (await this.#fileAt(to))?.digest !== content))
      throw changedSince(to);
    return async () => {
      await this.files.move(to, from);
      await this.#removeEmpty(made);
    };
  }

  async #planUnremove({ files, folders, path }: ChangeStep & { readonly kind: 'remove' }) {
    const another = (at: string) => new FileSystemError('exists', `Another '${at}' exists now.`);
    const missing: (readonly [KeptFile, Uint8Array])[] = [];
    for (const file of files) {
      const now = await this.#fileAt(file.path);
      if (now === undefined) missing.push([file, this.#contentOf(file)]);
      else if (now.digest !== file.content) throw another(file.path);
    }
    const there = await this.files.info(path);
    if (there !== undefined && folders.includes(path) && there.kind !== 'folder') throw another(path);
    return async () => {
      for (const [file, bytes] of missing)
        await this.files.write(file.path, bytes, { replaces: 'absent', mode: file.mode });
      for (const folder of folders) {
        if ((await this.files.info(folder)) !== undefined) continue;
        // A file system creates folders only for files, so this writes a file and removes it.
        const draft = posix.join(folder, '.undone.tmp');
        await this.files.write(draft, encodeText(''), { replaces: 'absent' });
        await this.files.remove(draft);
      }
    };
  }

  /** Folders that are no longer empty stay. */
  async #removeEmpty(folders: readonly string[]): Promise<void> {
    for (const folder of folders.toReversed()) {
      try {
        await this.files.remove(folder);
      } catch (error) {
        const isLeft = error instanceof FileSystemError && ['missing', 'not-empty'].includes(error.problem);
        if (!isLeft) throw error;
      }
    }
  }

  async #fileAt(path: string) {
    const info = await this.files.info(path).catch((error: unknown) => {
      // If a parent folder has become a file, the path has changed.
      throw error instanceof FileSystemError && error.problem === 'kind' ? changedSince(path) : error;
    });
    if (info === undefined) return undefined;
    if (info.kind !== 'file') throw changedSince(path);
    const { bytes, stamp } = await this.files.read(path);
    return { digest: contentDigest(bytes), stamp };
  }

  #contentOf({ path, content }: KeptFile): Uint8Array {
    const bytes = this.journal.contentOf(content);
    if (bytes !== undefined) return bytes;
    throw new FileSystemError(
      'failed',
      `The change cannot be undone: the previous content of '${path}' is no longer stored.`,
    );
  }
}

function changedSince(path: string): FileSystemError {
  return new FileSystemError('changed', `'${path}' was changed again afterwards; the change was not undone.`);
}

/** A file as it was; its content is stored under its digest. */
interface KeptFile {
  readonly path: string;
  readonly content: string;
  /** For files on disk. */
  readonly mode?: number;
}

/** One change of files with the data to undo it; it is recorded before the change is made. */
type ChangeStep = {
  /** Why it cannot be undone. */
  readonly lost?: string;
} & (
  | {
      readonly kind: 'write';
      readonly path: string;
      /** Absent if the file was created. */
      readonly before?: KeptFile;
      /** Digest of what was written. */
      readonly after: string;
      /** Folders that were created for it, the outermost first. */
      readonly made: readonly string[];
    }
  | {
      readonly kind: 'remove';
      readonly path: string;
      readonly files: readonly KeptFile[];
      readonly folders: readonly string[];
    }
  | {
      readonly kind: 'move';
      readonly from: string;
      readonly to: string;
      /** For a file: the digest of its content. */
      readonly content?: string;
      readonly made: readonly string[];
    }
);

/** Changes that were made together and are undone together. */
export interface JournaledChange {
  /** From 1, in the order of the changes. */
  readonly id: number;
  /** A description for people: `edit src/a.ts`. */
  readonly about: string;
  /** ISO 8601. */
  readonly at: string;
  /** Paths that were written, moved or removed. */
  readonly paths: readonly string[];
}

interface Entry {
  readonly id: number;
  readonly about: string;
  readonly at: string;
  /** A step that failed is `undefined`. */
  readonly steps: readonly (ChangeStep | undefined)[];
}

const MOST_CHANGES = 1_000;

/** A journal of changes, the newest last; the oldest are removed if there are too many. */
class ChangeJournal {
  readonly #entries = new Map<number, Entry>();
  #last = 0;
  /** Approximate bytes of stored contents; may include contents that are no longer referenced. */
  #bytes = 0;

  constructor(
    private readonly storage: JournalStorage,
    private readonly mostBytes: number,
  ) {
    for (const line of storage.lines()) this.#read(line);
    this.#removeOldest();
  }

  changes(): readonly JournaledChange[] {
    return [...this.#entries.values()].flatMap(({ id, about, at, steps }) => {
      const done = steps.filter((step) => step !== undefined);
      return done.length === 0 ? [] : [{ id, about, at, paths: [...new Set(done.flatMap(pathsOf))] }];
    });
  }

  /** The steps of a change, in order. */
  stepsOf(id: number): readonly ChangeStep[] {
    return this.#entries.get(id)?.steps.filter((step) => step !== undefined) ?? [];
  }

  /** Starts a change; it exists once a step is recorded. */
  begin(): number {
    this.#last += 1;
    return this.#last;
  }

  /** Records a step before it is made; returns a function that marks it as failed. */
  note(id: number, about: string, step: ChangeStep): () => void {
    const { at = new Date().toISOString(), steps = [] } = this.#entries.get(id) ?? {};
    this.#write({ id, about, at, step });
    return () => this.#write({ id, failed: steps.length });
  }

  remove(id: number): void {
    this.#write({ id, gone: true });
  }

  /** Removes a change that left everything as it was; removes the oldest changes if there are too many. */
  settle(id: number | undefined): void {
    if (id !== undefined && isNothing(this.stepsOf(id))) this.remove(id);
    if (this.#bytes > this.mostBytes || this.#entries.size > MOST_CHANGES) this.#removeOldest();
  }

  /** Stores a content; record a step with its digest next, before anything else happens. */
  keep(bytes: Uint8Array): string {
    this.#bytes += bytes.length;
    return this.storage.keep(bytes);
  }

  contentOf(digest: string): Uint8Array | undefined {
    return this.storage.read(digest);
  }

  #write(line: object): void {
    const text = JSON.stringify(line);
    this.storage.add(text);
    this.#read(text);
  }

  /** Ignores lines that cannot be read. */
  #read(text: string): void {
    const line = parsedJson(text);
    if (!isRecord(line) || typeof line.id !== 'number') return;
    const { id, about, at, step, failed, gone } = line;
    this.#last = Math.max(this.#last, id);
    if (gone === true) this.#entries.delete(id);
    const known = this.#entries.get(id);
    if (typeof failed === 'number' && known !== undefined)
      this.#entries.set(id, {
        ...known,
        steps: known.steps.map((one, index) => (index === failed ? undefined : one)),
      });
    if (!isRecord(step)) return;
    const steps = [...(known?.steps ?? []), step as unknown as ChangeStep];
    this.#entries.set(id, { id, about: String(about), at: String(at), steps });
  }

  /** Removes unreferenced contents, and the oldest changes if there are too many. */
  #removeOldest(): void {
    const sizes = this.storage.sizes();
    const entries = [...this.#entries.values()].sort((one, other) => one.id - other.id);
    const named = (): Set<string> => new Set(entries.flatMap(({ steps }) => steps.flatMap(contentsOf)));
    const total = (): number => [...named()].reduce((sum, digest) => sum + (sizes.get(digest) ?? 0), 0);
    const count = entries.length;
    // Down to half, so that this is not necessary again soon.
    const isMuch = total() > this.mostBytes;
    while (entries.length > MOST_CHANGES || (isMuch && entries.length > 1 && total() > this.mostBytes / 2))
      entries.shift();
    const kept = named();
    for (const digest of sizes.keys()) if (!kept.has(digest)) this.storage.forget(digest);
    this.#bytes = total();
    if (entries.length === count && this.storage.lines().length <= 2 * MOST_CHANGES) return;
    for (const id of this.#entries.keys())
      if (!entries.some((entry) => entry.id === id)) this.#entries.delete(id);
    this.storage.replace(
      entries.flatMap(({ id, about, at, steps }) =>
        steps.flatMap((step) => (step === undefined ? [] : [JSON.stringify({ id, about, at, step })])),
      ),
    );
  }
}

/** Whether all files are as before, as after a patch that could not be applied. */
function isNothing(steps: readonly ChangeStep[]): boolean {
  const paths = new Map<string, { readonly before: string | undefined; after: string | undefined }>();
  for (const step of steps) {
    if (step.kind === 'move' || step.lost !== undefined) return false;
    const [file] = step.kind === 'write' ? [step.before] : step.files;
    if (step.kind === 'remove' && (step.folders.length > 0 || file === undefined)) return false;
    const known = paths.get(step.path) ?? { before: file?.content, after: undefined };
    known.after = step.kind === 'write' ? step.after : undefined;
    paths.set(step.path, known);
  }
  return [...paths.values()].every(({ before, after }) => before === after);
}

function pathsOf(step: ChangeStep): readonly string[] {
  return step.kind === 'move' ? [step.from, step.to] : [step.path];
}

function contentsOf(step: ChangeStep | undefined): readonly string[] {
  if (step?.kind === 'write') return step.before === undefined ? [] : [step.before.content];
  return step?.kind === 'remove' ? step.files.map(({ content }) => content) : [];
}

/** The hash that identifies a content. */
function contentDigest(bytes: Uint8Array): string {
  return nodeCrypto().hash('sha256', bytes);
}

/** Stores the lines of a journal and the contents that they reference, in memory. */
class JournalStorage {
  #lines: readonly string[] = [];
  readonly #contents = new Map<string, Uint8Array>();

  /** All complete lines. */
  lines(): readonly string[] {
    return this.#lines;
  }

  /** Adds a line; it is stored when this returns. */
  add(line: string): void {
    this.#lines = [...this.#lines, line];
  }

  replace(lines: readonly string[]): void {
    this.#lines = lines;
  }

  /** Stores a content under its digest. */
  keep(bytes: Uint8Array): string {
    const digest = contentDigest(bytes);
    this.#contents.set(digest, bytes);
    return digest;
  }

  /** A stored content; `undefined` if it is missing or damaged. */
  read(digest: string): Uint8Array | undefined {
    return this.#contents.get(digest);
  }

  /** The size in bytes of each stored content. */
  sizes(): ReadonlyMap<string, number> {
    return new Map([...this.#contents].map(([digest, { length }]) => [digest, length]));
  }

  forget(digest: string): void {
    this.#contents.delete(digest);
  }
}

/** A folder with access for this user only: `journal.jsonl`, and a file for each content. */
class FolderJournalStorage extends JournalStorage {
  readonly #log: string;
  readonly #contents: string;

  constructor(folder: string) {
    super();
    this.#log = join(folder, 'journal.jsonl');
    this.#contents = join(folder, 'contents');
    mkdirSync(this.#contents, { recursive: true, mode: 0o700 });
  }

  override lines(): readonly string[] {
    if (!existsSync(this.#log)) return [];
    const lines = readFileSync(this.#log, 'utf8').split('\n');
    // An incomplete last line was cut off before its change was made: remove it, so that the next line starts anew.
    if (lines.pop() !== '') this.replace(lines);
    return lines;
  }

  override add(line: string): void {
    writeDurably(this.#log, 'a', `${line}\n`);
  }

  override replace(lines: readonly string[]): void {
    const draft = `${this.#log}.${crypto.randomUUID()}.tmp`;
    writeDurably(draft, 'wx', lines.map((line) => `${line}\n`).join(''));
    renameSync(draft, this.#log);
  }

  override keep(bytes: Uint8Array): string {
    const digest = contentDigest(bytes);
    const path = join(this.#contents, digest);
    if (existsSync(path)) return digest;
    const draft = `${path}.${crypto.randomUUID()}.tmp`;
    writeDurably(draft, 'wx', bytes);
    renameSync(draft, path);
    return digest;
  }

  override read(digest: string): Uint8Array | undefined {
    const path = join(this.#contents, digest);
    if (!existsSync(path)) return undefined;
    const bytes = new Uint8Array(readFileSync(path));
    return contentDigest(bytes) === digest ? bytes : undefined;
  }

  override sizes(): ReadonlyMap<string, number> {
    return new Map(
      readdirSync(this.#contents).map((name) => [name, statSync(join(this.#contents, name)).size]),
    );
  }

  override forget(digest: string): void {
    rmSync(join(this.#contents, digest), { force: true });
  }
}

function writeDurably(path: string, flag: 'a' | 'wx', content: string | Uint8Array): void {
  const file = openSync(path, flag, 0o600);
  try {
    if (typeof content === 'string') writeFileSync(file, content);
    else for (let done = 0; done < content.length; ) done += writeSync(file, content, done);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
