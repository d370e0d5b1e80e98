import { closeSync, openSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { InvalidOptionsError } from '../../core/errors/author-fault.js';
import { FILLED_TEXT, required } from '../../core/kernel/options.js';

/** SQLite's own numbers: for a file that is locked elsewhere, and for a path at which it cannot use or make one. */
const SQLITE_BUSY = 5;
const WRONG_PATH: ReadonlySet<number> = new Set([8, 14, 26]);

const PAUSE_MS = 5;

/** Where a database is, and how long a statement waits for another process to finish writing. */
interface DatabasePlace {
  /** Whose `path` it is. */
  readonly of: string;
  readonly path: string;
  readonly busyTimeoutMs: number;
}

/** Without a path, SQLite would keep everything in a file that it deletes in the end. */
export const DATABASE_PATH = required({ ...FILLED_TEXT, fix: "'runs.sqlite', or ':memory:'" });

/**
 * Opens an SQLite file so that several processes can use it at the same time; makes it where it is missing.
 *
 * @throws InvalidOptionsError (521) where the path is wrong; Error that names the path where the file is locked, or
 *   cannot be opened for another reason.
 */
export function openDatabase({ of, path, busyTimeoutMs }: DatabasePlace): DatabaseSync {
  const Database = loadDatabaseClass();
  let database: DatabaseSync | undefined;
  try {
    makePrivate(path);
    database = new Database(path);
    database.exec(`PRAGMA busy_timeout = ${Math.ceil(busyTimeoutMs)}`);
    useWriteAheadLog(database, busyTimeoutMs);
    return database;
  } catch (cause) {
    database?.close();
    const problem = `Cannot open the SQLite file '${path}': ${(cause as Error).message}`;
    if (!WRONG_PATH.has(kindOf(cause))) throw new Error(problem, { cause });
    const fix = 'path: an SQLite file, or a new file in a folder that exists and may be written to';
    throw new InvalidOptionsError([{ where: of, option: 'path', problem, fix }]);
  }
}

/**
 * Looks into an SQLite file that is there, and changes nothing in it.
 *
 * @throws Error that names the path where the file cannot be read.
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
 * Makes the file where it is missing, for its owner alone: it holds conversations. The files that SQLite puts
 * beside it get the same rights. One that is there keeps its own.
 */
function makePrivate(path: string): void {
  const file = path.startsWith('file:') ? fileOfUri(path) : path;
  if (file === undefined || file === ':memory:') return;
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch {
    // It exists, or cannot be made: SQLite will report that.
  }
}

/** The file that SQLite makes for an address; none where it makes none (https://www.sqlite.org/uri.html). */
function fileOfUri(uri: string): string | undefined {
  const [, path = '', query = ''] = /^file:(?:\/\/[^/?#]*)?([^?#]*)(?:\?([^#]*))?/.exec(uri) ?? [];
  const mode = new URLSearchParams(query).get('mode') ?? 'rwc';
  if (path === '' || mode !== 'rwc') return undefined;
  try {
    return decodeURIComponent(path);
  } catch {
    // SQLite will report that.
    return undefined;
  }
}

/** Runs several statements as one: all or none of them, without others in between. */
export function inTransaction<Outcome>(database: DatabaseSync, work: () => Outcome): Outcome {
  database.exec('BEGIN IMMEDIATE');
  let outcome: Outcome;
  try {
    outcome = work();
    database.exec('COMMIT');
  } catch (error) {
    rollBack(database);
    throw error;
  }
  return outcome;
}

/** SQLite may have rolled back already, as it does on a full disk; what was thrown first is what matters. */
function rollBack(database: DatabaseSync): void {
  try {
    database.exec('ROLLBACK');
  } catch {}
}

/** Loaded here and not with the module: Node 22 warns that it is experimental, and other stores do without it. */
function loadDatabaseClass(): typeof DatabaseSync {
  const module: typeof import('node:sqlite') | undefined = process.getBuiltinModule('node:sqlite');
  if (module === undefined) throw new Error('This Node has no node:sqlite (22.13 and newer have it).');
  return module.DatabaseSync;
}

/**
 * Readers and a writer do not wait for each other. SQLite does not wait its turn for this one change, so that
 * of two processes that open a new file at the same moment one would fail.
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

/** The lower byte is the kind, such as busy; the rest says which, such as busy because of a recovery. */
function kindOf(error: unknown): number {
  return Number((error as { readonly errcode?: unknown }).errcode) & 0xff;
}
