import type { KeptResult, ResultCache, ResultKey, ResultStore } from '../contract/result-store.js';
import type { StoredResult } from '../contract/run-state.js';
import { removeOld, type SqlDriver, statements, wholeMs } from './driver.js';

const CACHE = statements('result', {
  get: 'SELECT result FROM :results WHERE key = $1 AND ends_at > {now}',
  put: `
    INSERT INTO :results (key, result, ends_at) VALUES ($1, $2, {now} + $3::bigint)
    ON CONFLICT (key) DO UPDATE SET result = excluded.result, ends_at = excluded.ends_at`,
  forget: 'DELETE FROM :results WHERE key = $1 OR ends_at <= {at}',
});

/** The results that a store keeps for a while; they run out by the database's clock. */
export class SqlCache implements ResultCache {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async cachedResult(key: string): Promise<StoredResult | undefined> {
    const { rows } = await this.#driver.run(CACHE.get, [key]);
    return rows[0] && (JSON.parse(String(rows[0].result)) as StoredResult);
  }

  async cacheResult(key: string, result: StoredResult, lifetimeMs: number): Promise<void> {
    await this.#driver.run(CACHE.put, [key, JSON.stringify(result), wholeMs(lifetimeMs)]);
  }

  async forgetResult(key: string): Promise<void> {
    await this.#driver.run(CACHE.forget, [key]);
  }
}

const RESULTS = statements('kept_result', {
  keep: `
    INSERT INTO :kept_results (run_id, handle, owner, text, end_at) VALUES ($1, $2, $3, $4, {now} + $5::bigint)
    ON CONFLICT (run_id, handle) DO UPDATE SET owner = excluded.owner, text = excluded.text, end_at = excluded.end_at`,
  read: `
    SELECT text FROM :kept_results
    WHERE run_id = $1 AND handle = $2 AND owner IS NOT DISTINCT FROM $3 AND end_at > {now}`,
  remove: `
    DELETE FROM :kept_results WHERE (run_id, handle) IN (
      SELECT run_id, handle FROM :kept_results WHERE end_at <= {at} - $1::bigint ORDER BY end_at
      LIMIT $2 FOR UPDATE SKIP LOCKED
    )`,
});

/** How many are forgotten with each that is kept. */
const FEW = 1_000;

/** The large results of a store. */
export class SqlResults implements ResultStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async keepResult({ handle, runId, owner, text, lifeMs }: KeptResult): Promise<void> {
    await this.#driver.run(RESULTS.remove, [0, FEW]);
    // As JSON: databases have no text with half a character in it, or with a NUL.
    const values = [runId, handle, owner ?? null, JSON.stringify(text), wholeMs(lifeMs)];
    await this.#driver.run(RESULTS.keep, values);
  }

  async readResult({ handle, runId, owner }: ResultKey): Promise<string | undefined> {
    const { rows } = await this.#driver.run(RESULTS.read, [runId, handle, owner ?? null]);
    return rows[0] && (JSON.parse(String(rows[0].text)) as string);
  }

  removeExpiredResults(): Promise<number> {
    return removeOld(this.#driver.run, RESULTS.remove, [0]);
  }
}
