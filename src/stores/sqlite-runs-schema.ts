import type { DatabaseSync } from 'node:sqlite';
import { readDatabase } from './open-database.js';

/** Raised with every change of the tables, together with what makes the new ones of the old. */
const VERSION = 3;

/** Names of our own, so that the file can be the application's; times in milliseconds. */
const SCHEMAS = `
  CREATE TABLE IF NOT EXISTS toolwright_schemas (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL
  ) STRICT`;

const RUNS = `
  CREATE TABLE toolwright_runs (
    run_id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    state TEXT NOT NULL,
    changed_at REAL NOT NULL,
    claim TEXT,
    lease_end REAL,
    status TEXT NOT NULL DEFAULT 'suspended',
    generation INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL DEFAULT 0,
    CHECK ((claim IS NULL) = (lease_end IS NULL))
  ) STRICT`;

/** A process that has a file of version 1 open must not take a run under way for a suspended one: its writes fail. */
const RUNS_OF_VERSION_1 = `
  ALTER TABLE toolwright_runs RENAME COLUMN kept_at TO changed_at;
  ALTER TABLE toolwright_runs ADD COLUMN status TEXT NOT NULL DEFAULT 'suspended';
  ALTER TABLE toolwright_runs ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE toolwright_runs ADD COLUMN created_at REAL NOT NULL DEFAULT 0;
  UPDATE toolwright_runs SET created_at = changed_at`;

/** One row of entries is what was added at once, as a JSON array; `seq` orders them. */
const ENTRIES = `
  CREATE TABLE toolwright_run_entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    entries TEXT NOT NULL
  ) STRICT;
  CREATE INDEX toolwright_entries_of_run ON toolwright_run_entries (run_id, seq);
  CREATE INDEX toolwright_runs_by_change ON toolwright_runs (changed_at DESC, run_id);
  CREATE INDEX toolwright_runs_by_status ON toolwright_runs (status, changed_at DESC, run_id);
  CREATE INDEX toolwright_runs_lost ON toolwright_runs (coalesce(lease_end, 0)) WHERE status = 'running'`;

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
 * Makes the tables of the runs where they are missing, and those of this version of older ones, in a transaction of the
 * caller.
 *
 * @throws Error for tables that a newer version of this package made.
 */
export function prepareRunsSchema(database: DatabaseSync): void {
  database.exec(SCHEMAS);
  const version = keptVersion(database);
  if (version > VERSION)
    throw new Error(
      `Its runs are kept in version ${version} of the schema, and this version of toolwright knows ${VERSION}. Use the one that made it, or a newer one.`,
    );
  if (version === VERSION) return;
  if (version < 2) database.exec(version === 0 ? RUNS : RUNS_OF_VERSION_1);
  if (version < 2) database.exec(ENTRIES);
  database.exec(EXPIRIES);
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
