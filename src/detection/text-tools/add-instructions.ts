import type { Message } from '../../contract/message.js';

/**
 * Puts instructions into the leading system message, or one of its own where there is none: many chat
 * templates accept only one system message, and only first. Messages that hold them already stay as they are.
 */
export function addInstructions(messages: readonly Message[], instructions: string): readonly Message[] {
  const [first, ...others] = messages;
  if (first?.role !== 'system' && first?.role !== 'developer') {
    return [{ role: 'system', content: instructions }, ...messages];
  }
  if (first.content.includes(instructions)) return messages;
  return [{ ...first, content: `${first.content}\n\n${instructions}` }, ...others];
}
