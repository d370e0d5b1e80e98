import type { LLMProvider, LLMRequest, LLMResponse } from '../../contract/llm-provider.js';
import { planCalls } from './plan-calls.js';
import { writeAnswer } from './write-answer.js';

/**
 * A stand-in for a machine without a key: no language model, no network, the same reply to the same request. It
 * ranks the offered tools by words, reads their arguments out of the last user message by their schemas, and
 * quotes the results; it understands nothing. On real prompts it picks the right tools four times in five and
 * makes exactly the right calls one time in three: `npm run measure:offline -- bfcl.jsonl`.
 *
 * @example
 * ```ts
 * const run = await runToolLoop({ provider: new OfflineProvider(), model: 'offline', tools }, messages);
 * ```
 */
export class OfflineProvider implements LLMProvider {
  /** `year` is that of dates said without one; default: the current year. */
  constructor(private readonly options: { readonly year?: number } = {}) {}

  async chat({ messages, tools = [] }: LLMRequest): Promise<LLMResponse> {
    const asked = messages.findLastIndex(({ role }) => role === 'user');
    const turn = messages.slice(asked + 1);
    const parts = [messages[asked]?.content ?? ''].flat() as readonly (string | { readonly text?: string })[];
    const text = parts.map((part) => (typeof part === 'string' ? part : (part.text ?? ''))).join('\n');
    // Work that was started earlier comes back as such a message: news, not a request.
    const news = /^\[System: async:.*?\]\s*/.exec(text)?.[0];
    if (news) return { content: text.slice(news.length), toolCalls: [], finishReason: 'stop' };
    const year = this.options.year ?? new Date().getFullYear();
    const planned = turn.some(({ role }) => role === 'tool') ? [] : planCalls(text, tools, year);
    const used = [...JSON.stringify(messages).matchAll(/"id":"call_(\d+)"/g)].map((match) =>
      Number(match[1]),
    );
    const last = Math.max(0, ...used);
    const toolCalls = planned.map((call, index) => ({ id: `call_${last + index + 1}`, ...call }));
    if (toolCalls.length > 0) return { content: '', toolCalls, finishReason: 'tool_calls' };
    return { content: writeAnswer(turn, tools), toolCalls, finishReason: 'stop' };
  }
}
