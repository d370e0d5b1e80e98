import type { OpenAI } from 'openai';
import {
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamPart,
  REQUEST,
} from '../../contract/llm-provider.js';
import { checkArguments } from '../../errors/invalid-options.js';
import { bodyInTime } from './body-in-time.js';
import { createClient } from './create-client.js';
import { describeFailure, placeOf } from './describe-failure.js';
import { describeUselessReply } from './describe-useless-reply.js';
import { jsonRecord, jsonText, parseJsonRecord } from './lenient-json.js';
import type { OpenAIProviderOptions } from './openai-provider-options.js';
import { ReplyAssembly } from './reply-assembly.js';
import { type RequestBody, toRequestBody, toStreamBody } from './to-request-body.js';
import { toResponse } from './to-response.js';

type ChatParams = OpenAI.ChatCompletionCreateParamsNonStreaming;
type StreamParams = OpenAI.ChatCompletionCreateParamsStreaming;

/**
 * Models behind OpenAI's Chat Completions wire: OpenAI itself, and with `baseURL` every compatible server.
 *
 * When no reply could be had, both methods throw an `Error` whose message is one line that names what to do
 * (`401 from https://api.openai.com/v1: the key was refused …`) and whose `cause` is the client's error. An
 * aborted request throws the client's own abort error. The constructor throws InvalidOptionsError (521), also where
 * neither a key nor a base URL is known.
 *
 * @example
 * ```ts
 * const local = new OpenAIProvider({ baseURL: 'http://127.0.0.1:11434/v1' });
 * const reply = await local.chat({
 *   model: 'qwen3',
 *   messages: [{ role: 'user', content: 'Hello' }],
 *   options: { max_tokens: 50 },
 * });
 * console.log(reply.content, reply.usage?.totalTokens);
 * ```
 */
export class OpenAIProvider implements LLMProvider {
  readonly #client: OpenAI;
  /** A fact about the server, not about a request: it refused `stream_options` once. */
  #refusesUsage = false;

  constructor(options: OpenAIProviderOptions = {}) {
    this.#client = createClient(options);
  }

  /** One request, one whole reply. */
  async chat(request: LLMRequest): Promise<LLMResponse> {
    checkArguments({ of: 'OpenAIProvider.chat', given: { request }, rules: { request: REQUEST } });
    const body = await this.#send(toRequestBody(request), request.signal);
    const assembly = new ReplyAssembly();
    assembly.add(body);
    return this.#responseOf(assembly, body);
  }

  /** One request, the reply's text as it comes, and the reply at the end. */
  async *stream(request: LLMRequest): AsyncGenerator<LLMStreamPart, void, undefined> {
    checkArguments({ of: 'OpenAIProvider.stream', given: { request }, rules: { request: REQUEST } });
    const assembly = new ReplyAssembly();
    let last: unknown;
    try {
      for await (const chunk of await this.#open(request)) {
        last = chunk;
        const text = assembly.add(chunk);
        if (text !== '') yield { type: 'text-delta', text };
      }
    } catch (error) {
      throw this.#describe(error, request.signal);
    }
    // The client ends an aborted stream as if it had been complete.
    request.signal?.throwIfAborted();
    const response = this.#responseOf(assembly, last);
    // A refusal is the content only where there is no other, which is not known before the end.
    const refused = assembly.reply()?.text === '' && response.content !== '';
    if (refused) yield { type: 'text-delta', text: response.content };
    yield { type: 'response', response };
  }

  async #send(body: RequestBody, signal?: AbortSignal): Promise<unknown> {
    try {
      const params = body as unknown as ChatParams;
      const { completions } = this.#client.chat;
      const send = (ended: AbortSignal) => completions.create(params, { signal: ended });
      return asJson(await bodyInTime(send, { timeoutMs: this.#client.timeout, signal }));
    } catch (error) {
      throw this.#describe(error, signal);
    }
  }

  async #open(request: LLMRequest): Promise<AsyncIterable<unknown> | Iterable<unknown>> {
    const { signal } = request;
    const body = toStreamBody(request, { withUsage: !this.#refusesUsage });
    try {
      const params = body as unknown as StreamParams;
      const { data, response } = await this.#client.chat.completions
        .create(params, { signal })
        .withResponse();
      // A server that cannot stream answers with the whole completion, and a wrong address with a page.
      const isWhole = /json|html/i.test(response.headers.get('content-type') ?? '');
      return isWhole ? [asJson(await response.text())] : data;
    } catch (error) {
      if (!('stream_options' in body) || !refusesStreamOptions(error)) throw error;
      this.#refusesUsage = true;
      return this.#open(request);
    }
  }

  #responseOf(assembly: ReplyAssembly, body: unknown): LLMResponse {
    const reply = assembly.reply();
    if (reply === undefined)
      throw new Error(`${placeOf(this.#client.baseURL)} ${describeUselessReply(body)}`);
    return toResponse(reply);
  }

  #describe(error: unknown, signal: AbortSignal | undefined): unknown {
    return describeFailure(error, { baseURL: this.#client.baseURL, signal });
  }
}

/** Servers that forget the content type have their JSON delivered as text. */
function asJson(body: unknown): unknown {
  return typeof body === 'string' ? (parseJsonRecord(body) ?? body) : body;
}

function refusesStreamOptions(error: unknown): boolean {
  const { status, message } = jsonRecord(error);
  return (status === 400 || status === 422) && jsonText(message).includes('stream_options');
}
