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
import { join } from 'node:path';
import { isRecord, parsedJson } from '../../core/kernel/json.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';

/** A file as it was; its content is stored under its digest. */
export interface KeptFile {
  readonly path: string;
  readonly content: string;
  /** For files on disk. */
  readonly mode?: number;
}

/** One change of files with the data to undo it; it is recorded before the change is made. */
export type ChangeStep = {
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
export class ChangeJournal {
  readonly #storage: JournalStorage;
  readonly #mostBytes: number;
  readonly #entries = new Map<number, Entry>();
  #last = 0;
  /** Approximate bytes of stored contents; may include contents that are no longer referenced. */
  #bytes = 0;

  constructor(storage: JournalStorage, mostBytes: number) {
    this.#storage = storage;
    this.#mostBytes = mostBytes;
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
    if (this.#bytes > this.#mostBytes || this.#entries.size > MOST_CHANGES) this.#removeOldest();
  }

  /** Stores a content; record a step with its digest next, before anything else happens. */
  keep(bytes: Uint8Array): string {
    this.#bytes += bytes.length;
    return this.#storage.keep(bytes);
  }

  contentOf(digest: string): Uint8Array | undefined {
    return this.#storage.read(digest);
  }

  #write(line: object): void {
    const text = JSON.stringify(line);
    this.#storage.add(text);
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
    if (isRecord(step))
      this.#entries.set(id, {
        id,
        about: String(about),
        at: String(at),
        steps: [...(known?.steps ?? []), step as unknown as ChangeStep],
      });
  }

  /** Removes unreferenced contents, and the oldest changes if there are too many. */
  #removeOldest(): void {
    const sizes = this.#storage.sizes();
    const entries = [...this.#entries.values()].sort((one, other) => one.id - other.id);
    const named = (): Set<string> => new Set(entries.flatMap(({ steps }) => steps.flatMap(contentsOf)));
    const total = (): number => [...named()].reduce((sum, digest) => sum + (sizes.get(digest) ?? 0), 0);
    const count = entries.length;
    // Down to half, so that this is not necessary again soon.
    const isMuch = total() > this.#mostBytes;
    while (entries.length > MOST_CHANGES || (isMuch && entries.length > 1 && total() > this.#mostBytes / 2))
      entries.shift();
    const kept = named();
    for (const digest of sizes.keys()) if (!kept.has(digest)) this.#storage.forget(digest);
    this.#bytes = total();
    if (entries.length === count && this.#storage.lines().length <= 2 * MOST_CHANGES) return;
    for (const id of this.#entries.keys())
      if (!entries.some((entry) => entry.id === id)) this.#entries.delete(id);
    this.#storage.replace(
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
export function contentDigest(bytes: Uint8Array): string {
  return nodeCrypto().createHash('sha256').update(bytes).digest('hex');
}

/** Stores the lines of a journal and the contents that they reference, in memory. */
export class JournalStorage {
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
export class FolderJournalStorage extends JournalStorage {
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
    const draft = `${this.#log}.${nodeCrypto().randomUUID()}.tmp`;
    writeDurably(draft, 'wx', lines.map((line) => `${line}\n`).join(''));
    renameSync(draft, this.#log);
  }

  override keep(bytes: Uint8Array): string {
    const digest = contentDigest(bytes);
    const path = join(this.#contents, digest);
    if (existsSync(path)) return digest;
    const draft = `${path}.${nodeCrypto().randomUUID()}.tmp`;
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
