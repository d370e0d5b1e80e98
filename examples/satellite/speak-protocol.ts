import {
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type Message,
  parseToolRequest,
  type ToolSchema,
} from 'toolwright';

/**
 * Makes a model with native tool calls use the tool_request protocol: a call becomes the text of a request, and the
 * text after a request becomes the result of the call. The protocol allows one call at a time.
 */
export function speakProtocol(provider: LLMProvider, tools: readonly ToolSchema[]): LLMProvider {
  return {
    async chat(request: LLMRequest): Promise<LLMResponse> {
      const response = await provider.chat({
        ...request,
        tools,
        messages: withNativeCalls(request.messages),
      });
      const [call] = response.toolCalls;
      if (call === undefined) return response;
      const content = JSON.stringify({ tool_request: { name: call.name, arguments: call.arguments } });
      return { ...response, content, toolCalls: [], finishReason: 'stop' };
    },
  };
}

function withNativeCalls(messages: readonly Message[]): readonly Message[] {
  return messages.map((message, index) => {
    const before = messages[index - 1];
    if (message.role === 'user' && before?.role === 'assistant' && parseToolRequest(before.content))
      return { role: 'tool', content: String(message.content), tool_call_id: `call_${index - 1}` };
    const request = message.role === 'assistant' ? parseToolRequest(message.content) : undefined;
    if (request === undefined) return message;
    const call = { name: request.name, arguments: JSON.stringify(request.arguments) };
    return {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: `call_${index}`, type: 'function', function: call }],
    };
  });
}
