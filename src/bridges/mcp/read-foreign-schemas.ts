import type { Tool as McpTool } from '@modelcontextprotocol/client';
import { readForeignSchema } from '../../checking/foreign-schema.js';
import type { Logger } from '../../contract/logger.js';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import { warnAuthor } from '../../errors/author-fault.js';

/** What of a server's schemas is checked here. */
interface ForeignSchemas {
  readonly checkedAs: NonNullable<ToolDefinition['checkedAs']>;
  /** All of them is. */
  readonly areWhole: boolean;
}

/** Reads the schemas of a server's tool, and tells of what is left out; nothing where the whole tool has to be. */
export function readForeignSchemas(
  { name, inputSchema, outputSchema }: McpTool,
  logger?: Logger,
): ForeignSchemas | undefined {
  const where = `MCP tool ${JSON.stringify(name)}`;
  const input = readForeignSchema(inputSchema);
  const output = outputSchema === undefined ? undefined : readForeignSchema(outputSchema);
  for (const [what, read] of Object.entries({ inputSchema: input, outputSchema: output })) {
    if (read === undefined) continue;
    if (!read.ok) {
      const fix = 'a tool that its server has mended, or `deny` for it';
      warnAuthor({ where, problem: `it is left out: its ${what} ${read.problem}`, fix }, logger);
      return undefined;
    }
    for (const pattern of read.left) {
      const problem = `its ${what} has a pattern that a text can make run for ever: ${JSON.stringify(pattern.slice(0, 200))}`;
      warnAuthor({ where, problem, fix: 'nothing: only the server checks it' }, logger);
    }
  }
  if (!input.ok || output?.ok === false) return undefined;
  return {
    checkedAs: { parameters: input.checked, ...(output === undefined ? {} : { output: output.checked }) },
    areWhole: input.left.length === 0 && (output?.left.length ?? 0) === 0,
  };
}
