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
  storeWith,
} from '../kernel/options.js';
import type { BudgetPart, StoreWithBudgets } from './budget-ledger.js';
import type { CallScope } from './call.js';
import type { LLMRequest } from './llm-provider.js';

/** Limits of a budget; amounts without a limit are not restricted. */
export interface BudgetLimits {
  /** Input and output together, as providers report them. */
  readonly tokens?: number;
  /** In the unit of the prices, usually dollars. */
  readonly cost?: number;
  /** Calls of tools that were executed. */
  readonly calls?: number;
  /** Requests to a model. */
  readonly steps?: number;
  /** Milliseconds that requests and calls take. Requests and calls that are running are not aborted. */
  readonly timeMs?: number;
}

/**
 * What happens to a run whose budget is used up. `end`: the run ends. `ask`: the run is suspended with a question
 * about more. In total, at most the limit once more can be granted, or the amounts in `{ ask: { cost: 2 } }`.
 */
export type WhenSpent = 'end' | 'ask' | { readonly ask: BudgetLimits };

/** Limits, and what happens when a run reaches one of them. */
export interface AskableLimits extends BudgetLimits {
  /** Default: `end`. A grant for a shared budget applies to all runs that share it. */
  readonly whenSpent?: WhenSpent;
}

/** A limit for all runs that share a key, for example the runs of one user. */
export interface KeyedBudget extends AskableLimits {
  /**
   * Returns the key of a run, for example `` ({ owner }) => (typeof owner === 'string' ? `user:${owner}` : undefined)
   * ``. If it returns nothing, the run is refused.
   */
  readonly key: (scope: CallScope) => string | undefined;
  /**
   * Length of the windows in milliseconds, aligned to 1970, for example one day: each window starts at zero. Default:
   * no windows; the amounts never reset.
   */
  readonly windowMs?: number;
}

/** Prices of a million tokens of a model. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  /** Price of input tokens read from the provider's cache; default: as `input`. */
  readonly cachedInput?: number;
  /** Price of input tokens written to the provider's cache; default: as `input`. */
  readonly cacheWrite?: number;
  /** The most tokens that a reply of the model can have. */
  readonly maxOutputTokens?: number;
}

/** Prices by model name. A name that ends in a date falls back to the name without the date. */
export type PriceTable = Readonly<Record<string, ModelPrice>>;

/** Limits of a run, of its conversation, and of all runs with the same key. */
export interface Budget extends AskableLimits {
  /** Limits of all runs of the conversation together (`scope.conversationId`). */
  readonly conversation?: AskableLimits;
  /** Limits of all runs that share a key, such as a user or a tenant. */
  readonly by?: readonly KeyedBudget[];
  /** Limits of each run that a tool of this run starts, such as a sub-agent. Its amounts also count for this run. */
  readonly children?: AskableLimits;
  /** Required for `cost`; default: `PRICES`. */
  readonly prices?: PriceTable;
  /**
   * Returns the most tokens that a request can have; default: an estimate from its length that is rather too high
   * than too low.
   */
  readonly countTokens?: (request: LLMRequest) => number;
  /**
   * The most tokens of a reply: they are reserved, and the request asks for no more. Default: the limit in
   * `llmOptions` or in the prices, otherwise 8,192 tokens are reserved.
   */
  readonly maxOutputTokens?: number;
  /** Stores the amounts of conversations and keys; default: the config's `store`. */
  readonly store?: StoreWithBudgets;
}

/** The amounts that were spent. */
export interface Spending {
  readonly tokens: number;
  readonly calls: number;
  readonly steps: number;
  readonly timeMs: number;
  /** Absent if there are no prices. */
  readonly cost?: number;
  /** By tool name: how often each tool ran, and the cost of these calls. */
  readonly tools: Readonly<Record<string, { readonly calls: number; readonly cost: number }>>;
}

/** The sum of both; `undefined` if both are. */
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

/** Adds in whole billionths, the unit of ledgers. */
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

/** Checked by its methods: the object may come from another copy of this package. */
/** Whether a store supports budgets. */
export const keepsBudgets = storeWith<StoreWithBudgets>('budgets', [
  ...['reserve', 'renewReservation', 'settle', 'balance'],
]);

/** The rule for the option `budget`. */
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
