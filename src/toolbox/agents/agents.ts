import { registryOf, ToolRegistry } from '../../call/tool-registry.js';
import type { Budget } from '../../contract/budget.js';
import type { CallScope } from '../../contract/call.js';
import type { ToolDefinition } from '../../contract/tool.js';
import type { ToolContext } from '../../contract/tool-context.js';
import { errorResult, ToolResult, toolResult } from '../../contract/tool-result.js';
import { onAbort } from '../../kernel/async.js';
import { ownerText } from '../../kernel/json.js';
import { visibleLine } from '../../kernel/visible-text.js';
import { agentAsTool, runAgentOf } from '../../loop/agent-as-tool.js';
import { type AgentsOptions, checkAgents, type NamedAgent } from './agent-options.js';

/** Who is asked, and for what. */
export interface AgentTask {
  readonly agent: string;
  /** All that the agent is told. */
  readonly task: string;
}

const DEFAULT_UNDER_WAY = 8;

/**
 * Agents by name, which tools ask: `AgentTools`, `HandOffs`, or one of your own. Each run of an agent is one of
 * `agentAsTool`: inside the call that asks it, on behalf of the same owner, under the same policy.
 *
 * @throws InvalidOptionsError (521) naming everything that is wrong with any of them, a model without a price
 *   included; ToolDeclarationError (502) for tools that are none.
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
  /** The agents that were started and not waited for, by id. */
  readonly #spawned = new Map<string, SpawnedAgent>();
  #spawnedCount = 0;
  /** How many calls wait for their agents, by conversation. */
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

  /** Their names, in the order of the table. */
  get names(): readonly string[] {
    return Object.keys(this.#options.agents);
  }

  /** An agent of the table; `undefined` for any other name. */
  find(name: string): NamedAgent | undefined {
    const { agents } = this.#options;
    return Object.hasOwn(agents, name) ? agents[name] : undefined;
  }

  /** The tool that an agent is; for what it waits for, and where one tool stands for several agents. */
  toolOf(name: string): ToolDefinition | undefined {
    return this.#tools.get(name);
  }

  /** The tools that an agent has, the agents that it may ask included. */
  toolsOf(name: string): ToolRegistry {
    return this.#registries.get(name) ?? new ToolRegistry();
  }

  /**
   * Has an agent do something, and gives what it answers: the call waits for what the agent waits for. A name that is
   * not in the table, and one agent too many, are errors for the model.
   */
  async delegate({ agent, task }: AgentTask, context: ToolContext): Promise<ToolResult> {
    const tool = this.toolOf(agent);
    if (tool === undefined) return this.unknown(agent);
    let hasPlace = false;
    try {
      // A call that is made again after it waited has its place, however many there are by then.
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
   * Starts an agent: its answer is the completion of the call. Where nobody hears of completions, it is awaited, as all
   * started work is. What it waits for, nobody can answer: it ends with an error then.
   */
  async spawn({ agent, task }: AgentTask, context: ToolContext): Promise<ToolResult> {
    const tool = this.toolOf(agent);
    if (tool === undefined) return this.unknown(agent);
    const refused = this.#refusal(context);
    if (refused !== undefined) return errorResult(refused);
    this.#spawnedCount += 1;
    const id = `agent_${this.#spawnedCount}`;
    const start = { owner: conversationOf(context), agent, task, signal: context.signal };
    const spawned = new SpawnedAgent(id, start);
    this.#spawned.set(id, spawned);
    const ended = [...this.#spawned.values()].filter(({ hasEnded }) => hasEnded);
    for (const { id: old } of ended.slice(0, Math.max(0, ended.length - MOST_ENDED)))
      this.#spawned.delete(old);
    const signal = AbortSignal.any([context.signal, spawned.stopped]);
    return context.background(
      () => spawned.run(() => runAgentOf(tool, { task }, { context, signal })),
      `${spawned.id} has begun. Its answer will follow; agent_status tells how it stands, cancel_agent ends it.`,
    );
  }

  /** The agents that a conversation has spawned, as text. */
  describeSpawned(context: ToolContext | undefined): string {
    const all = this.#spawnedBy(context);
    return all.length === 0 ? 'No agent was started.' : all.map((agent) => agent.describe()).join('\n');
  }

  /** The state of a spawned agent; with its answer, once there is one. */
  statusOf(id: string, context: ToolContext | undefined): ToolResult {
    const found = this.#spawnedBy(context).find((agent) => agent.id === id);
    return found?.status() ?? this.#unknownSpawned(id, context);
  }

  /** Ends a spawned agent. */
  cancel(id: string, context: ToolContext | undefined): ToolResult {
    const found = this.#spawnedBy(context).find((agent) => agent.id === id);
    if (found === undefined) return this.#unknownSpawned(id, context);
    if (found.hasEnded) return toolResult(`It had ended already. ${found.describe()}`);
    found.cancel();
    return toolResult(`${id} is ended.`);
  }

  /** Ends all that were spawned, when the application ends. */
  dispose(): void {
    for (const agent of this.#spawned.values()) if (!agent.hasEnded) agent.cancel();
  }

  #spawnedBy(context: ToolContext | undefined): readonly SpawnedAgent[] {
    const owner = conversationOf(context);
    return [...this.#spawned.values()].filter((agent) => agent.owner === owner);
  }

  #unknownSpawned(id: string, context: ToolContext | undefined): ToolResult {
    return errorResult(`There is no '${id}'. ${this.describeSpawned(context)}`);
  }

  /** The error of a name that is not in the table. */
  unknown(name: string): ToolResult {
    return errorResult(`There is no agent '${name}'. There are: ${this.names.join(', ')}.`);
  }

  /** An agent as a tool of its own; `more` is what another use of it needs. */
  agentTool(
    name: string,
    more: Partial<Pick<Parameters<typeof agentAsTool>[0], 'earlier' | 'prompt'>> = {},
  ): ToolDefinition {
    const { agents: _, tools: __, ...agent } = this.find(name) as NamedAgent;
    const { maxDepth } = this.#options;
    const budget = this.#budgetOf(agent.budget);
    return agentAsTool({
      ...agent,
      ...more,
      name,
      tools: this.toolsOf(name),
      ...(maxDepth === undefined ? {} : { maxDepth }),
      ...(budget === undefined ? {} : { budget }),
    });
  }

  /** What a run of an agent may spend, and all of them together. */
  #budgetOf(own: Budget | undefined): Budget | undefined {
    const { total, store } = this.#options;
    if (total === undefined || store === undefined) return own;
    const key = (scope: CallScope): string => `agents:${conversationOf(scope)}`;
    return { ...own, store, by: [...(own?.by ?? []), { ...total, key }] };
  }

  #refusal(context: ToolContext): string | undefined {
    const { maxUnderWay = DEFAULT_UNDER_WAY } = this.#options;
    const key = conversationOf(context);
    const spawned = this.#spawnedBy(context).filter(({ hasEnded }) => !hasEnded).length;
    const count = (this.#waitedFor.get(key) ?? 0) + spawned;
    if (count < maxUnderWay) return undefined;
    return `The agent was not asked: ${count} agents are under way, and no more may be. Wait for one of them, or end one (cancel_agent).`;
  }

  #count(context: ToolContext, change: 1 | -1): true {
    const key = conversationOf(context);
    const count = (this.#waitedFor.get(key) ?? 0) + change;
    if (count > 0) this.#waitedFor.set(key, count);
    else this.#waitedFor.delete(key);
    return true;
  }
}

/** Each owner has a conversation alone; the calls of one outside of any are together. */
function conversationOf(
  place: Pick<CallScope, 'channel' | 'chatId' | 'conversationId' | 'owner'> | undefined,
): string {
  const { channel, chatId, conversationId, owner } = place ?? {};
  return JSON.stringify([ownerText(owner), channel, chatId, conversationId]);
}

/** An agent that is to go on behind the call that starts it. */
interface SpawnStart {
  /** Whose it is: that of other conversations can neither be seen nor ended. */
  readonly owner: string;
  readonly agent: string;
  readonly task: string;
  /** Ends it, also before it has begun. */
  readonly signal: AbortSignal;
}

/** How many that have ended are remembered, of all conversations. */
const MOST_ENDED = 200;
const MOST_SHOWN = 200;

/** An agent that was started and not waited for. */
class SpawnedAgent {
  readonly id: string;
  readonly owner: string;
  readonly #agent: string;
  readonly #task: string;
  readonly #stop = new AbortController();
  readonly #since = performance.now();
  #status: 'waits for its turn' | 'under way' | 'done' | 'failed' | 'ended early' = 'waits for its turn';
  #took = 0;
  #result: ToolResult | undefined;
  #unfollow: (() => void) | undefined;

  constructor(id: string, { owner, agent, task, signal }: SpawnStart) {
    this.id = id;
    this.owner = owner;
    this.#agent = agent;
    this.#task = task;
    this.#unfollow = onAbort(signal, () => this.#end('ended early'));
  }

  /** Aborted when it is to end. */
  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  get hasEnded(): boolean {
    return this.#took > 0;
  }

  async run(work: () => Promise<ToolResult>): Promise<ToolResult> {
    if (!this.hasEnded) this.#status = 'under way';
    try {
      this.#result = await work();
      this.#end(this.#result.isError ? 'failed' : 'done');
      return this.#result;
    } catch (error) {
      this.#end('failed');
      throw error;
    }
  }

  cancel(): void {
    this.#end('ended early');
    this.#stop.abort(new DOMException(`${this.id} was cancelled.`, 'AbortError'));
  }

  describe(): string {
    const task = visibleLine(this.#task);
    const shown = task.length > MOST_SHOWN ? `${task.slice(0, MOST_SHOWN)}…` : task;
    return `${this.id} (${this.#agent}): ${this.#standing()}: ${shown}`;
  }

  status(): ToolResult {
    const result = this.#result;
    const said = result === undefined ? '' : `\n${result.forLLM}`;
    return toolResult(`${this.describe()}${said}`);
  }

  #standing(): string {
    const ms = this.hasEnded ? this.#took : performance.now() - this.#since;
    return `${this.#status}, ${(ms / 1_000).toFixed(1)} s`;
  }

  /** Whichever end comes first. */
  #end(status: 'done' | 'failed' | 'ended early'): void {
    if (this.hasEnded) return;
    this.#status = status;
    this.#took = Math.max(performance.now() - this.#since, Number.EPSILON);
    this.#unfollow?.();
  }
}
