import type { DatabaseSync } from 'node:sqlite';
import { tables } from '../sql/tables.js';
import { readDatabase } from './open-database.js';
import { tableOf } from './sqlite-driver.js';

/** Raised with every change of the tables, together with what makes the new ones of the old. */
const VERSION = 4;

/** Names of our own, so that the file can be the application's; times in milliseconds. */
const SCHEMAS = `
  CREATE TABLE IF NOT EXISTS toolwright_schemas (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL
  ) STRICT`;

const TABLES = tables({
  id: 'text NOT NULL',
  sequence: 'INTEGER PRIMARY KEY AUTOINCREMENT',
  key: 'UNIQUE',
  // By a trigger and an index, which older tables have, too.
  ofRun: '',
  ofWrite: '',
  byKey: ' WITHOUT ROWID',
  digest: 'subject',
})
  .replace(/:([a-z_]+)/g, (_, name: string) => tableOf(name))
  .replace(/(INDEX IF NOT EXISTS) (\w+)/g, (_, before: string, name: string) => `${before} ${tableOf(name)}`);

/** What tables of older versions lack; that of the conversations, also new ones. */
const COLUMNS: readonly (readonly [table: string, column: string, type: string])[] = [
  ['runs', 'ended_claim', 'text'],
  ['run_entries', 'write_id', 'text'],
  ['jobs', 'added_by', 'text'],
  ['jobs', 'completed_by', 'text'],
  ['conversations', 'last_write', 'text'],
  // Rises with what is told of any of them.
  ['conversations', 'told_at', 'INTEGER NOT NULL DEFAULT 0'],
];

const BESIDE = `
  CREATE UNIQUE INDEX IF NOT EXISTS toolwright_entries_by_write ON toolwright_run_entries (run_id, write_id);
  CREATE INDEX IF NOT EXISTS toolwright_conversations_told ON toolwright_conversations (told_at);
  CREATE TRIGGER IF NOT EXISTS toolwright_runs_removed AFTER DELETE ON toolwright_runs
  BEGIN DELETE FROM toolwright_run_entries WHERE run_id = OLD.run_id; END`;

/** A process that has a file of version 1 open must not take a run under way for a suspended one: its writes fail. */
const RUNS_OF_VERSION_1 = `
  ALTER TABLE toolwright_runs RENAME COLUMN kept_at TO changed_at;
  ALTER TABLE toolwright_runs ADD COLUMN status TEXT NOT NULL DEFAULT 'suspended';
  ALTER TABLE toolwright_runs ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE toolwright_runs ADD COLUMN created_at REAL NOT NULL DEFAULT 0;
  UPDATE toolwright_runs SET created_at = changed_at`;

/** When the first answer of a suspended run comes too late, and whose turn it is; what is kept already is looked through. */
const EXPIRIES = `
  ALTER TABLE toolwright_runs ADD COLUMN expires_at REAL;
  ALTER TABLE toolwright_runs ADD COLUMN turn_of TEXT;
  UPDATE toolwright_runs SET turn_of = state ->> '$.turnOf', expires_at = (
    SELECT min(unixepoch(value ->> '$.expiresAt', 'subsec') * 1000) FROM json_each(state, '$.pending')
  )
  WHERE status = 'suspended' AND state LIKE '%"expiresAt":"%' AND json_valid(state);
  CREATE INDEX toolwright_runs_expiring ON toolwright_runs (turn_of IS NULL, expires_at) WHERE expires_at IS NOT NULL`;

/**
 * Makes the tables where they are missing, and those of this version of older ones, in a transaction of the caller.
 *
 * @throws Error for tables that a newer version of this package made.
 */
export function prepareTables(database: DatabaseSync): void {
  database.exec(SCHEMAS);
  const version = keptVersion(database);
  if (version > VERSION)
    throw new Error(
      `Its runs are kept in version ${version} of the schema, and this version of toolwright knows ${VERSION}. Use the one that made it, or a newer one.`,
    );
  if (version === VERSION) return;
  if (version === 1) database.exec(RUNS_OF_VERSION_1);
  if (version === 1 || version === 2) database.exec(EXPIRIES);
  // Statements search by what the index of this version is made for.
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
 * Looks whether a file has the tables of this version, or of a newer one, which its store refuses.
 *
 * @throws Error that says what to do where it has not.
 */
export function checkRunsFile(path: string): void {
  const version = readDatabase(path, (database) => {
    const named = "SELECT 1 FROM sqlite_schema WHERE name = 'toolwright_schemas'";
    return database.prepare(named).get() === undefined ? 0 : keptVersion(database);
  });
  if (version === 0)
    throw new Error(
      `'${path}' has no tables of toolwright: name the file of the application, or start a worker or the application first, which makes them.`,
    );
  if (version < VERSION)
    throw new Error(
      `The runs in '${path}' are kept in version ${version}, and this version of toolwright needs ${VERSION}: start a worker or the application with it, which brings the tables up to date, or use the version that made them.`,
    );
}

/** 0 where there are no tables yet. */
function keptVersion(database: DatabaseSync): number {
  const row = database.prepare("SELECT version FROM toolwright_schemas WHERE name = 'runs'").get();
  return Number(row?.version ?? 0);
}
