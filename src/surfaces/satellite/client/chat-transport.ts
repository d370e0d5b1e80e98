import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { MAX_TIMER_MS } from '../../../core/kernel/async.js';
import { errorMessage } from '../../../core/kernel/error-message.js';
import { parsedJson } from '../../../core/kernel/json.js';
import type { ToolRequest } from '../../../run/text/tool-call-parser.js';
import {
  type ChatErrorCode,
  type ChatRequest,
  type ChatResponse,
  isConversationId,
} from '../chat-protocol.js';

/** The assistant's address, and the limits of requests. */
interface TransportOptions {
  readonly url: string | URL;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly maxRetries: number;
  /** For one request, until its reply is complete. */
  readonly timeoutMs: number;
  readonly maxReplyBytes: number;
}

interface ReplyListener {
  readonly signal?: AbortSignal;
  readonly onText?: (text: string) => void;
  readonly onRetry?: (retry: {
    readonly attempt: number;
    readonly delayMs: number;
    readonly error: Error;
  }) => void;
}

const LONGEST_DELAY_MS = 30_000;

/**
 * Sends requests and retries them. Retrying is safe even if the first request may have arrived: its `Idempotency-Key`
 * identifies the turn, and the server repeats the reply of a turn that it has.
 */
export class ChatTransport {
  readonly #options: TransportOptions;
  readonly #address: string;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#address = `${String(options.url).replace(/\/+$/, '')}/v1/chat`;
  }

  /** `after` is the turn that a result answers; the server refuses the result if the conversation has continued. */
  post(request: ChatRequest, after: string | undefined, listener: ReplyListener): Promise<ServerReply> {
    const headers = {
      accept: 'text/event-stream',
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      ...(after === undefined ? {} : { 'if-match': `"${after}"` }),
    };
    const body = JSON.stringify(request);
    return this.#send(this.#address, { method: 'POST', headers, body }, listener);
  }

  get(conversationId: string, listener: ReplyListener): Promise<ServerReply> {
    return this.#send(`${this.#address}/${encodeURIComponent(conversationId)}`, {}, listener);
  }

  async #send(address: string, request: RequestInit, listener: ReplyListener): Promise<ServerReply> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#sendOnce(address, request, listener);
      } catch (thrown) {
        listener.signal?.throwIfAborted();
        const error = toAssistantError(thrown);
        if (attempt > this.#options.maxRetries || !isPassing(error)) throw error;
        const delayMs = delayBefore(attempt, error);
        listener.onRetry?.({ attempt, delayMs, error });
        await wait(delayMs, undefined, { signal: listener.signal });
      }
    }
  }

  async #sendOnce(
    address: string,
    request: RequestInit,
    { signal, onText }: ReplyListener,
  ): Promise<ServerReply> {
    const { token, headers, timeoutMs, maxReplyBytes } = this.#options;
    const own = token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` };
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), Math.min(timeoutMs, MAX_TIMER_MS));
    // Do not follow redirects: a redirected POST may become a GET.
    const options = {
      ...request,
      headers: { ...own, ...request.headers },
      signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
      redirect: 'manual',
    } as const;
    try {
      return await readReply(await fetch(address, options), { onText, maxBytes: maxReplyBytes });
    } catch (cause) {
      if (!late.signal.aborted) throw cause;
      const problem = `the assistant gave no whole reply within ${timeoutMs} ms`;
      throw new AssistantError('timed_out', problem, { cause });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Whether to retry: the server is unreachable, a gateway reports that, or there are too many requests. */
function isPassing({ code, status = 0 }: AssistantError): boolean {
  if (code === 'unreachable' || code === 'conflict' || code === 'rate_limited') return true;
  // The server's provider has already been retried.
  return code !== 'provider_failed' && [429, 502, 503, 504].includes(status);
}

function delayBefore(attempt: number, { retryAfterMs }: AssistantError): number {
  // Random, so that many satellites do not reconnect to a server at the same moment.
  const growing = Math.min(250 * 2 ** (attempt - 1), 5000) * (0.5 + Math.random() / 2);
  return Math.min(Math.max(growing, retryAfterMs ?? 0), LONGEST_DELAY_MS);
}

function toAssistantError(thrown: unknown): AssistantError {
  if (thrown instanceof AssistantError) return thrown;
  // The message `fetch failed` has its details in its cause.
  const reason = (thrown as Partial<Error> | undefined)?.cause ?? thrown;
  return new AssistantError('unreachable', `the assistant cannot be reached: ${errorMessage(reason)}`, {
    cause: thrown,
  });
}

/** A reply, with the id of the turn that it ended if the server sent one. */
export interface ServerReply {
  readonly turnId?: string;
  readonly response: ChatResponse;
}

interface ReplyReading {
  readonly onText?: (text: string) => void;
  readonly maxBytes: number;
}

type Body = AsyncIterable<Uint8Array>;

/** Reads a reply from a JSON body or from events. Throws an {@link AssistantError} if it is invalid. */
async function readReply(response: Response, { onText, maxBytes }: ReplyReading): Promise<ServerReply> {
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  const body = atMost(maxBytes, response.body ?? []);
  if (response.ok && isStream) return readStream(body, onText);
  const text = await readText(body);
  if (!response.ok) throw readError(text, response);
  const [, turnId] = /^(?:W\/)?"(.*)"$/.exec(response.headers.get('etag') ?? '') ?? [];
  return { turnId, response: checkReply(parsedJson(text)) };
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

async function readStream(body: Body, onText?: (text: string) => void): Promise<ServerReply> {
  for await (const { event, data, id } of readEvents(body)) {
    if (event === 'response') return { turnId: id, response: checkReply(parsedJson(data)) };
    if (event === 'error') throw readError(data);
    const delta = event === 'text-delta' ? (parsedJson(data) as { readonly text?: unknown } | null) : null;
    if (typeof delta?.text === 'string') onText?.(delta.text);
  }
  throw new AssistantError('unreachable', 'the stream of the assistant ended before its reply');
}

function readError(text: string, { status, headers }: Partial<Response> = {}): AssistantError {
  const body = parsedJson(text) as {
    readonly error?: { readonly code?: unknown; readonly message?: unknown };
  } | null;
  const { code, message } = body?.error ?? {};
  const seconds = Number(headers?.get('retry-after') ?? Number.NaN);
  const details = { status, retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : undefined };
  if (typeof code === 'string' && typeof message === 'string')
    return new AssistantError(code as AssistantError['code'], message, details);
  return new AssistantError('invalid_response', `the assistant answered with status ${status}`, details);
}

/** The server may be another implementation; some write null for omitted fields. */
function checkReply(value: unknown): ChatResponse {
  const { tool_request: request, ...reply } = (value ?? {}) as Partial<ChatResponse>;
  const hasRequest = request !== undefined && request !== null;
  const isReply =
    isConversationId(reply.conversation_id) &&
    typeof reply.message?.content === 'string' &&
    typeof reply.finish_reason === 'string' &&
    (!hasRequest || isToolRequest(request));
  if (isReply) return { ...(reply as ChatResponse), ...(hasRequest ? { tool_request: request } : {}) };
  throw new AssistantError('invalid_response', 'the assistant answered with something that is not a reply');
}

function isToolRequest({ name, arguments: args }: Partial<ToolRequest>): boolean {
  return typeof name === 'string' && typeof args === 'object' && args !== null && !Array.isArray(args);
}

export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  readonly id?: string;
}

/** The events of a body; comments and unknown fields are skipped. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  let fields: Record<string, string> = {};
  for await (const line of readLines(body)) {
    if (line !== '') fields = withField(fields, line);
    else if (fields.data === undefined) fields = {};
    else {
      yield { event: fields.event ?? 'message', data: fields.data, id: fields.id };
      fields = {};
    }
  }
}

/** Scans each chunk once, however long its line gets. */
async function* readLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let begun: string[] = [];
  /** Possibly the first half of `\r\n`. */
  let carriage = '';
  for await (const chunk of body) {
    const text = carriage + decoder.decode(chunk, { stream: true });
    carriage = text.endsWith('\r') ? '\r' : '';
    const lines = (carriage === '' ? text : text.slice(0, -1)).split(/\r\n|\n|\r/);
    const last = lines.pop() ?? '';
    for (const line of lines) {
      yield begun.length === 0 ? line : begun.join('') + line;
      begun = [];
    }
    if (last !== '') begun.push(last);
  }
}

function withField(fields: Record<string, string>, line: string): Record<string, string> {
  // The flag `s` is needed because JSON may contain U+2028, which does not end a line of an event.
  const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
  if (name !== 'event' && name !== 'data' && name !== 'id') return fields;
  const before = name === 'data' && fields.data !== undefined ? `${fields.data}\n` : '';
  return { ...fields, [name]: before + value };
}

/**
 * Why an assistant did not reply: its own code; `unreachable` if no response arrived; `timed_out` or `reply_too_large`
 * beyond the client's limits; `invalid_response` for a response that violates the protocol.
 *
 * @example
 * ```ts
 * const outcome = await satellite.send('Is it raining in Lisbon?');
 * if (outcome.status === 'failed' && outcome.error.cause instanceof AssistantError)
 *   console.error(outcome.error.cause.code, outcome.error.cause.status);
 * ```
 */
export class AssistantError extends Error {
  override readonly name = 'AssistantError';
  readonly code: ChatErrorCode | 'unreachable' | 'timed_out' | 'reply_too_large' | 'invalid_response';
  /** HTTP status, if there was a response. */
  readonly status?: number;
  /** Milliseconds that the server asked to wait before a retry. */
  readonly retryAfterMs?: number;

  constructor(
    code: AssistantError['code'],
    message: string,
    details: Pick<AssistantError, 'status' | 'retryAfterMs' | 'cause'> = {},
  ) {
    super(message, { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.retryAfterMs = details.retryAfterMs;
  }
}
