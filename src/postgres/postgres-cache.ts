import type { ResultCache } from '../contract/result-store.js';
import type { StoredResult } from '../contract/run-state.js';
import type { Database } from './database.js';
import { NOW, NOW_ONCE, namedStatements } from './statements.js';

const RESULTS = ':results';

const TEXTS = {
  get: `SELECT result FROM ${RESULTS} WHERE key = $1 AND ends_at > ${NOW}`,
  put: `
    INSERT INTO ${RESULTS} (key, result, ends_at) VALUES ($1, $2, ${NOW} + $3::bigint)
    ON CONFLICT (key) DO UPDATE SET result = excluded.result, ends_at = excluded.ends_at`,
  forget: `DELETE FROM ${RESULTS} WHERE key = $1 OR ends_at <= ${NOW_ONCE}`,
};

/** The results that a store in PostgreSQL keeps; they run out by the server's clock. */
export class PostgresCache implements ResultCache {
  readonly #database: Database;
  readonly #sql: ReturnType<typeof namedStatements<keyof typeof TEXTS>>;

  constructor(database: Database) {
    this.#database = database;
    this.#sql = namedStatements(database.schema, TEXTS, 'result_');
  }

  async cachedResult(key: string): Promise<StoredResult | undefined> {
    const { rows } = await this.#database.run(this.#sql.get, () => [key]);
    return rows[0] && (JSON.parse(String(rows[0].result)) as StoredResult);
  }

  async cacheResult(key: string, result: StoredResult, lifetimeMs: number): Promise<void> {
    const text = JSON.stringify(result);
    await this.#database.run(this.#sql.put, () => [key, text, Math.ceil(lifetimeMs)]);
  }

  async forgetResult(key: string): Promise<void> {
    await this.#database.run(this.#sql.forget, () => [key]);
  }
}
