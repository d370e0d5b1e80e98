import { BUDGET, type Budget, type BudgetLimits, keepsBudgets } from '../../core/contract/budget.js';
import type { StoreWithBudgets } from '../../core/contract/budget-ledger.js';
import { type CallScope, keyOfPlace } from '../../core/contract/call.js';
import type { SchemaSource } from '../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { errorResult, ToolResult, toolResult } from '../../core/contract/tool-result.js';
import { type InvalidOption, invalidOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { onAbort } from '../../core/kernel/async.js';
import { isRecord } from '../../core/kernel/json.js';
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
} from '../../core/kernel/options.js';
import { visibleLine } from '../../core/kernel/visible-text.js';
import { registryOf, ToolRegistry } from '../../run/call/tool-registry.js';
import { agentAsTool, runAgentOf } from '../../run/loop/agent-as-tool.js';
import { LOOP_RULES, type ToolLoopConfig } from '../../run/loop/options.js';
import { PRICES, priceOf } from '../../run/loop/prices.js';
import { TOOL_NAME } from '../../tools/discovery/define-tool.js';

/** An agent of a table: its model and prompt, and what it may do. */
export interface NamedAgent
  extends Pick<
    ToolLoopConfig,
    'provider' | 'model' | 'tools' | 'llmOptions' | 'maxIterations' | 'policy' | 'hooks'
  > {
  /** What it does, and when to ask it. */
  readonly description: string;
  readonly systemPrompt?: string;
  /** Schema of an object: the agent answers with such data. */
  readonly output?: SchemaSource;
  /** What each of its runs may spend; this also counts for the run that asked it. */
  readonly budget?: Budget;
  /** Milliseconds for a whole run; default: only its requests and calls have limits. */
  readonly timeoutMs?: number;
  /** Names of other agents in the table that it may ask; each is a tool of that name. Default: none. */
  readonly agents?: readonly string[];
}

/** Options of {@link Agents}. */
export interface AgentsOptions {
  /** Agents by name. */
  readonly agents: Readonly<Record<string, NamedAgent>>;
  /** How deeply agents may be nested; default 4. */
  readonly maxDepth?: number;
  /** The most agents of one conversation at the same time in this process; default 8. */
  readonly maxUnderWay?: number;
  /** What all agents of one conversation may spend together. Needs `store`. */
  readonly total?: BudgetLimits;
  /** The store of the runs, for `total`. */
  readonly store?: StoreWithBudgets;
}

/** An agent, and what it is to do. */
export interface AgentTask {
  readonly agent: string;
  /** The prompt of the agent. */
  readonly task: string;
}

const DEFAULT_UNDER_WAY = 8;

/**
 * A table of agents for tools that ask them: `AgentTools`, `HandOffs`, or your own. Each run of an agent works as with
 * `agentAsTool`: inside the call that asks it, for the same owner, under the same policy.
 *
 * @throws InvalidOptionsError (521) with all faults of all agents, including models without a price;
 * ToolDeclarationError (502) for invalid tools.
 *
 * @example
 * ```ts
 * const agents = new Agents({
 *   agents: {
 *     research: { description: 'Finds out what is known about a company', provider, model: 'gpt-5-mini', tools },
 *   },
 * });
 * tools.register(...agentTools(agents));
 * ```
 */
export class Agents {
  readonly #options: AgentsOptions;
  readonly #registries: ReadonlyMap<string, ToolRegistry>;
  readonly #tools: ReadonlyMap<string, ToolDefinition>;
  /** Spawned agents by id. */
  readonly #spawned = new Map<string, SpawnedAgent>();
  #spawnedCount = 0;
  /** The number of delegating calls, by conversation. */
  readonly #waitedFor = new Map<string, number>();

  constructor(options: AgentsOptions) {
    checkAgents(options);
    this.#options = options;
    const entries = Object.entries(options.agents);
    this.#registries = new Map(entries.map(([name, { tools }]) => [name, registryOf(tools)]));
    this.#tools = new Map(entries.map(([name]) => [name, this.agentTool(name)]));
    for (const [name, { agents = [] }] of entries)
      this.toolsOf(name).register(...agents.flatMap((other) => this.toolOf(other) ?? []));
  }

  /** Names in the order of the table. */
  get names(): readonly string[] {
    return Object.keys(this.#options.agents);
  }

  /** An agent of the table; `undefined` for other names. */
  find(name: string): NamedAgent | undefined {
    const { agents } = this.#options;
    return Object.hasOwn(agents, name) ? agents[name] : undefined;
  }

  /** The tool of an agent: for its pending approvals, and for tools that stand for several agents. */
  toolOf(name: string): ToolDefinition | undefined {
    return this.#tools.get(name);
  }

  /** The tools of an agent, including the agents that it may ask. */
  toolsOf(name: string): ToolRegistry {
    return this.#registries.get(name) ?? new ToolRegistry();
  }

  /**
   * Runs an agent and returns its answer. If the agent waits for something, the call waits, too. An unknown name and
   * too many agents are errors for the model.
   */
  async delegate({ agent, task }: AgentTask, context: ToolContext): Promise<ToolResult> {
    const tool = this.toolOf(agent);
    if (tool === undefined) return this.unknown(agent);
    let hasPlace = false;
    try {
      // A call that is repeated after waiting counts already, whatever the limit is.
      const refused = await context.once('under way', () => {
        const refusal = this.#refusal(context);
        hasPlace = refusal === undefined && this.#count(context, 1);
        return refusal ?? null;
      });
      if (refused !== null) return errorResult(refused);
      hasPlace ||= this.#count(context, 1);
      return await runAgentOf(tool, { task }, { context });
    } finally {
      if (hasPlace) this.#count(context, -1);
    }
  }

  /**
   * Starts an agent in the background; its answer is the completion of the call. If the caller does not receive
   * completions, the call waits for it, as for all background work. Nobody can approve calls of the agent: it fails
   * then.
   */
  async spawn({ agent, task }: AgentTask, context: ToolContext): Promise<ToolResult> {
    const tool = this.toolOf(agent);
    if (tool === undefined) return this.unknown(agent);
    const refused = this.#refusal(context);
    if (refused !== undefined) return errorResult(refused);
    this.#spawnedCount += 1;
    const id = `agent_${this.#spawnedCount}`;
    const spawned = new SpawnedAgent(id, keyOfPlace(context), { agent, task });
    const unfollow = onAbort(context.signal, () => spawned.end('ended early'));
    this.#spawned.set(id, spawned);
    const ended = [...this.#spawned.values()].filter(({ hasEnded }) => hasEnded);
    for (const { id: old } of ended.slice(0, Math.max(0, ended.length - MOST_ENDED)))
      this.#spawned.delete(old);
    const signal = AbortSignal.any([context.signal, spawned.stopped]);
    return context.background(
      () => spawned.run(() => runAgentOf(tool, { task }, { context, signal })).finally(unfollow),
      `${spawned.id} has begun. Its answer will follow; agent_status tells how it stands, cancel_agent ends it.`,
    );
  }

  /** The spawned agents of a conversation, as text. */
  describeSpawned(context: ToolContext | undefined): string {
    const all = this.#spawnedBy(context);
    return all.length === 0 ? 'No agent was started.' : all.map((agent) => agent.describe()).join('\n');
  }

  /** The state of a spawned agent, with its answer if it has ended. */
  statusOf(id: string, context: ToolContext | undefined): ToolResult {
    return this.#findSpawned(id, context)?.status() ?? this.#unknownSpawned(id, context);
  }

  /** Cancels a spawned agent. */
  cancel(id: string, context: ToolContext | undefined): ToolResult {
    const found = this.#findSpawned(id, context);
    if (found === undefined) return this.#unknownSpawned(id, context);
    if (found.hasEnded) return toolResult(`It had ended already. ${found.describe()}`);
    found.cancel();
    return toolResult(`${id} is ended.`);
  }

  /** Cancels all spawned agents, when the application ends. */
  dispose(): void {
    for (const agent of this.#spawned.values()) if (!agent.hasEnded) agent.cancel();
  }

  #spawnedBy(context: ToolContext | undefined): readonly SpawnedAgent[] {
    const owner = keyOfPlace(context);
    return [...this.#spawned.values()].filter((agent) => agent.owner === owner);
  }

  #findSpawned(id: string, context: ToolContext | undefined): SpawnedAgent | undefined {
    return this.#spawnedBy(context).find((agent) => agent.id === id);
  }

  #unknownSpawned(id: string, context: ToolContext | undefined): ToolResult {
    return errorResult(`There is no '${id}'. ${this.describeSpawned(context)}`);
  }

  /** The error for an unknown name. */
  unknown(name: string): ToolResult {
    return errorResult(`There is no agent '${name}'. There are: ${this.names.join(', ')}.`);
  }

  /** An agent as a tool; `more` contains options for other uses. */
  agentTool(
    name: string,
    more: Partial<Pick<Parameters<typeof agentAsTool>[0], 'earlier' | 'prompt'>> = {},
  ): ToolDefinition {
    const { agents: _, tools: __, ...agent } = this.find(name) as NamedAgent;
    const { maxDepth, total, store } = this.#options;
    let { budget } = agent;
    if (total !== undefined && store !== undefined) {
      const key = (scope: CallScope): string => `agents:${keyOfPlace(scope)}`;
      budget = { ...budget, store, by: [...(budget?.by ?? []), { ...total, key }] };
    }
    return agentAsTool({
      ...agent,
      ...more,
      name,
      tools: this.toolsOf(name),
      ...(maxDepth !== undefined && { maxDepth }),
      ...(budget !== undefined && { budget }),
    });
  }

  #refusal(context: ToolContext): string | undefined {
    const { maxUnderWay = DEFAULT_UNDER_WAY } = this.#options;
    const key = keyOfPlace(context);
    const spawned = this.#spawnedBy(context).filter(({ hasEnded }) => !hasEnded).length;
    const count = (this.#waitedFor.get(key) ?? 0) + spawned;
    if (count < maxUnderWay) return undefined;
    return `The agent was not asked: ${count} agents are under way, and no more may be. Wait for one of them, or end one (cancel_agent).`;
  }

  #count(context: ToolContext, change: 1 | -1): true {
    const key = keyOfPlace(context);
    const count = (this.#waitedFor.get(key) ?? 0) + change;
    if (count > 0) this.#waitedFor.set(key, count);
    else this.#waitedFor.delete(key);
    return true;
  }
}

/** How many ended agents are remembered, in all conversations together. */
const MOST_ENDED = 200;
const MOST_SHOWN = 200;

/** An agent that runs in the background. */
class SpawnedAgent {
  readonly #stop = new AbortController();
  /** Aborted when the agent is cancelled. */
  readonly stopped = this.#stop.signal;
  readonly #since = performance.now();
  #status: 'waits for its turn' | 'under way' | 'done' | 'failed' | 'ended early' = 'waits for its turn';
  #took = 0;
  #result: ToolResult | undefined;

  constructor(
    readonly id: string,
    /** The key of its conversation: other conversations can neither see nor cancel it. */
    readonly owner: string,
    private readonly request: AgentTask,
  ) {}

  get hasEnded(): boolean {
    return this.#took > 0;
  }

  async run(work: () => Promise<ToolResult>): Promise<ToolResult> {
    if (!this.hasEnded) this.#status = 'under way';
    try {
      this.#result = await work();
      this.end(this.#result.isError ? 'failed' : 'done');
      return this.#result;
    } catch (error) {
      this.end('failed');
      throw error;
    }
  }

  cancel(): void {
    this.end('ended early');
    this.#stop.abort(new DOMException(`${this.id} was cancelled.`, 'AbortError'));
  }

  describe(): string {
    const task = visibleLine(this.request.task);
    const shown = task.length > MOST_SHOWN ? `${task.slice(0, MOST_SHOWN)}…` : task;
    const ms = this.hasEnded ? this.#took : performance.now() - this.#since;
    return `${this.id} (${this.request.agent}): ${this.#status}, ${(ms / 1_000).toFixed(1)} s: ${shown}`;
  }

  status(): ToolResult {
    const result = this.#result;
    const said = result === undefined ? '' : `\n${result.forLLM}`;
    return toolResult(`${this.describe()}${said}`);
  }

  /** The first outcome counts. */
  end(status: 'done' | 'failed' | 'ended early'): void {
    if (this.hasEnded) return;
    this.#status = status;
    this.#took = Math.max(performance.now() - this.#since, Number.EPSILON);
  }
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

const { provider, model, tools, llmOptions, maxIterations, policy, hooks, output, budget } = LOOP_RULES;
const AGENT = optionTable<NamedAgent>(
  'an agent',
  {
    description: required(FILLED_TEXT),
    ...{ provider, model, tools, llmOptions, maxIterations, policy, hooks },
    systemPrompt: TEXT,
    output,
    budget,
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
function checkAgents(options: AgentsOptions): void {
  const faults = invalidOptions(options, OPTIONS);
  if (!isRecord(options) || !isRecord(options.agents)) {
    refuseOptions(faults);
    return;
  }
  const { agents, total, store } = options;
  refuseOptions([
    ...faults,
    ...Object.entries(agents).flatMap(([name, agent]) => agentFaults(name, agent, options)),
    ...(total !== undefined && store === undefined ? [NO_STORE] : []),
  ]);
}

const NO_STORE: InvalidOption = {
  where: 'Agents',
  option: 'store',
  problem: 'store is missing, which total is kept in',
  fix: STORE,
};

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
  // The checks below need valid options.
  if (faults.length > 0) return faults;
  const { agents: others = [], tools, model, budget } = agent;
  const prices = budget?.prices ?? PRICES;
  const isPriced = budget?.cost !== undefined || budget?.prices !== undefined || total?.cost !== undefined;
  if (!TOOL_NAME.test(name))
    faults.push(fault('', `its name is not allowed for a tool (${TOOL_NAME.source})`, "'research'"));
  const names = Object.keys(agents).filter((other) => other !== name);
  const known = names.length > 0 ? `agents: ['${names.join("', '")}']` : 'no agents: the table has no other';
  for (const other of others)
    if (!names.includes(other))
      faults.push(fault('agents', `it may ask '${other}', which is no other agent of the table`, known));
  if (others.length > 0 && tools instanceof ToolRegistry)
    faults.push(fault('tools', 'it asks other agents, and its tools are a registry', 'tools: [tool, …]'));
  if (isPriced && !hasPrice(prices, model)) {
    const problem = `there is no price for its model '${model}'`;
    faults.push(fault('budget', problem, `prices: { ...PRICES, '${model}': … }`));
  }
  return faults;
}

function hasPrice(prices: Parameters<typeof priceOf>[0], model: string): boolean {
  try {
    return priceOf(prices, model) !== undefined;
  } catch {
    return false;
  }
}
