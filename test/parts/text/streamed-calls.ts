import type { LLMProvider, LLMRequest, ToolCall } from 'toolwright';
import { withTextTools } from 'toolwright';

/** The calls of a streamed answer and the remaining text. */
interface StreamedAnswer {
  readonly calls: readonly Pick<ToolCall, 'name' | 'arguments'>[];
  readonly text: string;
}

/** Streams an answer in chunks of this length; returns its calls and the remaining text. */
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
