import type { DatabaseSync } from 'node:sqlite';
import { checkOptions } from '../../core/errors/author-fault.js';
import { FUNCTION, optionTable, PAUSE } from '../../core/kernel/options.js';
import { SqlRunStore } from '../sql/run-store.js';
import { DATABASE_PATH, inTransaction, openDatabase } from './open-database.js';
import { prepareTables, SqliteDriver } from './sqlite-driver.js';

/** Where a {@link SqliteRunStore} keeps its runs. */
export interface SqliteRunStoreOptions {
  /**
   * Path of the file, which is made where it is missing (its folder is not), or `':memory:'`. It may be a file
   * of the application: all tables begin with `toolwright_`. It is switched to a write-ahead log, which stands in
   * two files beside it. It holds conversations; keep it as safe as those.
   */
  readonly path: string;
  /** How long a method waits, and blocks, while another process writes; default 5,000. */
  readonly busyTimeoutMs?: number;
  /** Milliseconds since 1970; default: `Date.now`. A seam for tests: all processes must agree on it. */
  readonly now?: () => number;
}

const OPTIONS = optionTable<SqliteRunStoreOptions>('SqliteRunStore', {
  path: DATABASE_PATH,
  busyTimeoutMs: PAUSE,
  now: FUNCTION,
});

/**
 * Keeps runs in an SQLite file, which several processes of one machine may use at the same time. A kept run survives
 * crashes and power failures. Its methods return promises and block while they write; a file on a network drive is not
 * safe with SQLite. The first store of a process loads `node:sqlite`, and Node 22 then says on standard error that it is
 * experimental.
 *
 * The constructor throws InvalidOptionsError (521) where no file can be opened or made at the path, or what is there is
 * no SQLite file, and an Error where it is locked or was written by a newer version of this package; methods reject with what SQLite throws, for a full disk or a lock that outlasts `busyTimeoutMs`.
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * const run = await runToolLoop({ provider, model, tools, store }, messages);
 * store.close();
 * ```
 */
export class SqliteRunStore extends SqlRunStore {
  readonly #database: DatabaseSync;
  readonly #driver: SqliteDriver;
  #isOpen = true;

  constructor(options: SqliteRunStoreOptions) {
    checkOptions(options, OPTIONS);
    const { path, busyTimeoutMs = 5000, now = Date.now } = options;
    const database = openDatabase({ of: 'SqliteRunStore', path, busyTimeoutMs });
    try {
      inTransaction(database, () => prepareTables(database));
    } catch (cause) {
      database.close();
      throw new Error(`Cannot keep runs in '${path}': ${(cause as Error).message}`, { cause });
    }
    const driver = new SqliteDriver(database, now);
    super(driver);
    this.#database = database;
    this.#driver = driver;
  }

  /** Closes the file; closing twice is no fault. Any other method rejects afterwards. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#driver.stopWatching();
    this.#database.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
