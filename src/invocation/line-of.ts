import type { CallScope } from '../contract/call-scope.js';

/** The line in which the work of a call waits for its turn: that of its conversation. */
export function lineOf({ conversationId, channel, chatId }: CallScope): string {
  if (conversationId !== undefined) return `conversation ${conversationId}`;
  return channel === undefined && chatId === undefined ? '' : JSON.stringify([channel, chatId]);
}
