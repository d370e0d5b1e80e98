import { plainJson } from '../checking/plain-json.js';
import type {
  FinishReason,
  LLMProvider,
  LLMRequest,
  LLMResponse,
  ToolCall,
  Usage,
} from '../contract/llm-provider.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from '../invocation/error-message.js';
import { unlessAborted } from '../invocation/unless-aborted.js';
import { isRecord } from '../kernel/is-record.js';

/** A reply, or why there is none. */
export type Reply =
  | { readonly ok: true; readonly response: LLMResponse }
  /** `streamed` is the text that was told by then. */
  | { readonly ok: false; readonly reason: 'aborted'; readonly streamed?: string }
  | { readonly ok: false; readonly reason: 'failed'; readonly error: ToolwrightError };

/** Hears of a reply's text while it is written; the provider waits for what it returns. */
export type TextListener = (text: string) => void | Promise<void>;

/**
 * Asks the provider once; with a listener, its text is streamed. An abort does not wait for a provider that
 * ignores its signal.
 */
export async function requestReply(
  provider: LLMProvider,
  request: LLMRequest,
  onText?: TextListener,
): Promise<Reply> {
  const { signal } = request;
  if (signal?.aborted) return { ok: false, reason: 'aborted' };
  let streamed = '';
  const tell = (text: string): void | Promise<void> => {
    streamed += text;
    return onText?.(text);
  };
  try {
    const asked = onText ? streamReply(provider, request, tell) : provider.chat(request);
    const response = signal === undefined ? await asked : await unlessAborted(asked, signal);
    return { ok: true, response: tidyResponse(response) };
  } catch (cause) {
    if (signal?.aborted) return { ok: false, reason: 'aborted', streamed };
    const message = `LLM call failed: ${errorMessage(cause)}`;
    return { ok: false, reason: 'failed', error: new ToolwrightError('ProviderFailed', message, { cause }) };
  }
}

/** A provider without `stream` gives its text in one piece. */
async function streamReply(
  provider: LLMProvider,
  request: LLMRequest,
  onText: TextListener,
): Promise<LLMResponse> {
  if (provider.stream === undefined) {
    const response = await provider.chat(request);
    if (isText(response?.content)) await onText(response.content);
    return response;
  }
  for await (const part of provider.stream(request)) {
    if (part.type === 'response') return part.response;
    // After an abort the run has ended; leaving the iteration lets the provider close its connection.
    if (request.signal?.aborted) break;
    if (part.type === 'text-delta' && isText(part.text)) await onText(part.text);
  }
  throw new Error('the stream ended without a response');
}

function isText(text: unknown): text is string {
  return typeof text === 'string' && text !== '';
}

/** Providers are other people's code: what they leave out gets its plain meaning. */
function tidyResponse(response: Partial<LLMResponse> | null | undefined): LLMResponse {
  if (typeof response !== 'object' || response === null)
    throw new TypeError('the provider returned no response');
  const { content, usage, finishReason } = response;
  const toolCalls = (response.toolCalls ?? []).map(tidyCall);
  const fallback: FinishReason = toolCalls.length > 0 ? 'tool_calls' : 'stop';
  return {
    content: typeof content === 'string' ? content : '',
    toolCalls,
    finishReason: typeof finishReason === 'string' ? finishReason : fallback,
    usage: isRecord(usage) ? tidyUsage(usage) : undefined,
  };
}

/** Counts are whole and not negative, whatever a server says: they are summed, and kept with suspended runs. */
function tidyUsage({ inputTokens, outputTokens, totalTokens }: Partial<Usage>): Usage {
  return {
    inputTokens: tidyCount(inputTokens),
    outputTokens: tidyCount(outputTokens),
    totalTokens: tidyCount(totalTokens),
  };
}

function tidyCount(count: unknown): number {
  if (!Number.isFinite(count)) return 0;
  return Math.min(Math.max(0, Math.round(count as number)), Number.MAX_SAFE_INTEGER);
}

/** A call as the loop relies on it, from whoever found it. */
export function tidyCall(call: Partial<ToolCall> | null | undefined): ToolCall {
  const { id, name, arguments: args } = call ?? {};
  return { id: typeof id === 'string' ? id : '', name: String(name ?? ''), arguments: tidyArguments(args) };
}

/** Arguments are text or plain JSON; what a `Date` or a `Map` is then, the tool's schema decides. */
function tidyArguments(args: unknown): ToolCall['arguments'] {
  if (args === undefined || args === null) return {};
  return (isPlain(args) ? args : (plainJson(args) ?? String(args))) as ToolCall['arguments'];
}

function isPlain(args: unknown): boolean {
  if (typeof args !== 'object' || args === null)
    return typeof args !== 'symbol' && typeof args !== 'function';
  if (Array.isArray(args)) return true;
  const prototype: unknown = Object.getPrototypeOf(args);
  return (prototype === Object.prototype || prototype === null) && !('toJSON' in args);
}
