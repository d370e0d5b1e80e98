export type {
  ConversationStore,
  ConversationTurn,
  StoredConversation,
  StoredMessage,
} from '../../core/contract/conversation-store.js';
export type { NodeHandler, NodeRequest } from '../../core/kernel/node-http.js';
export {
  type ChatError,
  type ChatErrorCode,
  type ChatMessage,
  type ChatRequest,
  type ChatResponse,
  toolRequestPrompt,
} from './chat-protocol.js';
export {
  AssistantError,
  SatelliteClient,
  type SatelliteClientOptions,
  type SatelliteEvent,
  type SatelliteListener,
  type SatelliteOutcome,
  type SatelliteRunOptions,
  type SatelliteSendOptions,
} from './client/satellite-client.js';
export {
  MemoryConversationStore,
  SqliteConversationStore,
  type SqliteConversationStoreOptions,
  type StoreLimits,
} from './server/conversation-store.js';
export {
  type AssistantHandler,
  type AssistantHandlerOptions,
  type CorsOptions,
  createAssistantHandler,
  type RateLimit,
  type RateLimitDecision,
  type SystemPrompt,
  toNodeHandler,
} from './server/create-assistant-handler.js';
