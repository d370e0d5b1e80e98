import type { LLMProvider, LLMRequest, ToolCall } from 'toolwright';
import { withTextTools } from 'toolwright';

/** What is left of an answer that comes in pieces. */
interface StreamedAnswer {
  readonly calls: readonly Pick<ToolCall, 'name' | 'arguments'>[];
  readonly text: string;
}

/** The calls of an answer that streams in pieces of one length, and the text that is left to be shown. */
export async function streamedCalls(
  answer: string,
  tools: readonly string[],
  length = answer.length,
): Promise<StreamedAnswer> {
  const response = { content: answer, toolCalls: [], finishReason: 'stop' } as const;
  const provider: LLMProvider = {
    chat: async () => response,
    async *stream() {
      for (let at = 0; at < answer.length; at += length)
        yield { type: 'text-delta', text: answer.slice(at, at + length) };
      yield { type: 'response', response };
    },
  };
  let text = '';
  let calls: StreamedAnswer['calls'] = [];
  for await (const part of withTextTools(provider).stream!(requestWith(tools))) {
    if (part.type === 'text-delta') text += part.text;
    if (part.type === 'response')
      calls = part.response.toolCalls.map(({ name, arguments: args }) => ({ name, arguments: args }));
  }
  return { calls, text };
}

function requestWith(names: readonly string[]): LLMRequest {
  const tools = names.map((name) => ({
    type: 'function' as const,
    function: { name, description: 'd', parameters: {} },
  }));
  return { model: 'm', messages: [{ role: 'user', content: 'x' }], tools, options: {} };
}
