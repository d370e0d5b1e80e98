import type { UserMessage } from '../contract/message.js';
import type { TurnOrigin } from './conversation-event.js';

/** What the model is told of what began a turn. */
export function turnMessage(origin: TurnOrigin): UserMessage {
  if (origin.kind === 'prompt') return { role: 'user', content: origin.content };
  return { role: 'user', content: `[System: async:${origin.tool}] ${origin.text}` };
}
