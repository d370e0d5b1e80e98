import { isRecord } from '../kernel/json.js';
import { FILLED_TEXT, type OptionRule, withMethods } from '../kernel/options.js';
import type { JsonObject, JsonSchema } from './json-schema.js';
import type { Content } from './tool-result.js';

/** Why the model stopped; `other` where the provider's own word has no meaning here. */
export type FinishReason = 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'other';

/** Tokens of one reply, or summed over a run. Fields that the provider does not report are absent. */
export interface Usage {
  /** All of the input, what came from a cache included. */
  readonly inputTokens: number;
  /** All of the output, reasoning included. */
  readonly outputTokens: number;
  readonly totalTokens: number;
  /** Of the input: read from the provider's cache, which mostly costs less. */
  readonly cacheReadTokens?: number;
  /** Of the input: written to the provider's cache, which mostly costs more. */
  readonly cacheWriteTokens?: number;
  /** Of the output: what the model thought and did not say. */
  readonly reasoningTokens?: number;
  /** As the provider reported it; of one reply only. */
  readonly raw?: unknown;
}

/** Token counts that only some providers report. */
export const USAGE_PARTS = ['cacheReadTokens', 'cacheWriteTokens', 'reasoningTokens'] as const;

/**
 * What a provider keeps with a message or a call, as plain JSON by the provider's own key (`LLMProvider.itemKey`):
 * signatures, encrypted reasoning, ids. Nobody else looks into it, and it goes back byte for byte.
 */
export type ProviderItems = Readonly<Record<string, unknown>>;

/** Which tools a request lets the model call: whether it must call one, or one of these by name. */
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

/** The owner of a request, for traces and for providers that store conversations. */
export interface RequestMetadata {
  readonly conversationId?: string;
  /** Id of the run, the same through its suspensions. */
  readonly runId?: string;
  /** Number of the request in its run, from 1. */
  readonly step?: number;
}

/** One request to a model. `options` are the loop's `llmOptions`, passed on as they are. */
export interface LLMRequest {
  readonly model: string;
  /** Of provider items only those of this provider and model. */
  readonly messages: readonly Message[];
  readonly tools?: readonly ToolSchema[];
  /** Default: the provider's, mostly `auto`. */
  readonly toolChoice?: ToolChoice;
  /** Whether a reply may have several calls; default: the provider's, mostly `true`. */
  readonly parallelToolCalls?: boolean;
  /** Default: any text. */
  readonly responseFormat?: ResponseFormat;
  readonly metadata?: RequestMetadata;
  /** Tokens of the reply at most, as a budget affords them; where `options` say less, that holds. */
  readonly maxOutputTokens?: number;
  readonly options: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
}

/** A call the model wants made; `arguments` is an object, or the raw text where it was no JSON object. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: JsonObject | string;
  readonly providerItems?: ProviderItems;
}

/**
 * What comes with a reply beside its text: a page or a document that the model names as a source, or a file that it
 * made. The `url` of a file is a data URL, or where it can be fetched; `mimeType` is an IANA media type.
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

/** One reply of a model. */
export interface LLMResponse {
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: FinishReason;
  /** The provider's own word for it. */
  readonly rawFinishReason?: string;
  readonly usage?: Usage;
  /** What the model thought, or a summary of it, as text for people. It is never part of `content`. */
  readonly reasoning?: string;
  readonly attachments?: readonly ReplyAttachment[];
  readonly providerItems?: ProviderItems;
  /** Where it came from, as its server says. */
  readonly origin?: ReplyOrigin;
}

/** By which id a server knows a reply, and which model gave it: behind a name, that may be another one every day. */
export interface ReplyOrigin {
  readonly id?: string;
  readonly model?: string;
}

/**
 * What a streamed reply is made of: text, reasoning, attachments and the arguments of calls as they come, and the
 * whole reply at the end, exactly once. Calls without an id are reported only there.
 */
export type LLMStreamPart =
  | { readonly type: 'text-delta'; readonly text: string }
  | { readonly type: 'reasoning-delta'; readonly text: string }
  | { readonly type: 'call-input-start'; readonly callId: string; readonly tool: string }
  /** More of the text of its arguments. */
  | { readonly type: 'call-input-delta'; readonly callId: string; readonly text: string }
  | { readonly type: 'call-input-end'; readonly callId: string }
  | { readonly type: 'attachment'; readonly attachment: ReplyAttachment }
  | { readonly type: 'response'; readonly response: LLMResponse };

/** Who answers requests. */
export interface ProviderIdentity {
  /** As the OpenTelemetry conventions call it (`gen_ai.provider.name`): `openai`, `anthropic`, `gcp.gemini`. */
  readonly name: string;
  /** Of its server. */
  readonly address?: string;
  readonly port?: number;
}

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
  /**
   * The key of the items that this provider keeps and that this model understands, as `openai.responses/gpt-5`.
   * Items of other keys stay in the history and out of its requests; without this method all of them do.
   */
  itemKey?(model: string): string;
  /** Who answers for this model, for traces and metrics. */
  identity?(model: string): ProviderIdentity;
  /** Whether this model keeps to a `responseFormat` with a schema; otherwise a tool is offered for a final answer. */
  supportsResponseFormat?(model: string): boolean;
  /**
   * Whether this model takes definitions of tools behind what it was sent before: then requests name the tool that
   * searches (`isSearch`), and carry found tools apart (`defer`); otherwise these are called through one of ours.
   */
  takesFoundTools?(model: string): boolean;
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
  readonly providerItems?: ProviderItems;
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
  /** What the model thought, for people; never sent to a model as it is. */
  readonly reasoning?: string;
  readonly providerItems?: ProviderItems;
}

/** The answer to exactly one call of the assistant message before it. */
export interface ToolMessage {
  readonly role: 'tool';
  readonly content: string;
  readonly tool_call_id: string;
  /** The content describes an error. Sent only to APIs that have a field for it, as with `parts`. */
  readonly isError?: boolean;
  /**
   * Names of the tools that a search has found. As `parts`: for an API that takes their definitions from here, and on no
   * other wire.
   */
  readonly found?: readonly string[];
  /** The handle of a large result that is stored; never sent. */
  readonly kept?: string;
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
  /** As the tool says it: its one parameter may be asked for as plain text. For providers; on no wire. */
  readonly input?: 'text';
  /** The tool was found by a search: its definition is sent there (`ToolMessage.found`). For providers; never sent. */
  readonly defer?: true;
  /** It is the tool that searches, for providers that have a form for it; on no wire. */
  readonly isSearch?: true;
  /** The group that it belongs to. For providers; on no wire. */
  readonly namespace?: string;
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: JsonSchema;
    /** As the tool says it: whether it is to be offered in the form that `strictSchema` makes of its parameters. */
    readonly strict?: boolean;
  };
}
