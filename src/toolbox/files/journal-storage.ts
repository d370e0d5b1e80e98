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
import { nodeCrypto } from '../../kernel/node-module.js';

/** Where a journal keeps its lines, and the contents that they name. */
export interface JournalStorage {
  /** All lines that were added whole. */
  lines(): readonly string[];
  /** Adds a line; it is there when this is back. */
  add(line: string): void;
  /** Puts these in the place of all. */
  replace(lines: readonly string[]): void;
  /** Keeps a content under its digest. */
  keep(bytes: Uint8Array): string;
  /** What was kept; `undefined` where it is gone, or is not what it was. */
  read(digest: string): Uint8Array | undefined;
  /** Of each content that is kept, how many bytes it has. */
  sizes(): ReadonlyMap<string, number>;
  forget(digest: string): void;
}

/** What tells one content from another. */
export function digestOf(bytes: Uint8Array): string {
  return nodeCrypto().createHash('sha256').update(bytes).digest('hex');
}

/** For as long as the process lives. */
export class MemoryJournalStorage implements JournalStorage {
  #lines: readonly string[] = [];
  readonly #contents = new Map<string, Uint8Array>();

  lines(): readonly string[] {
    return this.#lines;
  }

  add(line: string): void {
    this.#lines = [...this.#lines, line];
  }

  replace(lines: readonly string[]): void {
    this.#lines = lines;
  }

  keep(bytes: Uint8Array): string {
    const digest = digestOf(bytes);
    this.#contents.set(digest, bytes);
    return digest;
  }

  read(digest: string): Uint8Array | undefined {
    return this.#contents.get(digest);
  }

  sizes(): ReadonlyMap<string, number> {
    return new Map([...this.#contents].map(([digest, { length }]) => [digest, length]));
  }

  forget(digest: string): void {
    this.#contents.delete(digest);
  }
}

/** A folder that nobody else can read: `journal.jsonl`, and a file for each content. */
export class FolderJournalStorage implements JournalStorage {
  readonly #log: string;
  readonly #contents: string;

  constructor(folder: string) {
    this.#log = join(folder, 'journal.jsonl');
    this.#contents = join(folder, 'contents');
    mkdirSync(this.#contents, { recursive: true, mode: 0o700 });
  }

  lines(): readonly string[] {
    if (!existsSync(this.#log)) return [];
    const lines = readFileSync(this.#log, 'utf8').split('\n');
    // What follows the last line's end was cut off before anything was changed; the next line must not follow it.
    if (lines.pop() !== '') this.replace(lines);
    return lines;
  }

  add(line: string): void {
    writeDurably(this.#log, 'a', `${line}\n`);
  }

  replace(lines: readonly string[]): void {
    const draft = `${this.#log}.${nodeCrypto().randomUUID()}.tmp`;
    writeDurably(draft, 'wx', lines.map((line) => `${line}\n`).join(''));
    renameSync(draft, this.#log);
  }

  keep(bytes: Uint8Array): string {
    const digest = digestOf(bytes);
    const path = join(this.#contents, digest);
    if (existsSync(path)) return digest;
    const draft = `${path}.${nodeCrypto().randomUUID()}.tmp`;
    writeDurably(draft, 'wx', bytes);
    renameSync(draft, path);
    return digest;
  }

  read(digest: string): Uint8Array | undefined {
    const path = join(this.#contents, digest);
    if (!existsSync(path)) return undefined;
    const bytes = new Uint8Array(readFileSync(path));
    return digestOf(bytes) === digest ? bytes : undefined;
  }

  sizes(): ReadonlyMap<string, number> {
    return new Map(
      readdirSync(this.#contents).map((name) => [name, statSync(join(this.#contents, name)).size]),
    );
  }

  forget(digest: string): void {
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
