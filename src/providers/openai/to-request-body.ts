import type { LLMRequest } from '../../contract/llm-provider.js';
import { jsonRecord } from './lenient-json.js';
import { toWireMessages } from './to-wire-messages.js';

/** The body of a request, as the wire wants it. */
export type RequestBody = Readonly<Record<string, unknown>>;

/**
 * The body of a request for a whole reply. The messages have the wire's shape but for images and files of tools, and `options` go in
 * as they are; only `stream` and `stream_options` are taken out, which belong to the method that is called.
 */
export function toRequestBody({ model, messages, tools, options = {} }: LLMRequest): RequestBody {
  const { stream, stream_options, ...rest } = options;
  // An empty list of tools is refused by the wire.
  return { ...rest, model, messages: toWireMessages(messages), ...(tools?.length ? { tools } : {}) };
}

/**
 * The body of a request for a streamed reply. The usage is asked for unless `options.stream_options` say
 * `include_usage: false`, or are `null` or `false` for a server that does not know them.
 */
export function toStreamBody(request: LLMRequest, settings: { readonly withUsage: boolean }): RequestBody {
  const body = { ...toRequestBody(request), stream: true };
  const { options = {} } = request;
  const wanted = 'stream_options' in options ? options.stream_options : {};
  if (!wanted || !settings.withUsage) return body;
  return { ...body, stream_options: { include_usage: true, ...jsonRecord(wanted) } };
}
