import type { ToolBehaviour, ToolsetTitle } from '../../core/contract/declaration.js';
import type { ToolSchema } from '../../core/contract/llm-provider.js';
import type { Tool } from '../../core/contract/tool.js';
import { checkArguments } from '../../core/errors/author-fault.js';
import { isRecord } from '../../core/kernel/json.js';
import type { OptionRule } from '../../core/kernel/options.js';
import { offeredParameters } from '../../tools/schema/write-schema.js';

/** The parts of a tool that a model is offered. */
type OfferedTool = Pick<Tool, 'name' | 'description' | 'parameters'> &
  Pick<ToolBehaviour, 'strict' | 'input'>;

/**
 * The definition of a tool for a model. `parameters` are passed through unchanged, unless their root is a union or
 * similar, which providers refuse: then they are wrapped in a property `input`, and calls are accepted in both forms.
 *
 * @example
 * ```ts
 * toolToSchema(readFile);
 * // { type: 'function', function: { name: 'read_file', description: '…', parameters: { … } } }
 * ```
 */
export function toolToSchema(tool: OfferedTool): ToolSchema {
  if (!BARE.accepts(tool)) checkArguments({ of: 'toolToSchema', given: { tool }, rules: { tool: BARE } });
  const { name, description = '', strict, input } = tool;
  const parameters = offeredParameters(tool.parameters).schema;
  return {
    type: 'function',
    ...(input === 'text' ? { input } : {}),
    function: { name, description, parameters, ...(strict === undefined ? {} : { strict }) },
  };
}

const BARE: OptionRule = {
  accepts: (value) => isRecord(value) && typeof value.name === 'string' && isRecord(value.parameters),
  fix: "a tool: { name, description, parameters: { type: 'object', properties: {} } }",
};

/** A toolset with a title, and its tools. */
interface TitledToolset<Tool> {
  readonly title: ToolsetTitle;
  readonly tools: readonly Tool[];
}

/** The toolsets with titles, in the order of the tools. */
export function toolsetsOf<Tool extends { readonly toolset?: ToolsetTitle }>(
  tools: readonly Tool[],
): readonly TitledToolset<Tool>[] {
  const byText = new Map<string, { readonly title: ToolsetTitle; readonly tools: Tool[] }>();
  for (const tool of tools) {
    if (tool.toolset === undefined) continue;
    const text = titleText(tool.toolset);
    const known = byText.get(text) ?? { title: tool.toolset, tools: [] };
    known.tools.push(tool);
    byText.set(text, known);
  }
  return [...byText.values()];
}

/** A title on one line: `Shop: Orders and invoices`. */
export function titleText({ name, description }: ToolsetTitle): string {
  return description ? `${name}: ${description}` : name;
}
