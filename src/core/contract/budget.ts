import { isRecord } from '../kernel/json.js';
import {
  FUNCTION,
  LIMIT,
  listOf,
  MILLISECONDS,
  NUMBER,
  type OptionRule,
  objectOf,
  optionTable,
  PAUSE,
  protecting,
  RECORD,
  type RulesOf,
  required,
  withMethods,
} from '../kernel/options.js';
import type { BudgetLedger, BudgetPart, StoreWithBudgets } from './budget-ledger.js';
import type { CallScope } from './call.js';
import type { LLMRequest } from './llm-provider.js';

/** Limits; an amount without a limit may grow freely. */
export interface BudgetLimits {
  /** Of input and output together, as providers report them. */
  readonly tokens?: number;
  /** In the unit of the prices, mostly dollars. */
  readonly cost?: number;
  /** Of tools, as far as they run. */
  readonly calls?: number;
  /** Requests to a model. */
  readonly steps?: number;
  /** Milliseconds that requests and calls take; those under way are not cut off. */
  readonly timeMs?: number;
}

/**
 * What becomes of a run that has spent all of it: it ends (`end`), or is suspended with a question how much more it may
 * take (`ask`): as much again at most, in all, or so much of each (`{ ask: { cost: 2 } }`).
 */
export type WhenSpent = 'end' | 'ask' | { readonly ask: BudgetLimits };

/** Limits, and what becomes of a run that comes to one of them. */
export interface AskableLimits extends BudgetLimits {
  /** Default: `end`. What is granted of a shared budget is granted to all who share it. */
  readonly whenSpent?: WhenSpent;
}

/** A limit over all runs that share a key, for example those of one user. */
export interface KeyedBudget extends AskableLimits {
  /** Whose it is: `` ({ owner }) => (typeof owner === 'string' ? `user:${owner}` : undefined) ``; nothing refuses the run. */
  readonly key: (scope: CallScope) => string | undefined;
  /** Counted anew in each window of so many milliseconds since 1970, such as a day; default: once and for all. */
  readonly windowMs?: number;
}

/** What a million tokens of a model cost. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  /** Of the input what came from the provider's cache; default: as `input`. */
  readonly cachedInput?: number;
  /** Of the input what was written to it; default: as `input`. */
  readonly cacheWrite?: number;
  /** Tokens that a reply of the model can have at most. */
  readonly maxOutputTokens?: number;
}

/** Prices by model. A name that ends in a date means the model without it, unless it is there itself. */
export type PriceTable = Readonly<Record<string, ModelPrice>>;

/** What a run, its conversation and whoever it is for may spend. */
export interface Budget extends AskableLimits {
  /** All runs of its conversation together (`scope.conversationId`). */
  readonly conversation?: AskableLimits;
  /** All runs of users, tenants or whatever else has a key. */
  readonly by?: readonly KeyedBudget[];
  /** Each run that a tool of this run begins, such as a sub-agent; what it spends counts here, too. */
  readonly children?: AskableLimits;
  /** Needed for `cost`; default: `PRICES`. */
  readonly prices?: PriceTable;
  /** Tokens of a request, as many as it may have; default: an estimate by its length, rather too high than too low. */
  readonly countTokens?: (request: LLMRequest) => number;
  /**
   * Tokens of a reply at most: so many are reserved, and no more requested. Default: what `llmOptions` or the prices
   * say; where they say nothing, 8,192 are reserved.
   */
  readonly maxOutputTokens?: number;
  /** Stores what conversations and keys spend; default: the config's `store`. */
  readonly store?: StoreWithBudgets;
}

/** What was spent. */
export interface Spending {
  readonly tokens: number;
  readonly calls: number;
  readonly steps: number;
  readonly timeMs: number;
  /** Absent where there are no prices. */
  readonly cost?: number;
  /** By the names of tools: how often each ran, and what that cost. */
  readonly tools: Readonly<Record<string, { readonly calls: number; readonly cost: number }>>;
}

/** The sum of two; of none, none. */
export function addSpending(one: Spending | undefined, other: Spending | undefined): Spending | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const tools = { ...one.tools };
  for (const [name, { calls, cost }] of Object.entries(other.tools)) {
    const { calls: before, cost: costBefore } = tools[name] ?? { calls: 0, cost: 0 };
    tools[name] = { calls: before + calls, cost: addCosts(costBefore, cost) };
  }
  const isPriced = one.cost !== undefined || other.cost !== undefined;
  return {
    tokens: one.tokens + other.tokens,
    calls: one.calls + other.calls,
    steps: one.steps + other.steps,
    timeMs: one.timeMs + other.timeMs,
    ...(isPriced ? { cost: addCosts(one.cost ?? 0, other.cost ?? 0) } : {}),
    tools,
  };
}

/** In whole billionths, as they are counted. */
function addCosts(one: number, other: number): number {
  return Math.round((one + other) * 1e9) / 1e9;
}

/** Amounts that were granted to a run beyond its own budget, in the units of ledgers. */
export interface BudgetGrant {
  readonly account: string;
  readonly part: BudgetPart;
  readonly amount: number;
}

const LIMITS: RulesOf<BudgetLimits> = {
  tokens: protecting(LIMIT),
  cost: protecting({ ...PAUSE, fix: 'a number, 0 or more: 0.5' }),
  calls: protecting(LIMIT),
  steps: protecting(LIMIT),
  timeMs: protecting(MILLISECONDS),
};

const ASKED_LIMITS = objectOf<BudgetLimits>(LIMITS, { fix: '{ cost: 2 }' });

const ASKING = objectOf<{ readonly ask: BudgetLimits }>(
  { ask: required(ASKED_LIMITS) },
  { fix: '{ ask: { cost: 2 } }' },
);

const WHEN_SPENT: OptionRule = {
  accepts: (value) =>
    value === 'end' || value === 'ask' || (isRecord(value) && 'ask' in value && ASKING.accepts(value)),
  fix: "'end', 'ask' or { ask: { cost: 2 } }",
  schema: { anyOf: [{ enum: ['end', 'ask'] }, ASKING.schema] },
};

const ASKABLE: RulesOf<AskableLimits> = { ...LIMITS, whenSpent: protecting(WHEN_SPENT) };

const LIMITS_OPTION = protecting(objectOf<AskableLimits>(ASKABLE, { fix: '{ cost: 5 }' }));

const PRICE = optionTable<ModelPrice>('a price', {
  input: required(NUMBER),
  output: required(NUMBER),
  cachedInput: NUMBER,
  cacheWrite: NUMBER,
  maxOutputTokens: LIMIT,
});

const PRICE_OPTION = objectOf<ModelPrice>(Object.fromEntries(PRICE.rules) as never, { fix: '' });

const PRICED: OptionRule = {
  ...RECORD,
  fix: "{ ...PRICES, 'my-model': { input: 1.25, output: 10 } }",
  schema: { type: 'object', additionalProperties: PRICE_OPTION.schema },
  accepts: (value) =>
    RECORD.accepts(value) && Object.values(value as object).every((price) => PRICE_OPTION.accepts(price)),
};

const KEYED = objectOf<KeyedBudget>(
  { ...ASKABLE, key: required(FUNCTION), windowMs: MILLISECONDS },
  { fix: "{ key: ({ owner }) => 'tenant:…', windowMs: 86_400_000, cost: 20 }" },
);

/** A ledger is asked for by name: it may come from another copy of this package. */
const LEDGER = withMethods(['reserve', 'renewReservation', 'settle', 'balance'], 'a ledger of budgets');

/** Whether a store supports budgets. */
export function keepsBudgets(store: unknown): store is StoreWithBudgets {
  const { budgets } = (store ?? {}) as { readonly budgets?: BudgetLedger };
  return LEDGER.accepts(budgets);
}

/** What the option `budget` may be. */
export const BUDGET: OptionRule = protecting(
  objectOf<Budget>(
    {
      ...ASKABLE,
      conversation: LIMITS_OPTION,
      by: protecting(listOf(KEYED, `[${KEYED.fix}]`)),
      children: LIMITS_OPTION,
      prices: PRICED,
      countTokens: FUNCTION,
      maxOutputTokens: LIMIT,
      store: { accepts: keepsBudgets, fix: "new SqliteRunStore({ path: 'runs.sqlite' })" },
    },
    {
      fix: '{ cost: 0.5, calls: 40 }',
      meant: { maxCost: 'cost: …', maxTokens: 'tokens: …', maxSteps: 'steps: …', run: '{ cost: 0.5 }' },
    },
  ),
);
