import type { KeptResult, ResultKey, ResultStore } from '../contract/result-store.js';
import type { Database } from './database.js';
import { NOW, NOW_ONCE, namedStatements } from './statements.js';

const RESULTS = ':kept_results';
/** How many are forgotten at once: others wait no longer than for these. */
const BATCH = 1_000;

/** Each may be sent twice. */
const TEXTS = {
  kept_result_keep: `
    INSERT INTO ${RESULTS} (run_id, handle, owner, text, end_at) VALUES ($1, $2, $3, $4, ${NOW} + $5::bigint)
    ON CONFLICT (run_id, handle) DO UPDATE SET owner = excluded.owner, text = excluded.text, end_at = excluded.end_at`,
  kept_result_read: `
    SELECT text FROM ${RESULTS}
    WHERE run_id = $1 AND handle = $2 AND owner IS NOT DISTINCT FROM $3 AND end_at > ${NOW}`,
  kept_result_remove: `
    DELETE FROM ${RESULTS} WHERE (run_id, handle) IN (
      SELECT run_id, handle FROM ${RESULTS} WHERE end_at <= ${NOW_ONCE} ORDER BY end_at
      LIMIT $1 FOR UPDATE SKIP LOCKED
    )`,
} as const;

/** The large results of a store in PostgreSQL. */
export class PostgresResults implements ResultStore {
  readonly #database: Database;
  readonly #sql: ReturnType<typeof namedStatements<keyof typeof TEXTS>>;

  constructor(database: Database) {
    this.#database = database;
    this.#sql = namedStatements(database.schema, TEXTS);
  }

  async keepResult({ handle, runId, owner, text, lifeMs }: KeptResult): Promise<void> {
    await this.#database.run(this.#sql.kept_result_remove, () => [BATCH]);
    // As JSON: PostgreSQL has no text with a NUL in it, nor with half a character.
    const values = [runId, handle, owner ?? null, JSON.stringify(text), Math.ceil(lifeMs)];
    await this.#database.run(this.#sql.kept_result_keep, () => values);
  }

  async readResult({ handle, runId, owner }: ResultKey): Promise<string | undefined> {
    const { rows } = await this.#database.run(this.#sql.kept_result_read, () => [
      runId,
      handle,
      owner ?? null,
    ]);
    return rows[0] && (JSON.parse(String(rows[0].text)) as string);
  }

  async removeExpiredResults(): Promise<number> {
    let removed = 0;
    for (;;) {
      const { rowCount } = await this.#database.run(this.#sql.kept_result_remove, () => [BATCH]);
      removed += rowCount ?? 0;
      if ((rowCount ?? 0) < BATCH) return removed;
    }
  }
}
