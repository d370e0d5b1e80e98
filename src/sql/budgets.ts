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
import { type Row, removeOld, type SqlDriver, statements, type Transaction, wholeMs } from './driver.js';

const NAMES = 'tokens, cost, calls, steps, time_ms';

const sums = (table: string, prefix: string): string =>
  NAMES.split(', ')
    .map((name) => `coalesce(sum(${table}.${name}), 0)::bigint AS ${prefix}${name}`)
    .join(', ');

const SQL = statements('budget', {
  // Both sums are of one moment: what is settled between two statements would be in neither of them.
  balance: `
    WITH place AS MATERIALIZED (
      SELECT $1::text AS key, now - CASE WHEN $2::bigint = 0 THEN now ELSE now % $2::bigint END AS began_at,
        $2::bigint AS window_ms
      FROM (SELECT {now} AS now) AS clock
    ),
    spent AS (SELECT ${sums('b', '')} FROM :budgets b JOIN place USING (key, began_at, window_ms)),
    reserved AS (
      SELECT ${sums('r', 'reserved_')} FROM :reservations r JOIN place USING (key, began_at, window_ms)
      WHERE r.lease_end > {at}
    )
    SELECT place.began_at, spent.*, reserved.* FROM place, spent, reserved`,
  has: 'SELECT 1 FROM :reservations WHERE id = $1 LIMIT 1',
  reserve: `
    INSERT INTO :reservations (id, key, began_at, window_ms, lease_end, ${NAMES})
    VALUES ($1, $2, $3, $4, {now} + $5::bigint, $6, $7, $8, $9, $10)`,
  renew: 'UPDATE :reservations SET lease_end = {now} + $2::bigint WHERE id = $1',
  settle: {
    steps: {
      // Of two who settle it at the same moment, the second finds nothing.
      found: `
        SELECT id FROM :reservations WHERE id = $1 ORDER BY key, began_at, window_ms LIMIT 1 FOR UPDATE`,
      spent: `
        INSERT INTO :budgets AS b (key, began_at, window_ms, changed_at, ${NAMES})
        SELECT key, began_at, window_ms, {now}, $2::bigint, $3::bigint, $4::bigint, $5::bigint, $6::bigint
        FROM :reservations WHERE id = $1 AND {found} ORDER BY key, began_at, window_ms
        ON CONFLICT (key, began_at, window_ms) DO UPDATE SET changed_at = excluded.changed_at,
          tokens = b.tokens + excluded.tokens, cost = b.cost + excluded.cost, calls = b.calls + excluded.calls,
          steps = b.steps + excluded.steps, time_ms = b.time_ms + excluded.time_ms`,
      ended: 'DELETE FROM :reservations WHERE id = $1 AND {found}',
    },
  },
  forget_reserved: 'DELETE FROM :reservations WHERE lease_end <= {at} - $1::bigint',
  forget: `
    DELETE FROM :budgets WHERE (key, began_at, window_ms) IN (
      SELECT key, began_at, window_ms FROM :budgets WHERE changed_at <= {at} - $1::bigint LIMIT $2
    )`,
});

/** The budgets of a store. Windows and leases are by the database's clock. */
export class SqlBudgets implements BudgetLedger {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  reserve({ id, accounts, amounts, leaseMs }: BudgetReservation): Promise<ReservationOutcome> {
    // Who reserves from an account waits for those who do so at the same moment, and for nobody else.
    const locks = { of: 'budgets', names: accounts.map(({ key }) => key) };
    return this.#driver.transaction(locks, function* (): Transaction<ReservationOutcome> {
      if ((yield [SQL.has, [id]]).rows.length > 0) return { status: 'reserved' };
      const begun: unknown[] = [];
      for (const { key, windowMs = 0, limits } of accounts) {
        const [row = {}] = (yield [SQL.balance, [key, windowMs]]).rows;
        const { spent, reserved } = balanceOf(row);
        const beyond = partBeyond(limits, addAmounts(spent, reserved), amounts);
        if (beyond !== undefined) return { status: 'spent', key, ...beyond };
        begun.push(row.began_at);
      }
      for (const [index, { key, windowMs = 0 }] of accounts.entries()) {
        const values = [id, key, begun[index], windowMs, wholeMs(leaseMs), ...valuesOf(amounts)];
        yield [SQL.reserve, values];
      }
      return { status: 'reserved' };
    });
  }

  async renewReservation(id: string, leaseMs: number): Promise<boolean> {
    return (await this.#driver.run(SQL.renew, [id, wholeMs(leaseMs)])).count > 0;
  }

  async settle(id: string, spent: BudgetAmounts): Promise<boolean> {
    const { rows, isRepeated } = await this.#driver.run(SQL.settle, [id, ...valuesOf(spent)]);
    // Sent again because its answer was lost, it finds nothing more to settle.
    return rows.length > 0 || isRepeated;
  }

  async balance({ key, windowMs = 0 }: Pick<BudgetAccount, 'key' | 'windowMs'>): Promise<BudgetBalance> {
    const { rows } = await this.#driver.run(SQL.balance, [key, windowMs]);
    return balanceOf(rows[0] ?? {});
  }

  async removeOlderThan(ageMs: number): Promise<number> {
    checkAge(ageMs);
    await this.#driver.run(SQL.forget_reserved, [wholeMs(ageMs)]);
    return removeOld(this.#driver.run, SQL.forget, [ageMs]);
  }
}

function valuesOf({ tokens, cost, calls, steps, timeMs }: BudgetAmounts): readonly number[] {
  return [tokens, cost, calls, steps, timeMs];
}

function balanceOf(row: Row): BudgetBalance {
  const amounts = (prefix: string): BudgetAmounts => {
    const part = (name: string): number => Number(row[`${prefix}${name}`] ?? 0);
    const [tokens, cost, calls, steps] = [part('tokens'), part('cost'), part('calls'), part('steps')];
    return { tokens, cost, calls, steps, timeMs: part('time_ms') };
  };
  return { spent: amounts(''), reserved: amounts('reserved_') };
}
