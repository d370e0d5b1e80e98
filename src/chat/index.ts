export type { NodeHandler, NodeRequest } from '../kernel/node-http.js';
export type { ChatHandlerOptions } from './chat-options.js';
export { type ChatHandler, createChatHandler } from './create-chat-handler.js';
