import type { AssistantMessage, LLMRequest, LLMResponse, LLMStreamPart, Message } from 'toolwright';
import { OpenAIProvider, type OpenAIProviderOptions } from 'toolwright/openai';
import { type Answer, collect, LoopbackServer } from './loopback-server.js';

/** The history after a reply: its message as a loop stores it, a result for each call, and the next user message. */
export function historyAfter(response: LLMResponse): readonly Message[] {
  const { content, toolCalls, providerItems, reasoning } = response;
  const message: AssistantMessage = {
    role: 'assistant',
    content,
    ...(toolCalls.length > 0
      ? {
          tool_calls: toolCalls.map(({ id, name, arguments: args, providerItems: items }) => ({
            id,
            type: 'function',
            function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
            ...(items ? { providerItems: items } : {}),
          })),
        }
      : {}),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(providerItems ? { providerItems } : {}),
  };
  const answers = toolCalls.map(
    ({ id }) => ({ role: 'tool', tool_call_id: id, content: `of ${id}` }) as const,
  );
  return [{ role: 'user', content: 'first' }, message, ...answers, { role: 'user', content: 'second' }];
}

export interface Exchange {
  readonly response: LLMResponse;
  readonly parts: readonly LLMStreamPart[];
  readonly body: Record<string, unknown>;
}

/** Sends one request over HTTP and returns the response, the stream parts and the request body. */
export async function exchange(
  answer: Answer,
  how: Partial<LLMRequest> & {
    readonly method: 'chat' | 'stream';
    readonly options?: Record<string, unknown>;
  },
  options: OpenAIProviderOptions = {},
): Promise<Exchange> {
  const { method, ...more } = how;
  await using server = await LoopbackServer.start(answer);
  const provider = new OpenAIProvider({ baseURL: server.baseURL, apiKey: 'k', maxRetries: 0, ...options });
  const request = {
    model: 'm',
    messages: [{ role: 'user', content: 'first' }],
    options: {},
    ...more,
  } as const;
  const parts =
    method === 'stream'
      ? await collect(provider.stream(request))
      : [{ type: 'response', response: await provider.chat(request) } as const];
  const last = parts.at(-1);
  if (last?.type !== 'response') throw new Error('a stream ends with its response');
  return { response: last.response, parts, body: server.requests[0]?.body ?? {} };
}

/** The texts of all parts of one type, joined. */
export function textOf(parts: readonly LLMStreamPart[], type: 'text-delta' | 'reasoning-delta'): string {
  return parts.map((part) => (part.type === type ? part.text : '')).join('');
}
