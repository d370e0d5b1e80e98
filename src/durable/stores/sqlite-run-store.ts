import type { DatabaseSync } from 'node:sqlite';
import { checkOptions } from '../../core/errors/author-fault.js';
import { FUNCTION, optionTable, PAUSE } from '../../core/kernel/options.js';
import { SqlRunStore } from '../sql/run-store.js';
import { DATABASE_PATH, inTransaction, openDatabase } from './open-database.js';
import { prepareTables, SqliteDriver } from './sqlite-driver.js';

/** Options of a {@link SqliteRunStore}. */
export interface SqliteRunStoreOptions {
  /**
   * Path of the file, or `':memory:'`. The file is created if it is missing; its folder is not. It may be a file of the
   * application: all tables begin with `toolwright_`. The store switches it to a write-ahead log, which adds two files
   * beside it. The file contains conversations; protect it accordingly.
   */
  readonly path: string;
  /** Milliseconds for which a method waits, and blocks, while another process writes; default 5,000. */
  readonly busyTimeoutMs?: number;
  /** Milliseconds since 1970; default: `Date.now`. For tests; all processes must use the same clock. */
  readonly now?: () => number;
}

const OPTIONS = optionTable<SqliteRunStoreOptions>('SqliteRunStore', {
  path: DATABASE_PATH,
  busyTimeoutMs: PAUSE,
  now: FUNCTION,
});

/**
 * Stores runs in an SQLite file, which several processes of one machine may use at the same time. Stored runs survive
 * crashes and power failures. Methods return promises, and block while they write. Do not put the file on a network
 * drive: SQLite is not safe there. The first store of a process loads `node:sqlite`, and Node 22 then prints a warning
 * that it is experimental.
 *
 * The constructor throws InvalidOptionsError (521) if no file can be opened or created at the path, or if the file is
 * not an SQLite file. It throws an Error if the file is locked or was written by a newer version of this package.
 * Methods reject with SQLite's errors, as for a full disk or a lock that outlasts `busyTimeoutMs`.
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

  /** Closes the file; may be called twice. All other methods reject afterwards. */
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
