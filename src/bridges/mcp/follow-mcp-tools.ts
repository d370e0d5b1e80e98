import type { ToolRegistry } from '../../registry/tool-registry.js';
import { checkMcpTools } from './list-candidates.js';
import { McpFollower } from './mcp-follower.js';
import type { McpClientSource, McpFollowing, McpToolsOptions } from './mcp-tools-options.js';

/**
 * Registers the tools of an MCP server and keeps them in step with it: what it adds, changes and takes away is
 * added, changed and taken away, also after a reconnection. A tool of the registry's own is never replaced.
 *
 * Rejects with what the server's list could not be read for; then nothing is registered.
 *
 * @throws InvalidOptionsError (521) where an option cannot be meant.
 *
 * @example
 * ```ts
 * const following = await followMcpTools(tools, () => connectToShop(), {
 *   prefix: 'shop',
 *   approve: ({ name, fingerprint }) => approvedTools.get(name) === fingerprint,
 *   onChange: ({ kind, name }) => console.warn(`${name}: ${kind}`),
 * });
 * ```
 */
export async function followMcpTools(
  registry: ToolRegistry,
  source: McpClientSource,
  options: McpToolsOptions = {},
): Promise<McpFollowing> {
  checkMcpTools('followMcpTools', { source, options, registry });
  const follower = new McpFollower(registry, source, options);
  try {
    await follower.refresh();
  } catch (error) {
    // Nobody could end it later.
    await follower.close();
    throw error;
  }
  return follower;
}
