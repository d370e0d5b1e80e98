import type { ToolCall } from '../contract/llm-provider.js';
import { checkOptions } from '../errors/invalid-options.js';
import { either, LIST, withMethods } from '../kernel/option-rules.js';
import { optionTable } from '../kernel/options.js';
import type { KnownToolSource } from './known-tools.js';
import { numberDrafts } from './number-drafts.js';
import { scanText } from './scan-text.js';

/** What a text holds. */
export interface ParsedText {
  /** The first call. */
  readonly toolCall?: ToolCall;
  /** All calls, in the order of the text. */
  readonly toolCalls: readonly ToolCall[];
  /** The text before the first call, untrimmed; the whole text if there is none. */
  readonly textBefore: string;
}

/** Options of {@link ToolCallParser}. */
export interface ToolCallParserOptions {
  /** Names, tools, or a registry: nothing else is ever a call. Without it any name is. */
  readonly tools?: KnownToolSource;
}

const OPTIONS = optionTable<ToolCallParserOptions>('ToolCallParser', {
  tools: { ...either(LIST, withMethods(['list'], '')), fix: "a ToolRegistry, or ['add', …]" },
});

/**
 * Finds tool calls in what a model without native calling wrote: JSON objects with `name` and
 * `arguments`, bare, fenced or between the marks of the common model families. It never throws, and a call
 * that is cut off is no call. Tools with `parameters` give untyped formats their types.
 *
 * @example
 * ```ts
 * const parser = new ToolCallParser({ tools: ['add'] });
 * const { toolCall, textBefore } = parser.parse('Let me see. {"name": "add", "arguments": {"a": 42, "b": 58}}');
 * // toolCall: { id: 'call_1', name: 'add', arguments: { a: 42, b: 58 } }, textBefore: 'Let me see. '
 * ```
 */
export class ToolCallParser {
  readonly #tools: KnownToolSource | undefined;

  constructor(options: ToolCallParserOptions = {}) {
    checkOptions(options, OPTIONS);
    this.#tools = options.tools;
  }

  parse(text: string): ParsedText {
    // Callers in plain JavaScript pass on what a provider left out.
    if (typeof text !== 'string') return { toolCalls: [], textBefore: '' };
    const { calls, textBefore } = scanText(text, this.#tools);
    const toolCalls = numberDrafts(calls);
    return { toolCall: toolCalls[0], toolCalls, textBefore };
  }
}
