import { type AskableLimits, type Budget, keepsBudgets, type PriceTable } from '../contract/budget.js';
import { type InvalidOption, InvalidOptionsError } from '../errors/author-fault.js';
import { PRICES, priceOf } from './prices.js';

type BudgetFault = Pick<InvalidOption, 'option' | 'problem' | 'fix'>;

export function wrongBudget({ option, problem, fix }: BudgetFault): InvalidOptionsError {
  return new InvalidOptionsError([{ where: 'the loop’s config', option, problem, fix }]);
}

/** Whether anything in it counts what requests cost. */
export function countsCost({ prices, cost, conversation, by = [], children }: Budget): boolean {
  const limits = [cost, conversation?.cost, children?.cost, ...by.map((keyed) => keyed.cost)];
  return prices !== undefined || limits.some((limit) => limit !== undefined);
}

/** A model without a price: what it costs is not known, and not free. */
export function missingPrice(prices: PriceTable | undefined, model: string): BudgetFault | undefined {
  try {
    priceOf(prices ?? PRICES, model);
    return undefined;
  } catch {
    return {
      option: 'budget.prices',
      problem: `there is no price for the model '${model}'`,
      fix: `budget: { prices: { ...PRICES, '${model}': { input: …, output: … } } }, in dollars for a million tokens`,
    };
  }
}

/** What a request reserves of a part that is too small for it; the amounts as people read them. */
export interface RequestNeed {
  readonly option: string;
  readonly reserved: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

function describeNeed({ reserved, inputTokens, outputTokens }: RequestNeed): string {
  return `reserves ${reserved} for about ${inputTokens} tokens of input and ${outputTokens} of output`;
}

const RESERVE_LESS = 'or reserve less, with budget.maxOutputTokens or a limit of tokens in llmOptions';

/** Why the next request is not made, and what would change that. */
export function nextRequest(need: RequestNeed): string {
  return `the next request ${describeNeed(need)}. Raise ${need.option}, ${RESERVE_LESS}.`;
}

/** A budget that has never had enough for a request. */
export function tooSmall(need: RequestNeed, limit: number): BudgetFault {
  const { option, reserved } = need;
  return {
    option,
    problem: `${option} is ${limit}, which pays for no useful request: one ${describeNeed(need)}`,
    fix: `${option}: ${reserved} or more; ${RESERVE_LESS}`,
  };
}

/** A budget that several runs share, and nothing that keeps it. */
export const MISSING_LEDGER: BudgetFault = {
  option: 'budget.store',
  problem: 'a budget of a conversation or a key is kept in a store, and there is none',
  fix: "budget: { conversation: { cost: 5 }, store: new SqliteRunStore({ path: 'runs.sqlite' }) }",
};

const PARTS = ['tokens', 'cost', 'calls', 'steps', 'timeMs'] as const;

/** Limits that ask for more, although there is nothing to grant. */
export function askingFaults({ conversation, by = [], children, ...own }: Budget): readonly BudgetFault[] {
  return [
    ...faultsOfAsking('budget', own),
    ...faultsOfAsking('budget.conversation', conversation),
    ...by.flatMap((limits, index) => faultsOfAsking(`budget.by[${index}]`, limits)),
    ...faultsOfAsking('budget.children', children),
  ];
}

function faultsOfAsking(of: string, limits: AskableLimits = {}): readonly BudgetFault[] {
  const { whenSpent = 'end' } = limits;
  if (whenSpent === 'end') return [];
  const limited = PARTS.filter((part) => limits[part] !== undefined);
  if (limited.length === 0) {
    const problem = `${of}.whenSpent asks for more, and nothing beside it is limited`;
    const fix = "the limits that it is for: { cost: 0.5, whenSpent: 'ask' }";
    return [{ option: `${of}.whenSpent`, problem, fix }];
  }
  if (whenSpent === 'ask') return [];
  const asked = PARTS.filter((part) => whenSpent.ask[part] !== undefined);
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

/** The faults of a budget whatever the run: models without a price, a missing store, questions for nothing. */
export function budgetFaults(
  budget: Budget,
  { models, store }: { readonly models: readonly string[]; readonly store: unknown },
): readonly BudgetFault[] {
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
