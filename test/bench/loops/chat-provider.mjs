/* A script as a provider of the Chat Completions shape: for our loop and the one written by hand. */
import { ANSWER } from './script.mjs';

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

/** A provider with nothing between it and the script. */
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
