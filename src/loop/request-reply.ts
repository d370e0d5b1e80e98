import type {
  FinishReason,
  LLMProvider,
  LLMRequest,
  LLMResponse,
  ToolCall,
} from '../contract/llm-provider.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from '../invocation/error-message.js';

/** A reply, or why there is none. */
export type Reply =
  | { readonly ok: true; readonly response: LLMResponse }
  | { readonly ok: false; readonly reason: 'aborted' }
  | { readonly ok: false; readonly reason: 'failed'; readonly error: ToolwrightError };

/** Asks the provider once. An abort does not wait for a provider that ignores its signal. */
export async function requestReply(provider: LLMProvider, request: LLMRequest): Promise<Reply> {
  const { signal } = request;
  if (signal?.aborted) return { ok: false, reason: 'aborted' };
  try {
    const asked = provider.chat(request);
    const response = signal === undefined ? await asked : await unlessAborted(asked, signal);
    return { ok: true, response: tidyResponse(response) };
  } catch (cause) {
    if (signal?.aborted) return { ok: false, reason: 'aborted' };
    const message = `LLM call failed: ${errorMessage(cause)}`;
    return { ok: false, reason: 'failed', error: new ToolwrightError('ProviderFailed', message, { cause }) };
  }
}

function unlessAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    // The provider may have been what aborted, before there was anything to listen with.
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    Promise.resolve(work)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', abort));
  });
}

/** Providers are other people's code: what they leave out gets its plain meaning. */
function tidyResponse(response: Partial<LLMResponse> | null | undefined): LLMResponse {
  if (typeof response !== 'object' || response === null)
    throw new TypeError('the provider returned no response');
  const { content, usage } = response;
  const toolCalls = (response.toolCalls ?? []).map(tidyCall);
  const finishReason: FinishReason = response.finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop');
  return { content: typeof content === 'string' ? content : '', toolCalls, finishReason, usage };
}

function tidyCall(call: Partial<ToolCall> | null | undefined): ToolCall {
  const { id, name, arguments: args } = call ?? {};
  return { id: typeof id === 'string' ? id : '', name: String(name ?? ''), arguments: args ?? {} };
}
