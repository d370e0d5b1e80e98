import type {
  FinishReason,
  LLMResponse,
  LLMStreamPart,
  ReplyAttachment,
  ReplyOrigin,
  ToolCall,
} from '../../../core/contract/llm-provider.js';
import { isRecord, withoutUndefined } from '../../../core/kernel/json.js';
import {
  argumentsOf,
  inputText,
  jsonList,
  jsonRecord,
  jsonText,
  originOf,
  parseJsonRecord,
  type WireRecord,
} from '../../wire/wire-json.js';
import { citedAttachment, imageAttachment } from '../attachments.js';
import { DialectFields } from '../dialects.js';
import { toUsage } from '../usage.js';

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
  readonly #functionCall = new CallAssembly();
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
    return this.#readMessage(jsonRecord(isWhole ? message : delta), isWhole ? 'addWhole' : 'addPiece');
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
    const calls = [...this.#calls.calls(), ...this.#functionCall.calls()];
    const items = this.#fields.items();
    return withoutUndefined({
      content: this.#text || this.#refusal,
      toolCalls: calls.map((call) => toToolCall(call, this.itemKey)),
      finishReason: this.#finishReason(calls),
      rawFinishReason: this.#reason || undefined,
      usage: toUsage(this.#usage),
      reasoning: this.#reasoning || undefined,
      attachments: this.#attachments.length > 0 ? this.#attachments : undefined,
      providerItems: items && { [this.itemKey]: items },
      origin: this.#origin,
    });
  }

  #readMessage(message: WireRecord, add: 'addPiece' | 'addWhole'): readonly LLMStreamPart[] {
    const { thought, content } = this.#fields.add(message, { isWhole: add === 'addWhole' });
    const text = contentText(content, 'text');
    this.#text += text;
    this.#reasoning += thought;
    this.#refusal += jsonText(message.refusal) + contentText(content, 'refusal');
    const parts: LLMStreamPart[] = [];
    if (thought !== '') parts.push({ type: 'reasoning-delta', text: thought });
    if (text !== '') parts.push({ type: 'text-delta', text });
    parts.push(...this.#attach(message));
    for (const call of jsonList(message.tool_calls)) parts.push(...this.#calls[add](call));
    // The predecessor of `tool_calls`, which some servers still send: one call, without an id.
    if (message.function_call) this.#functionCall.addPiece({ function: message.function_call });
    return parts;
  }

  /** Servers that forward other APIs send the model's images beside the text. */
  #attach({ annotations, images }: WireRecord): readonly LLMStreamPart[] {
    const attached = [
      ...jsonList(annotations).flatMap(citedAttachment),
      ...jsonList(images).flatMap((image) => imageAttachment(jsonRecord(jsonRecord(image).image_url).url)),
    ];
    this.#attachments.push(...attached);
    return attached.map((attachment) => ({ type: 'attachment', attachment }));
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

function toToolCall(call: WireCall, itemKey: string): ToolCall {
  const { id, name, input, custom, extra_content, thought_signature } = call;
  const items = {
    ...(custom && { custom }),
    ...(Object.keys(extra_content).length > 0 && { extra_content }),
    ...(thought_signature !== '' && { thought_signature }),
  };
  return {
    id,
    name,
    arguments: custom ? input : argumentsOf(input),
    ...(Object.keys(items).length > 0 && { providerItems: { [itemKey]: items } }),
  };
}

/** Content is text, or a list of parts, of which only some are text; others are reasoning, audio, … */
function contentText(content: unknown, kind: 'text' | 'refusal'): string {
  if (typeof content === 'string') return kind === 'text' ? content : '';
  return jsonList(content)
    .map(jsonRecord)
    .filter((part) => (part.type ?? 'text') === kind)
    .map((part) => jsonText(part[kind]))
    .join('');
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

interface CallPiece extends WireCall {
  readonly index: number | undefined;
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

  /** Adds an entry of a delta's `tool_calls`, and returns the parts to stream. */
  addPiece(entry: unknown): readonly LLMStreamPart[] {
    const piece = readPiece(entry);
    const open = this.#openCallOf(piece);
    if (open === undefined || startsAnotherCall(open, piece)) return this.#start(piece);
    extend(open, piece);
    return this.#stream(open);
  }

  /** Adds an entry of a whole message's `tool_calls`; each is a separate call. */
  addWhole(entry: unknown): readonly LLMStreamPart[] {
    return this.#start(readPiece(entry));
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

  #openCallOf({ id, index }: CallPiece): OpenCall | undefined {
    if (index !== undefined) return this.#calls.findLast((call) => call.index === index);
    const named = id === '' ? undefined : this.#calls.findLast((call) => call.id === id);
    return named ?? this.#calls.at(-1);
  }

  #start({ index, ...piece }: CallPiece): readonly LLMStreamPart[] {
    const call = {
      ...piece,
      isStreamed: false,
      unsent: piece.input,
      last: piece.input,
      index: index ?? this.#calls.at(-1)?.index ?? 0,
    };
    this.#calls.push(call);
    return this.#stream(call);
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

function readPiece(entry: unknown): CallPiece {
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

function startsAnotherCall(open: OpenCall, piece: CallPiece): boolean {
  if (piece.name === '' || open.name === '') return false;
  if (piece.name !== open.name) return true;
  // The same name again: another call of the same tool, or a server that repeats the name in every piece. The
  // completeness of the arguments so far decides.
  const otherId = piece.id !== '' && open.id !== '' && piece.id !== open.id;
  if (otherId) return open.input === '' || isWholeInput(open);
  return piece.input !== '' && isWholeInput(open);
}

function extend(open: OpenCall, piece: CallPiece): void {
  open.id ||= piece.id;
  open.name ||= piece.name;
  open.input += piece.input;
  open.unsent += piece.input;
  if (piece.input.trim() !== '') open.last = piece.input;
  open.custom ||= piece.custom;
  open.thought_signature ||= piece.thought_signature;
  if (Object.keys(piece.extra_content).length > 0)
    open.extra_content = { ...open.extra_content, ...piece.extra_content };
}

/** Whether the arguments are a whole JSON object. Checking the end of the last piece avoids parsing most of them. */
function isWholeInput({ input, last }: OpenCall): boolean {
  return last.trimEnd().endsWith('}') && parseJsonRecord(input) !== undefined;
}
