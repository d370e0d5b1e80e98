import { isRecord } from '../kernel/json.js';
import { FILLED_TEXT, type OptionRule, withMethods } from '../kernel/options.js';
import type { JsonObject, JsonSchema } from './json-schema.js';
import type { Content } from './tool-result.js';

/** Why the model stopped; `other` for reasons of the provider that have no equivalent. */
export type FinishReason = 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'other';

/** Tokens of a reply, or summed over a run. Fields that the provider does not report are absent. */
export interface Usage {
  /** All input, including cached input. */
  readonly inputTokens: number;
  /** All output, including reasoning. */
  readonly outputTokens: number;
  readonly totalTokens: number;
  /** Input tokens read from the provider's cache, which usually cost less. */
  readonly cacheReadTokens?: number;
  /** Input tokens written to the provider's cache, which usually cost more. */
  readonly cacheWriteTokens?: number;
  /** Output tokens of reasoning that is not part of the content. */
  readonly reasoningTokens?: number;
  /** As the provider reported it; only for a single reply. */
  readonly raw?: unknown;
}

/** Token counts that only some providers report. */
export const USAGE_PARTS = ['cacheReadTokens', 'cacheWriteTokens', 'reasoningTokens'] as const;

/**
 * A provider's own data for a message or a call, as plain JSON under the provider's key (`LLMProvider.itemKey`):
 * signatures, encrypted reasoning, ids. Other code does not read it, and the provider receives it back byte for byte.
 */
export type ProviderItems = Readonly<Record<string, unknown>>;

/** Which tools the model may call: any, none, at least one, or a tool by name. */
export type ToolChoice =
  | 'auto'
  | 'none'
  | 'required'
  | { readonly tool: string }
  | { readonly tools: readonly string[]; readonly mode?: 'auto' | 'required' };

/** The form of a reply's text: any text, any JSON, or JSON of this schema. */
export type ResponseFormat =
  | { readonly type: 'text' }
  | { readonly type: 'json'; readonly schema?: JsonSchema; readonly name?: string };

/** The run and conversation of a request, for traces and for providers that store conversations. */
export interface RequestMetadata {
  readonly conversationId?: string;
  /** Id of the run; it does not change when the run is suspended and resumed. */
  readonly runId?: string;
  /** Number of the request in its run, from 1. */
  readonly step?: number;
}

/** The schema of a response in the form that a provider sends, and the conversion back. */
export interface ResponseForm {
  readonly schema: JsonSchema;
  /** Converts a response in this form to a value of the original schema; other values are returned unchanged. */
  restore(value: unknown): unknown;
}

/** One request to a model. `options` are the loop's `llmOptions`, passed on unchanged. */
export interface LLMRequest {
  readonly model: string;
  /** Provider items are limited to those of this provider and model. */
  readonly messages: readonly Message[];
  readonly tools?: readonly ToolSchema[];
  /** Default: the provider's, usually `auto`. */
  readonly toolChoice?: ToolChoice;
  /** Whether a reply may have several calls; default: the provider's, usually `true`. */
  readonly parallelToolCalls?: boolean;
  /** Default: any text. */
  readonly responseFormat?: ResponseFormat;
  readonly metadata?: RequestMetadata;
  /** The most tokens of the reply that the budget can pay for; a lower limit in `options` wins. */
  readonly maxOutputTokens?: number;
  readonly options: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
}

/** A call that the model requests; `arguments` is an object, or the raw text if it was not a JSON object. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: JsonObject | string;
  readonly providerItems?: ProviderItems;
}

/**
 * An attachment of a reply: a page or a document that the model cites, or a file that it created. The `url` of a file
 * is a data URL or its address; `mimeType` is an IANA media type.
 */
export type ReplyAttachment =
  | { readonly type: 'page'; readonly url: string; readonly title?: string }
  | {
      readonly type: 'document';
      readonly title: string;
      readonly mimeType?: string;
      readonly filename?: string;
    }
  | { readonly type: 'file'; readonly url: string; readonly mimeType: string };

/** A reply of a model. */
export interface LLMResponse {
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: FinishReason;
  /** The provider's own value. */
  readonly rawFinishReason?: string;
  readonly usage?: Usage;
  /** The model's reasoning, or a summary of it, as text for people. It is never part of `content`. */
  readonly reasoning?: string;
  readonly attachments?: readonly ReplyAttachment[];
  readonly providerItems?: ProviderItems;
  /** The server's information about the reply. */
  readonly origin?: ReplyOrigin;
}

/** The server's id of a reply, and the model that created it; the model behind an alias may change. */
export interface ReplyOrigin {
  readonly id?: string;
  readonly model?: string;
}

/**
 * Parts of a streamed reply: text, reasoning, attachments and the arguments of calls as they arrive, and finally,
 * exactly once, the whole reply. Calls without an id are reported only in the whole reply.
 */
export type LLMStreamPart =
  | { readonly type: 'text-delta'; readonly text: string }
  | { readonly type: 'reasoning-delta'; readonly text: string }
  | { readonly type: 'call-input-start'; readonly callId: string; readonly tool: string }
  /** The next piece of its arguments. */
  | { readonly type: 'call-input-delta'; readonly callId: string; readonly text: string }
  | { readonly type: 'call-input-end'; readonly callId: string }
  | { readonly type: 'attachment'; readonly attachment: ReplyAttachment }
  | { readonly type: 'response'; readonly response: LLMResponse };

/** The service that answers requests. */
export interface ProviderIdentity {
  /** The name in the OpenTelemetry conventions (`gen_ai.provider.name`): `openai`, `anthropic`, `gcp.gemini`. */
  readonly name: string;
  /** Address of its server. */
  readonly address?: string;
  readonly port?: number;
}

/**
 * A model behind one method. Implementations throw if they receive no reply; the loop turns that into status `failed`
 * with a valid history.
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
  /**
   * The key of the provider items that this provider creates and this model understands, for example
   * `openai.responses/gpt-5`. Items with other keys stay in the history but are not part of its requests. Without
   * this method, no items are sent.
   */
  itemKey?(model: string): string;
  /** The service that answers for this model, for traces and metrics. */
  identity?(model: string): ProviderIdentity;
  /** Whether this model follows a `responseFormat` with a schema; otherwise a tool is offered for the final answer. */
  supportsResponseFormat?(model: string): boolean;
  /** The form in which this provider sends the schema of a response; without it, the schema is sent unchanged. */
  responseForm?(schema: JsonSchema): ResponseForm | undefined;
  /**
   * Whether this model accepts tool definitions after earlier messages. If true, requests mark the search tool
   * (`isSearch`) and the found tools (`defer`). Otherwise found tools are called through one of our own tools.
   */
  takesFoundTools?(model: string): boolean;
}

/** The parts of a request that providers check. */
export const REQUEST: OptionRule = {
  accepts: (value) => isRecord(value) && Array.isArray(value.messages),
  fix: "{ model, messages: [{ role: 'user', content: 'Hi' }], options: {} }",
};

/** The rules for the options `provider` and `model`. */
export const PROVIDER = withMethods(['chat'], 'new OpenAIProvider(), or another object with a chat method');
export const MODEL: OptionRule = { ...FILLED_TEXT, fix: "'gpt-5', …" };

/** A call in the format of the Chat Completions API; `arguments` is JSON text. */
export interface MessageToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
  readonly providerItems?: ProviderItems;
}

/** Instructions for the model. */
export interface SystemMessage {
  readonly role: 'system' | 'developer';
  readonly content: string;
}

/**
 * A message of a user, or of the framework on the user's behalf. Content parts are passed to the provider unchanged.
 */
export interface UserMessage {
  readonly role: 'user';
  readonly content: string | readonly unknown[];
  readonly name?: string;
}

/** A message of the model, with its calls. */
export interface AssistantMessage {
  readonly role: 'assistant';
  readonly content: string | null;
  readonly tool_calls?: readonly MessageToolCall[];
  /** The model's reasoning, for people; never sent to a model in this form. */
  readonly reasoning?: string;
  readonly providerItems?: ProviderItems;
}

/** The answer to exactly one call of the preceding assistant message. */
export interface ToolMessage {
  readonly role: 'tool';
  readonly content: string;
  readonly tool_call_id: string;
  /** The content describes an error. Sent only to APIs that have a field for it, as with `parts`. */
  readonly isError?: boolean;
  /**
   * Names of the tools that a search found. Sent only to APIs that take tool definitions from here, as with `parts`.
   */
  readonly found?: readonly string[];
  /** The handle of a large result that is stored; never sent. */
  readonly kept?: string;
  /**
   * All parts of a result that is more than text. Not sent in this form: a provider maps them to the parts that its
   * API supports, or omits them.
   */
  readonly parts?: Content;
}

/** A history entry, in the format of Chat Completions. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

/** The definition of a tool for a model: `toolToSchema(tool)`. */
export interface ToolSchema {
  readonly type: 'function';
  /** The `input` of the tool: its single parameter may be requested as plain text. For providers; never sent. */
  readonly input?: 'text';
  /** The tool was found by a search: its definition is sent there (`ToolMessage.found`). For providers; never sent. */
  readonly defer?: true;
  /** The search tool, for providers that have a special form for it; never sent. */
  readonly isSearch?: true;
  /** The group of the tool. For providers; never sent. */
  readonly namespace?: string;
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: JsonSchema;
    /** The `strict` of the tool: whether it is offered in the form that `strictSchema` creates from its parameters. */
    readonly strict?: boolean;
  };
}
