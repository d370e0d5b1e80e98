import {
  addAmounts,
  type BudgetAmounts,
  type BudgetLedger,
  type BudgetPart,
  type BudgetReservation,
  NO_AMOUNTS,
  partBeyond,
} from '../contract/budget-ledger.js';
import { type Account, raisedBy, type SharedAccount } from './budget-accounts.js';

/** What was too much, and of which account. */
export interface Beyond {
  readonly account: Account;
  readonly part: BudgetPart;
  readonly limit: number;
  readonly used: number;
  /** So much more may be granted. */
  readonly grantable: number;
}

/** Reserves in all accounts or in none; what was granted is only looked for where their own limits are passed. */
export async function reserveShared(
  ledger: BudgetLedger,
  shared: readonly SharedAccount[],
  reservation: Omit<BudgetReservation, 'accounts'>,
): Promise<Beyond | undefined> {
  const own = shared.map(({ account }) => account);
  const outcome = await ledger.reserve({ ...reservation, accounts: own });
  if (outcome.status === 'reserved') return undefined;
  const granted = await Promise.all(shared.map((account) => grantedOf(ledger, account)));
  const raised = own.map((account, at) => ({
    ...account,
    limits: raisedBy(account.limits, granted[at] ?? NO_AMOUNTS),
  }));
  const again = granted.every((amounts) => amounts === NO_AMOUNTS)
    ? outcome
    : await ledger.reserve({ ...reservation, accounts: raised });
  if (again.status === 'reserved') return undefined;
  const { key, part, left } = again;
  const known = shared.flatMap((account, at) => {
    const limit = raised[at]?.limits[part];
    if (account.key !== key || limit === undefined) return [];
    const grantable = account.grantable(part) - (granted[at]?.[part] ?? 0);
    return [{ account, part, limit, used: limit - left, grantable }];
  });
  for (const beyond of known) {
    const { limits: _, ...account } = beyond.account.account;
    const { spent, reserved } = await ledger.balance(account);
    const all = addAmounts(spent, reserved);
    // One key may have several windows; and more may be used than there was.
    if (partBeyond({ [part]: beyond.limit }, all, reservation.amounts)) return { ...beyond, used: all[part] };
  }
  return known[0];
}

async function grantedOf(
  ledger: BudgetLedger,
  { grantedAccount: { limits, ...account } }: SharedAccount,
): Promise<BudgetAmounts> {
  if (Object.keys(limits).length === 0) return NO_AMOUNTS;
  const { reserved } = await ledger.balance(account);
  return Object.values(reserved).some((amount) => amount > 0) ? reserved : NO_AMOUNTS;
}

/** What is granted once and for all is kept for so long. */
const YEAR_MS = 31_536_000_000;

/** Something that somebody granted. */
interface Grant {
  /** The same where the same answer is taken twice: it is granted once. */
  readonly id: string;
  readonly part: BudgetPart;
  readonly amount: number;
}

/** Keeps a grant with an account, as far as so much may be granted in all: as a reservation that nobody settles. */
export async function grantShared(
  ledger: BudgetLedger,
  { grantedAccount }: SharedAccount,
  { id, part, amount }: Grant,
): Promise<void> {
  const leaseMs = grantedAccount.windowMs ?? YEAR_MS;
  const reserve = (granted: number) =>
    ledger.reserve({
      id,
      accounts: [grantedAccount],
      amounts: { ...NO_AMOUNTS, [part]: granted },
      leaseMs,
    });
  const outcome = await reserve(amount);
  if (outcome.status === 'spent' && outcome.left > 0) await reserve(outcome.left);
}
