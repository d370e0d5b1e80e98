import { bytesOf } from '../../../core/kernel/node-http.js';
import {
  type ChatError,
  type ChatErrorCode,
  type ChatMessage,
  type ChatRequest,
  isConversationId,
} from '../chat-protocol.js';

/** The pages that may send requests from their scripts. */
export interface CorsOptions {
  /** Origins such as `https://app.example.org`, or `'*'` for all. */
  readonly origins: readonly string[] | '*';
}

type Headers = Readonly<Record<string, string>>;

const ALLOWED: Headers = {
  'access-control-allow-methods': 'GET, POST',
  'access-control-allow-headers': 'authorization, content-type, if-match, idempotency-key',
  'access-control-max-age': '600',
};

/** Headers for browsers; empty if the page's origin is not allowed. */
export function corsHeaders({ headers }: Request, cors: CorsOptions | undefined): Headers {
  if (cors === undefined) return {};
  const origin = headers.get('origin');
  const vary: Headers = cors.origins === '*' ? {} : { vary: 'Origin' };
  if (origin === null || !(cors.origins === '*' || cors.origins.includes(origin))) return vary;
  return {
    ...vary,
    'access-control-allow-origin': cors.origins === '*' ? '*' : origin,
    'access-control-expose-headers': 'etag, retry-after',
  };
}

/** The response to a CORS preflight request; `undefined` for other requests. */
export function preflightResponse(request: Request, cors: CorsOptions | undefined): Response | undefined {
  const isPreflight = request.method === 'OPTIONS' && request.headers.has('access-control-request-method');
  if (cors === undefined || !isPreflight) return undefined;
  return new Response(null, { status: 204, headers: ALLOWED });
}

/** Whether to serve a request; `retryAfterSeconds` becomes the header `Retry-After`. */
export type RateLimitDecision = boolean | { readonly allow: boolean; readonly retryAfterSeconds?: number };

/** Decides about a request by its method, URL and headers; its body has not been read. */
export type RateLimit = (request: Request) => RateLimitDecision | Promise<RateLimitDecision>;

/** Throws an {@link AssistantFault} unless the hook allows it. */
export async function enforceRateLimit(request: Request, rateLimit: RateLimit | undefined): Promise<void> {
  if (rateLimit === undefined) return;
  // The hook gets a copy, so that it cannot consume the body.
  const { method, url, headers } = request;
  const decision = await rateLimit(new Request(url, { method, headers }));
  if (decision === true || (typeof decision === 'object' && decision?.allow === true)) return;
  const seconds = typeof decision === 'object' ? Number(decision?.retryAfterSeconds) : Number.NaN;
  const retryAfter: Readonly<Record<string, string>> = Number.isFinite(seconds)
    ? { 'retry-after': String(Math.max(0, Math.ceil(seconds))) }
    : {};
  throw new AssistantFault('rate_limited', 'too many requests', retryAfter);
}

type Fields = Readonly<Record<string, unknown>>;

const FIELDS: Readonly<Record<ChatMessage['role'], readonly string[]>> = {
  user: ['role', 'content'],
  tool_result: ['role', 'name', 'content'],
};

export function readAssistantRequest(body: unknown): ChatRequest {
  const { conversation_id: id, messages } = object(body, 'the body');
  refuseOthers(body as Fields, ['conversation_id', 'messages'], 'the body');
  if (!Array.isArray(messages) || messages.length === 0)
    throw wrong('messages must be an array with at least one message');
  return {
    // Clients in other languages write null for omitted fields.
    ...(id === undefined || id === null ? {} : { conversation_id: checkConversationId(id) }),
    messages: messages.map((message, index) => readMessage(message, `messages[${index}]`)),
  };
}

/** Checks the id of a conversation. Throws an {@link AssistantFault} if it is invalid. */
export function checkConversationId(value: unknown): string {
  if (isConversationId(value)) return value;
  const rule = '1 to 128 letters, digits and . _ ~ : @ -, beginning with a letter or a digit';
  throw wrong(`conversation_id must be ${rule}`);
}

function readMessage(value: unknown, where: string): ChatMessage {
  const message = object(value, where);
  const { role, name, content } = message;
  if (role !== 'user' && role !== 'tool_result') throw wrong(`${where}.role must be "user" or "tool_result"`);
  refuseOthers(message, FIELDS[role], where);
  if (typeof content !== 'string') throw wrong(`${where}.content must be a string`);
  if (role === 'user') {
    // Some providers refuse blank messages, which would look like a failure of theirs.
    if (content.trim() === '') throw wrong(`${where}.content must not be blank`);
    return { role, content };
  }
  if (typeof name !== 'string' || name.trim() === '')
    throw wrong(`${where}.name must be a string, not blank`);
  return { role, name, content };
}

function object(value: unknown, where: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw wrong(`${where} must be an object`);
}

function refuseOthers(fields: Fields, known: readonly string[], where: string): void {
  const other = Object.keys(fields).find((name) => !known.includes(name));
  if (other !== undefined)
    throw wrong(`${where} has an unknown field ${JSON.stringify(other.slice(0, 100))}`);
}

function wrong(problem: string): AssistantFault {
  return new AssistantFault('invalid_request', problem);
}

/** Parses the JSON body. Throws an {@link AssistantFault} if it is not JSON, or too large. */
export async function readBody(request: Request, maxBytes: number): Promise<unknown> {
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';');
  // Only JSON: a form on a foreign page can send other types without a CORS check.
  if (type.trim().toLowerCase() !== 'application/json')
    throw new AssistantFault('unsupported_media_type', 'the content type must be application/json');
  const text = decode(await readBytes(request, maxBytes));
  try {
    return JSON.parse(text);
  } catch {
    throw new AssistantFault('invalid_json', 'the body is not JSON');
  }
}

async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  const isTooLarge = Number(request.headers.get('content-length')) > maxBytes;
  const bytes = isTooLarge
    ? undefined
    : await bytesOf(request, maxBytes).catch(() => {
        throw new AssistantFault('invalid_request', 'the body broke off');
      });
  if (bytes !== undefined) return bytes;
  throw new AssistantFault('body_too_large', `the body has more than ${maxBytes} bytes`);
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new AssistantFault('invalid_json', 'the body is not UTF-8');
  }
}

const STATUS: Readonly<Record<ChatErrorCode, number>> = {
  invalid_json: 400,
  invalid_request: 400,
  unauthorized: 401,
  not_found: 404,
  conversation_not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  conversation_changed: 412,
  body_too_large: 413,
  unsupported_media_type: 415,
  conversation_full: 422,
  rate_limited: 429,
  internal_error: 500,
  provider_failed: 502,
};

/** A refused request, with a message for its sender. */
export class AssistantFault extends Error {
  readonly code: ChatErrorCode;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ChatErrorCode, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }

  get status(): number {
    return STATUS[this.code];
  }

  get body(): ChatError {
    return { error: { code: this.code, message: this.message } };
  }
}
