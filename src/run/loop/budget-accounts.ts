import {
  type AskableLimits,
  type Budget,
  type BudgetGrant,
  type BudgetLimits,
  type KeyedBudget,
  keepsBudgets,
  type PriceTable,
} from '../../core/contract/budget.js';
import {
  addAmounts,
  BUDGET_PARTS,
  type BudgetAccount,
  type BudgetAmounts,
  type BudgetLedger,
  type BudgetPart,
  type BudgetReservation,
  conversationKey,
  grantedKey,
  NO_AMOUNTS,
  partBeyond,
} from '../../core/contract/budget-ledger.js';
import type { CallScope, CallStatus } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import { type RunState, STORED_ID, type StoredWaitingCall } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { checkArguments } from '../../core/errors/author-fault.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { findPrice, inBillionths, inUnits, PRICES } from './prices.js';
import { type ConfigFault, wrongConfig } from './run-errors.js';

/** Whether any part counts the cost of requests. */
export function countsCost({ prices, cost, conversation, by = [], children }: Budget): boolean {
  const limits = [cost, conversation?.cost, children?.cost, ...by.map((keyed) => keyed.cost)];
  return prices !== undefined || limits.some((limit) => limit !== undefined);
}

/** The fault of a model without a price: its cost is unknown, and not zero. */
export function missingPrice(prices: PriceTable = PRICES, model: string): ConfigFault | undefined {
  if (findPrice(prices, model) !== undefined) return undefined;
  return {
    option: 'budget.prices',
    problem: `there is no price for the model '${model}'`,
    fix: `budget: { prices: { ...PRICES, '${model}': { input: …, output: … } } }, in dollars for a million tokens`,
  };
}

/** The fault of a shared budget without a store. */
export const MISSING_LEDGER: ConfigFault = {
  option: 'budget.store',
  problem: 'a budget of a conversation or a key is stored, and no store is set',
  fix: "budget: { conversation: { cost: 5 }, store: new SqliteRunStore({ path: 'runs.sqlite' }) }",
};

/** The faults of limits that ask for more although nothing can be granted. */
export function askingFaults({ conversation, by = [], children, ...own }: Budget): readonly ConfigFault[] {
  return [
    ...faultsOfAsking('budget', own),
    ...faultsOfAsking('budget.conversation', conversation),
    ...by.flatMap((limits, index) => faultsOfAsking(`budget.by[${index}]`, limits)),
    ...faultsOfAsking('budget.children', children),
  ];
}

function faultsOfAsking(of: string, limits: AskableLimits = {}): readonly ConfigFault[] {
  const { whenSpent = 'end' } = limits;
  if (whenSpent === 'end') return [];
  const limited = BUDGET_PARTS.filter((part) => limits[part] !== undefined);
  if (limited.length === 0) {
    const problem = `${of}.whenSpent asks for more, and nothing beside it is limited`;
    const fix = "the limits that it is for: { cost: 0.5, whenSpent: 'ask' }";
    return [{ option: `${of}.whenSpent`, problem, fix }];
  }
  if (whenSpent === 'ask') return [];
  const asked = BUDGET_PARTS.filter((part) => whenSpent.ask[part] !== undefined);
  const option = `${of}.whenSpent.ask`;
  if (asked.length === 0) {
    const fix = `whenSpent: 'ask', or { ask: { ${limited[0]}: … } }`;
    return [{ option, problem: `${option} grants nothing`, fix }];
  }
  return asked
    .filter((part) => !limited.includes(part))
    .map((part) => ({
      option: `${option}.${part}`,
      problem: `${option}.${part} grants more of what ${of} does not limit`,
      fix: `${of}.${part}: … beside whenSpent, or no ${part} in it`,
    }));
}

/** The faults of a budget for any run: models without a price, a missing store, questions without amounts. */
export function budgetFaults(
  budget: Budget,
  { models, store }: { readonly models: readonly string[]; readonly store: unknown },
): readonly ConfigFault[] {
  const { conversation, by = [], prices } = budget;
  const isShared = conversation !== undefined || by.length > 0;
  const hasLedger = budget.store !== undefined || keepsBudgets(store);
  const unpriced = countsCost(budget) ? models.map((model) => missingPrice(prices, model)) : [];
  return [
    ...unpriced.filter((fault) => fault !== undefined),
    ...(isShared && !hasLedger ? [MISSING_LEDGER] : []),
    ...askingFaults(budget),
  ];
}

/** The question of a run that reached a limit; amounts in the units of ledgers. */
export interface BudgetQuestion extends Beyond {
  readonly left: number;
  /** A smaller amount would not be enough for the next step. */
  readonly least: number;
  readonly message: string;
}

/**
 * The question in the form of a waiting call, so that stores, conversations and pages handle it like others. It is
 * not a call of a model, and never part of the history.
 */
export function questionCall(
  { account, part, ...asked }: BudgetQuestion,
  iteration: number,
): StoredWaitingCall {
  const [limit, left, least, most] = [asked.limit, asked.left, asked.least, asked.grantable].map((amount) =>
    shown(part, Math.ceil(amount)),
  ) as [number, number, number, number];
  const args = { of: account.whose, part, limit, left, least, most };
  const message = `${asked.message} How many more may it take, from ${least} to ${most}?`;
  const schema = { type: part === 'cost' ? 'number' : 'integer', minimum: least, maximum: most } as const;
  return {
    status: 'waiting',
    // Pages identify calls by id, and a run may ask before several of its steps.
    id: `budget_${iteration}_${part}_${limit}`,
    name: 'budget',
    arguments: args,
    waits: [{ kind: 'question', index: 0, message, schema }],
    journal: { arguments: args, answers: [], once: [] },
    asks: { account: account.place, part },
  };
}

export const WORDS: Readonly<Record<BudgetPart, string>> = {
  tokens: 'tokens',
  cost: 'units of cost',
  calls: 'calls',
  steps: 'requests',
  timeMs: 'milliseconds',
};

export function shown(part: BudgetPart, amount: number): number {
  return part === 'cost' ? inUnits(amount) : Math.round(amount);
}

type AccountName = Pick<Account, 'place' | 'whose' | 'option'>;

/** An account from which a run spends, with its grants. */
export abstract class Account {
  /** The same in every process that continues the run. */
  readonly place: string;
  readonly whose: string;
  /** The option with its limits: `budget.conversation`. */
  readonly option: string;
  limits: Partial<BudgetAmounts>;
  readonly #grantable: Partial<BudgetAmounts>;
  #granted: BudgetAmounts = NO_AMOUNTS;
  #isRefused = false;

  constructor({ place, whose, option }: AccountName, given: AskableLimits) {
    this.place = place;
    this.whose = whose;
    this.option = option;
    this.limits = amountsIn(given);
    this.#grantable = grantableIn(given);
  }

  /** The amount that can still be granted; 0 if no question is asked. */
  grantable(part: BudgetPart): number {
    if (this.#isRefused) return 0;
    return Math.max(0, (this.#grantable[part] ?? 0) - this.#granted[part]);
  }

  /** Limits a grant to the amount that may be granted. */
  grant(part: BudgetPart, amount: number): void {
    const granted = Math.max(0, Math.min(amount, this.grantable(part)));
    const amounts = { ...NO_AMOUNTS, [part]: granted };
    this.#granted = addAmounts(this.#granted, amounts);
    this.limits = raisedBy(this.limits, amounts);
  }

  /** No further questions are asked about it. */
  refuse(): void {
    this.#isRefused = true;
  }

  get grants(): readonly BudgetGrant[] {
    const parts = Object.entries(this.#granted) as [BudgetPart, number][];
    return parts.flatMap(([part, amount]) => (amount > 0 ? [{ account: this.place, part, amount }] : []));
  }
}

/** The account of one run; parallel calls and nested runs spend from it at the same time. Its sums change in place. */
export class RunAccount extends Account {
  readonly spent: Record<BudgetPart, number>;
  /** What is spent or reserved. */
  readonly used: Record<BudgetPart, number>;

  /** `depth`: the number of enclosing runs. */
  constructor(
    given: AskableLimits,
    {
      spent,
      depth,
      option,
    }: Pick<AccountName, 'option'> & { readonly spent: BudgetAmounts; readonly depth: number },
  ) {
    super({ place: `run ${depth}`, whose: 'the run', option }, given);
    this.spent = { ...spent };
    this.used = { ...spent };
  }

  reserve(amounts: BudgetAmounts): void {
    add(this.used, amounts);
  }

  spend(amounts: BudgetAmounts): void {
    add(this.spent, amounts);
    add(this.used, amounts);
  }

  /** Replaces a reservation by what was really spent. */
  settle(reserved: BudgetAmounts, spent: BudgetAmounts): void {
    add(this.used, reserved, -1);
    if (spent !== NO_AMOUNTS) this.spend(spent);
  }

  passTime(ms: number): void {
    this.spent.timeMs += ms;
    this.used.timeMs += ms;
  }
}

function add(sum: Record<BudgetPart, number>, amounts: BudgetAmounts, factor = 1): void {
  // A loop over the parts would make a turn with a budget slower.
  sum.tokens += factor * amounts.tokens;
  sum.cost += factor * amounts.cost;
  sum.calls += factor * amounts.calls;
  sum.steps += factor * amounts.steps;
  sum.timeMs += factor * amounts.timeMs;
}

/** An account that several runs share, stored in a ledger with its grants. */
export class SharedAccount extends Account {
  readonly key: string;
  /** Stores the grants for the same window; its limit is the total amount that may be granted. */
  readonly grantedAccount: BudgetAccount;
  readonly #window: Pick<BudgetAccount, 'windowMs'>;

  constructor(
    { key, option }: Pick<AccountName, 'option'> & { readonly key: string },
    { windowMs, ...given }: Omit<KeyedBudget, 'key'>,
  ) {
    super({ place: `${windowMs ?? 0} ${key}`, whose: `'${key}'`, option }, given);
    this.key = key;
    this.#window = windowMs === undefined ? {} : { windowMs };
    this.grantedAccount = { key: grantedKey(key), ...this.#window, limits: grantableIn(given) };
  }

  get account(): BudgetAccount {
    return { key: this.key, ...this.#window, limits: this.limits };
  }
}

function raisedBy(limits: Partial<BudgetAmounts>, more: BudgetAmounts): Partial<BudgetAmounts> {
  const parts = Object.entries(limits) as [BudgetPart, number][];
  return Object.fromEntries(parts.map(([part, limit]) => [part, limit + more[part]]));
}

/**
 * The accounts that several runs share.
 *
 * @throws InvalidOptionsError (521) if a key is missing, or invalid for stores.
 */
export function sharedAccounts(
  { conversation, by = [] }: Budget,
  scope: CallScope,
): readonly SharedAccount[] {
  const { conversationId } = scope;
  const accounts: SharedAccount[] = [];
  if (conversation !== undefined) {
    if (conversationId === undefined)
      throw wrongConfig({
        option: 'budget.conversation',
        problem: 'it is for a conversation, and the scope has no conversationId',
        fix: "the scope { conversationId: 'c1' }",
      });
    checkKey('scope.conversationId', conversationId);
    const key = conversationKey(conversationId);
    accounts.push(new SharedAccount({ key, option: 'budget.conversation' }, conversation));
  }
  for (const [index, { key: keyOf, ...limits }] of by.entries()) {
    const option = `budget.by[${index}]`;
    let key: unknown;
    let problem = 'the key says nobody, and all nobodies would share it';
    try {
      key = keyOf(scope);
    } catch (error) {
      // Also a fault of the author: a turn that is retried would fail each time.
      problem = `the key says nobody, as it failed: ${errorMessage(error)}`;
    }
    if (typeof key !== 'string' || key === '') {
      const fix = 'a key that says whose it is, or the scope with what it reads';
      throw wrongConfig({ option: `${option}.key`, problem, fix });
    }
    checkKey(`${option}.key`, key);
    accounts.push(new SharedAccount({ key, option }, limits));
  }
  return accounts;
}

/** Ledger keys have the same limits as stored ids. */
function checkKey(option: string, key: string): void {
  checkArguments({ of: 'the loop’s config', given: { [option]: key }, rules: { [option]: STORED_ID } });
}

/** Limits in the units of ledgers; without entries for missing and infinite limits. */
function amountsIn({ tokens, cost, calls, steps, timeMs }: BudgetLimits): Partial<BudgetAmounts> {
  const limits = { tokens, cost: cost === undefined ? undefined : inBillionths(cost), calls, steps, timeMs };
  return Object.fromEntries(Object.entries(limits).filter(([, limit]) => Number.isFinite(limit)));
}

function grantableIn({ whenSpent = 'end', ...limits }: AskableLimits): Partial<BudgetAmounts> {
  if (whenSpent === 'end') return {};
  return amountsIn(whenSpent === 'ask' ? limits : whenSpent.ask);
}

export type CountedBefore = Pick<RunState, 'spent' | 'granted' | 'usage' | 'iterations'>;

/** The last count may be older than the stored replies of a lost run. */
export function spentBefore(before: CountedBefore | undefined): BudgetAmounts {
  if (before === undefined) return NO_AMOUNTS;
  const { spent, usage, iterations } = before;
  const { tokens = 0, cost = 0, calls = 0, steps = 0, timeMs = 0 } = spent ?? {};
  return {
    tokens: Math.max(tokens, usage.totalTokens),
    cost: inBillionths(cost),
    calls,
    steps: Math.max(steps, iterations),
    timeMs,
  };
}

/** @throws RangeError for an invalid cost; the call is then refused. */
export function costOfCall(tool: ToolDefinition | undefined, args: JsonObject = {}): number {
  const cost: unknown = typeof tool?.cost === 'function' ? tool.cost(args) : (tool?.cost ?? 0);
  if (typeof cost === 'number' && Number.isFinite(cost) && cost >= 0) return inBillionths(cost);
  throw new RangeError(`The cost of a call of '${tool?.name}' is ${String(cost)}; it is a number, 0 or more`);
}

const HAS_RUN: readonly CallStatus[] = ['success', 'error', 'timed_out', 'aborted', 'started'];

/** Whether the tool of a call with this status has run, or may have run. */
export function mayHaveRun(status: CallStatus): boolean {
  return HAS_RUN.includes(status);
}

export interface Beyond {
  readonly account: Account;
  readonly part: BudgetPart;
  readonly limit: number;
  readonly used: number;
  /** The amount that can still be granted. */
  readonly grantable: number;
}

/** Reserves in all accounts or in none; grants are looked up only if their own limits are exceeded. */
export async function reserveShared(
  ledger: BudgetLedger,
  shared: readonly SharedAccount[],
  reservation: Omit<BudgetReservation, 'accounts'>,
): Promise<Beyond | undefined> {
  const accounts = shared.map(({ account }) => account);
  const outcome = await ledger.reserve({ ...reservation, accounts });
  if (outcome.status === 'reserved') return undefined;
  const raised = await Promise.all(
    shared.map(async (account) => {
      const granted = await grantedOf(ledger, account);
      return { account, granted, limits: raisedBy(account.limits, granted) };
    }),
  );
  const again = raised.every(({ granted }) => granted === NO_AMOUNTS)
    ? outcome
    : await ledger.reserve({
        ...reservation,
        accounts: raised.map(({ account, limits }) => ({ ...account.account, limits })),
      });
  if (again.status === 'reserved') return undefined;
  const { key, part, left } = again;
  const known = raised.flatMap(({ account, granted, limits }) => {
    const limit = limits[part];
    if (account.key !== key || limit === undefined) return [];
    const grantable = account.grantable(part) - granted[part];
    return [{ account, part, limit, used: limit - left, grantable }];
  });
  for (const beyond of known) {
    const { limits: _, ...account } = beyond.account.account;
    const { spent, reserved } = await ledger.balance(account);
    const all = addAmounts(spent, reserved);
    // A key may have several windows; and more may be used than the limit.
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

/** The lifetime of a grant without a window. */
const YEAR_MS = 31_536_000_000;

/**
 * Stores a grant with an account, up to the total that may be granted: as a reservation that is never settled. The id
 * is derived from the answer, so that the same answer is granted once.
 */
export async function grantShared(
  ledger: BudgetLedger,
  { grantedAccount }: SharedAccount,
  { id, part, amount }: { readonly id: string; readonly part: BudgetPart; readonly amount: number },
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
