export { listRoots, sampleMessage } from './client-input.js';
export { createMcpServer } from './create-mcp-server.js';
export { followMcpTools } from './follow-mcp-tools.js';
export type { McpCaller } from './mcp-caller.js';
export type { McpServerOptions, McpSessionOptions } from './mcp-server-options.js';
export type { McpConnection, McpRequestInfo, McpToolServer, StdioStreams } from './mcp-tool-server.js';
export { mcpTools } from './mcp-tools.js';
export type {
  McpClientSource,
  McpFollowing,
  McpToolCandidate,
  McpToolChange,
  McpToolsOptions,
} from './mcp-tools-options.js';
