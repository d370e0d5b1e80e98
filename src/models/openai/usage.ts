import type { Usage } from '../../core/contract/llm-provider.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { jsonRecord, type WireRecord } from '../wire/wire-json.js';

/**
 * The usage of a reply, in the fields of either API or of a compatible server: DeepSeek has
 * `prompt_cache_hit_tokens`, Moonshot `cached_tokens`, proxies of Anthropic `cache_creation_input_tokens`.
 */
export function toUsage(usage: WireRecord): Usage | undefined {
  const input = usage.prompt_tokens ?? usage.input_tokens;
  const output = usage.completion_tokens ?? usage.output_tokens;
  if (typeof input !== 'number' && typeof output !== 'number') return undefined;
  const ofInput = jsonRecord(usage.prompt_tokens_details ?? usage.input_tokens_details);
  const ofOutput = jsonRecord(usage.completion_tokens_details ?? usage.output_tokens_details);
  const reasoning = firstCount(ofOutput.reasoning_tokens);
  const total = firstCount(usage.total_tokens) || countOf(input) + countOf(output);
  // xAI and Gemini do not count reasoning as completion tokens, but only in the total.
  const missing = Math.max(0, total - countOf(input) - countOf(output));
  const isReasoning = reasoning === undefined || reasoning === missing;
  return withoutUndefined({
    inputTokens: countOf(input),
    outputTokens: countOf(output) + (isReasoning ? missing : 0),
    totalTokens: total,
    cacheReadTokens: firstCount(
      ofInput.cached_tokens,
      usage.prompt_cache_hit_tokens,
      usage.cached_tokens,
      usage.cache_read_input_tokens,
    ),
    cacheWriteTokens: firstCount(ofInput.cache_write_tokens, usage.cache_creation_input_tokens),
    reasoningTokens: reasoning,
    raw: usage,
  });
}

function firstCount(...candidates: readonly unknown[]): number | undefined {
  return candidates.find((candidate) => typeof candidate === 'number');
}

function countOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
