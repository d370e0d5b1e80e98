import type { Client, Tool as McpTool } from '@modelcontextprotocol/client';
import { checkOptions } from '../../errors/invalid-options.js';
import { optionTable } from '../../kernel/options.js';
import { createNameFilter } from '../../registry/name-filter.js';
import { fingerprintOf } from './fingerprint.js';
import { localName } from './foreign-name.js';
import { MCP_TOOLS_RULES, type McpToolCandidate, type McpToolsOptions } from './mcp-tools-options.js';
import { readToolList } from './read-tool-list.js';

/** A server's tools that the options let through, under the names they get, in the server's order. */
export async function listCandidates(client: Client, options: McpToolsOptions): Promise<McpToolCandidate[]> {
  const tools = await readToolList(client);
  const isWanted = createNameFilter(options);
  const candidates = tools
    .filter(({ name }) => isWanted(name))
    .map((tool) => candidateOf(tool, options.prefix));
  // A second tool of one name could never be called.
  return [...new Map(candidates.reverse().map((one) => [one.name, one])).values()].reverse();
}

/** Whether a tool may be taken. Fails closed: whoever cannot be asked has not said yes. */
export async function isApproved(candidate: McpToolCandidate, options: McpToolsOptions): Promise<boolean> {
  if (options.approve === undefined) return true;
  try {
    return (await options.approve(candidate)) === true;
  } catch (error) {
    options.onError?.(error);
    return false;
  }
}

/** Throws the author's mistakes in the options, all together. */
export function checkMcpToolsOptions(where: string, options: McpToolsOptions): void {
  checkOptions(options, optionTable<McpToolsOptions>(where, MCP_TOOLS_RULES));
}

function candidateOf(definition: McpTool, prefix: string | undefined): McpToolCandidate {
  return { name: localName(definition.name, prefix), definition, fingerprint: fingerprintOf(definition) };
}
