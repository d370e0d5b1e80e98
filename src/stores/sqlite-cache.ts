import type { DatabaseSync } from 'node:sqlite';
import type { ResultCache } from '../contract/result-store.js';
import type { StoredResult } from '../contract/run-state.js';
import { type Prepared, preparedIn } from './open-database.js';

/** Times in milliseconds. */
const TABLE = `
  CREATE TABLE IF NOT EXISTS toolwright_results (
    key TEXT PRIMARY KEY,
    result TEXT NOT NULL,
    ends_at REAL NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS toolwright_results_by_end ON toolwright_results (ends_at);
`;

const SQL = {
  get: 'SELECT result FROM toolwright_results WHERE key = $key AND ends_at > $now',
  put: `
    INSERT INTO toolwright_results (key, result, ends_at) VALUES ($key, $result, $endsAt)
    ON CONFLICT (key) DO UPDATE SET result = excluded.result, ends_at = excluded.ends_at`,
  forget: 'DELETE FROM toolwright_results WHERE key = $key OR ends_at <= $now',
} as const;

/** The results that a store in an SQLite file keeps. */
export class SqliteCache implements ResultCache {
  readonly #now: () => number;
  readonly #sql: Prepared<keyof typeof SQL>;

  constructor(database: DatabaseSync, now: () => number) {
    this.#now = now;
    database.exec(TABLE);
    this.#sql = preparedIn(database, SQL);
  }

  cachedResult(key: string): StoredResult | undefined {
    const row = this.#sql.get.get({ $key: key, $now: this.#now() });
    return row && (JSON.parse(String(row.result)) as StoredResult);
  }

  cacheResult(key: string, result: StoredResult, lifetimeMs: number): void {
    const endsAt = this.#now() + lifetimeMs;
    this.#sql.put.run({ $key: key, $result: JSON.stringify(result), $endsAt: endsAt });
  }

  forgetResult(key: string): void {
    this.#sql.forget.run({ $key: key, $now: this.#now() });
  }
}
