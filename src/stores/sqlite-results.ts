import type { DatabaseSync } from 'node:sqlite';
import type { KeptResult, ResultKey, ResultStore } from '../contract/result-store.js';
import { type Prepared, preparedIn } from './open-database.js';

/** Times in milliseconds; texts as JSON, because SQLite has none with half a character in it. */
const TABLE = `
  CREATE TABLE IF NOT EXISTS toolwright_kept_results (
    run_id TEXT NOT NULL,
    handle TEXT NOT NULL,
    owner TEXT,
    text TEXT NOT NULL,
    end_at REAL NOT NULL,
    PRIMARY KEY (run_id, handle)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS toolwright_kept_results_by_end ON toolwright_kept_results (end_at);
`;

const SQL = {
  keep: `
    INSERT OR REPLACE INTO toolwright_kept_results (run_id, handle, owner, text, end_at)
    VALUES ($runId, $handle, $owner, $text, $endAt)`,
  read: `
    SELECT text FROM toolwright_kept_results
    WHERE run_id = $runId AND handle = $handle AND owner IS $owner AND end_at > $now`,
  remove: 'DELETE FROM toolwright_kept_results WHERE end_at <= $now',
} as const;

/** The large results of a store in an SQLite file. */
export class SqliteResults implements ResultStore {
  readonly #sql: Prepared<keyof typeof SQL>;
  readonly #now: () => number;

  constructor(database: DatabaseSync, now: () => number) {
    this.#now = now;
    database.exec(TABLE);
    this.#sql = preparedIn(database, SQL);
  }

  keepResult({ handle, runId, owner, text, lifeMs }: KeptResult): void {
    this.removeExpiredResults();
    this.#sql.keep.run({
      handle,
      runId,
      owner: owner ?? null,
      text: JSON.stringify(text),
      endAt: this.#now() + lifeMs,
    });
  }

  readResult({ handle, runId, owner }: ResultKey): string | undefined {
    const row = this.#sql.read.get({ handle, runId, owner: owner ?? null, now: this.#now() });
    return row && (JSON.parse(String(row.text)) as string);
  }

  removeExpiredResults(): number {
    return Number(this.#sql.remove.run({ now: this.#now() }).changes);
  }
}
