import type { LLMProvider } from 'toolwright';

/** Calls the tool once, and then replies with its result and with the schema that the model received. */
export const model: LLMProvider = {
  async chat({ messages, tools }) {
    const last = messages.at(-1);
    if (last?.role !== 'tool') {
      const call = { id: 'call_1', name: 'delivery_days', arguments: { postcode: '8004', weight: 25 } };
      return { content: '', toolCalls: [call], finishReason: 'tool_calls' };
    }
    const parameters = tools?.map((tool) => tool.function.parameters);
    return {
      content: `${last.content}, offered as ${JSON.stringify(parameters)}`,
      toolCalls: [],
      finishReason: 'stop',
    };
  },
};
