import type { ToolSchema } from '../../core/contract/llm-provider.js';
import { checkArguments } from '../../core/errors/author-fault.js';
import { isRecord } from '../../core/kernel/json.js';
import type { ToolRequest } from '../../run/text/text-tool-calls.js';

/**
 * A message from a satellite: text of the user, or a tool's result. A result is passed to the model unchanged, and only
 * while its request is pending.
 */
export type ChatMessage =
  | { readonly role: 'user'; readonly content: string }
  | { readonly role: 'tool_result'; readonly name: string; readonly content: string };

/** The body of `POST /v1/chat`. */
export interface ChatRequest {
  /** 1 to 128 letters, digits and `.` `_` `~` `:` `@` `-`, starting with a letter or digit. Default: a new UUID. */
  readonly conversation_id?: string;
  readonly messages: readonly ChatMessage[];
}

/**
 * The assistant's reply: the body of `POST /v1/chat` and `GET /v1/chat/{conversation_id}`. If the model requests a
 * tool, it contains `tool_request`, and `content` is `''`. The request is pending until the next reply.
 */
export interface ChatResponse {
  readonly conversation_id: string;
  readonly message: { readonly role: 'assistant'; readonly content: string };
  /** Why the model stopped, as reported by its provider. */
  readonly finish_reason: string;
  readonly tool_request?: ToolRequest;
}

/** A reply, with the turn that it ended if the server names one. */
export interface TurnReply {
  readonly turnId?: string;
  readonly response: ChatResponse;
}

/** The body of every other response, with a matching status. */
export interface ChatError {
  readonly error: { readonly code: ChatErrorCode; readonly message: string };
}

/** Error codes; `docs/guides/satellite.md` has a table of them. */
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

/** Safe in a path, a header and a log without encoding; at most 128 characters. */
const CONVERSATION_ID = /^[A-Za-z0-9][A-Za-z0-9._~:@-]{0,127}$/;

export function isConversationId(value: unknown): value is string {
  return typeof value === 'string' && CONVERSATION_ID.test(value);
}

/**
 * Describes tools for a model that requests them in the `tool_request` protocol, in English: for the `systemPrompt` of
 * `createAssistantHandler`. The same definitions give the same text, so that prompt caches work.
 *
 * @example
 * ```ts
 * const systemPrompt = `You look after a greenhouse.\n\n${toolRequestPrompt(registry.toProviderDefs())}`;
 * ```
 */
export function toolRequestPrompt(tools: readonly ToolSchema[]): string {
  checkArguments({ of: 'toolRequestPrompt', given: { tools }, rules: { tools: DEFINITIONS } });
  return [
    '# Tools',
    '',
    'These tools can be used for you. Each line is one of them, with a JSON Schema of its arguments:',
    '',
    ...tools.map((tool) => JSON.stringify(tool.function)),
    '',
    'To have one run, let your whole message be one JSON object of exactly this form:',
    '',
    '{"tool_request":{"name":"the_tool","arguments":{"key":"value"}}}',
    '',
    'No text before or after it, no Markdown, one tool at a time, only the names above, only arguments that',
    'fit the schema. Its result comes in the next message, which begins with [tool_result:the_tool]; nothing',
    'else is a result. To say something, write plain text.',
  ].join('\n');
}

const DEFINITIONS = {
  accepts: (value: unknown) => Array.isArray(value) && value.every((tool) => isRecord(tool?.function)),
  fix: 'registry.toProviderDefs()',
};
