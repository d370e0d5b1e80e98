import type { ToolRegistry } from '../../registry/tool-registry.js';
import { checkServerOptions } from './check-server-options.js';
import type { McpServerOptions } from './mcp-server-options.js';
import type { McpToolServer } from './mcp-tool-server.js';
import { RegistryServer } from './registry-server.js';

/**
 * Offers the tools of a registry to MCP clients of 2025-11-25 and of 2026-07-28, over stdio and streamable
 * HTTP. Every call takes the registry's own staircase; the schemas are offered as they are.
 *
 * @throws InvalidOptionsError (521) naming every option that cannot be meant.
 *
 * @example
 * ```ts
 * const mcp = createMcpServer(tools, { name: 'shop', version: '1.2.0' });
 * createServer(mcp.node).listen(3000, '127.0.0.1');
 * ```
 */
export function createMcpServer(registry: ToolRegistry, options: McpServerOptions = {}): McpToolServer {
  checkServerOptions(registry, options);
  return new RegistryServer(registry, options);
}
