import type { ToolRequest } from '../text/tool-call-parser.js';

/**
 * What a satellite sends: words of the user, or what a tool gave. A result goes to the model as it
 * is, and only while a request is pending.
 */
export type ChatMessage =
  | { readonly role: 'user'; readonly content: string }
  | { readonly role: 'tool_result'; readonly name: string; readonly content: string };

/** The body of `POST /v1/chat`. */
export interface ChatRequest {
  /** 1 to 128 letters, digits and `.` `_` `~` `:` `@` `-`, not beginning with a sign. Default: a new UUID. */
  readonly conversation_id?: string;
  readonly messages: readonly ChatMessage[];
}

/**
 * The reply of the assistant: the body of `POST /v1/chat` and `GET /v1/chat/{conversation_id}`. Where the model
 * asks for a tool there is a `tool_request`, and `content` is `''`; it is pending until the next reply.
 */
export interface ChatResponse {
  readonly conversation_id: string;
  readonly message: { readonly role: 'assistant'; readonly content: string };
  /** Why the model stopped, as its provider says it. */
  readonly finish_reason: string;
  readonly tool_request?: ToolRequest;
}

/** Every answer that is no {@link ChatResponse}, with a fitting status. */
export interface ChatError {
  readonly error: { readonly code: ChatErrorCode; readonly message: string };
}

/** What can go wrong with a request; the table is in `docs/satellite.md`. */
export type ChatErrorCode =
  | 'invalid_json'
  | 'invalid_request'
  | 'unauthorized'
  | 'not_found'
  | 'conversation_not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'conversation_changed'
  | 'conversation_full'
  | 'body_too_large'
  | 'unsupported_media_type'
  | 'rate_limited'
  | 'internal_error'
  | 'provider_failed';

/** Safe in a path, a header and a log as it is; 128 characters at most. */
const CONVERSATION_ID = /^[A-Za-z0-9][A-Za-z0-9._~:@-]{0,127}$/;

/** Whether a value can be the id of a conversation or of a turn. */
export function isConversationId(value: unknown): value is string {
  return typeof value === 'string' && CONVERSATION_ID.test(value);
}
