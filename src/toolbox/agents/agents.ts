import { Param, Tool, ToolContext, Toolset } from '../../../decorators/index.js';
import { BUDGET, type Budget, type BudgetLimits, keepsBudgets } from '../../core/contract/budget.js';
import type { StoreWithBudgets } from '../../core/contract/budget-ledger.js';
import { type CallScope, keyOfPlace } from '../../core/contract/call.js';
import type { JsonObject, SchemaSource } from '../../core/contract/json-schema.js';
import type { AssistantMessage, Message } from '../../core/contract/llm-provider.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { errorResult, ToolResult, toolResult } from '../../core/contract/tool-result.js';
import {
  checkArguments,
  checkOptions,
  type InvalidOption,
  invalidOptions,
  refuseOptions,
} from '../../core/errors/author-fault.js';
import { onAbort } from '../../core/kernel/async.js';
import { isRecord, parsedJson, withoutUndefined } from '../../core/kernel/json.js';
import {
  COUNT,
  COUNT_LIMIT,
  FILLED_TEXT,
  instanceOf,
  LIST,
  MILLISECONDS,
  optionTable,
  protecting,
  required,
  TEXT,
  withMethods,
} from '../../core/kernel/options.js';
import { visibleLine } from '../../core/kernel/visible-text.js';
import { registryOf, ToolRegistry } from '../../run/call/tool-registry.js';
import type { Conversation } from '../../run/conversation/conversation.js';
import type { ConversationsConfig } from '../../run/conversation/conversations-options.js';
import { type AgentContext, agentAsTool, noteAgents, runAgentOf } from '../../run/loop/agent-as-tool.js';
import { LOOP_RULES, type ToolLoopConfig } from '../../run/loop/options.js';
import { PRICES, priceOf } from '../../run/loop/prices.js';
import { freezeTool, TOOL_NAME } from '../../tools/discovery/define-tool.js';
import { toolsOfInstances } from '../../tools/discovery/discover-tools.js';

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
   * completions, the call waits for it, as for all background work. Calls of the agent cannot be approved: the agent
   * fails if a call needs an approval.
   */
  async spawn({ agent, task }: AgentTask, context: ToolContext): Promise<ToolResult> {
    const tool = this.toolOf(agent);
    if (tool === undefined) return this.unknown(agent);
    const refused = this.#refusal(context);
    if (refused !== undefined) return errorResult(refused);
    this.#spawnedCount += 1;
    const id = `agent_${this.#spawnedCount}`;
    const spawned = new SpawnedAgent(id, keyOfPlace(context), { agent, task });
    const unfollow = onAbort(context.signal, () => spawned.end('cancelled'));
    this.#spawned.set(id, spawned);
    const ended = [...this.#spawned.values()].filter(({ hasEnded }) => hasEnded);
    for (const { id: old } of ended.slice(0, Math.max(0, ended.length - MOST_ENDED)))
      this.#spawned.delete(old);
    const signal = AbortSignal.any([context.signal, spawned.stopped]);
    return context.background(
      () => spawned.run(() => runAgentOf(tool, { task }, { context, signal })).finally(unfollow),
      `${spawned.id} was started. Its answer will follow. agent_status returns its status, cancel_agent cancels it.`,
    );
  }

  /** The spawned agents of a conversation, as text. */
  describeSpawned(context: ToolContext | undefined): string {
    const all = this.#spawnedBy(context);
    return all.length === 0 ? 'No agent was started.' : all.map((agent) => agent.describe()).join('\n');
  }

  /** The state of a spawned agent, with its answer if it has ended. */
  statusOf(id: string, context: ToolContext | undefined): ToolResult {
    const found = this.#findSpawned(id, context);
    if (found instanceof ToolResult) return found;
    const { result } = found;
    return toolResult(result === undefined ? found.describe() : `${found.describe()}\n${result.forLLM}`);
  }

  /** Cancels a spawned agent. */
  cancel(id: string, context: ToolContext | undefined): ToolResult {
    const found = this.#findSpawned(id, context);
    if (found instanceof ToolResult) return found;
    if (found.hasEnded) return toolResult(`It has already ended. ${found.describe()}`);
    found.cancel();
    return toolResult(`${id} was cancelled.`);
  }

  /** Cancels all spawned agents, when the application ends. */
  dispose(): void {
    for (const agent of this.#spawned.values()) if (!agent.hasEnded) agent.cancel();
  }

  #spawnedBy(context: ToolContext | undefined): readonly SpawnedAgent[] {
    const owner = keyOfPlace(context);
    return [...this.#spawned.values()].filter((agent) => agent.owner === owner);
  }

  /** A spawned agent of the conversation, or the error for an unknown id. */
  #findSpawned(id: string, context: ToolContext | undefined): SpawnedAgent | ToolResult {
    const found = this.#spawnedBy(context).find((agent) => agent.id === id);
    return found ?? errorResult(`There is no '${id}'. ${this.describeSpawned(context)}`);
  }

  /** The error for an unknown name. */
  unknown(name: string): ToolResult {
    return errorResult(`There is no agent '${name}'. The agents are: ${this.names.join(', ')}.`);
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
    return `The agent was not started: ${count} agents are running; the limit is ${maxUnderWay}. Wait for one of them, or cancel one (cancel_agent).`;
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
  #status: 'queued' | 'running' | 'done' | 'failed' | 'cancelled' = 'queued';
  #took = 0;
  /** Its answer, once it has ended. */
  result: ToolResult | undefined;

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
    if (!this.hasEnded) this.#status = 'running';
    try {
      this.result = await work();
      this.end(this.result.isError ? 'failed' : 'done');
      return this.result;
    } catch (error) {
      this.end('failed');
      throw error;
    }
  }

  cancel(): void {
    this.end('cancelled');
    this.#stop.abort(new DOMException(`${this.id} was cancelled.`, 'AbortError'));
  }

  describe(): string {
    const task = visibleLine(this.request.task);
    const shown = task.length > MOST_SHOWN ? `${task.slice(0, MOST_SHOWN)}…` : task;
    const ms = this.hasEnded ? this.#took : performance.now() - this.#since;
    return `${this.id} (${this.request.agent}): ${this.#status}, ${(ms / 1_000).toFixed(1)} s: ${shown}`;
  }

  /** The first outcome counts. */
  end(status: 'done' | 'failed' | 'cancelled'): void {
    if (this.hasEnded) return;
    this.#status = status;
    this.#took = Math.max(performance.now() - this.#since, Number.EPSILON);
  }
}

const STORE = "new SqliteRunStore({ path: 'runs.sqlite' }), or another store that supports budgets";

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
    ...(total !== undefined && store === undefined
      ? [
          {
            where: 'Agents',
            option: 'store',
            problem: 'store is missing; total needs it',
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
  // The checks below need valid options.
  if (faults.length > 0) return faults;
  const { agents: others = [], tools, model, budget } = agent;
  const prices = budget?.prices ?? PRICES;
  const isPriced = budget?.cost !== undefined || budget?.prices !== undefined || total?.cost !== undefined;
  if (!TOOL_NAME.test(name))
    faults.push(fault('', `its name is not a valid tool name (${TOOL_NAME.source})`, "'research'"));
  const names = Object.keys(agents).filter((other) => other !== name);
  const known =
    names.length > 0 ? `agents: ['${names.join("', '")}']` : 'no agents: the table has no other agent';
  for (const other of others)
    if (!names.includes(other))
      faults.push(fault('agents', `it may ask '${other}', which is not another agent of the table`, known));
  if (others.length > 0 && tools instanceof ToolRegistry)
    faults.push(
      fault(
        'tools',
        'it may ask other agents, so its tools must be a list, not a registry',
        'tools: [tool, …]',
      ),
    );
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

/** Description of the parameter that names an agent. */
const AGENT_NAME = 'Name of the agent';

const TASK = 'The task, with all the information that the agent needs: it cannot see this conversation';
const ID = 'Id of a started agent, e.g. agent_1';

/**
 * Tools that ask other agents: `delegate` waits for the answer, `spawn_agent` continues without it. The injected
 * {@link Agents} contain the agents.
 *
 * @example
 * ```ts
 * container.register(Agents, { useValue: agents });
 * tools.register(...discoverTools({ toolsets: [AgentTools] }));
 * ```
 */
@Toolset({ name: 'Agents', description: 'Other agents, each with its own tools.' })
export class AgentTools {
  constructor(protected readonly agents: Agents) {}

  @Tool({
    description: 'Give a task to another agent, and get its answer.',
    annotations: { title: 'Delegate' },
    timeoutMs: Number.POSITIVE_INFINITY,
  })
  delegate(
    @Param({ name: 'agent', description: AGENT_NAME, required: true }) agent: string,
    @Param({ name: 'task', description: TASK, required: true, minLength: 1 }) task: string,
    context: ToolContext,
  ): Promise<ToolResult> {
    return this.agents.delegate({ agent, task }, context);
  }

  @Tool({
    description:
      'Start another agent without waiting for it: its answer arrives later. Use it for long tasks, or for several tasks at once.',
    annotations: { title: 'Start agent' },
    timeoutMs: Number.POSITIVE_INFINITY,
  })
  async spawnAgent(
    @Param({ name: 'agent', description: AGENT_NAME, required: true }) agent: string,
    @Param({ name: 'task', description: TASK, required: true, minLength: 1 }) task: string,
    context: ToolContext,
  ): Promise<ToolResult> {
    return this.agents.spawn({ agent, task }, context);
  }

  @Tool({
    description: 'List the agents that you can ask, and the agents that you have started.',
    annotations: { title: 'List agents', readOnly: true },
  })
  listAgents(context?: ToolContext): string {
    const known = describeAgents(this.agents, this.agents.names);
    return `${known}\n\nStarted:\n${this.agents.describeSpawned(context)}`;
  }

  @Tool({
    description: 'Get the status of an agent that you have started, and its answer if it has ended.',
    annotations: { title: 'Agent status', readOnly: true },
  })
  agentStatus(
    @Param({ name: 'id', description: ID, required: true }) id: string,
    context?: ToolContext,
  ): ToolResult {
    return this.agents.statusOf(id, context);
  }

  @Tool({
    description: 'Cancel an agent that you have started.',
    annotations: { title: 'Cancel agent', destructive: true, idempotent: true },
  })
  cancelAgent(
    @Param({ name: 'id', description: ID, required: true }) id: string,
    context?: ToolContext,
  ): ToolResult {
    return this.agents.cancel(id, context);
  }
}

const AGENTS = required(instanceOf(Agents, 'new Agents({ agents: { … } })'));

/** Tools whose argument names an agent. */
const ASKING = ['delegate', 'spawn_agent'];

/**
 * Creates `delegate`, `spawn_agent`, `list_agents`, `agent_status` and `cancel_agent` without a container. The
 * descriptions of the first two list the agents, and they accept no other names. Unlike with the toolset, approvals of
 * an agent's calls may change arguments or be remembered for later calls, because the agent's tools are known.
 *
 * @throws InvalidOptionsError (521) if `agents` is not an `Agents`, and for names that are not in the table.
 *
 * @example
 * ```ts
 * tools.register(...agentTools(agents));
 * ```
 */
export function agentTools(agents: Agents, options: OfferOptions = {}): ToolDefinition[] {
  checkArguments({ of: 'agentTools', given: { agents }, rules: { agents: AGENTS } });
  checkOptions(options, OFFER_OPTIONS);
  const toolOf = (name: string) => agents.toolOf(name);
  const offered = toolsOfInstances(new AgentTools(agents)).flatMap((tool) =>
    ASKING.includes(tool.name) ? withAgents(tool, agents, { ...options, toolOf }) : [tool],
  );
  return offered.some(({ name }) => ASKING.includes(name)) ? offered : [];
}

/** Denies calls before they are made, as `Permissions` do. */
export interface Forbids {
  /** Whether a call is denied for every caller at every time. */
  denies(call: { readonly tool: ToolDefinition; readonly arguments: JsonObject }): boolean;
}

/** Which agents are offered to a model. */
export interface OfferOptions {
  /** Names; default: all agents of the table. */
  readonly names?: readonly string[];
  /** Agents that it denies are not offered. Use it as the policy of the run, too. */
  readonly permissions?: Forbids;
}

const PERMISSIONS = protecting(withMethods(['denies'], 'new Permissions({ … })'));
const OFFER_OPTIONS = optionTable<OfferOptions>('agentTools', {
  names: protecting({ ...LIST, fix: "['research']" }),
  permissions: PERMISSIONS,
});

interface AskingOptions extends OfferOptions {
  /** The tool of an agent, which runs it. */
  readonly toolOf: (name: string) => ToolDefinition | undefined;
}

function describeAgents(agents: Agents, names: readonly string[]): string {
  return ['Agents:', ...names.map((name) => `- ${name}: ${agents.find(name)?.description}`)].join('\n');
}

/** A copy of a tool that lists the offered agents and refuses others; nothing if no agent is offered. */
function withAgents(
  tool: ToolDefinition,
  agents: Agents,
  { names = agents.names, permissions, toolOf }: AskingOptions,
): readonly ToolDefinition[] {
  const fix = `names: any of ${agents.names.join(', ')}`;
  refuseOptions(
    names
      .filter((name) => agents.find(name) === undefined)
      .map((name) => ({
        where: 'agentTools',
        option: 'names',
        problem: `there is no agent '${name}'`,
        fix,
      })),
  );
  const offered = names.filter((agent) => permissions?.denies({ tool, arguments: { agent } }) !== true);
  if (offered.length === 0) return [];
  const { properties } = tool.parameters as { readonly properties: Readonly<Record<string, JsonObject>> };
  const listed = {
    ...tool,
    description: `${tool.description} ${describeAgents(agents, offered)}`,
    parameters: {
      ...tool.parameters,
      properties: { ...properties, agent: { ...properties.agent, enum: offered } },
    },
  };
  const named = freezeTool(listed, listed);
  noteAgents(named, ({ agent }: JsonObject) => toolOf(String(agent)));
  return [named];
}

/** Options of {@link HandOffs}. */
export interface HandOffsOptions {
  readonly agents: Agents;
  /** The agent that has a conversation before the first hand-off. */
  readonly first: string;
  /** Agents that it denies are not offered. Use it as the policy of the runs, too. */
  readonly permissions?: Forbids;
}

const HAND_OFF_OPTIONS = optionTable<HandOffsOptions>('HandOffs', {
  agents: AGENTS,
  first: required(FILLED_TEXT),
  permissions: PERMISSIONS,
});

const HAND_OFF = 'hand_off';

/** The options of an agent that apply to a turn of a conversation. */
type AgentTurnConfig = Pick<
  ConversationsConfig,
  'provider' | 'model' | 'systemPrompt' | 'llmOptions' | 'maxIterations'
> & { readonly tools: ToolRegistry };

/**
 * Conversations that agents hand over to each other. The history determines the current agent: that of the last
 * successful `hand_off`. So no other state needs to be stored.
 *
 * @throws InvalidOptionsError (521), also if `first` is not in the table.
 *
 * @example
 * ```ts
 * const desk = new HandOffs({ agents, first: 'front' });
 * const conversations = new Conversations({
 *   store: new SqliteRunStore({ path: 'runs.sqlite' }),
 *   config: ({ messages }) => desk.configOf(messages),
 * });
 * ```
 */
export class HandOffs {
  readonly #options: HandOffsOptions;
  /** Registries by agent. */
  readonly #tools = new Map<string, ToolRegistry>();
  readonly #takers: ReadonlyMap<string, ToolDefinition>;

  constructor(options: HandOffsOptions) {
    checkOptions(options, HAND_OFF_OPTIONS);
    const { agents, first } = options;
    const names = agents.names.map((name) => `'${name}'`).join(' or ');
    const problem = `there is no agent '${first}'`;
    const stranger = { where: 'HandOffs', option: 'first', problem, fix: names };
    refuseOptions([
      ...(agents.find(first) === undefined ? [stranger] : []),
      // A registry may have options such as hooks, which a copy with an additional tool would lose.
      ...agents.names
        .filter((name) => agents.find(name)?.tools instanceof ToolRegistry)
        .map((name) => ({
          where: `the agent '${name}'`,
          option: 'tools',
          problem: 'it hands off conversations, so its tools must be a list, not a registry',
          fix: 'tools: [tool, …]',
        })),
    ]);
    this.#options = options;
    const prompt = (args: unknown): string =>
      `This conversation was handed over to you: ${String((args as JsonObject).note)}\nContinue it.`;
    this.#takers = new Map(
      agents.names.map((name) => [name, agents.agentTool(name, { earlier: saidBefore, prompt })]),
    );
  }

  /** The current agent of a conversation with this history. */
  agentOf(messages: readonly Message[]): string {
    const { agents, first } = this.#options;
    for (let index = messages.length - 1; index >= 0; index -= 1) {
      const message = messages[index];
      if (message?.role !== 'assistant') continue;
      const taker = takerIn(message, messages.slice(index + 1));
      if (taker !== undefined && agents.find(taker) !== undefined) return taker;
    }
    return first;
  }

  /**
   * The configuration of the next turn: the provider, model, prompt and tools of the current agent, and `hand_off` to
   * the other agents.
   */
  configOf(messages: readonly Message[]): AgentTurnConfig {
    const name = this.agentOf(messages);
    const agent = this.#options.agents.find(name) as NamedAgent;
    const { provider, model, systemPrompt, llmOptions, maxIterations } = agent;
    const tools = this.#toolsOf(name);
    return withoutUndefined({ provider, model, tools, systemPrompt, llmOptions, maxIterations });
  }

  /** Configures a `Conversation` for its current agent, now and after each turn; returns a function that stops this. */
  follow(conversation: Conversation): () => void {
    const give = (): void => {
      const { provider, model, tools, systemPrompt = '' } = this.configOf(conversation.messages);
      conversation.update({ provider, model, tools, systemPrompt });
    };
    give();
    return conversation.subscribe(({ type }) => {
      if (type === 'turn-end') give();
    });
  }

  /** Runs an agent on the conversation so far; its answer ends the run. */
  async take(agent: string, note: string, context: ToolContext): Promise<ToolResult> {
    const taker = this.#takers.get(agent);
    return taker === undefined
      ? this.#options.agents.unknown(agent)
      : runAgentOf(taker, { note }, { context });
  }

  #toolsOf(name: string): ToolRegistry {
    const known = this.#tools.get(name);
    if (known !== undefined) return known;
    const { agents, permissions } = this.#options;
    const { policy } = agents.find(name) as NamedAgent;
    const tools = new ToolRegistry(policy && { policy }).merge(agents.toolsOf(name));
    const others = agents.names.filter((other) => other !== name);
    const toolOf = (agent: string) => this.#takers.get(agent);
    for (const tool of toolsOfInstances(new HandOffTools(this)))
      tools.register(
        ...withAgents(tool, agents, { names: others, toolOf, ...(permissions && { permissions }) }),
      );
    this.#tools.set(name, tools);
    return tools;
  }
}

/** The tool with which an agent hands its conversation over to another agent. */
@Toolset({ name: 'Hand-offs' })
export class HandOffTools {
  constructor(protected readonly handOffs: HandOffs) {}

  @Tool({
    description:
      'Hand this conversation over to another agent, which answers in your place and continues the conversation. Use it for requests that another agent is responsible for.',
    annotations: { title: 'Hand off' },
    timeoutMs: Number.POSITIVE_INFINITY,
    returnDirect: true,
    sequential: true,
  })
  handOff(
    @Param({ name: 'agent', description: AGENT_NAME, required: true }) agent: string,
    @Param({
      name: 'note',
      description: 'What the agent should know in addition to the conversation',
      required: true,
      minLength: 1,
    })
    note: string,
    context: ToolContext,
  ): Promise<ToolResult> {
    return this.handOffs.take(agent, note, context);
  }
}

/** The conversation without the current agent's instructions and without the message that hands it over. */
function saidBefore({ messages }: AgentContext): readonly Message[] {
  const open = messages.at(-1)?.role === 'assistant' ? messages.slice(0, -1) : messages;
  return open.filter(({ role }) => role !== 'system' && role !== 'developer');
}

/** The agent that a message handed the conversation over to; failed and refused calls do not count. */
function takerIn(message: AssistantMessage, after: readonly Message[]): string | undefined {
  const { tool_calls: calls = [] } = message;
  for (const call of calls.toReversed()) {
    if (call.function.name !== HAND_OFF) continue;
    const answer = after.find((other) => other.role === 'tool' && other.tool_call_id === call.id);
    if (answer?.role !== 'tool' || answer.isError === true) continue;
    const args = parsedJson(call.function.arguments);
    return isRecord(args) && typeof args.agent === 'string' ? args.agent : undefined;
  }
  return undefined;
}
