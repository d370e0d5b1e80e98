import {
  addAmounts,
  type BudgetAccount,
  type BudgetAmounts,
  type BudgetBalance,
  type BudgetLedger,
  type BudgetReservation,
  partBeyond,
  type ReservationOutcome,
} from '../contract/budget-ledger.js';
import { checkAge } from '../errors/store-checks.js';
import type { Database } from './database.js';
import type { PostgresClient } from './pool.js';
import { NOW, NOW_ONCE, namedStatements } from './statements.js';

const NAMES = 'tokens, cost, calls, steps, time_ms';
const BUDGETS = ':budgets';
const RESERVATIONS = ':reservations';

/** When the window began that this moment belongs to; 0 without windows. */
const BEGAN_AT = `CASE WHEN $2::bigint = 0 THEN 0 ELSE (${NOW} / $2::bigint) * $2::bigint END`;

const sums = (table: string, prefix: string): string =>
  NAMES.split(', ')
    .map((name) => `coalesce(sum(${table}.${name}), 0)::bigint AS ${prefix}${name}`)
    .join(', ');

/** Both sums are of one moment: what is settled between two statements would be in neither of them. */
const TEXTS = {
  balance: `
    WITH place AS MATERIALIZED (SELECT $1::text AS key, ${BEGAN_AT} AS began_at, $2::bigint AS window_ms),
    spent AS (SELECT ${sums('b', '')} FROM ${BUDGETS} b JOIN place USING (key, began_at, window_ms)),
    reserved AS (
      SELECT ${sums('r', 'reserved_')} FROM ${RESERVATIONS} r JOIN place USING (key, began_at, window_ms)
      WHERE r.lease_end > ${NOW_ONCE}
    )
    SELECT place.began_at, spent.*, reserved.* FROM place, spent, reserved`,
  has: `SELECT 1 FROM ${RESERVATIONS} WHERE id = $1 LIMIT 1`,
  reserve: `
    INSERT INTO ${RESERVATIONS} (id, key, began_at, window_ms, lease_end, ${NAMES})
    VALUES ($1, $2, $3, $4, ${NOW} + $5::bigint, $6, $7, $8, $9, $10)`,
  renew: `UPDATE ${RESERVATIONS} SET lease_end = ${NOW} + $2::bigint WHERE id = $1 RETURNING id`,
  settle: `
    WITH ended AS (DELETE FROM ${RESERVATIONS} WHERE id = $1 RETURNING key, began_at, window_ms)
    INSERT INTO ${BUDGETS} AS b (key, began_at, window_ms, changed_at, ${NAMES})
    SELECT key, began_at, window_ms, ${NOW}, $2::bigint, $3::bigint, $4::bigint, $5::bigint, $6::bigint
    FROM ended ORDER BY key, began_at, window_ms
    ON CONFLICT (key, began_at, window_ms) DO UPDATE SET changed_at = excluded.changed_at,
      tokens = b.tokens + excluded.tokens, cost = b.cost + excluded.cost, calls = b.calls + excluded.calls,
      steps = b.steps + excluded.steps, time_ms = b.time_ms + excluded.time_ms
    RETURNING b.key`,
  forget_reserved: `DELETE FROM ${RESERVATIONS} WHERE lease_end <= ${NOW_ONCE} - $1::bigint`,
  forget: `
    DELETE FROM ${BUDGETS} WHERE (key, began_at, window_ms) IN (
      SELECT key, began_at, window_ms FROM ${BUDGETS} WHERE changed_at <= ${NOW_ONCE} - $1::bigint LIMIT $2
    )`,
};

/** Who reserves from an account waits for those who do so at the same moment, and for nobody else. */
const LOCK = 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))';

/** How many accounts are forgotten at once. */
const BATCH = 5_000;

/** The budgets of a store in PostgreSQL. Windows and leases are by the server's clock. */
export class PostgresBudgets implements BudgetLedger {
  readonly #database: Database;
  readonly #sql: ReturnType<typeof namedStatements<keyof typeof TEXTS>>;

  constructor(database: Database) {
    this.#database = database;
    this.#sql = namedStatements(database.schema, TEXTS, 'budget_');
  }

  reserve(reservation: BudgetReservation): Promise<ReservationOutcome> {
    return this.#database.transact((client) => this.#reserve(client, reservation));
  }

  async #reserve(
    client: PostgresClient,
    { id, accounts, amounts, leaseMs }: BudgetReservation,
  ): Promise<ReservationOutcome> {
    // In one order everywhere, so that no two wait for each other.
    const keys = [...new Set(accounts.map(({ key }) => key))].sort();
    for (const key of keys)
      await client.query({ text: LOCK, values: [`toolwright budgets ${this.#database.schema} ${key}`] });
    const { rows } = await client.query({ ...this.#sql.has, values: [id] });
    if (rows.length > 0) return { status: 'reserved' };
    const begun: number[] = [];
    for (const { key, windowMs = 0, limits } of accounts) {
      const balance = await client.query({ ...this.#sql.balance, values: [key, windowMs] });
      const [row] = balance.rows;
      const { spent, reserved } = balanceIn(row);
      const beyond = partBeyond(limits, addAmounts(spent, reserved), amounts);
      if (beyond !== undefined) return { status: 'spent', key, ...beyond };
      begun.push(Number(row?.began_at));
    }
    for (const [index, { key, windowMs = 0 }] of accounts.entries()) {
      const values = [id, key, begun[index], windowMs, Math.ceil(leaseMs), ...valuesOf(amounts)];
      await client.query({ ...this.#sql.reserve, values });
    }
    return { status: 'reserved' };
  }

  async renewReservation(id: string, leaseMs: number): Promise<boolean> {
    const { rows } = await this.#database.run(this.#sql.renew, () => [id, Math.ceil(leaseMs)]);
    return rows.length > 0;
  }

  async settle(id: string, spent: BudgetAmounts): Promise<boolean> {
    const settled = await this.#database.run(this.#sql.settle, () => [id, ...valuesOf(spent)]);
    // Sent again because its answer was lost, it finds nothing more to settle.
    return settled.rows.length > 0 || settled.isRepeated;
  }

  async balance({ key, windowMs = 0 }: Pick<BudgetAccount, 'key' | 'windowMs'>): Promise<BudgetBalance> {
    const { rows } = await this.#database.run(this.#sql.balance, () => [key, windowMs]);
    return balanceIn(rows[0]);
  }

  async removeOlderThan(ageMs: number): Promise<number> {
    checkAge(ageMs);
    await this.#database.run(this.#sql.forget_reserved, () => [Math.ceil(ageMs)]);
    let removed = 0;
    for (;;) {
      const { rowCount } = await this.#database.run(this.#sql.forget, () => [Math.ceil(ageMs), BATCH]);
      removed += rowCount ?? 0;
      if ((rowCount ?? 0) < BATCH) return removed;
    }
  }
}

function valuesOf({ tokens, cost, calls, steps, timeMs }: BudgetAmounts): readonly number[] {
  return [tokens, cost, calls, steps, timeMs];
}

function balanceIn(row: Readonly<Record<string, unknown>> = {}): BudgetBalance {
  return { spent: amountsIn(row, ''), reserved: amountsIn(row, 'reserved_') };
}

function amountsIn(row: Readonly<Record<string, unknown>>, prefix: string): BudgetAmounts {
  const part = (name: string): number => Number(row[`${prefix}${name}`] ?? 0);
  return {
    tokens: part('tokens'),
    cost: part('cost'),
    calls: part('calls'),
    steps: part('steps'),
    timeMs: part('time_ms'),
  };
}
