import type { ToolDefinition } from '../../contract/tool-definition.js';
import { importTool } from './import-tool.js';
import { checkMcpTools, isApproved, listCandidates } from './list-candidates.js';
import { LiveClient } from './live-client.js';
import type { McpClientSource, McpToolsOptions } from './mcp-tools-options.js';

/**
 * The tools of an MCP server as they are now, as tools of a registry: their calls take its staircase and then
 * go to the server, with abort and progress. {@link followMcpTools} keeps a registry in step instead.
 *
 * Rejects with what the server's list could not be read for.
 *
 * @throws InvalidOptionsError (521) where an option cannot be meant.
 *
 * @example
 * ```ts
 * tools.register(...(await mcpTools(client, { prefix: 'files', deny: ['write_*'] })));
 * ```
 */
export async function mcpTools(
  source: McpClientSource,
  options: McpToolsOptions = {},
): Promise<ToolDefinition[]> {
  checkMcpTools('mcpTools', { source, options });
  const client = new LiveClient(source, { prefix: options.prefix });
  const candidates = await client.use((connected) => listCandidates(connected, options), true);
  const approved = await Promise.all(candidates.map((candidate) => isApproved(candidate, options)));
  return candidates.flatMap((candidate, position) => {
    const tool = approved[position] ? importTool(candidate, { client, options }) : undefined;
    if (tool !== undefined) return [tool];
    const reason = approved[position] ? 'malformed' : 'not approved';
    options.onChange?.({ kind: 'withheld', name: candidate.name, reason, candidate });
    return [];
  });
}
