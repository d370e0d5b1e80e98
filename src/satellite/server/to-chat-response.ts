import { parseToolRequest, type ToolRequest } from '../../detection/parse-tool-request.js';
import type { ChatResponse } from '../chat-protocol.js';
import type { StoredConversation } from './conversation-store.js';

/**
 * The request that a conversation waits for: what its last message asks for. So each reply sets or
 * clears it, and a store cannot keep one that was never made. A reply that was cut off asks for nothing.
 */
export function pendingRequest(conversation: StoredConversation | undefined): ToolRequest | undefined {
  if (conversation === undefined) return undefined;
  const { messages, finishReason } = conversation;
  if (finishReason === 'length' || finishReason === 'content_filter') return undefined;
  const request = parseToolRequest(messages.at(-1)?.content);
  return request !== undefined && isJson(request) ? request : undefined;
}

/** The last reply of a conversation, as clients get it. */
export function toChatResponse(id: string, conversation: StoredConversation): ChatResponse {
  const request = pendingRequest(conversation);
  const content = request === undefined ? (conversation.messages.at(-1)?.content ?? '') : '';
  return {
    conversation_id: id,
    message: { role: 'assistant', content },
    finish_reason: conversation.finishReason,
    ...(request === undefined ? {} : { tool_request: request }),
  };
}

/** What is nested deeper than the stack can be read, but not written: then it is text. */
function isJson(request: ToolRequest): boolean {
  try {
    JSON.stringify(request);
    return true;
  } catch {
    return false;
  }
}
