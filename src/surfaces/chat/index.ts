export type { NodeHandler, NodeRequest } from '../../core/kernel/node-http.js';
export { agUiAnswers, uiMessageAnswers } from './client-requests.js';
export type {
  ChatConversations,
  ChatHandlerOptions,
  ChatOptions,
  ConversationsChatOptions,
  LoopChatOptions,
} from './create-chat-handler.js';
export { type ChatHandler, createChatHandler } from './create-chat-handler.js';
export {
  type AgUiResponseOptions,
  type RunResponseOptions,
  toAgUiResponse,
  toUIMessageResponse,
  type UIMessageResponseOptions,
} from './protocols.js';
