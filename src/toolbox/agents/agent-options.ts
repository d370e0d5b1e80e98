import { ToolRegistry } from '../../call/tool-registry.js';
import { BUDGET, type Budget, type BudgetLimits, keepsBudgets } from '../../contract/budget.js';
import type { StoreWithBudgets } from '../../contract/budget-ledger.js';
import type { SchemaSource } from '../../contract/json-schema.js';
import { TOOL_NAME } from '../../discovery/define-tool.js';
import { type InvalidOption, invalidOptions, refuseOptions } from '../../errors/author-fault.js';
import { isRecord } from '../../kernel/json.js';
import {
  COUNT,
  COUNT_LIMIT,
  FILLED_TEXT,
  LIST,
  MILLISECONDS,
  optionTable,
  protecting,
  required,
  TEXT,
} from '../../kernel/options.js';
import { LOOP_RULES, type ToolLoopConfig } from '../../loop/options.js';
import { PRICES, priceOf } from '../../loop/prices.js';

/** One agent of a table: what it is asked with, and what it may do. */
export interface NamedAgent
  extends Pick<
    ToolLoopConfig,
    'provider' | 'model' | 'tools' | 'llmOptions' | 'maxIterations' | 'policy' | 'hooks'
  > {
  /** What it does, and when to ask it. */
  readonly description: string;
  readonly systemPrompt?: string;
  /** Of an object: it answers with such data. */
  readonly output?: SchemaSource;
  /** What each of its runs may spend; it counts for the run that asked it, too. */
  readonly budget?: Budget;
  /** Milliseconds for a whole run of it; default: no limit but those of its requests and calls. */
  readonly timeoutMs?: number;
  /** Names of other agents of the table that it may ask: each is a tool of that name. Default: none. */
  readonly agents?: readonly string[];
}

/** What `Agents` are made from. */
export interface AgentsOptions {
  /** By name: letters, digits, `_` and `-`. */
  readonly agents: Readonly<Record<string, NamedAgent>>;
  /** So many agents may be in each other; default 4. */
  readonly maxDepth?: number;
  /** So many may be under way in one conversation at a time, in this process; default 8. */
  readonly maxUnderWay?: number;
  /** What all agents of one conversation may spend together, through all of its runs; needs `store`. */
  readonly total?: BudgetLimits;
  /** Keeps what was spent of `total`: the store of the runs that ask the agents. */
  readonly store?: StoreWithBudgets;
}

const STORE = "new SqliteRunStore({ path: 'runs.sqlite' }), or another store that keeps budgets";

const OPTIONS = optionTable<AgentsOptions>('Agents', {
  agents: required({
    accepts: (value) => isRecord(value) && Object.keys(value).length > 0,
    fix: "{ research: { description: '…', provider, model: 'gpt-5-mini' } }",
  }),
  maxDepth: COUNT,
  maxUnderWay: COUNT_LIMIT,
  total: protecting({
    accepts: (value) => BUDGET.accepts({ children: value }),
    fix: '{ cost: 5, steps: 200 }',
  }),
  store: { accepts: keepsBudgets, fix: STORE },
});

const AGENT = optionTable<NamedAgent>(
  'an agent',
  {
    description: required(FILLED_TEXT),
    provider: LOOP_RULES.provider,
    model: LOOP_RULES.model,
    tools: LOOP_RULES.tools,
    llmOptions: LOOP_RULES.llmOptions,
    maxIterations: LOOP_RULES.maxIterations,
    policy: LOOP_RULES.policy,
    hooks: LOOP_RULES.hooks,
    systemPrompt: TEXT,
    output: LOOP_RULES.output,
    budget: LOOP_RULES.budget,
    timeoutMs: MILLISECONDS,
    agents: LIST,
  },
  { name: 'its key in the table' },
);

/**
 * Checks a table of agents as a whole.
 *
 * @throws InvalidOptionsError (521).
 */
export function checkAgents(options: AgentsOptions): void {
  const faults = invalidOptions(options, OPTIONS);
  if (!isRecord(options) || !isRecord(options.agents)) {
    refuseOptions(faults);
    return;
  }
  const { agents, total, store } = options;
  refuseOptions([
    ...faults,
    ...Object.entries(agents).flatMap(([name, agent]) => agentFaults(name, agent, options)),
    ...(total !== undefined && store === undefined
      ? [
          {
            where: 'Agents',
            option: 'store',
            problem: 'store is missing, which total is kept in',
            fix: STORE,
          },
        ]
      : []),
  ]);
}

function agentFaults(
  name: string,
  agent: NamedAgent,
  { agents, total }: AgentsOptions,
): readonly InvalidOption[] {
  const where = `the agent '${name}'`;
  const fault = (option: string, problem: string, fix: string): InvalidOption => ({
    where,
    option: ['agents', name, option].filter(Boolean).join('.'),
    problem,
    fix,
  });
  const faults = invalidOptions(agent, AGENT).map(({ option, problem, fix }) => fault(option, problem, fix));
  if (faults.length > 0) return faults;
  const { agents: others = [], tools, model, budget } = agent;
  const prices = budget?.prices ?? PRICES;
  const isPriced = budget?.cost !== undefined || budget?.prices !== undefined || total?.cost !== undefined;
  return [
    ...(TOOL_NAME.test(name)
      ? []
      : [fault('', `its name is none that a tool may have (${TOOL_NAME.source})`, "'research'")]),
    ...strangersOf(name, others, agents).map(({ problem, fix }) => fault('agents', problem, fix)),
    ...(others.length > 0 && tools instanceof ToolRegistry
      ? [fault('tools', 'it asks other agents, and its tools are a registry', 'tools: [tool, …]')]
      : []),
    ...(isPriced && !hasPrice(prices, model)
      ? [
          fault(
            'budget',
            `there is no price for its model '${model}'`,
            `prices: { ...PRICES, '${model}': … }`,
          ),
        ]
      : []),
  ];
}

/** The names that an agent may ask and that no other agent of the table has, and what to write. */
function strangersOf(
  name: string,
  asked: readonly string[],
  table: Readonly<Record<string, unknown>>,
): readonly Pick<InvalidOption, 'problem' | 'fix'>[] {
  const names = Object.keys(table).filter((other) => other !== name);
  const fix = names.length > 0 ? `agents: ['${names.join("', '")}']` : 'no agents: the table has no other';
  return asked
    .filter((other) => !names.includes(other))
    .map((other) => ({ problem: `it may ask '${other}', which is no other agent of the table`, fix }));
}

function hasPrice(prices: Parameters<typeof priceOf>[0], model: string): boolean {
  try {
    return priceOf(prices, model) !== undefined;
  } catch {
    return false;
  }
}
