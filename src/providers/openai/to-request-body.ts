import type { LLMRequest, Message, ToolMessage } from '../../contract/llm-provider.js';
import type { Content, ContentPart } from '../../contract/tool-result.js';
import { jsonRecord } from './to-response.js';

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

/** A message as the wire takes it. */
type WireMessage = Readonly<Record<string, unknown>>;

/**
 * Messages for Chat Completions. Tool messages may carry only text there, so images and files of tool
 * results follow their answers in a user message: after all answers, because the wire wants those straight
 * after the calls.
 */
function toWireMessages(messages: readonly Message[]): readonly (Message | WireMessage)[] {
  if (!messages.some(hasParts)) return messages;
  const wire: (Message | WireMessage)[] = [];
  let attachments: WireMessage[] = [];
  const flush = (): void => {
    if (attachments.length > 0) wire.push({ role: 'user', content: attachments });
    attachments = [];
  };
  for (const message of messages) {
    if (message.role !== 'tool') flush();
    if (!hasParts(message)) {
      wire.push(message);
      continue;
    }
    const { parts, ...answer } = message;
    wire.push(answer);
    attachments.push({ type: 'text', text: `Attached to the result of ${message.tool_call_id}:` });
    attachments.push(...parts.flatMap(toWirePart));
  }
  flush();
  return wire;
}

function hasParts(message: Message): message is ToolMessage & { readonly parts: Content } {
  return message.role === 'tool' && message.parts !== undefined;
}

/** Text is in the answer already. */
function toWirePart(part: ContentPart): readonly WireMessage[] {
  if (part.type === 'text') return [];
  const url = `data:${part.mimeType};base64,${part.data}`;
  if (part.type === 'image') return [{ type: 'image_url', image_url: { url } }];
  return [{ type: 'file', file: { filename: part.filename, file_data: url } }];
}
