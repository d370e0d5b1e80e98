import type { ToolsetTitle } from '../../core/contract/declaration.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { ToolDeclarationError } from '../../core/errors/author-fault.js';
import { ToolRegistry } from '../../run/call/tool-registry.js';
import { titleText, toolsetsOf, toolToSchema } from '../../run/call/tool-to-schema.js';
import { boundMethodOf } from '../../tools/discovery/bound-method.js';
import { type PlannedTool, planToolset, schemaOrigins } from '../../tools/discovery/plan-toolset.js';
import { type StrictNote, strictSchema } from '../../tools/schema/strict/strict-schema.js';
import { alignedRows, type Command, type CommandEnvironment, FLAG, readLine, UserFault } from './command.js';
import { type ModuleTools, NO_TOOLS, requiredRegistry, toolsOfModule, withModule } from './open-module.js';

/**
 * `toolwright list <module>`: the tools of a module, as `toolwright mcp` serves them; with `--strict` their strict
 * forms, with `--schema` the JSON for a provider.
 */
export const command: Command = async (args, environment) => {
  const { name, values } = readLine(
    args,
    { strict: FLAG, schema: FLAG },
    'list takes one module: toolwright list dist/main.js',
  );
  if (values.strict && values.schema) throw new UserFault('use --strict or --schema, not both');
  return withModule(name, environment, (module) => {
    if (values.schema) {
      const schemas = requiredRegistry(name, module).getDefinitions();
      environment.out(`${JSON.stringify(schemas, null, 2)}\n`);
      return 0;
    }
    const found = toolsOfModule(module.exports);
    if (found === undefined) throw new UserFault(`${name} exports ${NO_TOOLS}`, 1);
    const { tools, faults, warnings } = listTools(found);
    const described = toolsetsOf(tools);
    for (const toolset of described)
      environment.out(`${titleText(toolset.title)} (${toolset.tools.map((tool) => tool.name).join(', ')})\n`);
    if (described.length > 0) environment.out('\n');
    for (const { where, problem, fix } of warnings)
      environment.error(`warning: ${where}: ${problem} (${fix})\n`);
    if (values.strict) printStrict(tools, environment);
    else printSizes(tools, environment);
    if (faults.length === 0) return 0;
    environment.error(`${new ToolDeclarationError(faults).message}\n`);
    return 1;
  });
};

/** Prints the size of each schema; in all current models, a token of English and JSON has about four characters. */
function printSizes(tools: readonly ListedTool[], { out }: CommandEnvironment): void {
  const sizes = (characters: number) => [String(characters), String(Math.ceil(characters / 4))];
  const total = tools.reduce((sum, { characters }) => sum + characters, 0);
  const rows = [
    ['tool', 'method', 'schema from', 'characters', '~tokens'],
    ...tools.map(({ name, method, origins, characters }) => [name, method, origins, ...sizes(characters)]),
    [`${tools.length} in all`, '', '', ...sizes(total)],
  ];
  for (const row of alignedRows(rows, { texts: 3 })) out(`${row}\n`);
}

/** Prints the effect of `strict: true` on each schema: a row for each tool, then its differences. */
function printStrict(tools: readonly ListedTool[], { out }: CommandEnvironment): void {
  const rows = [['tool', 'strict', 'rewritten', 'only checked']];
  const differences: string[] = [];
  let strict = 0;
  for (const { name, parameters } of tools) {
    const form = strictSchema(parameters);
    const lines: string[] = [];
    if (form.isStrict) {
      const { rewritten, checked } = form.report;
      strict += 1;
      rows.push([name, 'yes', String(placesIn(rewritten)), String(placesIn(checked))]);
      for (const note of rewritten) lines.push(noteLine(note));
      for (const note of checked) lines.push(`only checked at the call: ${noteLine(note)}`);
    } else {
      rows.push([name, 'no', '', '']);
      for (const reason of form.reasons) lines.push(`sent without strict: ${reason}`);
    }
    if (lines.length > 0) differences.push('', name, ...lines.map((line) => `  ${line}`));
  }
  rows.push([`${strict} of ${tools.length}`, '', '', '']);
  for (const line of [...alignedRows(rows, { texts: 2 }), ...differences]) out(`${line}\n`);
}

function placesIn(notes: readonly StrictNote[]): number {
  return notes.reduce((sum, { places }) => sum + places.length, 0);
}

const MOST_PLACES = 5;

function noteLine({ what, places }: StrictNote): string {
  const shown = places.slice(0, MOST_PLACES).map((place) => place || 'the whole schema');
  const more = places.length > MOST_PLACES ? `, ${places.length - MOST_PLACES} more` : '';
  return `${what}: ${shown.join(', ')}${more}`;
}

/** A tool of the list. */
interface ListedTool {
  readonly name: string;
  /** `ShopTools.findOrders`, or `-` for a tool without a class. */
  readonly method: string;
  readonly toolset?: ToolsetTitle;
  /** The source of its schema. */
  readonly origins: string;
  /** Size of its definition for a provider. */
  readonly characters: number;
  readonly parameters: JsonSchema;
}

/** Lists the tools of a module without creating toolsets; those in a registry exist already. */
function listTools({ registry, toolsets, tools }: ModuleTools) {
  const behind = tools.flatMap((tool) => boundMethodOf(tool)?.class ?? []);
  const plans = new Map([...toolsets, ...behind].map((toolset) => [toolset, planToolset(toolset)]));
  const own = toolsets.flatMap((toolset) => plans.get(toolset) ?? []);
  const faults = own.flatMap((plan) => plan.faults);
  const listed = own.flatMap((plan) =>
    plan.tools.map((planned) => {
      const { name, toolset, options, parameters } = planned;
      return describeTool({ name, toolset, description: options.description ?? '', parameters }, planned);
    }),
  );
  for (const tool of tools)
    try {
      if (registry === undefined) new ToolRegistry().register(tool);
      // The declaration of its method, read from its class.
      const bound = boundMethodOf(tool);
      const planned = bound && plans.get(bound.class)?.tools.find(({ key }) => key === bound.key);
      listed.push(describeTool(tool, planned));
    } catch (error) {
      if (!(error instanceof ToolDeclarationError)) throw error;
      faults.push(...error.faults);
    }
  const warnings = [...plans.values()].flatMap((plan) => [...plan.misfits, ...plan.warnings]);
  return { tools: listed, faults, warnings };
}

function describeTool(
  tool: Pick<ToolDefinition, 'name' | 'toolset' | 'description' | 'parameters'>,
  planned?: PlannedTool,
): ListedTool {
  return {
    name: tool.name,
    toolset: tool.toolset,
    method: planned ? `${planned.class.name}.${String(planned.key)}` : '-',
    origins: planned ? schemaOrigins(planned).join(', ') || 'no parameters' : 'explicit',
    characters: JSON.stringify(toolToSchema(tool)).length,
    parameters: tool.parameters,
  };
}
