import { setTimeout as sleep } from 'node:timers/promises';
import type {
  JSONObject,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4FunctionTool,
  LanguageModelV4GenerateResult,
  LanguageModelV4ProviderTool,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolChoice,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
  SharedV4ProviderOptions,
  SharedV4Warning,
} from '@ai-sdk/provider';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import {
  type FinishReason,
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamPart,
  type ProviderIdentity,
  REQUEST,
  type ReplyAttachment,
  type ResponseForm,
  type ToolCall,
  type ToolChoice,
  type ToolSchema,
  type Usage,
} from '../../core/contract/llm-provider.js';
import type { Logger } from '../../core/contract/ports.js';
import {
  checkArguments,
  checkOptions,
  InvalidOptionsError,
  warnAuthor,
} from '../../core/errors/author-fault.js';
import { isConnectionLost, ProviderError } from '../../core/errors/provider-error.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isRecord, plainJson, withoutUndefined } from '../../core/kernel/json.js';
import {
  BOOLEAN,
  either,
  FILLED_TEXT,
  HEADERS,
  LIST,
  LOGGER,
  NUMBER,
  oneOf,
  optionTable,
  RECORD,
  WHOLE,
} from '../../core/kernel/options.js';
import { isStrictForm, strictSchema } from '../../tools/schema/strict/strict-schema.js';
import { type StrictMode, StrictTools } from '../../tools/schema/strict/strict-tools.js';
import { retryAfterOf } from '../wire/describe-failure.js';
import { argumentsOf, originOf, outputLimit } from '../wire/wire-json.js';
import type { AiSdkProviderTool } from './to-ai-sdk-tools.js';
import { keepParts, nameOf, toPrompt } from './to-prompt.js';

/** The settings of a request, other than the request itself. */
interface CallSettings {
  readonly model: LanguageModelV4;
  readonly key: string;
  readonly providerTools: Readonly<Record<string, AiSdkProviderTool>>;
  /** Receives the parts of a request that the model does not support. */
  readonly onUnsupported: (feature: string, fix: string) => void;
}

/** The allowed `llmOptions`: settings of an AI SDK call that a request does not contain itself. */
type ModelOptions = Pick<
  LanguageModelV4CallOptions,
  | 'maxOutputTokens'
  | 'temperature'
  | 'stopSequences'
  | 'topP'
  | 'topK'
  | 'presencePenalty'
  | 'frequencyPenalty'
  | 'seed'
  | 'reasoning'
  | 'headers'
  | 'providerOptions'
>;

const MODEL_OPTIONS = optionTable<ModelOptions>(
  'the llmOptions of an AI SDK model',
  {
    maxOutputTokens: NUMBER,
    temperature: NUMBER,
    stopSequences: LIST,
    topP: NUMBER,
    topK: NUMBER,
    presencePenalty: NUMBER,
    frequencyPenalty: NUMBER,
    seed: NUMBER,
    reasoning: oneOf('provider-default', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'),
    headers: HEADERS,
    providerOptions: { ...RECORD, fix: '{ anthropic: { … } }' },
  },
  {
    max_tokens: 'maxOutputTokens: …',
    max_completion_tokens: 'maxOutputTokens: …',
    top_p: 'topP: …',
    stop: "stopSequences: ['…']",
    reasoning_effort: "reasoning: 'low'",
    response_format: 'responseFormat of the request',
    tool_choice: 'toolChoice of the request',
    parallel_tool_calls: 'parallelToolCalls of the request',
  },
);

/**
 * Converts a request for an AI SDK model.
 *
 * @throws InvalidOptionsError (521) for an option that AI SDK models do not have; TypeError for a message that cannot
 * be sent to the model.
 */
async function toCallOptions(
  request: LLMRequest,
  settings: CallSettings,
): Promise<LanguageModelV4CallOptions> {
  const { messages, options = {}, toolChoice, responseFormat, signal } = request;
  checkOptions(options, MODEL_OPTIONS);
  const { providerTools } = settings;
  const allowed = isRecord(toolChoice) && 'tools' in toolChoice ? new Set(toolChoice.tools) : undefined;
  const tools: (LanguageModelV4FunctionTool | LanguageModelV4ProviderTool)[] = [];
  const found = new Set<string>();
  for (const tool of request.tools ?? []) {
    const { name } = tool.function;
    if (tool.defer) found.add(name);
    // A provider's tool replaces our tool of the same name; we then execute its calls.
    if (!Object.hasOwn(providerTools, name) && allowed?.has(name) !== false) tools.push(toFunctionTool(tool));
  }
  for (const [name, { id, args }] of Object.entries(providerTools))
    if (allowed?.has(name) !== false) tools.push({ type: 'provider', id, name, args });
  const providerOptions = toProviderOptions(request, settings);
  return {
    ...(options as ModelOptions),
    ...outputLimit(request, ['maxOutputTokens']),
    prompt: await toPrompt(messages, { ...settings, found }),
    // Some APIs refuse an empty list of tools.
    ...(tools.length > 0 && { tools }),
    ...(tools.length > 0 && toolChoice !== undefined && { toolChoice: toChoice(toolChoice) }),
    ...(responseFormat && { responseFormat: responseFormat as LanguageModelV4CallOptions['responseFormat'] }),
    ...(providerOptions && { providerOptions }),
    ...(signal && { abortSignal: signal }),
  };
}

function toFunctionTool({
  defer,
  function: { name, description, parameters, strict },
}: ToolSchema): LanguageModelV4FunctionTool {
  // Anthropic refuses a schema without `type: 'object'`.
  const inputSchema = { type: 'object', ...parameters } as LanguageModelV4FunctionTool['inputSchema'];
  return {
    type: 'function',
    name,
    ...(description && { description }),
    inputSchema,
    ...(strict !== undefined && { strict }),
    // Not part of the prompt until a reference names it.
    ...(defer && { providerOptions: { anthropic: { deferLoading: true } } }),
  };
}

/** The AI SDK cannot allow only some of the tools, so the others are omitted. */
function toChoice(choice: ToolChoice): LanguageModelV4ToolChoice {
  if (typeof choice === 'string') return { type: choice };
  if ('tool' in choice) return { type: 'tool', toolName: choice.tool };
  return { type: choice.mode ?? 'auto' };
}

/** Providers with an option that allows or forbids several calls in a reply. */
const PARALLEL: ReadonlySet<string> = new Set(['openai', 'mistral', 'groq']);

function toProviderOptions(
  { parallelToolCalls, responseFormat, options }: LLMRequest,
  { model: { provider, modelId }, onUnsupported }: CallSettings,
): SharedV4ProviderOptions | undefined {
  const given = options?.providerOptions as SharedV4ProviderOptions | undefined;
  // `openai.responses` uses the options of `openai`, and Claude on Bedrock those of Anthropic.
  const [vendor = ''] = provider.split('.');
  const family = vendor === 'amazon-bedrock' && modelId.includes('anthropic.') ? 'anthropic' : vendor;
  let own: JSONObject = {};
  if (parallelToolCalls !== undefined) {
    if (PARALLEL.has(family)) own = { parallelToolCalls };
    else if (family === 'anthropic') own = { disableParallelToolUse: !parallelToolCalls };
    else onUnsupported('parallelToolCalls is not passed to this provider', 'set it in providerOptions');
  }
  // The OpenAI package marks every schema as strict by default, and OpenAI refuses schemas that are not strict.
  const schema = responseFormat?.type === 'json' ? responseFormat.schema : undefined;
  if (family === 'openai' && schema !== undefined && !isStrictForm(schema)) own.strictJsonSchema = false;
  return Object.keys(own).length === 0 ? given : { ...given, [family]: { ...own, ...given?.[family] } };
}

/** The parts of a reply, from a single response or assembled from a stream. */
type Reply = Pick<LanguageModelV4GenerateResult, 'content' | 'finishReason' | 'usage'> & {
  readonly response?: { readonly id?: string | undefined; readonly modelId?: string | undefined } | undefined;
};

/** Between two blocks of reasoning, which are paragraphs for people. */
const BETWEEN = '\n\n';

/** Converts the reply of an AI SDK model. Data that must be sent back is stored under the key. */
function toResponse({ content, finishReason, usage, response }: Reply, key: string): LLMResponse {
  let text = '';
  const reasoning: string[] = [];
  const toolCalls: ToolCall[] = [];
  for (const part of content) {
    if (part.type === 'text') text += part.text ?? '';
    if (part.type === 'reasoning' && part.text) reasoning.push(part.text);
    if (part.type !== 'tool-call' || part.providerExecuted) continue;
    const { toolCallId: id, toolName: name, input, providerMetadata } = part;
    const items = providerMetadata && { [key]: plainJson({ providerOptions: providerMetadata }) };
    toolCalls.push({ id, name, arguments: argumentsOf(input), ...(items && { providerItems: items }) });
  }
  const attachments = content.flatMap(attachmentsOf);
  return withoutUndefined({
    content: text,
    toolCalls,
    finishReason: toFinishReason(finishReason, toolCalls.length > 0),
    rawFinishReason: finishReason?.raw,
    usage: toUsage(usage),
    reasoning: reasoning.join(BETWEEN) || undefined,
    attachments: attachments.length > 0 ? attachments : undefined,
    providerItems: keepParts(content, key),
    origin: originOf(response?.id, response?.modelId),
  });
}

function attachmentsOf(part: LanguageModelV4Content): readonly ReplyAttachment[] {
  if (part.type === 'file') {
    const { data, mediaType: mimeType } = part;
    if (data.type === 'url') return [{ type: 'file', url: String(data.url), mimeType }];
    const text = typeof data.data === 'string' ? data.data : Buffer.from(data.data).toString('base64');
    return [{ type: 'file', url: `data:${mimeType};base64,${text}`, mimeType }];
  }
  if (part.type !== 'source') return [];
  if (part.sourceType === 'url')
    return [withoutUndefined({ type: 'page', url: part.url, title: part.title })];
  const { title, mediaType: mimeType, filename } = part;
  return [withoutUndefined({ type: 'document', title, mimeType, filename })];
}

/** Providers also report `stop` for replies with calls. Calls of an interrupted reply must not be executed. */
function toFinishReason(reason: LanguageModelV4FinishReason | undefined, hasCalls: boolean): FinishReason {
  switch (reason?.unified) {
    case 'length':
    case 'interrupted':
      return 'length';
    case 'content-filter':
      return 'content_filter';
    case 'error':
      return hasCalls ? 'length' : 'other';
    case 'stop':
    case 'tool-calls':
      return hasCalls ? 'tool_calls' : 'stop';
    default:
      return hasCalls ? 'tool_calls' : 'other';
  }
}

function toUsage(usage: LanguageModelV4Usage | undefined): Usage | undefined {
  const { inputTokens: input, outputTokens: output, raw } = usage ?? {};
  if (input?.total === undefined && output?.total === undefined) return undefined;
  const inputTokens = input?.total ?? 0;
  const outputTokens = output?.total ?? 0;
  return withoutUndefined({
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadTokens: input?.cacheRead,
    cacheWriteTokens: input?.cacheWrite,
    reasoningTokens: output?.reasoning,
    raw,
  });
}

/** A block of a stream. Its text grows, and later metadata replaces earlier metadata, because signatures come last. */
interface Block {
  type: 'text' | 'reasoning';
  text: string;
  providerMetadata?: SharedV4ProviderMetadata;
}

type PartOf<Type extends LanguageModelV4StreamPart['type']> = Extract<
  LanguageModelV4StreamPart,
  { type: Type }
>;
type BlockPart = PartOf<`${Block['type']}-${'start' | 'delta' | 'end'}`>;
type InputPart = PartOf<'tool-input-start' | 'tool-input-delta' | 'tool-input-end'>;

const NO_PARTS: readonly LLMStreamPart[] = [];

/** Assembles a reply from the parts of its stream. */
class ReplyAssembly {
  readonly #content: LanguageModelV4Content[] = [];
  readonly #open = new Map<string, Block>();
  /** Calls with streamed input, except those that the provider executes. */
  readonly #inputs = new Set<string>();
  /** The last streamed block of reasoning. */
  #lastReasoning: Block | undefined;
  #end: Pick<Reply, 'finishReason' | 'usage'> | undefined;
  #response: PartOf<'response-metadata'> | undefined;

  /**
   * Adds a part, and returns the parts to stream immediately.
   *
   * @throws the error that the model reports for its reply.
   */
  add(part: LanguageModelV4StreamPart): readonly LLMStreamPart[] {
    switch (part.type) {
      case 'text-start':
      case 'text-delta':
      case 'text-end':
        return this.#grow('text', part);
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end':
        return this.#grow('reasoning', part);
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-input-end':
        return this.#inputParts(part);
      case 'finish':
        this.#end = part;
        return NO_PARTS;
      case 'error':
        throw part.error;
      case 'response-metadata':
        this.#response = part;
        return NO_PARTS;
      case 'stream-start':
      case 'ping':
      case 'raw':
        return NO_PARTS;
      default:
        this.#content.push(part);
        return attachmentsOf(part).map((attachment) => ({ type: 'attachment', attachment }));
    }
  }

  /** The whole reply; `undefined` if the stream ended early, which packages of the AI SDK report as `interrupted`. */
  reply(): Reply | undefined {
    if (this.#end?.finishReason?.unified === 'interrupted') return undefined;
    return this.#end && { ...this.#end, content: this.#content, response: this.#response };
  }

  #grow(type: Block['type'], part: BlockPart): readonly LLMStreamPart[] {
    const id = `${type} ${part.id}`;
    const isStart = part.type === `${type}-start`;
    let block = isStart ? undefined : this.#open.get(id);
    if (block === undefined) {
      block = { type, text: '' };
      this.#open.set(id, block);
      this.#content.push(block);
    }
    if (part.providerMetadata !== undefined) block.providerMetadata = part.providerMetadata;
    if (part.type === `${type}-end`) this.#open.delete(id);
    if (!('delta' in part) || part.delta === '') return NO_PARTS;
    block.text += part.delta;
    if (type === 'text') return [{ type: 'text-delta', text: part.delta }];
    const isNext = this.#lastReasoning !== undefined && this.#lastReasoning !== block;
    this.#lastReasoning = block;
    return [{ type: 'reasoning-delta', text: isNext ? BETWEEN + part.delta : part.delta }];
  }

  #inputParts(part: InputPart): readonly LLMStreamPart[] {
    const { id: callId } = part;
    if (part.type === 'tool-input-start') {
      if (part.providerExecuted) return NO_PARTS;
      this.#inputs.add(callId);
      return [{ type: 'call-input-start', callId, tool: part.toolName }];
    }
    if (!this.#inputs.has(callId)) return NO_PARTS;
    if (part.type === 'tool-input-end') return [{ type: 'call-input-end', callId }];
    return [{ type: 'call-input-delta', callId, text: part.delta }];
  }
}

/** A provider that streams, and preserves data that models sign. */
export type AiSdkProvider = LLMProvider & Required<Omit<LLMProvider, 'chat'>>;

/** Options of {@link fromAiSdk}. */
export interface FromAiSdkOptions {
  /** How often a request is retried after a temporary failure; default: 2. */
  readonly maxRetries?: number;
  /** The provider's own tools, by the names that the model sees. */
  readonly providerTools?: Readonly<Record<string, AiSdkProviderTool>>;
  /**
   * The key under which signatures and reasoning are stored; default: provider and model, for example
   * `ai-sdk.anthropic.messages/claude-sonnet-5`. Set one if several models understand each other's data.
   */
  readonly itemKey?: string;
  /**
   * Which tools are sent in their strict form: all, all except tools with `strict: false` (`'auto'`), or none.
   * Default: the tools with `strict: true`.
   */
  readonly strict?: StrictMode;
  /**
   * Whether the model supports a response schema together with tools. `output` of a run then uses it. Default: `true`
   * for models of OpenAI, for Claude from 4.1 and Gemini from 3 on.
   */
  readonly responseFormat?: boolean;
  /** Whether found tools are sent as references; default: `true` for Claude from 4.5 on. */
  readonly toolReferences?: boolean;
  /** Receives each unsupported part of requests once; default: a process warning. */
  readonly logger?: Logger;
}

const OPTIONS = optionTable<FromAiSdkOptions>(
  'fromAiSdk',
  {
    maxRetries: WHOLE,
    providerTools: { ...RECORD, fix: '{ web_search: anthropic.tools.webSearch_20250305() }' },
    strict: either(BOOLEAN, oneOf('auto')),
    responseFormat: BOOLEAN,
    toolReferences: BOOLEAN,
    itemKey: { ...FILLED_TEXT, fix: "'claude'" },
    logger: LOGGER,
  },
  { tools: 'tools of the run, or providerTools: { … }', model: 'fromAiSdk(model, { … })' },
);

/**
 * Creates a provider from a language model of the AI SDK 7 (specification `v4`), of any package. If you pass a model,
 * runs must name that model. If you pass a function from names to models, such as `anthropic` or `google`, the run's
 * `model` selects the model.
 *
 * Data that a model signed or encrypted, such as reasoning, is stored with the messages and sent back unchanged. If
 * there is no reply, both methods throw a `ProviderError` whose `cause` is the model's error; after an abort, they
 * throw the model's error itself. Throws InvalidOptionsError (521) for a value that is not such a model.
 *
 * @example
 * ```ts
 * import { anthropic } from '@ai-sdk/anthropic';
 *
 * const provider = fromAiSdk(anthropic);
 * const run = await runToolLoop({ provider, model: 'claude-sonnet-5', tools }, messages);
 * ```
 */
export function fromAiSdk(
  model: LanguageModelV4 | ((modelId: string) => LanguageModelV4),
  options: FromAiSdkOptions = {},
): AiSdkProvider {
  if (typeof model !== 'function') checkModel(model);
  checkOptions(options, OPTIONS);
  return new ModelProvider(model, options);
}

/** Provider names of the AI SDK that differ from the OpenTelemetry conventions. */
const VENDORS: readonly (readonly [RegExp, string])[] = [
  [/^azure/, 'azure.ai.openai'],
  [/^amazon-bedrock|^bedrock/, 'aws.bedrock'],
  [/^google\.vertex|^vertex/, 'gcp.vertex_ai'],
  [/^google/, 'gcp.gemini'],
  [/^mistral/, 'mistral_ai'],
  [/^moonshotai/, 'moonshot_ai'],
  [/^xai/, 'x_ai'],
];

class ModelProvider implements AiSdkProvider {
  readonly #model: LanguageModelV4 | ((modelId: string) => LanguageModelV4);
  readonly #options: FromAiSdkOptions;
  readonly #strict: StrictTools;
  readonly #warned = new Set<string>();

  constructor(model: LanguageModelV4 | ((modelId: string) => LanguageModelV4), options: FromAiSdkOptions) {
    this.#model = model;
    this.#options = options;
    this.#strict = new StrictTools(options.strict);
  }

  itemKey(model: string): string {
    return this.#keyOf(this.#meant(model));
  }

  identity(model: string): ProviderIdentity {
    const { provider } = this.#meant(model);
    const [, name] = VENDORS.find(([vendor]) => vendor.test(provider)) ?? [];
    return { name: name ?? provider.split('.')[0] ?? provider };
  }

  supportsResponseFormat(model: string): boolean {
    if (this.#options.responseFormat !== undefined) return this.#options.responseFormat;
    const { provider, modelId } = this.#meant(model);
    return FORMATTED.get(provider.split('.')[0] ?? '')?.test(modelId) ?? false;
  }

  /** The strict form of the schema, if it has one. */
  responseForm(schema: JsonSchema): ResponseForm | undefined {
    const strict = strictSchema(schema);
    return strict.isStrict ? strict : undefined;
  }

  takesFoundTools(model: string): boolean {
    if (this.#options.toolReferences !== undefined) return this.#options.toolReferences;
    const { provider, modelId } = this.#meant(model);
    // https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool
    return provider.split('.')[0] === 'anthropic' && /^claude-[a-z]+-(?:4-[5-9]|[5-9])/.test(modelId);
  }

  async chat(request: LLMRequest): Promise<LLMResponse> {
    checkArguments({ of: 'fromAiSdk().chat', given: { request }, rules: { request: REQUEST } });
    const { model, key, options } = await this.#prepare(request);
    const result = await this.#send(model, options.abortSignal, () => model.doGenerate(options));
    this.#warn(model, result.warnings);
    return this.#strict.response(toResponse(result, key), request);
  }

  async *stream(request: LLMRequest): AsyncGenerator<LLMStreamPart, void, undefined> {
    checkArguments({ of: 'fromAiSdk().stream', given: { request }, rules: { request: REQUEST } });
    const { model, key, options } = await this.#prepare(request);
    const { stream } = await this.#send(model, options.abortSignal, () => model.doStream(options));
    const assembly = new ReplyAssembly();
    try {
      for await (const part of stream) {
        if (part.type === 'stream-start') this.#warn(model, part.warnings);
        yield* assembly.add(part);
      }
    } catch (error) {
      throw request.signal?.aborted ? error : failureOf(model, error);
    }
    // Some models end an aborted stream as if it were complete.
    request.signal?.throwIfAborted();
    const reply = assembly.reply();
    if (reply === undefined)
      throw new ProviderError(`${nameOf(model)}: the stream ended before the reply was complete`, {
        retryable: true,
      });
    yield { type: 'response', response: this.#strict.response(toResponse(reply, key), request) };
  }

  async #prepare(request: LLMRequest) {
    const model = this.#meant(request.model);
    // The difference should not be first noticed on the bill.
    if (typeof this.#model !== 'function' && request.model !== model.modelId)
      throw new InvalidOptionsError([
        {
          where: 'fromAiSdk().chat',
          option: 'model',
          problem: `the run requests the model '${request.model}', but fromAiSdk received ${nameOf(model)}`,
          fix: `model: '${model.modelId}'; or fromAiSdk((modelId) => …), which selects a model by its name`,
        },
      ]);
    const key = this.#keyOf(model);
    const { providerTools = {} } = this.#options;
    const onUnsupported = (problem: string, fix: string) => this.#reportUnsupported(model, problem, fix);
    const sent = this.#strict.request(request);
    const options = await toCallOptions(sent, { model, key, providerTools, onUnsupported });
    return { model, key, options };
  }

  /** The model of a name, even if a run with this name will be refused. */
  #meant(modelId: string): LanguageModelV4 {
    if (typeof this.#model !== 'function') return this.#model;
    const model: unknown = this.#model(modelId);
    checkModel(model);
    return model;
  }

  #keyOf(model: LanguageModelV4): string {
    return this.#options.itemKey ?? `ai-sdk.${nameOf(model)}`;
  }

  /** Models send a request only once, so retries are done here. */
  async #send<Result>(
    model: LanguageModelV4,
    signal: AbortSignal | undefined,
    send: () => PromiseLike<Result>,
  ): Promise<Result> {
    const { maxRetries = 2 } = this.#options;
    for (let retries = 0; ; retries += 1) {
      try {
        return await send();
      } catch (error) {
        if (signal?.aborted) throw error;
        const failure = failureOf(model, error, retries + 1);
        if (retries >= maxRetries || !failure.retryable) throw failure;
        // The pause that the server requests, unless it is too long.
        const { retryAfterMs = Number.POSITIVE_INFINITY } = failure;
        const pauseMs = retryAfterMs <= LONGEST_PAUSE_MS ? retryAfterMs : FIRST_PAUSE_MS * 2 ** retries;
        await sleep(pauseMs, undefined, { signal });
      }
    }
  }

  #warn(model: LanguageModelV4, warnings: readonly SharedV4Warning[] = []): void {
    for (const warning of warnings)
      this.#reportUnsupported(model, problemOf(warning), 'remove it, or use another model');
  }

  /** Every request would repeat the same warnings. */
  #reportUnsupported(model: LanguageModelV4, problem: string, fix: string): void {
    const where = `fromAiSdk (${nameOf(model)})`;
    const known = `${where} ${problem}`;
    if (this.#warned.has(known) || this.#warned.size >= MOST_WARNINGS) return;
    this.#warned.add(known);
    warnAuthor({ where, problem, fix }, this.#options.logger);
  }
}

/** Warnings may contain details of requests, which always differ. */
const MOST_WARNINGS = 100;

function problemOf(warning: SharedV4Warning): string {
  switch (warning.type) {
    case 'unsupported':
      return `it does not support ${withDetails(warning)}`;
    case 'compatibility':
      return `it supports only a part of ${withDetails(warning)}`;
    case 'deprecated':
      return `${warning.setting} is deprecated: ${warning.message}`;
    default:
      return warning.message;
  }
}

function withDetails({ feature, details }: { readonly feature: string; readonly details?: string }): string {
  return details === undefined ? feature : `${feature}: ${details}`;
}

/** Converts a model's error to a `ProviderError`. The loop counts `tries`, so that retries do not multiply. */
function failureOf(model: LanguageModelV4, cause: unknown, tries?: number): ProviderError {
  const { statusCode, isRetryable, responseHeaders } = isRecord(cause) ? cause : {};
  const status = typeof statusCode === 'number' ? statusCode : undefined;
  const from = status === undefined ? '' : `${status} from `;
  return new ProviderError(`${from}${nameOf(model)}: ${errorMessage(cause)}`, {
    status,
    // Errors of the AI SDK state whether they are retryable, except for connections that are lost after the headers.
    retryable: isRetryable === true || isConnectionLost(cause),
    retryAfterMs: retryAfterOf(responseHeaders),
    tries,
    cause,
  });
}

const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 60_000;

/** Throws if a value is not a usable language model. */
function checkModel(model: unknown): asserts model is LanguageModelV4 {
  const fault = faultOf(model);
  if (fault !== undefined) throw new InvalidOptionsError([{ where: 'fromAiSdk', option: 'model', ...fault }]);
}

const MODEL_FIX = "a language model of AI SDK 7: anthropic('claude-sonnet-5')";

function faultOf(model: unknown): { readonly problem: string; readonly fix: string } | undefined {
  if (typeof model === 'string')
    return {
      problem: `model is '${model}', a name that only the AI SDK’s own functions resolve through its gateway`,
      fix: `the model itself: gateway('${model}') of the package ai, or anthropic('…') of @ai-sdk/anthropic`,
    };
  if (!isRecord(model))
    return { problem: `model is ${model === null ? 'null' : `a ${typeof model}`}`, fix: MODEL_FIX };
  const { specificationVersion: version, doGenerate, doStream } = model;
  if (version === 'v2' || version === 'v3')
    return {
      problem: `model follows the specification ${version} of ${version === 'v2' ? 'AI SDK 5' : 'AI SDK 6'}; v4 is required`,
      fix: 'fromAiSdk(wrapLanguageModel({ model, middleware: [] })) with the function of ai 7; or the version of its package for AI SDK 7',
    };
  if (version !== 'v4' || typeof doGenerate !== 'function' || typeof doStream !== 'function')
    return { problem: 'model is not a language model of the specification v4', fix: MODEL_FIX };
  return undefined;
}

/**
 * Models that support a response schema together with tools, by the first segment of their provider and by name. For
 * other models, packages of the AI SDK turn the schema into a required tool call, or send a request that the API
 * refuses.
 */
const FORMATTED: ReadonlyMap<string, RegExp> = new Map([
  ['openai', /^(?!gpt-3|gpt-4$|gpt-4-|gpt-4o-2024-05|chatgpt-|o1-mini|o1-preview)/],
  ['anthropic', /^claude-[a-z]+-(4-[1-9](?!\d)|[5-9](?!\d))/],
  ['google', /^gemini-([3-9]|\d\d)/],
]);
