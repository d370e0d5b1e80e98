import type {
  AssistantMessage,
  FinishReason,
  LLMRequest,
  LLMResponse,
  LLMStreamPart,
  Message,
  MessageToolCall,
  ReplyAttachment,
  ReplyOrigin,
  ResponseFormat,
  ToolCall,
  ToolChoice,
  ToolSchema,
} from '../../core/contract/llm-provider.js';
import { isRecord, withoutUndefined } from '../../core/kernel/json.js';
import { isStrictForm } from '../../tools/schema/strict/strict-schema.js';
import { attachedParts, dataUrl, userParts } from '../wire/user-parts.js';
import {
  argumentsOf,
  inputText,
  jsonList,
  jsonRecord,
  jsonText,
  originOf,
  outputLimit,
  parseJsonRecord,
  type WireRecord,
} from '../wire/wire-json.js';
import { modelFamily } from './model-families.js';
import { citedAttachment, imageAttachment, toUsage } from './usage-and-attachments.js';

/** The form of a reply, and the key of its provider items. */
interface ChatTarget {
  readonly itemKey: string;
  /** For a streamed reply: whether to request its usage. */
  readonly stream?: { readonly withUsage: boolean };
}

/**
 * The body of a request. Tool choice and response format are converted to the API's fields. `options` are added
 * unchanged and override them, except that a token limit above that of the request is lowered. The called method
 * decides on `stream`. The usage of a stream is requested unless `options.stream_options` contain
 * `include_usage: false`, or are `null` or `false` for a server that does not support them.
 */
export function toChatBody(request: LLMRequest, { itemKey, stream }: ChatTarget): WireRecord {
  const {
    model,
    messages,
    tools = [],
    toolChoice,
    parallelToolCalls,
    responseFormat,
    options = {},
  } = request;
  const { stream: _, stream_options, ...rest } = options;
  const offered = [...jsonList(rest.tools), ...tools.map(toWireTool)];
  const wantsUsage = !('stream_options' in options) || Boolean(stream_options);
  return {
    // The API refuses rules for tools, and an empty list of tools, in a request without tools.
    ...(offered.length > 0 && {
      tool_choice: toolChoice && toWireChoice(toolChoice),
      parallel_tool_calls: parallelToolCalls,
    }),
    response_format: responseFormat && toWireFormat(responseFormat),
    ...rest,
    ...outputLimit(request, ['max_completion_tokens', 'max_tokens']),
    model,
    messages: toChatMessages(messages, { model, itemKey }),
    ...(offered.length > 0 && { tools: offered }),
    ...(stream && { stream: true }),
    ...(stream?.withUsage && wantsUsage
      ? { stream_options: { include_usage: true, ...jsonRecord(stream_options) } }
      : {}),
  };
}

/** Fields for other APIs are never sent. */
function toWireTool({ input, defer, isSearch, namespace, ...tool }: ToolSchema): ToolSchema {
  return tool;
}

function toWireChoice(choice: ToolChoice): unknown {
  if (typeof choice === 'string') return choice;
  if ('tool' in choice) return functionNamed(choice.tool);
  const { tools, mode = 'auto' } = choice;
  return { type: 'allowed_tools', allowed_tools: { mode, tools: tools.map(functionNamed) } };
}

function functionNamed(name: string): WireRecord {
  return { type: 'function', function: { name } };
}

function toWireFormat(format: ResponseFormat): WireRecord {
  if (format.type === 'text') return { type: 'text' };
  if (format.schema === undefined) return { type: 'json_object' };
  const { name = 'reply', schema } = format;
  // For other schemas, strict mode would change the reply.
  const strict = isStrictForm(schema) || undefined;
  return { type: 'json_schema', json_schema: { name, schema, strict } };
}

/**
 * Messages for Chat Completions: assistant messages with the fields that their server added, and tool messages as
 * text. Tool messages allow only text, so images and files of tool results follow in a user message. It comes after
 * all answers, because the API requires answers directly after the calls.
 */
function toChatMessages(
  messages: readonly Message[],
  target: { readonly model: string; readonly itemKey: string },
): readonly (Message | WireRecord)[] {
  const wire: (Message | WireRecord)[] = [];
  let attachments: WireRecord[] = [];
  const flush = (): void => {
    if (attachments.length > 0) wire.push({ role: 'user', content: attachments });
    attachments = [];
  };
  for (const message of messages) {
    if (message.role !== 'tool') flush();
    if (message.role === 'assistant') wire.push(withDialectFields(message, target));
    else if (message.role === 'tool') {
      const { parts, isError: _, found: __, kept: ___, ...answer } = message;
      wire.push(answer);
      const attached = attachedParts(parts, toUserPart);
      const text = `Attached to the result of ${message.tool_call_id}:`;
      if (attached.length > 0) attachments.push({ type: 'text', text }, ...attached);
    } else if (message.role === 'user')
      wire.push({ ...message, content: userParts(message.content, toUserPart) });
    else wire.push(message);
  }
  flush();
  return wire;
}

/** Parts that Chat Completions, or a compatible server, accepts unchanged. */
const WIRE_PARTS = new Set(['text', 'image_url', 'input_audio', 'video_url', 'audio_url']);

/** Converts our part to a part of Chat Completions; `undefined` if the API does not support it. */
function toUserPart(part: WireRecord): WireRecord | undefined {
  const url = dataUrl(part);
  if (url !== undefined && part.type === 'image') return { type: 'image_url', image_url: { url } };
  if (url !== undefined) return { type: 'file', file: { filename: part.filename, file_data: url } };
  return WIRE_PARTS.has(jsonText(part.type)) || (part.type === 'file' && part.file !== undefined)
    ? part
    : undefined;
}

/** The value that Gemini’s documentation requires for calls that Gemini did not make. */
const FOREIGN_SIGNATURE = { google: { thought_signature: 'skip_thought_signature_validator' } };

/** An assistant message for its server: with the fields that it sent, and without ours. */
function withDialectFields(
  message: AssistantMessage,
  { model, itemKey }: { readonly model: string; readonly itemKey: string },
): WireRecord {
  const { providerItems, reasoning, tool_calls, ...plain } = message;
  const { content, ...fields } = jsonRecord(providerItems?.[itemKey]);
  const calls = tool_calls?.map((call) => toWireCall(call, itemKey));
  const family = modelFamily(model);
  // From version 3 on, Gemini refuses calls of the current turn without a thought signature; it signs the first of
  // several calls. https://ai.google.dev/gemini-api/docs/thought-signatures
  const [, geminiVersion = 0] = /^gemini-?(\d+)$/.exec(family) ?? [];
  if (calls?.[0] && Number(geminiVersion) >= 3 && !calls.some(isSigned))
    calls[0] = { ...calls[0], extra_content: FOREIGN_SIGNATURE };
  // DeepSeek and Kimi refuse calls without a (possibly empty) `reasoning_content` at their own APIs, where names have
  // no vendor prefix; others may not support it. https://api-docs.deepseek.com/guides/thinking_mode#tool-calls
  const wantsReasoning = !model.includes('/') && /^(deepseek|kimi)/.test(family);
  const lacksReasoning = calls?.length && wantsReasoning && fields.reasoning_content === undefined;
  return {
    ...plain,
    ...(Array.isArray(content) ? { content: contentOf(message, content) } : {}),
    ...(calls ? { tool_calls: calls } : {}),
    ...(lacksReasoning ? { reasoning_content: '' } : {}),
    ...fields,
  };
}

/** The original parts, or the parts without text and the current text. */
function contentOf({ content }: AssistantMessage, parts: readonly unknown[]): readonly unknown[] {
  const others: unknown[] = [];
  let said = '';
  for (const part of parts) {
    const { type, text } = jsonRecord(part);
    if (type === 'text') said += jsonText(text);
    else others.push(part);
  }
  if (said === (content ?? '')) return parts;
  return content ? [...others, { type: 'text', text: content }] : others;
}

function toWireCall({ providerItems, ...call }: MessageToolCall, itemKey: string): WireRecord {
  const { custom, thought_signature, ...fields } = jsonRecord(providerItems?.[itemKey]);
  // Some gateways send Gemini's signature beside the name and the arguments.
  const signed = thought_signature === undefined ? {} : { function: { ...call.function, thought_signature } };
  if (custom !== true) return { ...call, ...signed, ...fields };
  return {
    id: call.id,
    type: 'custom',
    custom: { name: call.function.name, input: call.function.arguments },
    ...fields,
  };
}

function isSigned(call: WireRecord): boolean {
  const { thought_signature } = jsonRecord(call.function);
  return (
    (thought_signature ?? jsonRecord(jsonRecord(call.extra_content).google).thought_signature) !== undefined
  );
}

// Reasons of OpenAI and equivalent reasons of other servers (Mistral's `model_length`, DeepSeek's
// `insufficient_system_resource`, Gemini's `SAFETY`); `error` interrupts a reply.
const CUT = new Set(['length', 'max_tokens', 'model_length', 'insufficient_system_resource', 'error']);
const FILTERED = new Set(['content_filter', 'content-filter', 'safety']);

/**
 * Assembles a reply of Chat Completions from stream chunks. A whole completion is handled as a stream of one chunk
 * whose choice has a `message` instead of a `delta`. Only the first choice counts.
 */
export class ChatReply {
  readonly #calls = new CallAssembly();
  readonly #fields = new DialectFields();
  #text = '';
  #refusal = '';
  #reasoning = '';
  #reason = '';
  readonly #attachments: ReplyAttachment[] = [];
  /** The reply came as one message, so it cannot have been cut off in transit. */
  #isWhole = false;
  #isStarted = false;
  #isEnded = false;
  #usage: WireRecord = {};
  #origin: ReplyOrigin | undefined;

  constructor(private readonly itemKey: string) {}

  /** Adds a chunk or a completion, and returns its parts. */
  add(chunk: unknown): readonly LLMStreamPart[] {
    const { choices, usage, id, model } = jsonRecord(chunk);
    this.#origin ??= originOf(id, model);
    const choice = jsonList(choices).find((candidate) => (jsonRecord(candidate).index ?? 0) === 0);
    const { delta, message, finish_reason, usage: choiceUsage } = jsonRecord(choice);
    // Some servers repeat a growing count in every chunk, others send null until the end: the last count is used.
    const counted = usage ?? choiceUsage;
    if (isRecord(counted)) this.#usage = counted;
    if (choice === undefined) {
      // The usage comes after the reply.
      this.#isEnded ||= this.#isStarted && isRecord(usage);
      return [];
    }
    this.#isStarted = true;
    this.#reason = jsonText(finish_reason) || this.#reason;
    const isWhole = (delta === undefined || delta === null) && message !== undefined;
    this.#isWhole ||= isWhole;
    const added = jsonRecord(isWhole ? message : delta);
    const { thought, content } = this.#fields.add(added, { isWhole });
    const text = contentText(content, 'text');
    this.#text += text;
    this.#reasoning += thought;
    this.#refusal += jsonText(added.refusal) + contentText(content, 'refusal');
    // Servers that forward other APIs send the model's images beside the text.
    const attached = [
      ...jsonList(added.annotations).flatMap(citedAttachment),
      ...jsonList(added.images).flatMap((image) =>
        imageAttachment(jsonRecord(jsonRecord(image).image_url).url),
      ),
    ];
    this.#attachments.push(...attached);
    const parts: LLMStreamPart[] = [];
    if (thought !== '') parts.push({ type: 'reasoning-delta', text: thought });
    if (text !== '') parts.push({ type: 'text-delta', text });
    for (const attachment of attached) parts.push({ type: 'attachment', attachment });
    const calls = [...jsonList(added.tool_calls)];
    // The predecessor of `tool_calls`, which some servers still send: one call, without an id.
    if (calls.length === 0 && added.function_call) calls.push({ function: added.function_call });
    for (const call of calls) parts.push(...this.#calls.add(call, { isWhole }));
    return parts;
  }

  /** Parts that are known only at the end: a refusal, and the completeness of call arguments. */
  end(): readonly LLMStreamPart[] {
    const ends = this.#calls.ends();
    // A refusal is the content only if there is no other content.
    if (this.#text !== '' || this.#refusal === '') return ends;
    return [{ type: 'text-delta', text: this.#refusal }, ...ends];
  }

  /** The reply; `undefined` if no chunk had a choice, or nothing confirms that it is complete. */
  response(isDone: boolean): LLMResponse | undefined {
    if (!this.#isStarted || !(isDone || this.#isEnded || this.#reason !== '')) return undefined;
    const calls = this.#calls.calls();
    const items = this.#fields.items();
    return withoutUndefined({
      content: this.#text || this.#refusal,
      toolCalls: calls.map((call): ToolCall => {
        const { id, name, input, custom, extra_content, thought_signature } = call;
        const fields = {
          ...(custom && { custom }),
          ...(Object.keys(extra_content).length > 0 && { extra_content }),
          ...(thought_signature !== '' && { thought_signature }),
        };
        return {
          id,
          name,
          arguments: custom ? input : argumentsOf(input),
          ...(Object.keys(fields).length > 0 && { providerItems: { [this.itemKey]: fields } }),
        };
      }),
      finishReason: this.#finishReason(calls),
      rawFinishReason: this.#reason || undefined,
      usage: toUsage(this.#usage),
      reasoning: this.#reasoning || undefined,
      attachments: this.#attachments.length > 0 ? this.#attachments : undefined,
      providerItems: items && { [this.itemKey]: items },
      origin: this.#origin,
    });
  }

  #finishReason(calls: readonly OpenCall[]): FinishReason {
    const word = this.#reason.toLowerCase();
    if (CUT.has(word)) return 'length';
    if (FILTERED.has(word)) return 'content_filter';
    if (calls.length === 0) return 'stop';
    // Without a finish reason, the reply may have been cut off inside a call's arguments. A tool must not run with
    // incomplete arguments.
    const isCut = word === '' && !this.#isWhole && calls.some((call) => call.custom || !isWholeInput(call));
    return isCut ? 'length' : 'tool_calls';
  }
}

/** Content is text, or a list of parts, of which only some are text; others are reasoning, audio, … */
function contentText(content: unknown, kind: 'text' | 'refusal'): string {
  if (typeof content === 'string') return kind === 'text' ? content : '';
  let text = '';
  for (const part of jsonList(content).map(jsonRecord))
    if ((part.type ?? 'text') === kind) text += jsonText(part[kind]);
  return text;
}

/** A call as the server sent it; `input` is the unparsed text of its arguments. */
interface WireCall {
  id: string;
  name: string;
  input: string;
  /** A custom (free text) tool: its input is never parsed as JSON. */
  custom: boolean;
  /** Contains Gemini's signature, among other fields. */
  extra_content: WireRecord;
  /** Gemini's signature in the form of some gateways, beside the name. */
  thought_signature: string;
}

interface OpenCall extends WireCall {
  isStreamed: boolean;
  /** The end of the input that has not been streamed. Reading the input for each piece would cost its whole length. */
  unsent: string;
  /** The last piece of the input that is not blank. */
  last: string;
  readonly index: number;
}

/**
 * Assembles the calls of a reply from stream pieces or from a whole message's list. By specification, `index`
 * distinguishes the calls. Servers that omit it, send 0 for every call, or repeat id and name in every piece are also
 * supported.
 */
class CallAssembly {
  readonly #calls: OpenCall[] = [];

  /** Adds an entry of a delta's or a whole message's `tool_calls`, and returns the parts to stream. */
  add(entry: unknown, { isWhole }: { readonly isWhole: boolean }): readonly LLMStreamPart[] {
    const { index, ...piece } = readPiece(entry);
    const last = this.#calls.at(-1);
    const open =
      index === undefined
        ? (this.#calls.findLast(({ id }) => id !== '' && id === piece.id) ?? last)
        : this.#calls.findLast((call) => call.index === index);
    if (isWhole || open === undefined || startsAnotherCall(open, piece)) {
      const { input } = piece;
      const own = { isStreamed: false, unsent: input, last: input, index: index ?? last?.index ?? 0 };
      const call = { ...piece, ...own };
      this.#calls.push(call);
      return this.#stream(call);
    }
    open.id ||= piece.id;
    open.name ||= piece.name;
    open.input += piece.input;
    open.unsent += piece.input;
    if (piece.input.trim() !== '') open.last = piece.input;
    open.custom ||= piece.custom;
    open.thought_signature ||= piece.thought_signature;
    if (Object.keys(piece.extra_content).length > 0)
      open.extra_content = { ...open.extra_content, ...piece.extra_content };
    return this.#stream(open);
  }

  /** The calls so far, in order; empty entries are omitted. */
  calls(): readonly OpenCall[] {
    return this.#calls
      .filter(({ id, name, input }) => id !== '' || name !== '' || input !== '')
      .toSorted((a, b) => a.index - b.index);
  }

  /** The ends of all calls whose start was streamed. */
  ends(): readonly LLMStreamPart[] {
    return this.#calls
      .filter(({ isStreamed }) => isStreamed)
      .map(({ id }) => ({ type: 'call-input-end', callId: id }));
  }

  /** Readers cannot distinguish two calls with the same id, so the second is reported only at the end. */
  #stream(call: OpenCall): readonly LLMStreamPart[] {
    const { id, name, isStreamed, unsent } = call;
    const parts: LLMStreamPart[] = [];
    if (!isStreamed) {
      if (id === '' || name === '' || this.#calls.some((other) => other.isStreamed && other.id === id))
        return [];
      parts.push({ type: 'call-input-start', callId: id, tool: name });
    }
    if (unsent !== '') parts.push({ type: 'call-input-delta', callId: id, text: unsent });
    call.isStreamed = true;
    call.unsent = '';
    return parts;
  }
}

function readPiece(entry: unknown): WireCall & { readonly index: number | undefined } {
  const { id, index, function: fn, custom, extra_content } = jsonRecord(entry);
  const isCustom = custom !== undefined && custom !== null;
  const body = jsonRecord(isCustom ? custom : fn);
  return {
    id: typeof id === 'number' ? String(id) : jsonText(id),
    index: typeof index === 'number' ? index : undefined,
    name: jsonText(body.name),
    input: inputText(isCustom ? body.input : body.arguments),
    custom: isCustom,
    extra_content: jsonRecord(extra_content),
    thought_signature: jsonText(body.thought_signature),
  };
}

function startsAnotherCall(open: OpenCall, piece: WireCall): boolean {
  if (piece.name === '' || open.name === '') return false;
  if (piece.name !== open.name) return true;
  // The same name again: another call of the same tool, or a server that repeats the name in every piece. The
  // completeness of the arguments so far decides.
  const otherId = piece.id !== '' && open.id !== '' && piece.id !== open.id;
  if (otherId) return open.input === '' || isWholeInput(open);
  return piece.input !== '' && isWholeInput(open);
}

/** Whether the arguments are a whole JSON object. Checking the end of the last piece avoids parsing most of them. */
function isWholeInput({ input, last }: OpenCall): boolean {
  return last.trimEnd().endsWith('}') && parseJsonRecord(input) !== undefined;
}

/** Fields whose texts arrive in pieces in a stream. */
const TEXT_FIELDS = ['reasoning_content', 'reasoning'] as const;
/** Lists whose entries arrive in pieces in a stream: OpenRouter's, and Anthropic's behind LiteLLM. */
const LIST_FIELDS = ['reasoning_details', 'thinking_blocks'] as const;
/** Fields of such entries that arrive in pieces and contain reasoning. */
const ENTRY_TEXTS = ['text', 'summary', 'thinking'] as const;

/** The reasoning of a message, and its other content. */
interface Thought {
  readonly thought: string;
  readonly content: unknown;
}

/**
 * Collects fields that servers add to a message in addition to text and calls, from its deltas or the whole message:
 * the model's reasoning as `reasoning_content` (DeepSeek, Kimi, Qwen, xAI), as `reasoning` (Groq, Ollama, vLLM,
 * Cerebras), as `reasoning_details` (OpenRouter) or within the content (Mistral, Gemini), and signatures in
 * `extra_content` (Gemini).
 */
class DialectFields {
  readonly #texts: Partial<Record<(typeof TEXT_FIELDS)[number], string>> = {};
  readonly #lists: Partial<Record<(typeof LIST_FIELDS)[number], WireRecord[]>> = {};
  readonly #parts: WireRecord[] = [];
  #extra: WireRecord = {};
  #isThinking = false;

  /** Adds the fields of a delta or a whole message, and returns its reasoning, and its content without reasoning. */
  add(message: WireRecord, { isWhole }: { readonly isWhole: boolean }): Thought {
    const thoughts: string[] = [];
    for (const field of TEXT_FIELDS) {
      const text = message[field];
      if (typeof text !== 'string') continue;
      // Empty texts are stored too, because DeepSeek requires them back.
      this.#texts[field] = (this.#texts[field] ?? '') + text;
      thoughts.push(text);
    }
    for (const field of LIST_FIELDS) {
      const entries = jsonList(message[field]).map(jsonRecord);
      if (entries.length === 0) continue;
      const list = this.#lists[field] ?? [];
      this.#lists[field] = list;
      let said = '';
      for (const entry of entries) {
        if (isWhole) list.push(entry);
        else addEntry(list, entry);
        for (const key of ENTRY_TEXTS) said += jsonText(entry[key]);
      }
      thoughts.push(said);
    }
    const { thought, content } = this.#withoutThought(message);
    const { google, ...others } = jsonRecord(message.extra_content);
    // Gemini's mark for reasoning within the content is only for clients.
    const { thought: _, ...signed } = jsonRecord(google);
    const known = { ...jsonRecord(this.#extra.google), ...signed };
    this.#extra = {
      ...this.#extra,
      ...others,
      ...(Object.keys(known).length > 0 ? { google: known } : {}),
    };
    const parts =
      typeof content === 'string' ? [{ type: 'text', text: content }] : jsonList(content).map(jsonRecord);
    if (isWhole) this.#parts.push(...parts);
    else for (const part of parts) addPart(this.#parts, part);
    thoughts.push(thought, parts.map(innerText).join(''));
    // Servers with several of these fields send the same text in each.
    return { thought: thoughts.find((text) => text !== '') ?? '', content };
  }

  /** The fields to send back with the message; `undefined` if it has only text and calls. */
  items(): WireRecord | undefined {
    const lists = Object.entries(this.#lists);
    const items = {
      // OpenRouter’s details include its text.
      ...(lists.length > 0 ? Object.fromEntries(lists) : this.#texts),
      ...(Object.keys(this.#extra).length > 0 ? { extra_content: this.#extra } : {}),
      ...(this.#parts.some(({ type }) => type === 'thinking') ? { content: this.#parts } : {}),
    };
    return Object.keys(items).length === 0 ? undefined : items;
  }

  /** Gemini writes reasoning into the content, between tags, and marks the deltas that contain it. */
  #withoutThought({ content, extra_content }: WireRecord): Thought {
    if (typeof content !== 'string') return { thought: '', content };
    const isMarked = jsonRecord(jsonRecord(extra_content).google).thought === true;
    if (!isMarked && !this.#isThinking) return { thought: '', content };
    const [thought = '', ...rest] = content.replace('<thought>', '').split('</thought>');
    this.#isThinking = isMarked && rest.length === 0;
    if (rest.length > 0) return { thought, content: rest.join('</thought>') };
    return isMarked ? { thought, content: '' } : { thought: '', content };
  }
}

/** An entry continues the previous one with the same index and type; encrypted data arrives whole. */
function addEntry(list: WireRecord[], entry: WireRecord): void {
  const at = list.findLastIndex((open) => open.index === entry.index && open.type === entry.type);
  const open = list[at];
  const isApart = entry.index === undefined && (at < list.length - 1 || Boolean(open?.signature));
  if (open === undefined || 'data' in entry || isApart) {
    list.push(entry);
    return;
  }
  const texts = ENTRY_TEXTS.filter((key) => typeof entry[key] === 'string');
  const filled = Object.entries(entry).filter(
    ([, value]) => value !== null && value !== '' && value !== undefined,
  );
  const joined = texts.map((key) => [key, jsonText(open[key]) + jsonText(entry[key])]);
  list[at] = { ...open, ...Object.fromEntries(filled), ...Object.fromEntries(joined) };
}

function addPart(parts: WireRecord[], part: WireRecord): void {
  const last = parts.at(-1);
  if (part.type === 'text' && part.text === '') return;
  const goesOn = last?.type === part.type && (part.type === 'text' || part.type === 'thinking');
  if (last === undefined || !goesOn) parts.push(part);
  else if (part.type === 'text')
    parts[parts.length - 1] = { ...last, ...part, text: jsonText(last.text) + jsonText(part.text) };
  else {
    const thinking = [{ type: 'text', text: innerText(last) + innerText(part) }];
    parts[parts.length - 1] = { ...last, ...part, thinking };
  }
}

function innerText({ thinking }: WireRecord): string {
  if (typeof thinking === 'string') return thinking;
  return jsonList(thinking)
    .map((part) => jsonText(jsonRecord(part).text))
    .join('');
}
