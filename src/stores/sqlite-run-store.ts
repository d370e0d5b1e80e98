import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ClaimOutcome, RunClaim, RunLease, RunState, RunStore } from '../contract/run-state.js';
import { checkOptions } from '../errors/author-fault.js';
import { FUNCTION, optionTable, PAUSE } from '../kernel/options.js';
import { DATABASE_PATH, inTransaction, openDatabase } from './open-database.js';
import { checkAge, refusedSave } from './store-checks.js';

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

const SQL = {
  save: `
    INSERT INTO toolwright_runs (run_id, revision, state, kept_at) VALUES ($runId, $revision, $state, $now)
    ON CONFLICT (run_id) DO UPDATE
    SET revision = excluded.revision, state = excluded.state, kept_at = excluded.kept_at, claim = NULL, lease_end = NULL
    WHERE toolwright_runs.revision <= excluded.revision AND (claim IS NULL OR lease_end <= excluded.kept_at)`,
  load: 'SELECT state FROM toolwright_runs WHERE run_id = $runId',
  claim: `
    UPDATE toolwright_runs SET claim = $claim, lease_end = $leaseEnd
    WHERE run_id = $runId AND (claim IS NULL OR lease_end <= $now)`,
  renew: 'UPDATE toolwright_runs SET lease_end = $leaseEnd WHERE run_id = $runId AND claim = $claim',
  release: `
    UPDATE toolwright_runs SET claim = NULL, lease_end = NULL WHERE run_id = $runId AND claim = $claim`,
  releaseWith: `
    UPDATE toolwright_runs
    SET revision = $revision, state = $state, kept_at = $now, claim = NULL, lease_end = NULL
    WHERE run_id = $runId AND claim = $claim`,
  remove: 'DELETE FROM toolwright_runs WHERE run_id = $runId AND claim = $claim',
  removeOlderThan: `
    DELETE FROM toolwright_runs WHERE kept_at <= $limit AND (claim IS NULL OR lease_end <= $now)`,
} as const;

type Statements = Readonly<Record<keyof typeof SQL, StatementSync>>;

/**
 * Keeps suspended runs in an SQLite file, which several processes of one machine may use at the same time.
 * A kept run survives crashes and power failures. Its methods are synchronous; a file on a network drive is
 * not safe with SQLite. The first store of a process loads `node:sqlite`, and Node 22 then says on standard
 * error that it is experimental.
 *
 * The constructor throws where the file cannot be opened, is no SQLite file, or was written by a newer version
 * of this package; methods throw what SQLite throws, for a full disk or a lock that outlasts `busyTimeoutMs`.
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * const run = await runToolLoop({ provider, model, tools, store }, messages);
 * store.close();
 * ```
 */
export class SqliteRunStore implements RunStore {
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  readonly #now: () => number;
  #isOpen = true;

  constructor(options: SqliteRunStoreOptions) {
    checkOptions(options, OPTIONS);
    const { path, busyTimeoutMs = 5000, now = Date.now } = options;
    this.#database = openDatabase({ path, busyTimeoutMs });
    this.#now = now;
    try {
      prepareRunsSchema(this.#database);
      this.#statements = prepareAll(this.#database);
    } catch (cause) {
      this.#database.close();
      throw new Error(`Cannot keep runs in '${path}': ${(cause as Error).message}`, { cause });
    }
  }

  /** Throws `RunClaimed` (517) where the run is claimed, or where what is kept is newer. */
  save(state: RunState): void {
    const { runId, revision } = state;
    const { changes } = this.#statements.save.run({ runId, revision, ...this.#kept(state) });
    if (changes === 0) throw refusedSave(runId);
  }

  load(runId: string): RunState | undefined {
    const row = this.#statements.load.get({ runId });
    return row && (JSON.parse(String(row.state)) as RunState);
  }

  claim({ runId, claim, leaseMs }: RunLease): ClaimOutcome {
    return inTransaction(this.#database, (): ClaimOutcome => {
      const now = this.#now();
      const { changes } = this.#statements.claim.run({ runId, claim, now, leaseEnd: now + leaseMs });
      const state = this.load(runId);
      if (state === undefined) return { status: 'missing' };
      return changes === 0 ? { status: 'taken' } : { status: 'claimed', state };
    });
  }

  renew({ runId, claim, leaseMs }: RunLease): boolean {
    return hasChanged(this.#statements.renew.run({ runId, claim, leaseEnd: this.#now() + leaseMs }));
  }

  release({ runId, claim }: RunClaim, state?: RunState): boolean {
    if (state === undefined) return hasChanged(this.#statements.release.run({ runId, claim }));
    const { revision } = state;
    return hasChanged(this.#statements.releaseWith.run({ runId, claim, revision, ...this.#kept(state) }));
  }

  remove({ runId, claim }: RunClaim): boolean {
    return hasChanged(this.#statements.remove.run({ runId, claim }));
  }

  /**
   * Forgets the runs that nobody claims and that have been kept for so many milliseconds, because nobody will
   * answer them any more. Gives their number.
   */
  removeOlderThan(ageMs: number): number {
    checkAge(ageMs);
    const now = this.#now();
    return Number(this.#statements.removeOlderThan.run({ now, limit: now - ageMs }).changes);
  }

  /** Closes the file; closing twice is no fault. Any other method throws afterwards. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#database.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #kept(state: RunState): { readonly state: string; readonly now: number } {
    return { state: JSON.stringify(state), now: this.#now() };
  }
}

function prepareAll(database: DatabaseSync): Statements {
  const prepared = Object.entries(SQL).map(([name, sql]) => [name, database.prepare(sql)] as const);
  return Object.fromEntries(prepared) as Statements;
}

function hasChanged({ changes }: { readonly changes: number | bigint }): boolean {
  return changes !== 0;
}

/** Raised with every change of the table, together with the statements that make the new one of the old. */
const VERSION = 1;

/** Names of our own, so that the file can be the application's; times in milliseconds. */
const TABLES = `
  CREATE TABLE IF NOT EXISTS toolwright_schemas (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS toolwright_runs (
    run_id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    state TEXT NOT NULL,
    kept_at REAL NOT NULL,
    claim TEXT,
    lease_end REAL,
    CHECK ((claim IS NULL) = (lease_end IS NULL))
  ) STRICT;
`;

/**
 * Makes the tables of the runs where they are missing.
 *
 * @throws Error for tables that a newer version of this package made.
 */
function prepareRunsSchema(database: DatabaseSync): void {
  inTransaction(database, () => {
    database.exec(TABLES);
    database
      .prepare("INSERT INTO toolwright_schemas (name, version) VALUES ('runs', ?) ON CONFLICT DO NOTHING")
      .run(VERSION);
    const { version } = database
      .prepare("SELECT version FROM toolwright_schemas WHERE name = 'runs'")
      .get() as { version: number };
    if (version !== VERSION)
      throw new Error(
        `Its runs are kept in version ${version} of the schema, and this version of toolwright knows ${VERSION}.`,
      );
  });
}
