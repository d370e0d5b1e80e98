import type { ClassType } from '../contract/class-type.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import type { ToolsetTitle } from '../contract/toolset-options.js';
import { boundMethodOf } from '../discovery/bound-method.js';
import { type PlannedTool, planToolset, type ToolsetPlan } from '../discovery/plan-toolset.js';
import { type AuthorFault, ToolDeclarationError } from '../errors/author-fault.js';
import { ToolRegistry } from '../registry/tool-registry.js';
import { toolToSchema } from '../registry/tool-to-schema.js';
import type { ModuleTools } from './tools-of-module.js';

/** One tool, as it is shown. */
export interface ListedTool {
  readonly name: string;
  /** `ShopTools.findOrders`, or `-` for a tool without a class. */
  readonly method: string;
  readonly toolset?: ToolsetTitle;
  /** What told its schema. */
  readonly origins: string;
  /** Of its definition for a provider. */
  readonly characters: number;
}

/** The tools of a module and what is wrong with them. */
export interface ToolListing {
  readonly tools: readonly ListedTool[];
  readonly faults: readonly AuthorFault[];
  readonly warnings: readonly AuthorFault[];
}

/** Lists the tools that a module brings. No toolset is created; those behind a registry were before. */
export function listTools({ registry, toolsets, tools }: ModuleTools): ToolListing {
  const behind = tools.flatMap((tool) => boundMethodOf(tool)?.class ?? []);
  const plans = new Map([...toolsets, ...behind].map((toolset) => [toolset, planToolset(toolset)]));
  const own = toolsets.flatMap((toolset) => plans.get(toolset) ?? []);
  const faults = new Map(tools.map((tool) => [tool, registry ? [] : faultsOf(tool)]));
  const sound = tools.filter((tool) => faults.get(tool)?.length === 0);
  return {
    tools: [
      ...own.flatMap((plan) => plan.tools.map(ofClass)),
      ...sound.map((tool) => listed(tool, plannedFor(tool, plans))),
    ],
    faults: [...own.flatMap((plan) => plan.faults), ...[...faults.values()].flat()],
    warnings: [...plans.values()].flatMap(({ misfits, warnings }) => [...misfits, ...warnings]),
  };
}

/** What a class says of a tool that was made of it. */
function plannedFor(
  tool: ToolDefinition,
  plans: ReadonlyMap<ClassType, ToolsetPlan>,
): PlannedTool | undefined {
  const bound = boundMethodOf(tool);
  return bound && plans.get(bound.class)?.tools.find(({ key }) => key === bound.key);
}

function ofClass(planned: PlannedTool): ListedTool {
  const { name, toolset, options, parameters } = planned;
  return listed({ name, toolset, description: options.description ?? '', parameters }, planned);
}

function listed(
  tool: Pick<ToolDefinition, 'name' | 'toolset' | 'description' | 'parameters'>,
  planned?: PlannedTool,
): ListedTool {
  return {
    name: tool.name,
    toolset: tool.toolset,
    method: planned ? `${planned.class.name}.${String(planned.key)}` : '-',
    origins: planned ? planned.origins.join(', ') || 'no parameters' : 'explicit',
    characters: JSON.stringify(toolToSchema(tool)).length,
  };
}

function faultsOf(tool: ToolDefinition): readonly AuthorFault[] {
  try {
    new ToolRegistry().register(tool);
    return [];
  } catch (error) {
    if (error instanceof ToolDeclarationError) return error.faults;
    throw error;
  }
}
