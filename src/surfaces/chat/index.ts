export type { NodeHandler, NodeRequest } from '../../core/kernel/node-http.js';
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
  agUiAnswers,
  type RunResponseOptions,
  toAgUiResponse,
  toUIMessageResponse,
  type UIMessageResponseOptions,
  uiMessageAnswers,
} from './protocols.js';
