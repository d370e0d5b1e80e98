import type {
  LanguageModelV4Content,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4ReasoningFilePart,
  LanguageModelV4TextPart,
  LanguageModelV4ToolCall,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResult,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import { readExactJson } from '../checking/exact-json.js';
import type { AssistantMessage, MessageToolCall, ProviderItems } from '../contract/llm-provider.js';
import { isRecord, plainJson } from '../kernel/json.js';

/** One part of an assistant message of the AI SDK. */
type AssistantPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number];

/** A part as it is kept, in plain JSON; `call` stands for the next call of the message, which keeps its own items. */
type KeptPart = Exclude<AssistantPart, LanguageModelV4ToolCallPart> | OwnCallOfProvider | { type: 'call' };

/** A call that the provider has executed itself. */
type OwnCallOfProvider = LanguageModelV4ToolCallPart & { providerExecuted: true };

/**
 * What has to go back of a reply besides its text and calls, and in which order; nothing where the message says it
 * all, as text followed by calls.
 */
export function keepParts(
  content: readonly LanguageModelV4Content[],
  key: string,
): ProviderItems | undefined {
  const parts = content.flatMap(keptPart);
  const isPlain = parts.every(
    (part, at) => part.type === 'call' || (part.type === 'text' && at === 0 && !part.providerOptions),
  );
  return isPlain ? undefined : { [key]: plainJson({ parts }) };
}

function keptPart(part: LanguageModelV4Content): readonly KeptPart[] {
  const { providerMetadata } = part;
  const options = providerMetadata === undefined ? {} : { providerOptions: providerMetadata };
  switch (part.type) {
    case 'text':
      // Gemini signs texts that are empty.
      return part.text === '' && providerMetadata === undefined
        ? []
        : [{ type: 'text', text: part.text, ...options }];
    case 'reasoning':
      return [{ type: 'reasoning', text: part.text, ...options }];
    case 'custom':
      if (STREAM_ONLY.has(part.kind)) return [];
      return [{ type: 'custom', kind: part.kind, ...options }];
    case 'file':
    case 'reasoning-file':
      return [
        { type: part.type, mediaType: part.mediaType, data: keptData(part.data), ...options } as KeptPart,
      ];
    case 'tool-call':
      return part.providerExecuted ? [callOfProvider(part, options)] : [{ type: 'call' }];
    case 'tool-result':
      return part.preliminary ? [] : [resultOfProvider(part, options)];
    default:
      // Sources are for people, and an approval of the provider's own tools cannot be given here.
      return [];
  }
}

/** Parts that say how a stream began, and that no model is sent. */
const STREAM_ONLY: ReadonlySet<string> = new Set(['anthropic.message_start']);

type KeptOptions = { providerOptions?: SharedV4ProviderOptions };

function callOfProvider(
  { toolCallId, toolName, input }: LanguageModelV4ToolCall,
  options: KeptOptions,
): OwnCallOfProvider {
  return {
    type: 'tool-call',
    toolCallId,
    toolName,
    input: readInput(input),
    providerExecuted: true,
    ...options,
  };
}

function resultOfProvider(
  { toolCallId, toolName, result, isError }: LanguageModelV4ToolResult,
  options: KeptOptions,
): LanguageModelV4ToolResultPart {
  const output = { type: isError ? 'error-json' : 'json', value: result } as const;
  return { type: 'tool-result', toolCallId, toolName, output, ...options };
}

type FileData = LanguageModelV4ReasoningFilePart['data'];

function keptData(data: FileData): FileData {
  return data.type === 'data' && data.data instanceof Uint8Array
    ? { type: 'data', data: Buffer.from(data.data).toString('base64') }
    : data;
}

/**
 * The parts of an assistant message, with what was kept of them. A text that is another one by now has lost what was
 * said of the first.
 */
export function restoreParts(message: AssistantMessage, key: string): readonly AssistantPart[] {
  const text = message.content ?? '';
  const calls = (message.tool_calls ?? []).map((call) => callPart(call, key));
  const kept = readKept(message.providerItems?.[key]);
  if (kept === undefined) return [...textParts(text), ...calls];
  const isSame = text === kept.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const others = isSame ? kept : kept.filter(({ type }) => type !== 'text');
  const firstCall = others.findIndex(({ type }) => type === 'call');
  const at = firstCall === -1 ? others.length : firstCall;
  const order = isSame ? kept : [...others.slice(0, at), ...textParts(text), ...others.slice(at)];
  const parts = order.flatMap((part) => (part.type === 'call' ? calls.splice(0, 1) : [restored(part)]));
  return [...parts, ...calls];
}

function textParts(text: string): LanguageModelV4TextPart[] {
  return text === '' ? [] : [{ type: 'text', text }];
}

function callPart({ id, function: { name, arguments: text }, providerItems }: MessageToolCall, key: string) {
  const kept = providerItems?.[key];
  const options = isRecord(kept) && isRecord(kept.providerOptions) ? kept.providerOptions : undefined;
  const part: LanguageModelV4ToolCallPart = {
    type: 'tool-call',
    toolCallId: id,
    toolName: name,
    input: readInput(text),
    ...(options && { providerOptions: options as SharedV4ProviderOptions }),
  };
  return part;
}

/** No API takes arguments that are no object; that they were none, the answer of the call says. */
function readInput(text: string): unknown {
  try {
    const { value } = readExactJson(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** Histories are kept by applications: what is not there as it was written counts as not there. */
function readKept(value: unknown): readonly KeptPart[] | undefined {
  if (!isRecord(value) || !Array.isArray(value.parts)) return undefined;
  return value.parts.every((part) => isRecord(part) && typeof part.type === 'string')
    ? value.parts
    : undefined;
}

function restored(part: Exclude<KeptPart, { type: 'call' }>): AssistantPart {
  if (part.type !== 'file' && part.type !== 'reasoning-file') return part;
  const { data } = part as LanguageModelV4FilePart;
  return data.type === 'url'
    ? ({ ...part, data: { ...data, url: new URL(data.url) } } as AssistantPart)
    : part;
}
