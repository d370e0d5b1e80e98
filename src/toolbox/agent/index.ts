export type { McpConnectionStatus } from '../../surfaces/mcp/client/connect-options.js';
export { Agent, type AgentConversationOptions } from './agent.js';
export type {
  AgentConversations,
  AgentMcpCandidate,
  AgentMcpClient,
  AgentMcpServer,
  AgentMcpTools,
  AgentOptions,
  ConfiguredAgentOptions,
  OpenAISettings,
  OtherAgent,
  ProviderSettings,
  StoreSettings,
  TelemetrySettings,
  Toolbox,
  ToolboxSettings,
} from './agent-options.js';
export { createAgent } from './create-agent.js';
