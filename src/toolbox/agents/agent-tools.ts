import { Param, Tool, ToolContext, Toolset } from '../../../decorators/index.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { AssistantMessage, Message } from '../../core/contract/llm-provider.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import {
  checkArguments,
  checkOptions,
  InvalidOptionsError,
  refuseOptions,
} from '../../core/errors/author-fault.js';
import { isRecord, parsedJson, withoutUndefined } from '../../core/kernel/json.js';
import {
  FILLED_TEXT,
  instanceOf,
  LIST,
  optionTable,
  protecting,
  required,
  withMethods,
} from '../../core/kernel/options.js';
import { ToolRegistry } from '../../run/call/tool-registry.js';
import type { Conversation } from '../../run/conversation/conversation.js';
import type { ConversationsConfig } from '../../run/conversation/conversations-options.js';
import { type AgentContext, noteAgents, runAgentOf } from '../../run/loop/agent-as-tool.js';
import { freezeTool } from '../../tools/discovery/define-tool.js';
import { toolsOfInstances } from '../../tools/discovery/discover-tools.js';
import { Agents, type NamedAgent } from './agents.js';

/** Description of the parameter that names an agent. */
const AGENT_NAME = 'Name of the agent';

const TASK = 'What it is to do, with all that it needs to know: it sees nothing of this conversation';
const ID = 'Id of the agent that was started, e.g. agent_1';

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
@Toolset({ name: 'Agents', description: 'Other agents, each with tools of its own.' })
export class AgentTools {
  constructor(protected readonly agents: Agents) {}

  @Tool({
    description: 'Have another agent do something, and get its answer.',
    annotations: { title: 'Delegate' },
    timeoutMs: Number.POSITIVE_INFINITY,
  })
  delegate(
    @Param({ description: AGENT_NAME, required: true }) agent: string,
    @Param({ description: TASK, required: true, minLength: 1 }) task: string,
    context: ToolContext,
  ): Promise<ToolResult> {
    return this.agents.delegate({ agent, task }, context);
  }

  @Tool({
    description:
      'Start another agent and go on: its answer comes to you later. For what takes long, or several things at once.',
    annotations: { title: 'Start agent' },
    timeoutMs: Number.POSITIVE_INFINITY,
  })
  async spawnAgent(
    @Param({ description: AGENT_NAME, required: true }) agent: string,
    @Param({ description: TASK, required: true, minLength: 1 }) task: string,
    context: ToolContext,
  ): Promise<ToolResult> {
    return this.agents.spawn({ agent, task }, context);
  }

  @Tool({
    description: 'List the agents that you can ask, and those that you have started.',
    annotations: { title: 'List agents', readOnly: true },
  })
  listAgents(context?: ToolContext): string {
    const known = this.agents.names.map((name) => `- ${name}: ${this.agents.find(name)?.description}`);
    return `Agents:\n${known.join('\n')}\n\nStarted:\n${this.agents.describeSpawned(context)}`;
  }

  @Tool({
    description: 'Get how an agent stands that you have started, and its answer, if it has one.',
    annotations: { title: 'Status of agent', readOnly: true },
  })
  agentStatus(@Param({ description: ID, required: true }) id: string, context?: ToolContext): ToolResult {
    return this.agents.statusOf(id, context);
  }

  @Tool({
    description: 'End an agent that you have started.',
    annotations: { title: 'End agent', destructive: true, idempotent: true },
  })
  cancelAgent(@Param({ description: ID, required: true }) id: string, context?: ToolContext): ToolResult {
    return this.agents.cancel(id, context);
  }
}

const AGENTS = required(instanceOf(Agents, 'new Agents({ agents: { … } })'));

/** Tools whose argument names an agent. */
const ASKING = ['delegate', 'spawn_agent'];

/**
 * Creates `delegate`, `spawn_agent`, `list_agents`, `agent_status` and `cancel_agent` without a container. The
 * descriptions of the first two list the agents, and they accept no other names. Unlike with the toolset, approvals of
 * an agent's calls may change arguments or stand for later calls, because the agent's tools are known.
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
  checkOptions(options, OPTIONS);
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
const OPTIONS = optionTable<OfferOptions>('agentTools', {
  names: protecting({ ...LIST, fix: "['research']" }),
  permissions: PERMISSIONS,
});

interface AskingOptions extends OfferOptions {
  /** The tool of an agent, which runs it. */
  readonly toolOf: (name: string) => ToolDefinition | undefined;
}

/** A copy of a tool that lists the offered agents and refuses others; nothing if no agent is offered. */
function withAgents(
  tool: ToolDefinition,
  agents: Agents,
  { names = agents.names, permissions, toolOf }: AskingOptions,
): readonly ToolDefinition[] {
  const strangers = names.filter((name) => agents.find(name) === undefined);
  if (strangers.length > 0)
    throw new InvalidOptionsError(
      strangers.map((name) => ({
        where: 'agentTools',
        option: 'names',
        problem: `there is no agent '${name}'`,
        fix: `names: of ${agents.names.join(', ')}`,
      })),
    );
  const offered = names.filter((agent) => permissions?.denies({ tool, arguments: { agent } }) !== true);
  if (offered.length === 0) return [];
  const known = offered.map((name) => `- ${name}: ${agents.find(name)?.description}`);
  const { properties } = tool.parameters as { readonly properties: Readonly<Record<string, JsonObject>> };
  const listed = {
    ...tool,
    description: `${tool.description} Agents:\n${known.join('\n')}`,
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
          problem: 'it hands conversations off, and its tools are a registry',
          fix: 'tools: [tool, …]',
        })),
    ]);
    this.#options = options;
    const prompt = (args: unknown): string =>
      `This conversation was handed over to you: ${String((args as JsonObject).note)}\nGo on with it.`;
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
      'Hand this conversation over to another agent, which answers in your place and has the conversation from now on. For what is its business and not yours.',
    annotations: { title: 'Hand off' },
    timeoutMs: Number.POSITIVE_INFINITY,
    returnDirect: true,
    sequential: true,
  })
  handOff(
    @Param({ description: AGENT_NAME, required: true }) agent: string,
    @Param({ description: 'What it should know beside what was said', required: true, minLength: 1 })
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
