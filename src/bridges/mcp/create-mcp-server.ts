import { type AuthorFault, ToolDeclarationError } from '../../errors/author-fault.js';
import { checkNumbers } from '../../errors/check-numbers.js';
import type { ToolRegistry } from '../../registry/tool-registry.js';
import { MCP_SERVER_NUMBERS, MCP_SESSION_NUMBERS, type McpServerOptions } from './mcp-server-options.js';
import type { McpToolServer } from './mcp-tool-server.js';
import { RegistryServer } from './registry-server.js';

const STATE_KEY_CHARACTERS = 32;

const WEAK_KEY: AuthorFault = {
  where: 'createMcpServer',
  problem: 'stateKey can be guessed',
  fix: `stateKey: at least ${STATE_KEY_CHARACTERS} characters that nobody else knows`,
};

/**
 * Offers the tools of a registry to MCP clients of 2025-11-25 and of 2026-07-28, over stdio and streamable
 * HTTP. Every call takes the registry's own staircase; the schemas are offered as they are.
 *
 * @throws ToolDeclarationError (502) where an option cannot be meant.
 *
 * @example
 * ```ts
 * const mcp = createMcpServer(tools, { name: 'shop', version: '1.2.0' });
 * createServer(mcp.node).listen(3000, '127.0.0.1');
 * ```
 */
export function createMcpServer(registry: ToolRegistry, options: McpServerOptions = {}): McpToolServer {
  checkNumbers('createMcpServer', options, MCP_SERVER_NUMBERS);
  checkNumbers('createMcpServer: sessions', options.sessions || {}, MCP_SESSION_NUMBERS);
  const { stateKey } = options;
  if (stateKey !== undefined && stateKey.length < STATE_KEY_CHARACTERS)
    throw new ToolDeclarationError([WEAK_KEY]);
  return new RegistryServer(registry, options);
}
