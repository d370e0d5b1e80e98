import { parseArgs } from 'node:util';
import { ToolDeclarationError } from '../errors/author-fault.js';
import { titleText, toolsetsOf } from '../registry/toolsets-of.js';
import type { Command, CommandSurroundings } from './command.js';
import { type ListedTool, listTools, type ToolListing } from './listed-tools.js';
import { openModule } from './open-module.js';
import { NO_TOOLS, toolsOfModule } from './tools-of-module.js';
import { UserFault } from './user-fault.js';

/** `toolwright list <module>`: the tools that a module brings, the same ones that `toolwright mcp` serves. */
export const listCommand: Command = {
  async run(args, surroundings) {
    const { positionals } = parseArgs({ args: [...args], options: {}, allowPositionals: true });
    const [name, second] = positionals;
    if (name === undefined || second !== undefined)
      throw new UserFault('list takes one module: toolwright list dist/main.js');
    const module = await openModule(name, surroundings.folder);
    try {
      const found = toolsOfModule(module.exports);
      if (found === undefined) throw new UserFault(`${name} exports ${NO_TOOLS}`, 1);
      return print(listTools(found), surroundings);
    } finally {
      await module.close();
    }
  },
};

function print({ tools, faults, warnings }: ToolListing, surroundings: CommandSurroundings): 0 | 1 {
  printToolsets(tools, surroundings);
  for (const { where, problem, fix } of warnings)
    surroundings.error(`warning: ${where}: ${problem} (${fix})\n`);
  printTools(tools, surroundings);
  if (faults.length === 0) return 0;
  surroundings.error(`${new ToolDeclarationError(faults).message}\n`);
  return 1;
}

/** The toolsets that say what they are about. */
function printToolsets(tools: readonly ListedTool[], { out }: CommandSurroundings): void {
  const toolsets = toolsetsOf(tools);
  for (const { title, tools } of toolsets)
    out(`${titleText(title)} (${tools.map(({ name }) => name).join(', ')})\n`);
  if (toolsets.length > 0) out('\n');
}

/** A token of English and JSON is about four characters for all models of today. */
const CHARACTERS_PER_TOKEN = 4;

function printTools(tools: readonly ListedTool[], { out }: CommandSurroundings): void {
  const rows = tools.map(({ name, method, origins, characters }) => [
    name,
    method,
    origins,
    String(characters),
    String(tokensOf(characters)),
  ]);
  const total = tools.reduce((sum, { characters }) => sum + characters, 0);
  const head = ['tool', 'method', 'schema from', 'characters', '~tokens'];
  const foot = [`${tools.length} in all`, '', '', String(total), String(tokensOf(total))];
  for (const row of aligned([head, ...rows, foot])) out(`${row}\n`);
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
