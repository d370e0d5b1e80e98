/* A provider for a script, for `runToolLoop` and the hand-written loop. */
import { ANSWER } from './script.mjs';

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

export function chatProvider(script) {
  return {
    async chat({ messages }) {
      const toolCalls = script.next(messages);
      return toolCalls.length > 0
        ? { content: '', toolCalls, finishReason: 'tool_calls', usage }
        : { content: ANSWER, toolCalls, finishReason: 'stop', usage };
    },
  };
}
