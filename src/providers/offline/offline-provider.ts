import {
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type Message,
  REQUEST,
  type ToolSchema,
} from '../../contract/llm-provider.js';
import { checkArguments, checkOptions } from '../../errors/author-fault.js';
import { optionTable, WHOLE } from '../../kernel/options.js';
import { planCalls } from './plan-calls.js';

const LONGEST = 4000;

const OPTIONS = optionTable<{ readonly year?: number }>('OfflineProvider', { year: WHOLE });

/**
 * A stand-in for a machine without a key: no language model, no network, the same reply to the same request.
 * It ranks the offered tools by words, reads their arguments out of the last user message by their schemas,
 * and quotes the results; it understands nothing. On real prompts it picks the right tools four times in five
 * and makes exactly the right calls three times in ten: `npm run measure:offline -- bfcl.jsonl`. A message of
 * over 4,000 characters is refused, since reading a part of it could hand a tool half a value.
 *
 * @example
 * ```ts
 * const run = await runToolLoop({ provider: new OfflineProvider(), model: 'offline', tools }, messages);
 * ```
 */
export class OfflineProvider implements LLMProvider {
  readonly #year: number | undefined;

  /** `year` is that of dates said without one; default: the current year. */
  constructor(options: { readonly year?: number } = {}) {
    checkOptions(options, OPTIONS);
    this.#year = options.year;
  }

  async chat(request: LLMRequest): Promise<LLMResponse> {
    checkArguments({ of: 'OfflineProvider.chat', given: { request }, rules: { request: REQUEST } });
    request.signal?.throwIfAborted();
    const { messages, tools = [] } = request;
    const asked = messages.findLastIndex(({ role }) => role === 'user');
    const turn = messages.slice(asked + 1);
    const parts = [messages[asked]?.content ?? ''].flat() as readonly (string | { readonly text?: string })[];
    const text = parts.map((part) => (typeof part === 'string' ? part : (part.text ?? ''))).join('\n');
    // Work that was started earlier comes back as such a message: news, not a request.
    const news = /^\[System: async:.*?\]\s*/.exec(text)?.[0];
    if (news) return { content: text.slice(news.length), toolCalls: [], finishReason: 'stop' };
    const done = text.length > LONGEST || turn.some(({ role }) => role === 'tool');
    const planned = done ? [] : planCalls(text, tools, this.#year ?? new Date().getFullYear());
    const earlier = messages.flatMap((message) => (message.role === 'assistant' && message.tool_calls) || []);
    const last = Math.max(0, ...earlier.map(({ id }) => Number(/^call_(\d+)$/.exec(id)?.[1] ?? 0)));
    const toolCalls = planned.map((call, index) => ({ id: `call_${last + index + 1}`, ...call }));
    if (toolCalls.length > 0) return { content: '', toolCalls, finishReason: 'tool_calls' };
    const why = text.length > LONGEST ? `read no more than ${LONGEST} characters` : 'found no tool that fits';
    return { content: writeAnswer(turn, tools, why), toolCalls, finishReason: 'stop' };
  }
}

/** Quotes the results of a turn; without any, says what this is, `why` it calls nothing, what it can do. */
function writeAnswer(turn: readonly Message[], tools: readonly ToolSchema[], why: string): string {
  const offered = tools.map((tool) => tool.function);
  const purposeOf = (name: string) =>
    offered.find((item) => item.name === name)?.description.split(/\.(?!\S)|\n/)[0] || name;
  const calls = turn.flatMap((message) => (message.role === 'assistant' && message.tool_calls) || []);
  const results = turn.flatMap((message) => {
    if (message.role !== 'tool') return [];
    const call = calls.find(({ id }) => id === message.tool_call_id);
    return `${purposeOf(call?.function.name ?? 'Result')}: ${message.content}`;
  });
  if (results.length > 0) return results.join('\n');
  const known = offered.map(({ name }) => `\n- ${purposeOf(name)}`).join('') || ' nothing, without tools.';
  return `I am the offline stand-in, not a language model, and ${why}. I can do:${known}`;
}

// Tried in this order; what one pattern took, the later ones do not see, but for numbers in expressions.
