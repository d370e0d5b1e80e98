import type { Client, Tool as McpTool } from '@modelcontextprotocol/client';
import { invalidArguments, invalidOptions, refuseOptions } from '../../errors/invalid-options.js';
import { either, FUNCTION, withMethods } from '../../kernel/option-rules.js';
import { optionTable } from '../../kernel/options.js';
import { createNameFilter } from '../../registry/name-filter.js';
import { fingerprintOf } from './fingerprint.js';
import { localName } from './foreign-name.js';
import { CLIENT } from './live-client.js';
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

/** Throws the author's mistakes in what tools of a server are made of, all together. */
export function checkMcpTools(
  of: string,
  { options, ...given }: { readonly options: unknown; readonly [name: string]: unknown },
): void {
  const rules = { ...('registry' in given && { registry: REGISTRY }), source: SOURCE };
  refuseOptions([
    ...invalidArguments({ of, given, rules }),
    ...invalidOptions(options, optionTable<McpToolsOptions>(of, MCP_TOOLS_RULES)),
  ]);
}

const SOURCE = { ...either(FUNCTION, CLIENT), fix: CLIENT.fix };
const REGISTRY = withMethods(['register', 'unregister', 'offered'], 'a ToolRegistry');

function candidateOf(definition: McpTool, prefix: string | undefined): McpToolCandidate {
  return { name: localName(definition.name, prefix), definition, fingerprint: fingerprintOf(definition) };
}
