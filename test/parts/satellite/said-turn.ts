import type { ConversationTurn } from 'toolwright/satellite';

/** A turn whose messages contain its id. */
export function turn(id: string, after?: string): ConversationTurn {
  const messages = [
    { role: 'user', content: `say ${id}` },
    { role: 'assistant', content: id },
  ] as const;
  return { id, after, messages, finishReason: 'stop' };
}
