import type { LLMProvider, LLMRequest, LLMResponse } from '../../contract/llm-provider.js';
import { planCalls } from './plan-calls.js';
import { writeAnswer } from './write-answer.js';

/**
 * A stand-in for a machine without a key: no language model, no network, the same reply to the same request. It
 * ranks the offered tools by words, reads their arguments out of the last user message by their schemas, and
 * quotes the results. It understands nothing; `npm run measure:offline` measures it.
 *
 * @example
 * ```ts
 * const run = await runToolLoop({ provider: new OfflineProvider(), model: 'offline', tools }, messages);
 * ```
 */
export class OfflineProvider implements LLMProvider {
  readonly #today: () => Date;

  /** `today` tells what `tomorrow`, or a date without a year, means; default: the clock. */
  constructor({ today = () => new Date() }: { readonly today?: () => Date } = {}) {
    this.#today = today;
  }

  async chat({ messages, tools = [] }: LLMRequest): Promise<LLMResponse> {
    const asked = messages.findLastIndex(({ role }) => role === 'user');
    const turn = messages.slice(asked + 1);
    const text = asked < 0 ? '' : readText(messages[asked]?.content);
    const planned = turn.some(({ role }) => role === 'tool') ? [] : planCalls(text, tools, this.#today());
    const ids = messages.flatMap((message) =>
      message.role === 'assistant' ? (message.tool_calls ?? []) : [],
    );
    const last = Math.max(0, ...ids.map(({ id }) => Number(/^call_(\d+)$/.exec(id)?.[1] ?? 0)));
    const toolCalls = planned.map((call, index) => ({ id: `call_${last + index + 1}`, ...call }));
    const content = toolCalls.length > 0 ? '' : writeAnswer(turn, tools);
    const finishReason = toolCalls.length > 0 ? 'tool_calls' : 'stop';
    return { content, toolCalls, finishReason, usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 } };
  }
}

// Of a message in parts, the texts.
function readText(content: unknown): string {
  const parts = Array.isArray(content) ? content.map((part) => part?.text ?? part?.content ?? '') : [content];
  return parts.filter((part) => typeof part === 'string').join('\n');
}
