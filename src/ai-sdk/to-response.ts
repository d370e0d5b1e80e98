import type {
  LanguageModelV4Content,
  LanguageModelV4File,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4Source,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider';
import { readExactJson } from '../checking/exact-json.js';
import type {
  FinishReason,
  LLMResponse,
  LLMStreamPart,
  ProviderItems,
  ReplyAttachment,
  ToolCall,
  Usage,
} from '../contract/llm-provider.js';
import { isRecord, plainJson } from '../kernel/json.js';
import { keepParts } from './kept-parts.js';

/** What a reply is made of, from one call or put together from a stream. */
type Reply = Pick<LanguageModelV4GenerateResult, 'content' | 'finishReason' | 'usage'> & {
  readonly response?: { readonly id?: string | undefined; readonly modelId?: string | undefined } | undefined;
};

/** Between two blocks of reasoning, which are paragraphs for people. */
const BETWEEN = '\n\n';

/** The response that a reply of an AI SDK model means; what goes back is kept by the key. */
export function toResponse({ content, finishReason, usage, response }: Reply, key: string): LLMResponse {
  const calls = content.filter(isOwnCall);
  const reasoning = content.flatMap((part) => (part.type === 'reasoning' && part.text ? [part.text] : []));
  const attachments = content.flatMap(attachmentsOf);
  const items = keepParts(content, key);
  const counted = toUsage(usage);
  return {
    content: content.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    toolCalls: calls.map((call) => toToolCall(call, key)),
    finishReason: toFinishReason(finishReason, calls.length > 0),
    ...(finishReason?.raw === undefined ? {} : { rawFinishReason: finishReason.raw }),
    ...(counted && { usage: counted }),
    ...(reasoning.length > 0 && { reasoning: reasoning.join(BETWEEN) }),
    ...(attachments.length > 0 && { attachments }),
    ...(items && { providerItems: items }),
    ...originOf(response),
  };
}

function attachmentsOf(part: LanguageModelV4Content): readonly ReplyAttachment[] {
  if (part.type === 'source') return [sourceOf(part)];
  if (part.type !== 'file') return [];
  const { data, mediaType } = part;
  return [{ type: 'file', url: fileUrl(data, mediaType), mimeType: mediaType }];
}

function sourceOf(source: LanguageModelV4Source): ReplyAttachment {
  const { title } = source;
  if (source.sourceType === 'url')
    return { type: 'page', url: source.url, ...(title !== undefined && { title }) };
  const { mediaType: mimeType, filename } = source;
  return { type: 'document', title: source.title, mimeType, ...(filename !== undefined && { filename }) };
}

function fileUrl(data: LanguageModelV4File['data'], mediaType: string): string {
  if (data.type === 'url') return String(data.url);
  const text = typeof data.data === 'string' ? data.data : Buffer.from(data.data).toString('base64');
  return `data:${mediaType};base64,${text}`;
}

function originOf({ id, modelId: model }: NonNullable<Reply['response']> = {}): Pick<LLMResponse, 'origin'> {
  return id || model ? { origin: { ...(id && { id }), ...(model && { model }) } } : {};
}

function isOwnCall(part: LanguageModelV4Content): part is LanguageModelV4ToolCall {
  return part.type === 'tool-call' && !isExecutedByProvider(part);
}

function toToolCall(call: LanguageModelV4ToolCall, key: string): ToolCall {
  const items = keepCall(call, key);
  return {
    id: call.toolCallId,
    name: call.toolName,
    arguments: argumentsOf(call.input),
    ...(items && { providerItems: items }),
  };
}

/** As text where there is no object, or one whose long integers whoever reads the arguments is to decide on. */
function argumentsOf(input: string): ToolCall['arguments'] {
  try {
    const { value, hasDigitsAsText } = readExactJson(input);
    return isRecord(value) && !hasDigitsAsText ? value : input;
  } catch {
    return input;
  }
}

/** Providers say `stop` for replies with calls too. Calls of a reply that broke off are not to be made. */
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
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    ...(input?.cacheRead === undefined ? {} : { cacheReadTokens: input.cacheRead }),
    ...(input?.cacheWrite === undefined ? {} : { cacheWriteTokens: input.cacheWrite }),
    ...(output?.reasoning === undefined ? {} : { reasoningTokens: output.reasoning }),
    ...(raw === undefined ? {} : { raw }),
  };
}

/** A block of a stream: its text grows, and what is said of it later wins, since signatures come last. */
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

const NOTHING: readonly LLMStreamPart[] = [];

/** Puts a reply together from the parts of its stream. */
export class ReplyAssembly {
  readonly #content: LanguageModelV4Content[] = [];
  readonly #open = new Map<string, Block>();
  /** Calls whose input is told; not those that the provider executes. */
  readonly #inputs = new Set<string>();
  /** The block of reasoning that was told last. */
  #told: Block | undefined;
  #end: Pick<Reply, 'finishReason' | 'usage'> | undefined;
  #response: PartOf<'response-metadata'> | undefined;

  /**
   * Adds a part, and gives what of it is to be told at once.
   *
   * @throws what the model reports as the error of its reply.
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
        return this.#tellInput(part);
      case 'finish':
        this.#end = part;
        return NOTHING;
      case 'error':
        throw part.error;
      case 'response-metadata':
        this.#response = part;
        return NOTHING;
      case 'stream-start':
      case 'ping':
      case 'raw':
        return NOTHING;
      default:
        this.#content.push(part);
        return attachmentsOf(part).map((attachment) => ({ type: 'attachment', attachment }));
    }
  }

  /** The whole reply; `undefined` where the stream ended before it did. */
  reply(): Reply | undefined {
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
    if (!('delta' in part) || part.delta === '') return NOTHING;
    block.text += part.delta;
    return [type === 'text' ? { type: 'text-delta', text: part.delta } : this.#reasoning(block, part.delta)];
  }

  #reasoning(block: Block, delta: string): LLMStreamPart {
    const isNext = this.#told !== undefined && this.#told !== block;
    this.#told = block;
    return { type: 'reasoning-delta', text: isNext ? BETWEEN + delta : delta };
  }

  #tellInput(part: InputPart): readonly LLMStreamPart[] {
    const { id: callId } = part;
    if (part.type === 'tool-input-start') {
      if (part.providerExecuted) return NOTHING;
      this.#inputs.add(callId);
      return [{ type: 'call-input-start', callId, tool: part.toolName }];
    }
    if (!this.#inputs.has(callId)) return NOTHING;
    if (part.type === 'tool-input-end') return [{ type: 'call-input-end', callId }];
    return [{ type: 'call-input-delta', callId, text: part.delta }];
  }
}

/** What has to go back with a call. */
function keepCall({ providerMetadata }: LanguageModelV4ToolCall, key: string): ProviderItems | undefined {
  return providerMetadata && { [key]: plainJson({ providerOptions: providerMetadata }) };
}

/** Whether a call is one that the provider executes itself, and nobody else. */
function isExecutedByProvider(part: LanguageModelV4Content): boolean {
  return part.type === 'tool-call' && part.providerExecuted === true;
}
