import type { DatabaseSync } from 'node:sqlite';
import { inTransaction } from './open-database.js';

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
export function prepareRunsSchema(database: DatabaseSync): void {
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
