import type { LLMProvider } from 'toolwright';

/** A model that calls the tool which the user names, and then says what it heard of it. */
export const obedient: LLMProvider = {
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

/** What a user says. */
export const asks = (tool: string) => [{ role: 'user', content: tool }] as const;
