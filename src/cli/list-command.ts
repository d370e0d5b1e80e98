import { parseArgs } from 'node:util';
import type { ClassType } from '../contract/class-type.js';
import { type PlannedTool, planToolset } from '../discovery/plan-toolset.js';
import { type AuthorFault, ToolDeclarationError } from '../errors/author-fault.js';
import { readRecord } from '../metadata/class-record.js';
import { loadedToolsets } from '../metadata/record-toolset.js';
import { toolToSchema } from '../registry/tool-to-schema.js';
import type { Command, CommandSurroundings } from './command.js';
import { loadModule } from './load-module.js';
import { UserFault } from './user-fault.js';

/** `toolwright list <module>`: the tools of the toolsets that a module brings; none of them is created. */
export const listCommand: Command = {
  async run(args, surroundings) {
    const { positionals } = parseArgs({ args: [...args], options: {}, allowPositionals: true });
    const [name, second] = positionals;
    if (name === undefined || second !== undefined)
      throw new UserFault('list takes one module: toolwright list dist/main.js');
    const module = await loadModule(name, surroundings.folder);
    const toolsets = [...new Set([...loadedToolsets(), ...Object.values(module).flatMap(classesIn)])];
    if (toolsets.length === 0) throw new UserFault(`${name} brings no class with a @Tool method`, 1);
    const plans = toolsets.map((toolset) => planToolset(toolset));
    for (const { where, problem, fix } of plans.flatMap(({ misfits, warnings }) => [
      ...misfits,
      ...warnings,
    ])) {
      surroundings.error(`warning: ${where}: ${problem} (${fix})\n`);
    }
    printTools(
      plans.flatMap(({ tools }) => tools),
      surroundings,
    );
    return complain(
      plans.flatMap(({ faults }) => faults),
      surroundings,
    );
  },
};

function complain(faults: readonly AuthorFault[], { error }: CommandSurroundings): number {
  if (faults.length === 0) return 0;
  error(`${new ToolDeclarationError(faults).message}\n`);
  return 1;
}

/** Exported classes with tools, and exported lists of them. */
function classesIn(value: unknown): readonly ClassType[] {
  if (Array.isArray(value)) return value.flatMap(classesIn);
  if (typeof value !== 'function') return [];
  return (readRecord(value)?.methods.size ?? 0) > 0 ? [value as unknown as ClassType] : [];
}

/** A token of English and JSON is about four characters for all models of today. */
const CHARACTERS_PER_TOKEN = 4;

function printTools(tools: readonly PlannedTool[], { out }: CommandSurroundings): void {
  const rows = tools.map((tool) => {
    const characters = sizeOf(tool);
    return [
      tool.name,
      `${tool.class.name}.${String(tool.key)}`,
      tool.origins.join(', ') || 'no parameters',
      String(characters),
      String(tokensOf(characters)),
    ];
  });
  const total = tools.reduce((sum, tool) => sum + sizeOf(tool), 0);
  const head = ['tool', 'method', 'schema from', 'characters', '~tokens'];
  const foot = [`${tools.length} in all`, '', '', String(total), String(tokensOf(total))];
  for (const row of aligned([head, ...rows, foot])) out(`${row}\n`);
}

function sizeOf({ name, options, parameters }: PlannedTool): number {
  const definition = toolToSchema({
    name,
    description: options.description ?? '',
    parameters,
  });
  return JSON.stringify(definition).length;
}

function tokensOf(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}

function aligned(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column < 3 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  );
}
