import type { ReplyAttachment, Usage } from '../../core/contract/llm-provider.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { jsonRecord, jsonText, type WireRecord } from '../wire/wire-json.js';

/** The only link schemes for pages: browsers may execute others, or show content chosen by the author of the reply. */
const WEB = /^https?:\/\//i;

/** The source in an annotation; its fields are in the annotation itself, or one level deeper under its type. */
export function citedAttachment(annotation: unknown): readonly ReplyAttachment[] {
  const outer = jsonRecord(annotation);
  const type = jsonText(outer.type);
  const { url, title, filename } = { ...outer, ...jsonRecord(outer[type]) };
  if (type === 'url_citation') {
    const address = jsonText(url);
    return WEB.test(address)
      ? [{ type: 'page', url: address, ...(title ? { title: jsonText(title) } : {}) }]
      : [];
  }
  const name = jsonText(filename);
  return type === 'file_citation' && name !== '' ? [{ type: 'document', title: name, filename: name }] : [];
}

/** A generated image: base64, or a URL, which may be a data URL. */
export function imageAttachment(image: unknown, mimeType = 'image/png'): readonly ReplyAttachment[] {
  const text = jsonText(image);
  if (text === '') return [];
  const [, own = mimeType] = /^data:([^;,]+)/.exec(text) ?? [];
  if (WEB.test(text)) return [{ type: 'file', url: text, mimeType }];
  if (!text.startsWith('data:')) return [{ type: 'file', url: `data:${mimeType};base64,${text}`, mimeType }];
  return own.startsWith('image/') ? [{ type: 'file', url: text, mimeType: own }] : [];
}

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
