import type {
  LanguageModelV4,
  LanguageModelV4Content,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4TextPart,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
  SharedV4FileData,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type {
  AssistantMessage,
  Message,
  ProviderItems,
  ToolMessage,
  UserMessage,
} from '../../core/contract/llm-provider.js';
import type { Content } from '../../core/contract/tool-result.js';
import { ProviderError } from '../../core/errors/provider-error.js';
import { isRecord, plainJson } from '../../core/kernel/json.js';
import { unsupportedPart } from '../wire/user-parts.js';
import { argumentsAsObject, jsonRecord, type WireRecord } from '../wire/wire-json.js';

/** A part of an assistant message of the AI SDK. */
type AssistantPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number];

/** A stored part, in plain JSON; `call` means the next call of the message, which stores its own items. */
type KeptPart =
  | Exclude<AssistantPart, LanguageModelV4ToolCallPart>
  /** A call that the provider itself executed. */
  | (LanguageModelV4ToolCallPart & { providerExecuted: true })
  | { type: 'call' };

/**
 * The parts of a reply that must be sent back in addition to text and calls, and their order; `undefined` if the
 * message itself is sufficient: text followed by calls.
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
      // Gemini signs empty texts.
      return !part.text && providerMetadata === undefined
        ? []
        : [{ type: 'text', text: part.text ?? '', ...options }];
    case 'reasoning':
      return [{ type: 'reasoning', text: part.text, ...options }];
    case 'custom':
      if (STREAM_ONLY.has(part.kind)) return [];
      return [{ type: 'custom', kind: part.kind, ...options }];
    case 'file':
    case 'reasoning-file': {
      const { type, mediaType, data: given } = part;
      const isBytes = given.type === 'data' && given.data instanceof Uint8Array;
      const data = isBytes ? { type: 'data', data: Buffer.from(given.data).toString('base64') } : given;
      return [{ type, mediaType, data, ...options } as KeptPart];
    }
    case 'tool-call': {
      if (!part.providerExecuted) return [{ type: 'call' }];
      const { type, toolCallId, toolName } = part;
      const input = argumentsAsObject(part.input);
      return [{ type, toolCallId, toolName, input, providerExecuted: true, ...options }];
    }
    case 'tool-result': {
      if (part.preliminary) return [];
      const { type, toolCallId, toolName, result, isError } = part;
      const output = { type: isError ? 'error-json' : 'json', value: result } as const;
      return [{ type, toolCallId, toolName, output, ...options }];
    }
    default:
      // Sources are for people, and approvals of the provider's own tools cannot be given here.
      return [];
  }
}

/** Parts that describe the start of a stream and are never sent to a model. */
const STREAM_ONLY: ReadonlySet<string> = new Set(['anthropic.message_start']);

/**
 * The parts of an assistant message, with their stored data. If the text was changed later, the data for the original
 * text is dropped.
 */
function restoreParts(message: AssistantMessage, key: string): readonly AssistantPart[] {
  const text = message.content ?? '';
  const calls = (message.tool_calls ?? []).map(({ id, function: called, providerItems }) => {
    const items = providerItems?.[key];
    const options = isRecord(items) && isRecord(items.providerOptions) ? items.providerOptions : undefined;
    const part: LanguageModelV4ToolCallPart = {
      type: 'tool-call',
      toolCallId: id,
      toolName: called.name,
      input: argumentsAsObject(called.arguments),
      ...(options && { providerOptions: options as SharedV4ProviderOptions }),
    };
    return part;
  });
  const stored = message.providerItems?.[key];
  const kept: unknown = isRecord(stored) ? stored.parts : undefined;
  // Applications store histories, so stored parts may be damaged; damaged parts are ignored.
  if (!isKept(kept)) return [...textParts(text), ...calls];
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

function isKept(parts: unknown): parts is readonly KeptPart[] {
  return Array.isArray(parts) && parts.every((part) => isRecord(part) && typeof part.type === 'string');
}

function restored(part: Exclude<KeptPart, { type: 'call' }>): AssistantPart {
  if (part.type !== 'file' && part.type !== 'reasoning-file') return part;
  const { data } = part as LanguageModelV4FilePart;
  return data.type === 'url'
    ? ({ ...part, data: { ...data, url: new URL(data.url) } } as AssistantPart)
    : part;
}

/** The model of a prompt. */
interface PromptOptions {
  readonly model: LanguageModelV4;
  /** The key of the items that this model understands. */
  readonly key: string;
  /** Names of the found tools that the model must receive. */
  readonly found: ReadonlySet<string>;
}

/** The prompt of an earlier request. It grows with its history: a copy would cost more than the new messages. */
interface KnownPrompt extends PromptOptions {
  readonly prompt: LanguageModelV4Message[];
  readonly messages: Message[];
  /** By index of the message; only for messages of the application, which may replace their content in place. */
  readonly contents: unknown[];
  /** Lengths of the prompt after each message. */
  readonly ends: number[];
}

/** By the first message of a history: a request usually continues the previous one. */
const knownPrompts = new WeakMap<Message, KnownPrompt>();

/** Converts the messages of a request for an AI SDK model; messages of the previous request are not converted again. */
export async function toPrompt(
  messages: readonly Message[],
  { model, key, found }: PromptOptions,
): Promise<LanguageModelV4Message[]> {
  const [first] = messages;
  if (first === undefined) return [];
  const known = knownPrompts.get(first);
  // A concurrent request must not change the same prompt.
  knownPrompts.delete(first);
  const isSameTarget = known?.model === model && known.key === key && hasSameNames(known.found, found);
  const current: KnownPrompt = isSameTarget
    ? known
    : { model, key, found, prompt: [], messages: [], contents: [], ends: [] };
  const { prompt, messages: converted, contents, ends } = current;
  let same = 0;
  while (
    same < converted.length &&
    converted[same] === messages[same] &&
    (contents[same] === undefined || contents[same] === messages[same]?.content)
  )
    same += 1;
  // All results of one assistant message form one message.
  while (same > 0 && messages[same]?.role === 'tool') same -= 1;
  if (same < converted.length) {
    for (const list of [converted, contents, ends]) list.length = same;
    prompt.length = ends.at(-1) ?? 0;
  }
  for (let index = same; index < messages.length; index += 1) {
    const message = messages[index] as Message;
    if (message.role === 'tool') {
      const part = resultPart(message, found, toolOf(messages, index, message.tool_call_id));
      const last = messages[index - 1]?.role === 'tool' ? prompt.at(-1) : undefined;
      if (last?.role === 'tool') last.content.push(part);
      else prompt.push({ role: 'tool', content: [part] });
    } else if (message.role === 'assistant') {
      const content = [...restoreParts(message, key)];
      // APIs refuse empty messages.
      if (content.length > 0) prompt.push({ role: 'assistant', content });
    } else if (message.role === 'user')
      prompt.push({ role: 'user', content: await userParts(message, model) });
    else prompt.push({ role: 'system', content: message.content });
    converted.push(message);
    contents.push(message.role === 'assistant' || message.role === 'tool' ? undefined : message.content);
    ends.push(prompt.length);
  }
  knownPrompts.set(first, current);
  return prompt.slice();
}

function hasSameNames(known: ReadonlySet<string>, found: ReadonlySet<string>): boolean {
  return known.size === found.size && [...found].every((name) => known.has(name));
}

/** The name of the tool whose result this is: its call is in an earlier message. */
function toolOf(messages: readonly Message[], before: number, callId: string): string | undefined {
  for (let index = before - 1; index >= 0; index -= 1) {
    const message = messages[index];
    const call =
      message?.role === 'assistant' ? message.tool_calls?.find(({ id }) => id === callId) : undefined;
    if (call !== undefined) return call.function.name;
  }
  return undefined;
}

function resultPart(
  message: ToolMessage,
  found: ReadonlySet<string>,
  toolName: string = message.tool_call_id,
): LanguageModelV4ToolResultPart {
  const references = (message.found ?? []).filter((name) => found.has(name));
  const { content, parts, isError, tool_call_id: toolCallId } = message;
  if (references.length === 0)
    return { type: 'tool-result', toolCallId, toolName, output: toOutput(content, { parts, isError }) };
  // Names instead of definitions: the API inserts the definitions.
  const value = references.map((name) => ({
    type: 'custom' as const,
    providerOptions: { anthropic: { type: 'tool-reference', toolName: name } },
  }));
  return { type: 'tool-result', toolCallId, toolName, output: { type: 'content', value } };
}

/**
 * A result for models. Its texts are already in `text`; images and files follow. Errors are sent only as text,
 * because the AI SDK has no error form with files.
 */
export function toOutput(
  text: string,
  { parts = [], isError }: { readonly parts?: Content; readonly isError?: boolean },
): LanguageModelV4ToolResultOutput {
  const files = parts.flatMap((part) => {
    if (part.type === 'text') return [];
    const { mimeType: mediaType } = part;
    const data = { type: 'data', data: part.data } as const;
    return [
      { type: 'file' as const, data, mediaType, ...(part.type === 'file' && { filename: part.filename }) },
    ];
  });
  if (files.length === 0) return { type: isError ? 'error-text' : 'text', value: text };
  const texts = text === '' ? [] : [{ type: 'text' as const, text }];
  return { type: 'content', value: [...texts, ...files] };
}

type UserPart = LanguageModelV4TextPart | LanguageModelV4FilePart;

/**
 * Converts the content of a user message, in the parts of this package, of the AI SDK or of Chat Completions.
 *
 * @throws TypeError for a part that cannot be sent to a model; ProviderError for a URL that this model does not accept.
 */
async function userParts({ content }: UserMessage, model: LanguageModelV4): Promise<UserPart[]> {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  const parts: UserPart[] = [];
  for (const part of content as readonly unknown[]) {
    const given = jsonRecord(part);
    const read = readPart(given, model);
    if (read === undefined) throw unsupportedPart(part, nameOf(model));
    if (read.type === 'text' && read.text === '') continue;
    const options = given.providerOptions as SharedV4ProviderOptions;
    parts.push(isRecord(options) ? { ...read, providerOptions: options } : read);
  }
  for (const part of parts) if (part.type === 'file') await checkAddress(part, model);
  return parts;
}

const AUDIO_TYPES: ReadonlyMap<unknown, string> = new Map([
  ['mp3', 'audio/mpeg'],
  ['wav', 'audio/wav'],
]);

/** `undefined` for a part that cannot be sent to a model. */
function readPart(part: WireRecord, { provider }: LanguageModelV4): UserPart | undefined {
  const { image_url: image, input_audio: audio } = part;
  switch (part.type) {
    case 'text': {
      const text = part.text ?? part.content;
      return typeof text === 'string' ? { type: 'text', text } : undefined;
    }
    case 'image':
      return filePart(part.image ?? part.data, { mediaType: 'image', ...described(part) });
    case 'image_url':
      return filePart(isRecord(image) ? image.url : image, { mediaType: 'image' });
    case 'file': {
      if (!isRecord(part.file)) return filePart(part.data, described(part));
      const { file_id: id, file_data: data, filename } = part.file;
      const source =
        typeof id === 'string'
          ? { type: 'reference', reference: { [provider.split('.')[0] ?? provider]: id } }
          : data;
      return filePart(source, { mediaType: 'application', ...described({ filename }) });
    }
    case 'input_audio': {
      const { data, format } = jsonRecord(audio);
      return filePart(data, { mediaType: AUDIO_TYPES.get(format) ?? 'audio' });
    }
    default:
      return undefined;
  }
}

/** The description of a file, in addition to its data. */
interface FileDescription {
  readonly mediaType?: string;
  readonly filename?: string;
}

function described({ mimeType, mediaType = mimeType, filename }: WireRecord): FileDescription {
  return {
    ...(typeof mediaType === 'string' && { mediaType }),
    ...(typeof filename === 'string' && { filename }),
  };
}

function filePart(
  source: unknown,
  { mediaType, filename }: FileDescription,
): LanguageModelV4FilePart | undefined {
  const read = fileData(source);
  const type = read?.mediaType ?? mediaType;
  if (read === undefined || type === undefined) return undefined;
  return { type: 'file', data: read.data, mediaType: type, ...(filename !== undefined && { filename }) };
}

/** The data of a file, and its type if the data contains it. */
function fileData(
  source: unknown,
): { readonly data: SharedV4FileData; readonly mediaType?: string } | undefined {
  if (source instanceof URL) return fileData(source.href);
  if (source instanceof ArrayBuffer) return { data: { type: 'data', data: new Uint8Array(source) } };
  if (source instanceof Uint8Array) return { data: { type: 'data', data: source } };
  if (isRecord(source)) {
    if (source.type === 'data') return fileData(source.data);
    if (source.type === 'url') return fileData(source.url);
    return source.type === 'reference' || source.type === 'text'
      ? { data: source as unknown as SharedV4FileData }
      : undefined;
  }
  if (typeof source !== 'string' || source === '') return undefined;
  const inline = /^data:([^;,]*)([^,]*),(.*)$/s.exec(source);
  if (inline !== null) {
    const [, mediaType, coding = '', text = ''] = inline;
    const data = coding.endsWith(';base64') ? text : Buffer.from(decodeURIComponent(text)).toString('base64');
    return { data: { type: 'data', data }, ...(mediaType && { mediaType }) };
  }
  // Base64 has no colon.
  return /^[a-z][a-z\d+.-]*:/i.test(source) && URL.canParse(source)
    ? { data: { type: 'url', url: new URL(source) } }
    : { data: { type: 'data', data: source } };
}

/** URLs are never fetched here, because a message may come from an untrusted user. */
async function checkAddress(
  { data, mediaType }: LanguageModelV4FilePart,
  model: LanguageModelV4,
): Promise<void> {
  if (data.type !== 'url') return;
  const { href } = data.url;
  const type = mediaType.toLowerCase();
  for (const [supported, patterns] of Object.entries((await model.supportedUrls) ?? {})) {
    const wanted = supported
      .toLowerCase()
      .replace(/^\*(\/\*)?$/, '')
      .replace('*', '');
    const fits = wanted.endsWith('/') ? `${type}/`.startsWith(wanted) : wanted === '' || wanted === type;
    if (fits && patterns.some((pattern) => href.search(pattern) !== -1)) return;
  }
  throw new ProviderError(
    `${nameOf(model)} takes no ${mediaType} from ${data.url.protocol}//${data.url.host}; send its data: data:${mediaType.includes('/') ? mediaType : `${mediaType}/…`};base64,…`,
    { retryable: false },
  );
}

/** The name of a model in messages. */
export function nameOf({ provider, modelId }: LanguageModelV4): string {
  return `${provider}/${modelId}`;
}
