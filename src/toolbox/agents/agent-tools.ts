import { Param, Tool, ToolContext, Toolset } from '../../../decorators/index.js';
import type { JsonObject } from '../../contract/json-schema.js';
import type { ToolDefinition } from '../../contract/tool.js';
import type { ToolResult } from '../../contract/tool-result.js';
import { freezeTool } from '../../discovery/define-tool.js';
import { discoverTools } from '../../discovery/discover-tools.js';
import { checkArguments, checkOptions, InvalidOptionsError } from '../../errors/author-fault.js';
import { instanceOf, LIST, optionTable, protecting, required, withMethods } from '../../kernel/options.js';
import { noteAgents } from '../../loop/agent-as-tool.js';
import { Agents } from './agents.js';

/** What a model is told of the parameter that names an agent. */
export const AGENT_NAME = 'Name of the agent';

const TASK = 'What it is to do, with all that it needs to know: it sees nothing of this conversation';
const ID = 'Id of the agent that was started, e.g. agent_1';

/**
 * Tools that ask other agents: one waits for the answer, one starts an agent and goes on. Which agents there are says
 * the {@link Agents} that is injected.
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

  /** Waits for the agent, and for what the agent waits for. */
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

  /** Its answer comes later, as that of all started work. */
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

  /** Those that can be asked, and those that this conversation has started. */
  @Tool({
    description: 'List the agents that you can ask, and those that you have started.',
    annotations: { title: 'List agents', readOnly: true },
  })
  listAgents(context?: ToolContext): string {
    const known = this.agents.names.map((name) => `- ${name}: ${this.agents.find(name)?.description}`);
    return `Agents:\n${known.join('\n')}\n\nStarted:\n${this.agents.describeSpawned(context)}`;
  }

  /** How an agent stands that was started; with its answer, once there is one. */
  @Tool({
    description: 'Get how an agent stands that you have started, and its answer, if it has one.',
    annotations: { title: 'Status of agent', readOnly: true },
  })
  agentStatus(@Param({ description: ID, required: true }) id: string, context?: ToolContext): ToolResult {
    return this.agents.statusOf(id, context);
  }

  /** Ends an agent that was started. */
  @Tool({
    description: 'End an agent that you have started.',
    annotations: { title: 'End agent', destructive: true, idempotent: true },
  })
  cancelAgent(@Param({ description: ID, required: true }) id: string, context?: ToolContext): ToolResult {
    return this.agents.cancel(id, context);
  }
}

const AGENTS = required(instanceOf(Agents, 'new Agents({ agents: { … } })'));

/** Tools that ask an agent which the call names. */
const ASKING = ['delegate', 'spawn_agent'];

/**
 * `delegate`, `spawn_agent`, `list_agents`, `agent_status` and `cancel_agent` without a container. The first two name
 * the agents that there are in their descriptions and take no other name; answers to what an agent waits for may
 * change arguments or stand for later calls, which needs the tools of that agent.
 *
 * @throws InvalidOptionsError (521) for what is no `Agents`, and names that are not in the table.
 *
 * @example
 * ```ts
 * tools.register(...agentTools(agents));
 * ```
 */
export function agentTools(agents: Agents, options: OfferOptions = {}): ToolDefinition[] {
  checkArguments({ of: 'agentTools', given: { agents }, rules: { agents: AGENTS } });
  const instance = new AgentTools(agents);
  // The container of one class has nothing else to give.
  const resolve = <Instance>(): Instance => instance as Instance;
  const tools = discoverTools({ toolsets: [AgentTools], container: { resolve } });
  const offered = tools.flatMap((tool) => {
    if (!ASKING.includes(tool.name)) return [tool];
    const names = offeredNames(agents, tool, options);
    if (names.length === 0) return [];
    const named = withNames(tool, names, agents);
    noteAgents(named, ({ agent }: JsonObject) => agents.toolOf(String(agent)));
    return [named];
  });
  return offered.some(({ name }) => ASKING.includes(name)) ? offered : [];
}

/** What forbids calls before they are made, such as `Permissions`. */
export interface Forbids {
  /** Whether a call is denied, whoever makes it and when. */
  denies(call: { readonly tool: ToolDefinition; readonly arguments: JsonObject }): boolean;
}

/** Which agents a model is offered. */
export interface OfferOptions {
  /** Names; default: all of the table. */
  readonly names?: readonly string[];
  /** What it denies is not offered. It is to be the policy of the run as well. */
  readonly permissions?: Forbids;
}

const OPTIONS = optionTable<OfferOptions>('agentTools', {
  names: protecting({ ...LIST, fix: "['research']" }),
  permissions: protecting(withMethods(['denies'], 'new Permissions({ … })')),
});

/** The agents that a tool may be called for. */
export function offeredNames(agents: Agents, tool: ToolDefinition, options: OfferOptions): readonly string[] {
  checkOptions(options, OPTIONS);
  const { names = agents.names, permissions } = options;
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
  return names.filter((agent) => permissions?.denies({ tool, arguments: { agent } }) !== true);
}

/** A tool that is told which agents it can be called for, and takes no other. */
export function withNames(tool: ToolDefinition, names: readonly string[], agents: Agents): ToolDefinition {
  const told = names.map((name) => `- ${name}: ${agents.find(name)?.description}`);
  const { properties } = tool.parameters as { readonly properties: Readonly<Record<string, JsonObject>> };
  const named = {
    ...tool,
    description: `${tool.description} Agents:\n${told.join('\n')}`,
    parameters: {
      ...tool.parameters,
      properties: { ...properties, agent: { ...properties.agent, enum: [...names] } },
    },
  };
  return freezeTool(named, named);
}
