import type { ToolRequest } from '../../detection/parse-tool-request.js';
import type { ChatResponse } from '../chat-protocol.js';
import { isConversationId } from '../conversation-id.js';
import { AssistantError } from './assistant-error.js';
import { readEvents } from './read-events.js';

/** A reply, and the name of the turn that it ended, where the server told it. */
export interface Reply {
  readonly turnId?: string;
  readonly response: ChatResponse;
}

/** How a response is read. */
export interface ReplyReading {
  readonly onText?: (text: string) => void;
  readonly maxBytes: number;
}

type Body = AsyncIterable<Uint8Array>;

/** What a response says, be it one body or events. Throws an {@link AssistantError} where it is no reply. */
export async function readReply(response: Response, { onText, maxBytes }: ReplyReading): Promise<Reply> {
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  const body = atMost(maxBytes, response.body ?? []);
  if (response.ok && isStream) return readStream(body, onText);
  const text = await readText(body);
  if (!response.ok) throw readError(text, response);
  const [, turnId] = /^(?:W\/)?"(.*)"$/.exec(response.headers.get('etag') ?? '') ?? [];
  return { turnId, response: checkReply(parse(text)) };
}

/** Leaving the iteration closes the connection. */
async function* atMost(maxBytes: number, body: Body | Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > maxBytes)
      throw new AssistantError('reply_too_large', `the assistant sent more than ${maxBytes} bytes`);
    yield chunk;
  }
}

async function readText(body: Body): Promise<string> {
  const decoder = new TextDecoder();
  const parts: string[] = [];
  for await (const chunk of body) parts.push(decoder.decode(chunk, { stream: true }));
  return parts.join('') + decoder.decode();
}

async function readStream(body: Body, onText?: (text: string) => void): Promise<Reply> {
  for await (const { event, data, id } of readEvents(body)) {
    if (event === 'response') return { turnId: id, response: checkReply(parse(data)) };
    if (event === 'error') throw readError(data);
    const delta = event === 'text-delta' ? (parse(data) as { readonly text?: unknown } | null) : null;
    if (typeof delta?.text === 'string') onText?.(delta.text);
  }
  throw new AssistantError('unreachable', 'the stream of the assistant ended before its reply');
}

function readError(text: string, { status, headers }: Partial<Response> = {}): AssistantError {
  const body = parse(text) as {
    readonly error?: { readonly code?: unknown; readonly message?: unknown };
  } | null;
  const { code, message } = body?.error ?? {};
  const seconds = Number(headers?.get('retry-after') ?? Number.NaN);
  const details = { status, ...(Number.isFinite(seconds) ? { retryAfterMs: seconds * 1000 } : {}) };
  if (typeof code === 'string' && typeof message === 'string')
    return new AssistantError(code as AssistantError['code'], message, details);
  return new AssistantError('invalid_response', `the assistant answered with status ${status}`, details);
}

/** The server is another program, maybe of another make; some write null for what they leave out. */
function checkReply(value: unknown): ChatResponse {
  const { tool_request: request, ...reply } = (value ?? {}) as Partial<ChatResponse>;
  const hasRequest = request !== undefined && request !== null;
  const isReply =
    isConversationId(reply.conversation_id) &&
    typeof reply.message?.content === 'string' &&
    typeof reply.finish_reason === 'string' &&
    (!hasRequest || isToolRequest(request));
  if (isReply) return { ...(reply as ChatResponse), ...(hasRequest ? { tool_request: request } : {}) };
  throw new AssistantError('invalid_response', 'the assistant answered with something that is no reply');
}

function isToolRequest({ name, arguments: args }: Partial<ToolRequest>): boolean {
  return typeof name === 'string' && typeof args === 'object' && args !== null && !Array.isArray(args);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
