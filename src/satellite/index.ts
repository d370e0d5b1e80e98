export type { ChatError, ChatErrorCode, ChatMessage, ChatRequest, ChatResponse } from './chat-protocol.js';
export { AssistantError } from './client/assistant-error.js';
export {
  SatelliteClient,
  type SatelliteRunOptions,
  type SatelliteSendOptions,
} from './client/satellite-client.js';
export type { SatelliteClientOptions } from './client/satellite-client-options.js';
export type { SatelliteEvent, SatelliteListener } from './client/satellite-event.js';
export type { SatelliteOutcome } from './client/satellite-outcome.js';
export type { AssistantHandlerOptions, SystemPrompt } from './server/assistant-options.js';
export type {
  ConversationStore,
  ConversationTurn,
  StoredConversation,
  StoredMessage,
} from './server/conversation-store.js';
export type { CorsOptions } from './server/cors-headers.js';
export { type AssistantHandler, createAssistantHandler } from './server/create-assistant-handler.js';
export type { RateLimit, RateLimitDecision } from './server/enforce-rate-limit.js';
export { MemoryConversationStore } from './server/memory-conversation-store.js';
export {
  SqliteConversationStore,
  type SqliteConversationStoreOptions,
} from './server/sqlite-conversation-store.js';
export type { StoreLimits } from './server/store-limits.js';
export { type NodeHandler, type NodeRequest, toNodeHandler } from './server/to-node-handler.js';
export { toolRequestPrompt } from './tool-request-prompt.js';
