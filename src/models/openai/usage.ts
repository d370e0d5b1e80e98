import type { Usage } from '../../core/contract/llm-provider.js';
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
  return {
    inputTokens: countOf(input),
    outputTokens: countOf(output) + missingReasoning({ input, output, total, reasoning }),
    totalTokens: total,
    ...counted(
      'cacheReadTokens',
      ofInput.cached_tokens,
      usage.prompt_cache_hit_tokens,
      usage.cached_tokens,
      usage.cache_read_input_tokens,
    ),
    ...counted('cacheWriteTokens', ofInput.cache_write_tokens, usage.cache_creation_input_tokens),
    ...counted('reasoningTokens', reasoning),
    raw: usage,
  };
}

interface Counts {
  readonly input: unknown;
  readonly output: unknown;
  readonly total: number;
  readonly reasoning: number | undefined;
}

/** xAI and Gemini do not count reasoning as completion tokens, but only in the total. */
function missingReasoning({ input, output, total, reasoning }: Counts): number {
  const missing = total - countOf(input) - countOf(output);
  return missing > 0 && (reasoning === undefined || reasoning === missing) ? missing : 0;
}

function counted(name: keyof Usage, ...candidates: readonly unknown[]): Partial<Usage> {
  const count = firstCount(...candidates);
  return count === undefined ? {} : { [name]: count };
}

function firstCount(...candidates: readonly unknown[]): number | undefined {
  return candidates.find((candidate) => typeof candidate === 'number');
}

function countOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
