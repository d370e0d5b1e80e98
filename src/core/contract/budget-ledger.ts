/** The amounts that budgets count. */
export const BUDGET_PARTS = ['tokens', 'cost', 'calls', 'steps', 'timeMs'] as const;

/** An amount that budgets count. */
export type BudgetPart = (typeof BUDGET_PARTS)[number];

/** Whole numbers; the cost is in billionths of its currency's unit. */
export type BudgetAmounts = Readonly<Record<BudgetPart, number>>;

/** An account from which several runs spend, with its limits. */
export interface BudgetAccount {
  /** For example `conversation:c1` or `tenant:t1`. */
  readonly key: string;
  /**
   * Length of the windows in milliseconds, aligned to 1970: each window starts at zero. If absent, the account never
   * resets.
   */
  readonly windowMs?: number;
  readonly limits: Partial<BudgetAmounts>;
}

/** Amounts that are about to be spent. */
export interface BudgetReservation {
  /** A random id, chosen by the caller. */
  readonly id: string;
  readonly accounts: readonly BudgetAccount[];
  /** The most that can be spent. */
  readonly amounts: BudgetAmounts;
  /** Milliseconds until the reservation expires unless it is renewed, because its process may crash. */
  readonly leaseMs: number;
}

/** Whether the amounts are reserved; if not, the account and the part whose limit they exceed. */
export type ReservationOutcome =
  | { readonly status: 'reserved' }
  | { readonly status: 'spent'; readonly key: string; readonly part: BudgetPart; readonly left: number };

/** The spent and the reserved amounts of an account. */
export interface BudgetBalance {
  readonly spent: BudgetAmounts;
  readonly reserved: BudgetAmounts;
}

/**
 * Stores spent amounts. Every method is atomic, also between processes: if two callers reserve the rest of an account
 * at the same moment, only the first succeeds. Methods may be synchronous.
 */
export interface BudgetLedger {
  /** Reserves in all accounts, or in no account. A repeated reservation with the same id has no further effect. */
  reserve(reservation: BudgetReservation): ReservationOutcome | Promise<ReservationOutcome>;
  /** Extends a reservation; false if it is already settled. */
  renewReservation(id: string, leaseMs: number): boolean | Promise<boolean>;
  /**
   * Replaces a reservation by the amounts that were really spent, which may be more or less. Works for expired
   * reservations too. Returns false, without a change, if the reservation is already settled.
   */
  settle(id: string, spent: BudgetAmounts): boolean | Promise<boolean>;
  balance(account: Pick<BudgetAccount, 'key' | 'windowMs'>): BudgetBalance | Promise<BudgetBalance>;
  /**
   * Deletes accounts and reservations that did not change for this many milliseconds. Returns the number of accounts.
   */
  removeOlderThan(ageMs: number): number | Promise<number>;
}

/** A run store that also stores budgets. */
export interface StoreWithBudgets {
  readonly budgets: BudgetLedger;
}

/** The account key of a conversation. */
export function conversationKey(conversationId: string): string {
  return `conversation:${conversationId}`;
}

/** The key of the grants beyond an account's limits. */
export function grantedKey(key: string): string {
  return `granted ${key}`;
}

/** Zero of every amount. */
export const NO_AMOUNTS: BudgetAmounts = { tokens: 0, cost: 0, calls: 0, steps: 0, timeMs: 0 };

/** The sum of all parts. */
export function addAmounts(one: BudgetAmounts, other: BudgetAmounts): BudgetAmounts {
  return {
    tokens: one.tokens + other.tokens,
    cost: one.cost + other.cost,
    calls: one.calls + other.calls,
    steps: one.steps + other.steps,
    timeMs: one.timeMs + other.timeMs,
  };
}

/** The first part that exceeds its limit. Time is not reserved: it exceeds its limit once the limit is used up. */
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

/** The start of the window that contains a moment; 0 without windows. */
export function windowOf(now: number, windowMs: number | undefined): number {
  return windowMs === undefined ? 0 : Math.floor(now / windowMs) * windowMs;
}
