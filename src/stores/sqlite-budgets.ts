import type { DatabaseSync } from 'node:sqlite';
import {
  addAmounts,
  type BudgetAccount,
  type BudgetAmounts,
  type BudgetBalance,
  type BudgetLedger,
  type BudgetReservation,
  partBeyond,
  type ReservationOutcome,
  windowOf,
} from '../contract/budget-ledger.js';
import { checkAge } from '../errors/store-checks.js';
import { inTransaction, type Prepared, preparedIn } from './open-database.js';

const PARTS = `
    tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    time_ms INTEGER NOT NULL`;

/** Times in milliseconds, costs in billionths. A window is its beginning and its length; 0 and 0 without. */
const TABLES = `
  CREATE TABLE IF NOT EXISTS toolwright_budgets (
    key TEXT NOT NULL,
    began_at INTEGER NOT NULL,
    window_ms INTEGER NOT NULL,
    changed_at REAL NOT NULL,${PARTS},
    PRIMARY KEY (key, began_at, window_ms)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS toolwright_reservations (
    id TEXT NOT NULL,
    key TEXT NOT NULL,
    began_at INTEGER NOT NULL,
    window_ms INTEGER NOT NULL,
    lease_end REAL NOT NULL,${PARTS},
    PRIMARY KEY (id, key, began_at, window_ms)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS toolwright_reservations_of
    ON toolwright_reservations (key, began_at, window_ms, lease_end);
`;

const PLACE = 'key = $key AND began_at = $beganAt AND window_ms = $windowMs';
const VALUES = '$tokens, $cost, $calls, $steps, $timeMs';
const NAMES = 'tokens, cost, calls, steps, time_ms';
const SUMS = NAMES.split(', ')
  .map((name) => `coalesce(sum(${name}), 0) AS ${name}`)
  .join(', ');

const SQL = {
  has: 'SELECT 1 FROM toolwright_reservations WHERE id = $id LIMIT 1',
  spent: `SELECT ${SUMS} FROM toolwright_budgets WHERE ${PLACE}`,
  reserved: `SELECT ${SUMS} FROM toolwright_reservations WHERE ${PLACE} AND lease_end > $now`,
  reserve: `
    INSERT INTO toolwright_reservations (id, key, began_at, window_ms, lease_end, ${NAMES})
    VALUES ($id, $key, $beganAt, $windowMs, $leaseEnd, ${VALUES})`,
  renew: 'UPDATE toolwright_reservations SET lease_end = $leaseEnd WHERE id = $id',
  settle: 'DELETE FROM toolwright_reservations WHERE id = $id RETURNING key, began_at, window_ms',
  spend: `
    INSERT INTO toolwright_budgets (key, began_at, window_ms, changed_at, ${NAMES})
    VALUES ($key, $beganAt, $windowMs, $now, ${VALUES})
    ON CONFLICT (key, began_at, window_ms) DO UPDATE SET changed_at = excluded.changed_at,
      tokens = toolwright_budgets.tokens + excluded.tokens, cost = toolwright_budgets.cost + excluded.cost,
      calls = toolwright_budgets.calls + excluded.calls, steps = toolwright_budgets.steps + excluded.steps,
      time_ms = toolwright_budgets.time_ms + excluded.time_ms`,
  forgetReserved: 'DELETE FROM toolwright_reservations WHERE lease_end <= $limit',
  forget: 'DELETE FROM toolwright_budgets WHERE changed_at <= $limit',
} as const;

interface Place {
  readonly $key: string;
  readonly $beganAt: number;
  readonly $windowMs: number;
}

/** The budgets of a store in an SQLite file. */
export class SqliteBudgets implements BudgetLedger {
  readonly #database: DatabaseSync;
  readonly #now: () => number;
  readonly #sql: Prepared<keyof typeof SQL>;

  constructor(database: DatabaseSync, now: () => number) {
    this.#database = database;
    this.#now = now;
    database.exec(TABLES);
    this.#sql = preparedIn(database, SQL);
  }

  reserve({ id, accounts, amounts, leaseMs }: BudgetReservation): ReservationOutcome {
    return inTransaction(this.#database, () => {
      if (this.#sql.has.get({ $id: id }) !== undefined) return { status: 'reserved' };
      for (const account of accounts) {
        const { spent, reserved } = this.balance(account);
        const beyond = partBeyond(account.limits, addAmounts(spent, reserved), amounts);
        if (beyond !== undefined) return { status: 'spent', key: account.key, ...beyond };
      }
      const leaseEnd = this.#now() + leaseMs;
      const values = { $id: id, $leaseEnd: leaseEnd, ...valuesOf(amounts) };
      for (const account of accounts) this.#sql.reserve.run({ ...values, ...this.#placeOf(account) });
      return { status: 'reserved' };
    });
  }

  renewReservation(id: string, leaseMs: number): boolean {
    const { changes } = this.#sql.renew.run({ $id: id, $leaseEnd: this.#now() + leaseMs });
    return Number(changes) > 0;
  }

  settle(id: string, spent: BudgetAmounts): boolean {
    return inTransaction(this.#database, () => {
      const rows = this.#sql.settle.all({ $id: id });
      for (const { key, began_at, window_ms } of rows)
        this.#sql.spend.run({
          $key: String(key),
          $beganAt: Number(began_at),
          $windowMs: Number(window_ms),
          $now: this.#now(),
          ...valuesOf(spent),
        });
      return rows.length > 0;
    });
  }

  balance(account: Pick<BudgetAccount, 'key' | 'windowMs'>): BudgetBalance {
    const place = this.#placeOf(account);
    return {
      spent: amountsOf(this.#sql.spent.get({ ...place })),
      reserved: amountsOf(this.#sql.reserved.get({ ...place, $now: this.#now() })),
    };
  }

  removeOlderThan(ageMs: number): number {
    checkAge(ageMs);
    const $limit = this.#now() - ageMs;
    this.#sql.forgetReserved.run({ $limit });
    return Number(this.#sql.forget.run({ $limit }).changes);
  }

  #placeOf({ key, windowMs }: Pick<BudgetAccount, 'key' | 'windowMs'>): Place {
    return { $key: key, $beganAt: windowOf(this.#now(), windowMs), $windowMs: windowMs ?? 0 };
  }
}

function valuesOf({ tokens, cost, calls, steps, timeMs }: BudgetAmounts) {
  return { $tokens: tokens, $cost: cost, $calls: calls, $steps: steps, $timeMs: timeMs };
}

function amountsOf(row: Readonly<Record<string, unknown>> | undefined): BudgetAmounts {
  const { tokens, cost, calls, steps, time_ms } = row ?? {};
  return {
    tokens: Number(tokens),
    cost: Number(cost),
    calls: Number(calls),
    steps: Number(steps),
    timeMs: Number(time_ms),
  };
}
