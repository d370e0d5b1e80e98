export { followMcpTools, mcpTools } from './client/mcp-tools.js';
export type {
  McpClientSource,
  McpFollowing,
  McpToolCandidate,
  McpToolChange,
  McpToolsOptions,
} from './client/options.js';
export { listRoots, sampleMessage } from './server/client-input.js';
export { jwks } from './server/jwks.js';
export { createMcpServer } from './server/mcp-server.js';
export type { McpOAuthOptions, VerifiedToken, VerifyToken } from './server/oauth.js';
export type {
  McpCaller,
  McpConnection,
  McpRequestInfo,
  McpServerOptions,
  McpSessionOptions,
  McpToolServer,
  StdioStreams,
} from './server/options.js';
