/** What budgets count. */
const BUDGET_PARTS = ['tokens', 'cost', 'calls', 'steps', 'timeMs'] as const;

/** One of the things that budgets count. */
export type BudgetPart = (typeof BUDGET_PARTS)[number];

/** So much of each; whole numbers, the cost in billionths of its currency's unit. */
export type BudgetAmounts = Readonly<Record<BudgetPart, number>>;

/** An account from which several runs spend, and how much at most. */
export interface BudgetAccount {
  /** Whose it is: `conversation:c1`, `tenant:t1`. */
  readonly key: string;
  /** Counted anew in each window of so many milliseconds since 1970; absent: once and for all. */
  readonly windowMs?: number;
  readonly limits: Partial<BudgetAmounts>;
}

/** Something that is about to be spent. */
export interface BudgetReservation {
  /** A random id, chosen by the caller. */
  readonly id: string;
  readonly accounts: readonly BudgetAccount[];
  /** Of each at most. */
  readonly amounts: BudgetAmounts;
  /** Counted for so many milliseconds, unless it is renewed: its process may die. */
  readonly leaseMs: number;
}

/** Whether something may be spent; where not, of which account which part is too much. */
export type ReservationOutcome =
  | { readonly status: 'reserved' }
  | { readonly status: 'spent'; readonly key: string; readonly part: BudgetPart; readonly left: number };

/** The spent and the reserved amounts of an account. */
export interface BudgetBalance {
  readonly spent: BudgetAmounts;
  readonly reserved: BudgetAmounts;
}

/**
 * Stores spent amounts. Every method is atomic, also between processes: of two that reserve the rest of an account at
 * the same moment, one gets it. Methods may be synchronous.
 */
export interface BudgetLedger {
  /** Reserves in all accounts, or in none. The same reservation made again is the same one. */
  reserve(reservation: BudgetReservation): ReservationOutcome | Promise<ReservationOutcome>;
  /** Counts a reservation for so much longer; false where it is settled. */
  renewReservation(id: string, leaseMs: number): boolean | Promise<boolean>;
  /**
   * Ends a reservation with what was really spent, more or less than it; also one that had run out. False where it was
   * settled before, and then nothing changes.
   */
  settle(id: string, spent: BudgetAmounts): boolean | Promise<boolean>;
  balance(account: Pick<BudgetAccount, 'key' | 'windowMs'>): BudgetBalance | Promise<BudgetBalance>;
  /** Deletes accounts and reservations unchanged for so many milliseconds; returns the number of accounts. */
  removeOlderThan(ageMs: number): number | Promise<number>;
}

/** A store of runs that stores budgets, too. */
export interface StoreWithBudgets {
  readonly budgets: BudgetLedger;
}

/** The key of what a conversation may spend. */
export function conversationKey(conversationId: string): string {
  return `conversation:${conversationId}`;
}

/** The key under which grants beyond an account are stored. */
export function grantedKey(key: string): string {
  return `granted ${key}`;
}

/** Nothing of anything. */
export const NO_AMOUNTS: BudgetAmounts = { tokens: 0, cost: 0, calls: 0, steps: 0, timeMs: 0 };

/** The sum, part by part; with `factor` -1 the difference. */
export function addAmounts(one: BudgetAmounts, other: BudgetAmounts, factor = 1): BudgetAmounts {
  return {
    tokens: one.tokens + factor * other.tokens,
    cost: one.cost + factor * other.cost,
    calls: one.calls + factor * other.calls,
    steps: one.steps + factor * other.steps,
    timeMs: one.timeMs + factor * other.timeMs,
  };
}

/** The first part that would be too much; time is not reserved: what is used up is too much. */
export function partBeyond(
  limits: Partial<BudgetAmounts>,
  used: BudgetAmounts,
  amounts: BudgetAmounts,
): { readonly part: BudgetPart; readonly left: number } | undefined {
  for (const part of BUDGET_PARTS) {
    const limit = limits[part];
    if (limit === undefined) continue;
    const left = limit - used[part];
    if (part === 'timeMs' ? left <= 0 : amounts[part] > left) return { part, left: Math.max(0, left) };
  }
  return undefined;
}

/** When the window began that a moment belongs to; 0 without windows. */
export function windowOf(now: number, windowMs: number | undefined): number {
  return windowMs === undefined ? 0 : Math.floor(now / windowMs) * windowMs;
}
