import {
  type BudgetAccount,
  type BudgetAmounts,
  type BudgetLedger,
  NO_AMOUNTS,
} from '../../../core/contract/budget-ledger.js';
import { optionTable } from '../../../core/kernel/options.js';
import { expectSame } from '../conformance/expectations.js';
import type { ConformanceCase } from '../conformance/provider-conformance.js';
import { atOnce, casesOf, LEASE_MS, type OpenedCases, openedCases, suiteRules } from './store-bench.js';

/** An empty ledger under test. */
export interface OpenedLedger {
  readonly ledger: BudgetLedger;
  /** The same ledger through another connection. Without it, concurrent operations use `ledger` only. */
  readonly other?: BudgetLedger;
  /** Advances the ledger's time by this many milliseconds. */
  advance(ms: number): void | Promise<void>;
  close?(): void | Promise<void>;
}

/** Options of {@link budgetLedgerConformance}. */
export interface BudgetLedgerConformanceOptions {
  /** The ledger's name in titles: `MyRunStore.budgets`. */
  readonly name: string;
  /** Opens an empty ledger for each case. */
  readonly open: () => OpenedLedger | Promise<OpenedLedger>;
}

const OPTIONS = optionTable<BudgetLedgerConformanceOptions>(
  'budgetLedgerConformance',
  suiteRules('{ ledger: new MyRunStore().budgets, advance: (ms) => … }'),
);

const DAY = 86_400_000;
const tenant: BudgetAccount = { key: 'tenant:t', limits: { tokens: 100 } };

function tokens(count: number): BudgetAmounts {
  return { ...NO_AMOUNTS, tokens: count };
}

class LedgerBench {
  readonly ledger: BudgetLedger;
  readonly other: BudgetLedger;
  readonly advance: (ms: number) => Promise<void>;

  constructor({ ledger, other = ledger, advance }: OpenedLedger) {
    this.ledger = ledger;
    this.other = other;
    this.advance = async (ms) => advance(ms);
  }

  async reserve(id: string, count: number, accounts: readonly BudgetAccount[] = [tenant]): Promise<string> {
    const outcome = await this.ledger.reserve({ id, accounts, amounts: tokens(count), leaseMs: LEASE_MS });
    return outcome.status === 'reserved' ? 'reserved' : `${outcome.key} ${outcome.part} ${outcome.left}`;
  }

  /** Spent and reserved tokens. */
  async held(account: BudgetAccount = tenant): Promise<readonly number[]> {
    const { spent, reserved } = await this.other.balance(account);
    return [spent.tokens, reserved.tokens];
  }
}

const CASES: OpenedCases<LedgerBench> = {
  'reserve accepts amounts up to the limit, and returns the remaining amount if it refuses': async (
    bench,
  ) => {
    expectSame('the first', await bench.reserve('a', 60), 'reserved');
    expectSame('an amount above the rest', await bench.reserve('b', 41), 'tenant:t tokens 40');
    expectSame('an amount within the rest', await bench.reserve('c', 40), 'reserved');
    expectSame('spent and reserved tokens', await bench.held(), [0, 100]);
    expectSame('one more', await bench.reserve('d', 1), 'tenant:t tokens 0');
  },
  'reserve changes all accounts or no account': async (bench) => {
    const small: BudgetAccount = { key: 'user:u', limits: { tokens: 5 } };
    expectSame('both', await bench.reserve('a', 10, [tenant, small]), 'user:u tokens 5');
    expectSame('the larger one', await bench.held(), [0, 0]);
    expectSame('both again', await bench.reserve('b', 5, [tenant, small]), 'reserved');
    expectSame('the smaller one', await bench.held(small), [0, 5]);
  },
  'reserve checks each part separately, and ignores parts without a limit': async ({ ledger }) => {
    const accounts = [{ key: 'k', limits: { calls: 1, cost: 3_000_000_000_000 } }];
    const amounts = { tokens: 1e12, cost: 2_999_999_999_999, calls: 1, steps: 7, timeMs: 0 };
    const first = await ledger.reserve({ id: 'a', accounts, amounts, leaseMs: LEASE_MS });
    const second = await ledger.reserve({ id: 'b', accounts, amounts, leaseMs: LEASE_MS });
    expectSame('the first', first, { status: 'reserved' });
    expectSame('the second', second, { status: 'spent', key: 'k', part: 'cost', left: 1 });
    expectSame('the reserved amounts', (await ledger.balance({ key: 'k' })).reserved, amounts);
  },
  'reserve with the same id again returns the same reservation': async (bench) => {
    for (const round of [1, 2]) expectSame(`time ${round}`, await bench.reserve('a', 80), 'reserved');
    expectSame('spent and reserved tokens', await bench.held(), [0, 80]);
  },
  'settle releases the rest, counts more than was reserved, and counts only once': async (bench) => {
    await bench.reserve('a', 80);
    expectSame('settling', await bench.ledger.settle('a', tokens(30)), true);
    expectSame('again', await bench.ledger.settle('a', tokens(30)), false);
    expectSame('settling an unknown reservation', await bench.ledger.settle('x', tokens(30)), false);
    expectSame('spent and reserved tokens', await bench.held(), [30, 0]);
    await bench.reserve('b', 70);
    await bench.ledger.settle('b', tokens(90));
    expectSame('the amounts after settling more', await bench.held(), [120, 0]);
    expectSame('one more', await bench.reserve('c', 0), 'tenant:t tokens 0');
  },
  'a reservation of a crashed process expires, and is still counted if it is settled late': async (bench) => {
    await bench.reserve('a', 100);
    expectSame('before it expires', await bench.reserve('b', 1), 'tenant:t tokens 0');
    await bench.advance(LEASE_MS);
    expectSame('after it has expired', await bench.reserve('b', 60), 'reserved');
    expectSame('settling it late', await bench.ledger.settle('a', tokens(50)), true);
    expectSame('spent and reserved tokens', await bench.held(), [50, 60]);
  },
  'renewReservation extends a reservation, and refuses a settled one': async (bench) => {
    await bench.reserve('a', 100);
    await bench.advance(LEASE_MS / 2);
    expectSame('renewing', await bench.ledger.renewReservation('a', LEASE_MS), true);
    await bench.advance(LEASE_MS / 2 + 60_000);
    expectSame('spent and reserved tokens', await bench.held(), [0, 100]);
    await bench.ledger.settle('a', tokens(1));
    expectSame('renewing a settled reservation', await bench.ledger.renewReservation('a', LEASE_MS), false);
  },
  'balance of an account with windows starts at zero in each window': async (bench) => {
    const daily = { ...tenant, windowMs: DAY };
    await bench.reserve('a', 100, [daily]);
    await bench.ledger.settle('a', tokens(100));
    expectSame('the same day', await bench.reserve('b', 1, [daily]), 'tenant:t tokens 0');
    expectSame('another window of the key', await bench.held({ ...tenant, windowMs: 2 * DAY }), [0, 0]);
    expectSame('the key without windows', await bench.held(), [0, 0]);
    await bench.advance(DAY);
    expectSame('the next day', await bench.reserve('c', 100, [daily]), 'reserved');
  },
  'each key has a separate account, whatever characters it contains': async (bench) => {
    const keys = ['', ' ', 'k', 'K', '__proto__', "'); --", 'a b', 'ä', '👩‍🚀', '0 0 k'];
    for (const [index, key] of keys.entries()) {
      const account = { key, limits: { tokens: 100 } };
      expectSame(JSON.stringify(key), await bench.reserve(`r${index}`, index + 1, [account]), 'reserved');
    }
    for (const [index, key] of keys.entries())
      expectSame(JSON.stringify(key), await bench.held({ key, limits: {} }), [0, index + 1]);
  },
  'reserve never exceeds the limit with many simultaneous callers': async (bench) => {
    for (let round = 0; round < 10; round += 1) {
      const key = `round ${round}`;
      const accounts = [{ key, limits: { tokens: 100 } }];
      const outcomes = await atOnce(12, [bench.ledger, bench.other], async (ledger, index) => {
        const id = `${key} ${index}`;
        const outcome = await ledger.reserve({ id, accounts, amounts: tokens(30), leaseMs: LEASE_MS });
        if (outcome.status === 'reserved' && index % 3 === 0) await ledger.settle(id, tokens(30));
        return outcome.status;
      });
      expectSame('the successful reservations', outcomes.filter((status) => status === 'reserved').length, 3);
      const { spent, reserved } = await bench.other.balance({ key });
      expectSame('spent and reserved tokens', spent.tokens + reserved.tokens, 90);
    }
  },
  'removeOlderThan removes unused accounts and expired reservations': async (bench) => {
    await bench.reserve('a', 10);
    await bench.ledger.settle('a', tokens(10));
    await bench.reserve('b', 10);
    expectSame('too early', await bench.ledger.removeOlderThan(LEASE_MS), 0);
    await bench.advance(3 * LEASE_MS);
    expectSame('removed accounts', await bench.ledger.removeOlderThan(LEASE_MS), 1);
    expectSame('spent and reserved tokens', await bench.held(), [0, 0]);
    expectSame('settling a removed reservation', await bench.ledger.settle('b', tokens(1)), false);
  },
};

/**
 * The contract of `BudgetLedger` as cases for any test runner: limits, refunds, reservations of crashed processes,
 * windows, and concurrent operations.
 *
 * @throws InvalidOptionsError (521) for wrong options.
 *
 * @example
 * ```ts
 * const cases = budgetLedgerConformance({
 *   name: 'MemoryRunStore.budgets',
 *   open() {
 *     let time = Date.now();
 *     return {
 *       ledger: new MemoryRunStore({ now: () => time }).budgets,
 *       advance(ms) {
 *         time += ms;
 *       },
 *     };
 *   },
 * });
 * for (const { title, run } of cases) test(title, run);
 * ```
 */
export function budgetLedgerConformance(options: BudgetLedgerConformanceOptions): readonly ConformanceCase[] {
  return openedCases(options, OPTIONS, () =>
    casesOf(CASES, (opened: OpenedLedger) => new LedgerBench(opened)),
  );
}
