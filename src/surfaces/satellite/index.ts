export type {
  ConversationStore,
  ConversationTurn,
  StoredConversation,
  StoredMessage,
} from '../../core/contract/conversation-store.js';
export type { NodeHandler, NodeRequest } from '../../core/kernel/node-http.js';
export type { ChatError, ChatErrorCode, ChatMessage, ChatRequest, ChatResponse } from './chat-protocol.js';
export { toolRequestPrompt } from './chat-protocol.js';
export { AssistantError } from './client/chat-transport.js';
export {
  SatelliteClient,
  type SatelliteClientOptions,
  type SatelliteEvent,
  type SatelliteListener,
  type SatelliteOutcome,
  type SatelliteRunOptions,
  type SatelliteSendOptions,
} from './client/satellite-client.js';
export type { AssistantHandlerOptions, SystemPrompt } from './server/assistant-options.js';
export type { CorsOptions, RateLimit, RateLimitDecision } from './server/chat-request.js';
export {
  MemoryConversationStore,
  SqliteConversationStore,
  type SqliteConversationStoreOptions,
  type StoreLimits,
} from './server/conversation-store.js';
export {
  type AssistantHandler,
  createAssistantHandler,
  toNodeHandler,
} from './server/create-assistant-handler.js';
