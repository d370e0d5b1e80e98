import {
  addAmounts,
  type BudgetAccount,
  type BudgetAmounts,
  type BudgetBalance,
  type BudgetLedger,
  type BudgetReservation,
  conversationKey,
  grantedKey,
  NO_AMOUNTS,
  partBeyond,
  type ReservationOutcome,
  windowOf,
} from '../contract/budget-ledger.js';
import { checkAge } from '../errors/store-checks.js';

interface HeldAccount {
  spent: BudgetAmounts;
  changedAt: number;
}

interface HeldReservation {
  readonly places: readonly string[];
  readonly amounts: BudgetAmounts;
  leaseEnd: number;
}

/** The budgets of a store in memory. */
export class MemoryBudgets implements BudgetLedger {
  readonly #accounts = new Map<string, HeldAccount>();
  readonly #reservations = new Map<string, HeldReservation>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  reserve({ id, accounts, amounts, leaseMs }: BudgetReservation): ReservationOutcome {
    if (this.#reservations.has(id)) return { status: 'reserved' };
    for (const { key, windowMs, limits } of accounts) {
      const { spent, reserved } = this.balance({ key, ...(windowMs === undefined ? {} : { windowMs }) });
      const beyond = partBeyond(limits, addAmounts(spent, reserved), amounts);
      if (beyond !== undefined) return { status: 'spent', key, ...beyond };
    }
    const places = accounts.map((account) => this.#placeOf(account));
    this.#reservations.set(id, { places, amounts, leaseEnd: this.#now() + leaseMs });
    return { status: 'reserved' };
  }

  renewReservation(id: string, leaseMs: number): boolean {
    const held = this.#reservations.get(id);
    if (held !== undefined) held.leaseEnd = this.#now() + leaseMs;
    return held !== undefined;
  }

  settle(id: string, spent: BudgetAmounts): boolean {
    const held = this.#reservations.get(id);
    if (held === undefined) return false;
    this.#reservations.delete(id);
    for (const place of held.places) {
      const before = this.#accounts.get(place)?.spent ?? NO_AMOUNTS;
      this.#accounts.set(place, { spent: addAmounts(before, spent), changedAt: this.#now() });
    }
    return true;
  }

  balance(account: Pick<BudgetAccount, 'key' | 'windowMs'>): BudgetBalance {
    const place = this.#placeOf(account);
    const now = this.#now();
    let reserved = NO_AMOUNTS;
    for (const { places, amounts, leaseEnd } of this.#reservations.values())
      if (leaseEnd > now && places.includes(place)) reserved = addAmounts(reserved, amounts);
    return { spent: this.#accounts.get(place)?.spent ?? NO_AMOUNTS, reserved };
  }

  removeOlderThan(ageMs: number): number {
    checkAge(ageMs);
    const limit = this.#now() - ageMs;
    for (const [id, { leaseEnd }] of this.#reservations) if (leaseEnd <= limit) this.#reservations.delete(id);
    const old = [...this.#accounts].filter(([, { changedAt }]) => changedAt <= limit);
    for (const [place] of old) this.#accounts.delete(place);
    return old.length;
  }

  removeOf(conversationId: string): void {
    const key = conversationKey(conversationId);
    const isMeant = (place: string): boolean => {
      const [, , ...words] = place.split(' ');
      return [key, grantedKey(key)].includes(words.join(' '));
    };
    for (const place of this.#accounts.keys()) if (isMeant(place)) this.#accounts.delete(place);
    for (const [id, { places, ...held }] of this.#reservations)
      if (places.some(isMeant))
        this.#reservations.set(id, { ...held, places: places.filter((place) => !isMeant(place)) });
  }

  #placeOf({ key, windowMs }: Pick<BudgetAccount, 'key' | 'windowMs'>): string {
    return `${windowOf(this.#now(), windowMs)} ${windowMs ?? 0} ${key}`;
  }
}
