import { closeSync, openSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { InvalidOptionsError } from '../../core/errors/author-fault.js';
import { FILLED_TEXT, required } from '../../core/kernel/options.js';

/** SQLite's error codes: a file that another process has locked, and a path that cannot be opened or created. */
const SQLITE_BUSY = 5;
const WRONG_PATH: ReadonlySet<number> = new Set([8, 14, 26]);

const PAUSE_MS = 5;

/** Where a database is, and how long a statement waits for another process to finish writing. */
interface DatabasePlace {
  /** The class whose option `path` it is. */
  readonly of: string;
  readonly path: string;
  readonly busyTimeoutMs: number;
}

/** Without a path, SQLite would use a temporary file and delete it at the end. */
export const DATABASE_PATH = required({ ...FILLED_TEXT, fix: "'runs.sqlite', or ':memory:'" });

/**
 * Opens an SQLite file so that several processes can use it at the same time; creates it if it is missing.
 *
 * @throws InvalidOptionsError (521) if the path is wrong; Error that names the path if the file is locked or cannot be
 * opened for another reason.
 */
export function openDatabase({ of, path, busyTimeoutMs }: DatabasePlace): DatabaseSync {
  const Database = loadDatabaseClass();
  let database: DatabaseSync | undefined;
  try {
    createPrivateFile(path);
    database = new Database(path);
    database.exec(`PRAGMA busy_timeout = ${Math.ceil(busyTimeoutMs)}`);
    useWriteAheadLog(database, busyTimeoutMs);
    return database;
  } catch (cause) {
    database?.close();
    const problem = `Cannot open the SQLite file '${path}': ${(cause as Error).message}`;
    if (!WRONG_PATH.has(kindOf(cause))) throw new Error(problem, { cause });
    const fix = 'path: an SQLite file, or a new file in an existing folder with write permission';
    throw new InvalidOptionsError([{ where: of, option: 'path', problem, fix }]);
  }
}

/**
 * Reads from an existing SQLite file and changes nothing.
 *
 * @throws Error that names the path if the file cannot be read.
 */
export function readDatabase<Found>(path: string, look: (database: DatabaseSync) => Found): Found {
  const Database = loadDatabaseClass();
  let database: DatabaseSync | undefined;
  try {
    database = new Database(path, { readOnly: true });
    return look(database);
  } catch (cause) {
    throw new Error(`Cannot read the SQLite file '${path}': ${(cause as Error).message}`, { cause });
  } finally {
    database?.close();
  }
}

/**
 * Creates a missing file with access for its owner only, because it contains conversations. SQLite gives the same
 * rights to the files that it creates beside it. An existing file keeps its rights.
 */
function createPrivateFile(path: string): void {
  if (path === ':memory:') return;
  try {
    let file = path;
    // https://www.sqlite.org/uri.html
    if (path.startsWith('file:')) {
      const [, name = '', query = ''] = /^file:(?:\/\/[^/?#]*)?([^?#]*)(?:\?([^#]*))?/.exec(path) ?? [];
      const mode = new URLSearchParams(query).get('mode') ?? 'rwc';
      file = decodeURIComponent(name);
      if (file === '' || file === ':memory:' || mode !== 'rwc') return;
    }
    closeSync(openSync(file, 'wx', 0o600));
  } catch {
    // It exists, cannot be created, or has no valid name: SQLite will report that.
  }
}

/** Runs several statements atomically, in one transaction. */
export function inTransaction<Outcome>(database: DatabaseSync, work: () => Outcome): Outcome {
  database.exec('BEGIN IMMEDIATE');
  try {
    const outcome = work();
    database.exec('COMMIT');
    return outcome;
  } catch (error) {
    try {
      database.exec('ROLLBACK');
    } catch {
      // SQLite may have rolled back already, for example because the disk is full; the first error matters.
    }
    throw error;
  }
}

/** Loaded on demand: Node 22 prints a warning when `node:sqlite` is loaded, and other stores do not need it. */
function loadDatabaseClass(): typeof DatabaseSync {
  const module: typeof import('node:sqlite') | undefined = process.getBuiltinModule('node:sqlite');
  if (module === undefined) throw new Error('This Node has no node:sqlite (22.13 and newer have it).');
  return module.DatabaseSync;
}

/**
 * With a write-ahead log, readers and a writer do not wait for each other. SQLite does not wait for a lock when it
 * switches to it, so this retries: otherwise two processes that open a new file at the same time would fail.
 */
function useWriteAheadLog(database: DatabaseSync, busyTimeoutMs: number): void {
  const deadline = performance.now() + busyTimeoutMs;
  for (;;) {
    try {
      database.exec('PRAGMA journal_mode = WAL');
      return;
    } catch (error) {
      if (kindOf(error) !== SQLITE_BUSY || performance.now() >= deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    }
  }
}

/** The lower byte of a code is its kind, such as busy; the rest is a detail, such as busy because of a recovery. */
function kindOf(error: unknown): number {
  return Number((error as { readonly errcode?: unknown }).errcode) & 0xff;
}
