import type { ChatError, ChatErrorCode } from '../chat-protocol.js';

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

/** A request that gets no reply, in words for whoever sent it. */
export class HttpFault extends Error {
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
