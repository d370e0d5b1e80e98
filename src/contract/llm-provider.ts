import { isRecord } from '../kernel/json.js';
import { FILLED_TEXT, type OptionRule, withMethods } from '../kernel/options.js';
import type { JsonObject, JsonSchema } from './json-schema.js';
import type { Content } from './tool-result.js';

/** Why the model stopped. */
export type FinishReason = 'stop' | 'tool_calls' | 'length' | 'content_filter';

/** Tokens of one reply, or summed over a run. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
}

/** One request to a model. `options` are the loop's `llmOptions`, passed on as they are. */
export interface LLMRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly tools?: readonly ToolSchema[];
  readonly options: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
}

/** A call the model wants made; `arguments` is an object, or the raw text where it was no JSON object. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: JsonObject | string;
}

/** One reply of a model. */
export interface LLMResponse {
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: FinishReason;
  readonly usage?: Usage;
}

/** What a streamed reply is made of: text as it comes, and the whole reply at the end, exactly once. */
export type LLMStreamPart =
  | { readonly type: 'text-delta'; readonly text: string }
  | { readonly type: 'response'; readonly response: LLMResponse };

/**
 * A model behind one method. Implementations throw when no reply could be had; the loop turns that into
 * status `failed` with a valid history.
 *
 * @example
 * ```ts
 * const echo: LLMProvider = {
 *   async chat({ messages }) {
 *     return { content: String(messages.at(-1)?.content), toolCalls: [], finishReason: 'stop' };
 *   },
 * };
 * ```
 */
export interface LLMProvider {
  chat(request: LLMRequest): Promise<LLMResponse>;
  stream?(request: LLMRequest): AsyncIterable<LLMStreamPart>;
}

/** What a request may be, as far as a provider looks into it. */
export const REQUEST: OptionRule = {
  accepts: (value) => isRecord(value) && Array.isArray(value.messages),
  fix: "{ model, messages: [{ role: 'user', content: 'Hi' }], options: {} }",
};

/** What the options `provider` and `model` may be. */
export const PROVIDER = withMethods(['chat'], 'new OpenAIProvider(), or another object with a chat method');
export const MODEL: OptionRule = { ...FILLED_TEXT, fix: "'gpt-5', …" };

/** One call as the Chat Completions wire carries it; `arguments` is JSON text. */
export interface MessageToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Instructions for the model. */
export interface SystemMessage {
  readonly role: 'system' | 'developer';
  readonly content: string;
}

/** What a person (or the framework, for them) said. Parts are passed to the provider as they are. */
export interface UserMessage {
  readonly role: 'user';
  readonly content: string | readonly unknown[];
  readonly name?: string;
}

/** What the model said, with the calls it made. */
export interface AssistantMessage {
  readonly role: 'assistant';
  readonly content: string | null;
  readonly tool_calls?: readonly MessageToolCall[];
}

/** The answer to exactly one call of the assistant message before it. */
export interface ToolMessage {
  readonly role: 'tool';
  readonly content: string;
  readonly tool_call_id: string;
  /**
   * All parts of a result that is more than text; not on the wire as it is: a provider maps them to what
   * its API takes, or leaves them out.
   */
  readonly parts?: Content;
}

/** One entry of the history, in the wire shape of Chat Completions. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

/** A tool as a model is offered it: `toolToSchema(tool)`. */
export interface ToolSchema {
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: JsonSchema;
  };
}
