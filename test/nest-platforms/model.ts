import type { LLMProvider } from 'toolwright';

/** A model that calls the tool whose name is the user message, and then replies with the result. */
export const provider: LLMProvider = {
  async chat({ messages }) {
    const last = messages.at(-1);
    const content = String(last?.content ?? '');
    if (last?.role === 'tool') return { content, toolCalls: [], finishReason: 'stop' };
    return {
      content: '',
      toolCalls: [{ id: 'call', name: content, arguments: {} }],
      finishReason: 'tool_calls',
    };
  },
};

/** The messages of a user who requests this tool. */
export const promptFor = (tool: string) => [{ role: 'user', content: tool }] as const;
