import { readExactJson } from '../../checking/exact-json.js';
import type { FinishReason, LLMResponse, ToolCall, Usage } from '../../contract/llm-provider.js';
import { isComplete, type WireCall } from './call-assembly.js';
import { parseJsonRecord } from './lenient-json.js';
import type { WireReply } from './reply-assembly.js';

// Besides OpenAI's own words those of servers that say the same in other ones (Mistral's `model_length`,
// DeepSeek's `insufficient_system_resource`, Gemini's `SAFETY`); `error` breaks a reply off in its middle.
const CUT = new Set(['length', 'max_tokens', 'model_length', 'insufficient_system_resource', 'error']);
const FILTERED = new Set(['content_filter', 'content-filter', 'safety']);

/** The response of the contract that a reply on the wire means. */
export function toResponse(reply: WireReply): LLMResponse {
  const usage = toUsage(reply.usage);
  return {
    content: reply.text || reply.refusal,
    toolCalls: reply.calls.map(toToolCall),
    finishReason: toFinishReason(reply),
    ...(usage ? { usage } : {}),
  };
}

function toToolCall({ id, name, input, custom }: WireCall): ToolCall {
  return { id, name, arguments: custom ? input : argumentsOf(input) };
}

/** As text where there is no object, or one whose long integers whoever reads the arguments is to decide on. */
function argumentsOf(input: string): ToolCall['arguments'] {
  const record = parseJsonRecord(input);
  return record === undefined || readExactJson(input).hasDigitsAsText ? input : record;
}

function toFinishReason({ reason, calls, whole }: WireReply): FinishReason {
  const word = reason.toLowerCase();
  if (CUT.has(word)) return 'length';
  if (FILTERED.has(word)) return 'content_filter';
  if (calls.length === 0) return 'stop';
  // A stream that just ends may have ended inside a call's arguments, and a tool must not be run with the
  // half of them that arrived.
  const cutOff = word === '' && !whole && calls.some(({ custom, input }) => custom || !isComplete(input));
  return cutOff ? 'length' : 'tool_calls';
}

function toUsage(usage: WireReply['usage']): Usage | undefined {
  const input = usage.prompt_tokens ?? usage.input_tokens;
  const output = usage.completion_tokens ?? usage.output_tokens;
  if (typeof input !== 'number' && typeof output !== 'number') return undefined;
  const inputTokens = countOf(input);
  const outputTokens = countOf(output);
  return {
    inputTokens,
    outputTokens,
    totalTokens: countOf(usage.total_tokens) || inputTokens + outputTokens,
  };
}

function countOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
