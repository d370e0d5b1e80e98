import { readExactJson } from '../../checking/exact-json.js';
import type { FinishReason, LLMResponse, ToolCall, Usage } from '../../contract/llm-provider.js';

// Besides OpenAI's own words those of servers that say the same in other ones (Mistral's `model_length`,
// DeepSeek's `insufficient_system_resource`, Gemini's `SAFETY`); `error` breaks a reply off in its middle.
const CUT = new Set(['length', 'max_tokens', 'model_length', 'insufficient_system_resource', 'error']);
const FILTERED = new Set(['content_filter', 'content-filter', 'safety']);

/** The response of the contract that a reply on the wire means. */
export function toResponse(reply: WireReply): LLMResponse {
  const usage = toUsage(reply.usage);
  return {
    content: reply.text || reply.refusal,
    toolCalls: reply.calls.map(toToolCall),
    finishReason: toFinishReason(reply),
    ...(usage ? { usage } : {}),
  };
}

function toToolCall({ id, name, input, custom }: WireCall): ToolCall {
  return { id, name, arguments: custom ? input : argumentsOf(input) };
}

/** As text where there is no object, or one whose long integers whoever reads the arguments is to decide on. */
function argumentsOf(input: string): ToolCall['arguments'] {
  const record = parseJsonRecord(input);
  return record === undefined || readExactJson(input).hasDigitsAsText ? input : record;
}

function toFinishReason({ reason, calls, whole }: WireReply): FinishReason {
  const word = reason.toLowerCase();
  if (CUT.has(word)) return 'length';
  if (FILTERED.has(word)) return 'content_filter';
  if (calls.length === 0) return 'stop';
  // A stream that just ends may have ended inside a call's arguments, and a tool must not be run with the
  // half of them that arrived.
  const cutOff = word === '' && !whole && calls.some(({ custom, input }) => custom || !isComplete(input));
  return cutOff ? 'length' : 'tool_calls';
}

function toUsage(usage: WireReply['usage']): Usage | undefined {
  const input = usage.prompt_tokens ?? usage.input_tokens;
  const output = usage.completion_tokens ?? usage.output_tokens;
  if (typeof input !== 'number' && typeof output !== 'number') return undefined;
  const inputTokens = countOf(input);
  const outputTokens = countOf(output);
  return {
    inputTokens,
    outputTokens,
    totalTokens: countOf(usage.total_tokens) || inputTokens + outputTokens,
  };
}

function countOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

/*
 * Compatible servers leave fields out or send null, so nothing of a reply may be trusted to have the type
 * that the client's declarations give it. These three readers are total: every JSON value is fine.
 */

/** The value if it is an object that is no array, otherwise an empty object. */
export function jsonRecord(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** The value if it is an array, otherwise an empty array. */
function jsonList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value if it is text, otherwise an empty text. */
export function jsonText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The object that a text is the JSON of, or `undefined` where it is the JSON of something else or of nothing. */
export function parseJsonRecord(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a reply said, put together but not interpreted. */
interface WireReply {
  readonly text: string;
  readonly refusal: string;
  readonly calls: readonly WireCall[];
  /** The server's finish reason; empty where it gave none. */
  readonly reason: string;
  /** The reply came as one message, so it cannot have been cut off on its way. */
  readonly whole: boolean;
  readonly usage: Readonly<Record<string, unknown>>;
}

/**
 * Puts one reply together. It takes stream chunks, and a whole completion just as well: that is a stream of
 * one chunk whose choice has a `message` for a `delta`. Only the first choice counts.
 */
export class ReplyAssembly {
  readonly #calls = new CallAssembly();
  readonly #functionCall = new CallAssembly();
  #text = '';
  #refusal = '';
  #reason = '';
  #whole = false;
  #started = false;
  #usage: Readonly<Record<string, unknown>> = {};

  /** Adds a chunk, or a completion, and returns the text that it brought. */
  add(chunk: unknown): string {
    const { choices, usage } = jsonRecord(chunk);
    const choice = jsonList(choices).find((candidate) => (jsonRecord(candidate).index ?? 0) === 0);
    const { delta, message, finish_reason, usage: choiceUsage } = jsonRecord(choice);
    this.#readUsage(usage ?? choiceUsage);
    if (choice === undefined) return '';
    this.#started = true;
    this.#reason = jsonText(finish_reason) || this.#reason;
    const whole = (delta === undefined || delta === null) && message !== undefined;
    this.#whole ||= whole;
    return this.#readMessage(jsonRecord(whole ? message : delta), whole);
  }

  /** The reply, or `undefined` where no chunk had a choice. */
  reply(): WireReply | undefined {
    if (!this.#started) return undefined;
    return {
      text: this.#text,
      refusal: this.#refusal,
      calls: [...this.#calls.calls(), ...this.#functionCall.calls()],
      reason: this.#reason,
      whole: this.#whole,
      usage: this.#usage,
    };
  }

  #readMessage(message: Readonly<Record<string, unknown>>, whole: boolean): string {
    for (const call of jsonList(message.tool_calls)) {
      if (whole) this.#calls.addWhole(call);
      else this.#calls.addPiece(call);
    }
    // The predecessor of `tool_calls`, which some servers still write: one call, without an id.
    if (message.function_call) this.#functionCall.addPiece({ function: message.function_call });
    const text = contentText(message.content, 'text');
    this.#text += text;
    this.#refusal += jsonText(message.refusal) + contentText(message.content, 'refusal');
    return text;
  }

  #readUsage(usage: unknown): void {
    // Some servers repeat a growing count in every chunk and others send null until the end: the last counts.
    if (typeof usage === 'object' && usage !== null) this.#usage = jsonRecord(usage);
  }
}

/** Content is text, or parts of which only some are text: others are the model's thinking, audio, … */
function contentText(content: unknown, kind: 'text' | 'refusal'): string {
  if (typeof content === 'string') return kind === 'text' ? content : '';
  return jsonList(content)
    .map(jsonRecord)
    .filter((part) => (part.type ?? 'text') === kind)
    .map((part) => jsonText(part[kind]))
    .join('');
}

/** One call as the server wrote it; `input` is the text of its arguments, not read yet. */
interface WireCall {
  readonly id: string;
  readonly name: string;
  readonly input: string;
  /** A custom (free text) tool: its input is never JSON to be parsed. */
  readonly custom: boolean;
}

interface CallPiece extends WireCall {
  readonly index: number | undefined;
}

interface OpenCall {
  id: string;
  name: string;
  input: string;
  custom: boolean;
  readonly index: number;
}

/**
 * Puts the calls of one reply together from the pieces in which a stream brings them, or from a whole
 * message's list. The wire says that `index` tells the calls apart; servers that leave it out, give 0 to
 * every call, or repeat id and name in every piece are understood as well.
 */
class CallAssembly {
  readonly #calls: OpenCall[] = [];

  /** Adds one entry of a delta's `tool_calls`. */
  addPiece(entry: unknown): void {
    const piece = readPiece(entry);
    const open = this.#openCallOf(piece);
    if (open === undefined || startsAnotherCall(open, piece)) this.#start(piece);
    else extend(open, piece);
  }

  /** Adds one entry of a whole message's `tool_calls`; each is a call of its own. */
  addWhole(entry: unknown): void {
    this.#start(readPiece(entry));
  }

  /** The calls so far, in call order; entries that said nothing at all are left out. */
  calls(): readonly WireCall[] {
    return this.#calls
      .filter(({ id, name, input }) => id !== '' || name !== '' || input !== '')
      .toSorted((a, b) => a.index - b.index)
      .map(({ id, name, input, custom }) => ({ id, name, input, custom }));
  }

  #openCallOf({ id, index }: CallPiece): OpenCall | undefined {
    if (index !== undefined) return this.#calls.findLast((call) => call.index === index);
    const named = id === '' ? undefined : this.#calls.findLast((call) => call.id === id);
    return named ?? this.#calls.at(-1);
  }

  #start({ id, name, input, custom, index }: CallPiece): void {
    this.#calls.push({ id, name, input, custom, index: index ?? this.#calls.at(-1)?.index ?? 0 });
  }
}

function readPiece(entry: unknown): CallPiece {
  const { id, index, function: fn, custom } = jsonRecord(entry);
  const isCustom = custom !== undefined && custom !== null;
  const body = jsonRecord(isCustom ? custom : fn);
  return {
    id: typeof id === 'number' ? String(id) : jsonText(id),
    index: typeof index === 'number' ? index : undefined,
    name: jsonText(body.name),
    input: inputText(isCustom ? body.input : body.arguments),
    custom: isCustom,
  };
}

function inputText(input: unknown): string {
  if (typeof input === 'string') return input;
  // Some servers send the arguments as JSON instead of as the text of JSON.
  return input === undefined || input === null ? '' : JSON.stringify(input);
}

function startsAnotherCall(open: OpenCall, piece: CallPiece): boolean {
  if (piece.name === '' || open.name === '') return false;
  if (piece.name !== open.name) return true;
  // The same name again: either a further call of the same tool, or a server that repeats itself in every
  // piece. Only whether the arguments so far are complete can tell the two apart.
  const otherId = piece.id !== '' && open.id !== '' && piece.id !== open.id;
  if (otherId) return open.input === '' || isComplete(open.input);
  return piece.input !== '' && isComplete(open.input);
}

function extend(open: OpenCall, piece: CallPiece): void {
  open.id ||= piece.id;
  open.name ||= piece.name;
  open.input += piece.input;
  open.custom ||= piece.custom;
}

/** Whether a text of arguments is a whole JSON object. The look at its end spares parsing most pieces. */
function isComplete(input: string): boolean {
  return input.trimEnd().endsWith('}') && parseJsonRecord(input) !== undefined;
}

/** A request on its way, as the client gives it. */
interface SentRequest<Body> extends Promise<Body> {
  /** Settles when the headers of the answer are there. */
  asResponse(): Promise<unknown>;
}

/**
 * Sends a request and waits no longer for the body of the answer than for its headers. The client does so from
 * version 7 on; older ones would wait for ever.
 *
 * @throws what the client throws; Error where time is up.
 */
export async function bodyInTime<Body>(
  send: (signal: AbortSignal) => SentRequest<Body>,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal?: AbortSignal },
): Promise<Body> {
  const late = new AbortController();
  const sent = send(signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]));
  await sent.asResponse();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  try {
    return await sent;
  } catch (error) {
    throw late.signal.aborted ? new Error('Request timed out.', { cause: error }) : error;
  } finally {
    clearTimeout(timer);
  }
}
