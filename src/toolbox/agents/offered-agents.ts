import type { JsonObject } from '../../contract/json-schema.js';
import type { ToolDefinition } from '../../contract/tool.js';
import { freezeTool } from '../../discovery/define-tool.js';
import { checkOptions, InvalidOptionsError } from '../../errors/author-fault.js';
import { LIST, optionTable, protecting, withMethods } from '../../kernel/options.js';
import type { Agents } from './agents.js';

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

/** What a model is told of the parameter that names an agent. */
export const AGENT_NAME = 'Name of the agent';

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
