import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { ConversationNews } from '../../core/contract/conversation-log.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { notRetryable } from '../../core/errors/store-checks.js';
import { Listeners } from '../../core/kernel/listeners.js';
import { FUNCTION, optionTable, PAUSE } from '../../core/kernel/options.js';
import {
  type Dialect,
  type Locks,
  type Outcome,
  type Row,
  type RunStatement,
  type SqlDriver,
  type Statement,
  type Transaction,
  writeStep,
} from '../sql/driver.js';
import { SqlRunStore } from '../sql/run-store.js';
import { tables } from '../sql/tables.js';
import { DATABASE_PATH, inTransaction, openDatabase, readDatabase } from './open-database.js';

/** Increase this with every change of the tables, and add the migration from the version before. */
const VERSION = 4;

/** The prefix allows the file to belong to the application. Times are in milliseconds. */
const SCHEMAS = `
  CREATE TABLE IF NOT EXISTS toolwright_schemas (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL
  ) STRICT`;

const TABLES = tables({
  id: 'text NOT NULL',
  sequence: 'INTEGER PRIMARY KEY AUTOINCREMENT',
  key: 'UNIQUE',
  // A trigger and an index do this, because older tables can get them, too.
  ofRun: '',
  ofWrite: '',
  byKey: ' WITHOUT ROWID',
  digest: 'subject',
})
  .replace(/:([a-z_]+)/g, (_, name: string) => tableOf(name))
  .replace(/(INDEX IF NOT EXISTS) (\w+)/g, (_, before: string, name: string) => `${before} ${tableOf(name)}`);

/** Columns that older tables lack; new tables of conversations lack `told_at`, too. */
const COLUMNS: readonly (readonly [table: string, column: string, type: string])[] = [
  ['runs', 'ended_claim', 'text'],
  ['run_entries', 'write_id', 'text'],
  ['jobs', 'added_by', 'text'],
  ['jobs', 'completed_by', 'text'],
  ['conversations', 'last_write', 'text'],
  // Increases with every notification about any conversation.
  ['conversations', 'told_at', 'INTEGER NOT NULL DEFAULT 0'],
];

const BESIDE = `
  CREATE UNIQUE INDEX IF NOT EXISTS toolwright_entries_by_write ON toolwright_run_entries (run_id, write_id);
  CREATE INDEX IF NOT EXISTS toolwright_conversations_told ON toolwright_conversations (told_at);
  CREATE TRIGGER IF NOT EXISTS toolwright_runs_removed AFTER DELETE ON toolwright_runs
  BEGIN DELETE FROM toolwright_run_entries WHERE run_id = OLD.run_id; END`;

/** A process with version 1 would read running runs as suspended. Renaming the column makes its writes fail. */
const RUNS_OF_VERSION_1 = `
  ALTER TABLE toolwright_runs RENAME COLUMN kept_at TO changed_at;
  ALTER TABLE toolwright_runs ADD COLUMN status TEXT NOT NULL DEFAULT 'suspended';
  ALTER TABLE toolwright_runs ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE toolwright_runs ADD COLUMN created_at REAL NOT NULL DEFAULT 0;
  UPDATE toolwright_runs SET created_at = changed_at`;

/** Adds when the first approval of a suspended run expires, and whose turn it is; fills both for stored runs. */
const EXPIRIES = `
  ALTER TABLE toolwright_runs ADD COLUMN expires_at REAL;
  ALTER TABLE toolwright_runs ADD COLUMN turn_of TEXT;
  UPDATE toolwright_runs SET turn_of = state ->> '$.turnOf', expires_at = (
    SELECT min(unixepoch(value ->> '$.expiresAt', 'subsec') * 1000) FROM json_each(state, '$.pending')
  )
  WHERE status = 'suspended' AND state LIKE '%"expiresAt":"%' AND json_valid(state);
  CREATE INDEX toolwright_runs_expiring ON toolwright_runs (turn_of IS NULL, expires_at) WHERE expires_at IS NOT NULL`;

/**
 * Creates missing tables and migrates older ones, in the caller's transaction.
 *
 * @throws Error for tables that a newer version of this package made.
 */
function prepareTables(database: DatabaseSync): void {
  database.exec(SCHEMAS);
  const version = keptVersion(database);
  if (version > VERSION)
    throw new Error(
      `Its schema has version ${version}, and this version of toolwright supports up to ${VERSION}. Use the version of toolwright that created it, or a newer one.`,
    );
  if (version === VERSION) return;
  if (version === 1) database.exec(RUNS_OF_VERSION_1);
  if (version === 1 || version === 2) database.exec(EXPIRIES);
  // The index of this version is defined differently.
  database.exec('DROP INDEX IF EXISTS toolwright_conversations_due');
  database.exec(TABLES);
  const columns = database.prepare('SELECT 1 FROM pragma_table_info(?) WHERE name = ?');
  for (const [table, column, type] of COLUMNS)
    if (columns.get(tableOf(table), column) === undefined)
      database.exec(`ALTER TABLE ${tableOf(table)} ADD COLUMN ${column} ${type}`);
  database.exec(BESIDE);
  database
    .prepare("INSERT OR REPLACE INTO toolwright_schemas (name, version) VALUES ('runs', ?)")
    .run(VERSION);
}

/**
 * Checks that a file has the tables of this version, or of a newer version, which its store refuses.
 *
 * @throws Error that says what to do if it has not.
 */
export function checkRunsFile(path: string): void {
  const version = readDatabase(path, (database) => {
    const named = "SELECT 1 FROM sqlite_schema WHERE name = 'toolwright_schemas'";
    return database.prepare(named).get() === undefined ? 0 : keptVersion(database);
  });
  if (version === 0)
    throw new Error(
      `'${path}' has no tables of toolwright: name the file of the application, or first start a worker or the application, which creates them.`,
    );
  if (version < VERSION)
    throw new Error(
      `The schema of '${path}' has version ${version}, and this version of toolwright needs ${VERSION}: start a worker or the application with this version, which migrates the tables, or use the version of toolwright that created them.`,
    );
}

/** 0 if there are no tables yet. */
function keptVersion(database: DatabaseSync): number {
  const row = database.prepare("SELECT version FROM toolwright_schemas WHERE name = 'runs'").get();
  return Number(row?.version ?? 0);
}

/** The prefix allows the file to belong to the application. */
function tableOf(name: string): string {
  return `toolwright_${name.replace(/^fleet_/, '')}`;
}

const DIALECT: Dialect = {
  table: tableOf,
  now: '$now',
  nowOnce: '$now',
  // `data_version` changes with writes of other processes; in this process, none comes between two statements.
  version: "concat_ws('|', (SELECT data_version FROM pragma_data_version), revision, claim, lease_end)",
  each: (list) => `(SELECT value, key + 1 AS place FROM json_each(${list})) AS each`,
  step: (name, column) => (column === undefined ? `$${name}` : `$${name}.${column}`),
};

/** PostgreSQL syntax that SQLite does not need, or writes differently. */
const REWRITTEN: readonly (readonly [RegExp, string])[] = [
  [/::[a-z]+(\[\])?/g, ''],
  [/ FOR (NO KEY )?UPDATE( SKIP LOCKED)?/g, ''],
  [/\bmd5\(([^)]+)\)/g, '$1'],
  [/\bstrpos\(/g, 'instr('],
  [/\bto_json\(/g, 'json_quote('],
  [/ ~ /g, ' REGEXP '],
];

/** How often to check whether another process has changed the file; SQLite sends no notifications. */
const WATCH_EVERY_MS = 50;

/** A value in a statement: `$1`, `$now`, `$done`, `$done.id`. */
const INPUT = /\$(\w+)(?:\.(\w+))?/g;

const LAST_NOTIFIED = 'SELECT coalesce(max(told_at), 0) AS told FROM toolwright_conversations';
const TELL = `UPDATE toolwright_conversations SET told_at = 1 + (${LAST_NOTIFIED}) WHERE conversation_id = ?`;
const NOTIFIED_SINCE =
  'SELECT conversation_id, told_at FROM toolwright_conversations WHERE told_at > ? ORDER BY told_at';

/** A prepared step: its values in order, and whether it returns rows. */
interface Step {
  readonly name: string;
  readonly prepared: StatementSync;
  readonly inputs: readonly Input[];
  readonly hasRows: boolean;
}

/** A value of the statement by index, the time, or a value that a step returned. */
type Input = number | 'now' | { readonly step: string; readonly column: string | undefined };

/**
 * An SQLite file as the database of the stores. Everything is executed synchronously: if a transaction waited for
 * something, another store of this process would block on its lock, and block the transaction with it.
 */
class SqliteDriver implements SqlDriver {
  readonly #steps = new Map<string, readonly Step[]>();
  readonly #others = new Map<string, StatementSync>();
  readonly #watchers = new Listeners<ConversationNews>();
  #timer: NodeJS.Timeout | undefined;
  #seen = { version: 0, notified: 0 };

  constructor(
    private readonly database: DatabaseSync,
    private readonly now: () => number,
  ) {
    database.function('regexp', { deterministic: true }, (pattern, text) =>
      Number(new RegExp(String(pattern)).test(String(text))),
    );
  }

  readonly run: RunStatement = async (statement, values) => {
    const carryOut = () => this.#carryOut(statement, values);
    if (statement.tells === undefined && Object.keys(statement.steps).length === 1)
      return withLastingErrors(carryOut);
    const outcome = withLastingErrors(() => inTransaction(this.database, carryOut));
    if (outcome.news !== undefined) this.#watchers.notify(outcome.news);
    return outcome;
  };

  async transaction<Value>(_locks: Locks, work: () => Transaction<Value>): Promise<Value> {
    const carryOut = () => {
      const begun = work();
      let step = begun.next();
      while (!step.done) step = begun.next(this.#carryOut(...step.value));
      return step.value;
    };
    return withLastingErrors(() => inTransaction(this.database, carryOut));
  }

  watch(listener: (news: ConversationNews) => void): () => void {
    const unwatch = this.#watchers.add(listener);
    if (this.#timer === undefined) {
      const notified = Number(this.#prepared(LAST_NOTIFIED).get()?.told);
      this.#seen = { version: this.#version(), notified };
      // The timer keeps the process alive: it may have nothing else to do than wait for other processes.
      this.#timer = setInterval(() => {
        for (const news of this.#readNews()) this.#watchers.notify(news);
      }, WATCH_EVERY_MS);
    }
    return () => {
      unwatch();
      if (this.#watchers.size === 0) this.stopWatching();
    };
  }

  /** Stops all listeners, because the file is about to be closed. */
  stopWatching(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #carryOut(statement: Statement, values: readonly unknown[]): Outcome & { news?: ConversationNews } {
    const now = Math.floor(this.now());
    const returned = new Map<string, Row | undefined>();
    const inputOf = (input: Input): SQLInputValue => {
      if (input === 'now') return now;
      if (typeof input === 'number') return bindable(values[input]);
      const row = returned.get(input.step);
      return input.column === undefined ? Number(row !== undefined) : bindable(row?.[input.column]);
    };
    let first: Outcome | undefined;
    for (const { name, prepared, inputs, hasRows } of this.#stepsOf(statement)) {
      const bound = inputs.map(inputOf);
      const rows = hasRows ? (prepared.all(...bound) as readonly Row[]) : [];
      const count = hasRows ? rows.length : Number(prepared.run(...bound).changes);
      returned.set(name, rows[0]);
      first ??= { rows, count, isRepeated: false };
    }
    const outcome = first ?? { rows: [], count: 0, isRepeated: false };
    if (statement.tells === undefined || returned.get(statement.tells.once) === undefined) return outcome;
    const { about, value } = statement.tells;
    const conversationId = String(values[value - 1]);
    // Other processes read it when they next poll.
    this.#prepared(TELL).run(conversationId);
    return { ...outcome, news: { conversationId, about } };
  }

  #stepsOf(statement: Statement): readonly Step[] {
    const known = this.#steps.get(statement.name);
    if (known !== undefined) return known;
    const steps = Object.entries(statement.steps).map(([name, text]): Step => {
      let written = writeStep(text, DIALECT);
      for (const [pattern, replacement] of REWRITTEN) written = written.replace(pattern, replacement);
      const inputs = Array.from(written.matchAll(INPUT), ([, word = '', column]): Input => {
        if (word === 'now') return word;
        return /^\d+$/.test(word) ? Number(word) - 1 : { step: word, column };
      });
      const hasRows = /^\s*(SELECT|WITH(?!.*\bDELETE\b))|\bRETURNING\b/s.test(written);
      return { name, prepared: this.database.prepare(written.replace(INPUT, '?')), inputs, hasRows };
    });
    this.#steps.set(statement.name, steps);
    return steps;
  }

  /** Changes of other processes since the last poll; if the file is unreadable now, the next poll reports them. */
  #readNews(): readonly ConversationNews[] {
    try {
      const version = this.#version();
      if (version === this.#seen.version) return [];
      const changed = this.#prepared(NOTIFIED_SINCE).all(this.#seen.notified);
      // Rows that are written meanwhile are for the next poll.
      this.#seen = { version, notified: Number(changed.at(-1)?.told_at ?? this.#seen.notified) };
      // The file does not record which of the two changed.
      const news: ConversationNews[] = [];
      for (const { conversation_id: id } of changed)
        for (const about of ['inbox', 'events'] as const) news.push({ conversationId: String(id), about });
      return news;
    } catch {
      return [];
    }
  }

  /** Changes whenever another connection has written to the file. */
  #version(): number {
    return Number(this.#prepared('PRAGMA data_version').get()?.data_version);
  }

  #prepared(text: string): StatementSync {
    const prepared = this.#others.get(text) ?? this.database.prepare(text);
    this.#others.set(text, prepared);
    return prepared;
  }
}

/** Codes of SQLite: missing tables, and a file that is read-only, damaged or no SQLite file. */
const LASTING = [1, 8, 11, 26];

/** Marks errors that a retry does not fix, also those of a closed file. */
function withLastingErrors<Value>(work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    const { code, errcode = 0 } = error as { readonly code?: unknown; readonly errcode?: number };
    // The lower byte of a code is its kind.
    const isLasting = code === 'ERR_INVALID_STATE' || LASTING.includes(errcode & 255);
    throw isLasting ? notRetryable(error as Error) : error;
  }
}

function bindable(value: unknown): SQLInputValue {
  if (value === undefined) return null;
  if (typeof value === 'boolean') return Number(value);
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as SQLInputValue);
}

/** Options of a {@link SqliteRunStore}. */
export interface SqliteRunStoreOptions {
  /**
   * Path of the file, or `':memory:'`. The file is created if it is missing; its folder is not. It may be a file of the
   * application: all tables begin with `toolwright_`. The store switches it to a write-ahead log, which adds two files
   * beside it. The file contains conversations; protect it accordingly.
   */
  readonly path: string;
  /** Milliseconds for which a method blocks while another process writes; default 5,000. */
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
  /** The absolute path of the file; empty for `':memory:'`. */
  readonly file: string;
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
      throw new Error(`Cannot store runs in '${path}': ${(cause as Error).message}`, { cause });
    }
    const driver = new SqliteDriver(database, now);
    super(driver);
    this.file = String(database.prepare('PRAGMA database_list').get()?.file ?? '');
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
