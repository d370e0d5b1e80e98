export { connectMcp, type McpConnector } from './client/connect-mcp.js';
export type {
  ConnectedMcpClient,
  McpAuth,
  McpConnectionStatus,
  McpConnectOptions,
  McpRemoteOptions,
  McpStdioOptions,
  McpTokenStore,
} from './client/connect-options.js';
export { followMcpTools, mcpTools } from './client/mcp-tools.js';
export type {
  McpClientSource,
  McpFollowing,
  McpToolCandidate,
  McpToolChange,
  McpToolsOptions,
} from './client/options.js';
export { fileTokens, storeTokens } from './client/token-stores.js';
export { listRoots, sampleMessage } from './server/ask-client.js';
export { createMcpServer } from './server/mcp-server.js';
export type {
  McpCaller,
  McpConnection,
  McpRequestInfo,
  McpServerOptions,
  McpToolServer,
  StdioStreams,
} from './server/options.js';
export { jwks } from './server/request-guard.js';
export type {
  McpOAuthOptions,
  McpServerSettings,
  McpSessionOptions,
  McpTaskOptions,
  VerifiedToken,
  VerifyToken,
} from './server/settings.js';
