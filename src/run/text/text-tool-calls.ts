import type { JsonObject, JsonSchema } from '../../core/contract/json-schema.js';
import {
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamPart,
  type Message,
  type MessageToolCall,
  PROVIDER,
  type ToolCall,
  type ToolSchema,
} from '../../core/contract/llm-provider.js';
import {
  checkOptions,
  type InvalidOption,
  invalidOptions,
  refuseOptions,
} from '../../core/errors/author-fault.js';
import { escapePattern } from '../../core/kernel/escape-pattern.js';
import { readExactJson } from '../../core/kernel/exact-json.js';
import { isRecord, parsedJson } from '../../core/kernel/json.js';
import { either, FUNCTION, LIST, optionTable, withMethods } from '../../core/kernel/options.js';
import { withoutHalf } from '../call/result-text.js';
import { ALL_FORMATS, type DraftCall, type KnownTools } from './call-formats.js';
import { REASONING_CLOSERS, REASONING_MARKS, REASONING_OPENERS } from './reasoning-marks.js';
import { TextCursor } from './text-cursor.js';

/**
 * A tool in any form that a parser accepts: its name, the tool itself, its schema for providers, or similar objects.
 */
type KnownTool =
  | string
  | { readonly name: string; readonly parameters?: JsonSchema }
  | { readonly function: { readonly name: string; readonly parameters?: JsonSchema } };

/** The tools that a parser accepts: a list, or a registry (anything with `list()`, and `get(name)` for types). */
type KnownToolSource =
  | readonly KnownTool[]
  | {
      list(): readonly string[];
      get?(name: string): { readonly parameters?: JsonSchema } | undefined;
    };

/** The calls and text of a parsed text. */
export interface ParsedText {
  /** The first call. */
  readonly toolCall?: ToolCall;
  /** All calls, in the order of the text. */
  readonly toolCalls: readonly ToolCall[];
  /** The text before the first call, untrimmed; the whole text if it has no call. */
  readonly textBefore: string;
}

/** Options of {@link ToolCallParser}. */
export interface ToolCallParserOptions {
  /** Names, tools, or a registry: only these can be called. Without it, any name can. */
  readonly tools?: KnownToolSource;
}

const PARSER_OPTIONS = optionTable<ToolCallParserOptions>('ToolCallParser', {
  tools: { ...either(LIST, withMethods(['list'], '')), fix: "a ToolRegistry, or ['add', …]" },
});

/**
 * Finds tool calls in the text of a model without native calling: JSON objects with `name` and `arguments`, bare,
 * fenced or between the marks of the common model families. It never throws, and a call that is cut off is not a
 * call. Tools with `parameters` give untyped formats their types.
 *
 * @example
 * ```ts
 * const parser = new ToolCallParser({ tools: ['add'] });
 * const { toolCall, textBefore } = parser.parse('Let me see. {"name": "add", "arguments": {"a": 42, "b": 58}}');
 * // toolCall: { id: 'call_1', name: 'add', arguments: { a: 42, b: 58 } }, textBefore: 'Let me see. '
 * ```
 */
export class ToolCallParser {
  readonly #tools: KnownToolSource | undefined;

  constructor(options: ToolCallParserOptions = {}) {
    checkOptions(options, PARSER_OPTIONS);
    this.#tools = options.tools;
  }

  parse(text: string): ParsedText {
    // Callers in JavaScript may pass on missing content of a provider.
    if (typeof text !== 'string') return { toolCalls: [], textBefore: '' };
    const { calls, textBefore } = scanText(text, this.#tools);
    const toolCalls = numberDrafts(calls);
    return { toolCall: toolCalls[0], toolCalls, textBefore };
  }
}

/** The request in a strict `tool_request` message. */
export interface ToolRequest {
  readonly name: string;
  /** `{}` if the message contains none. */
  readonly arguments: JsonObject;
}

/**
 * Reads the strict `tool_request` protocol: the whole message is one JSON object
 * `{"tool_request":{"name":"…","arguments":{…}}}`, optionally with white space around it and without `arguments`.
 * Everything else (embedded, fenced, cut off, further keys, arguments that are not an object, no text at all) is
 * plain text and returns `undefined`; it never throws.
 *
 * @example
 * ```ts
 * parseToolRequest('{"tool_request":{"name":"lookup_weather","arguments":{"city":"Lisbon"}}}');
 * // { name: 'lookup_weather', arguments: { city: 'Lisbon' } }
 * ```
 */
export function parseToolRequest(text: unknown): ToolRequest | undefined {
  if (typeof text !== 'string') return undefined;
  const message = objectOf(readExactJson(text.trim())?.value, ['tool_request']);
  const request = objectOf(message?.tool_request, ['name', 'arguments']);
  if (request === undefined) return undefined;
  const { name, arguments: args = {} } = request;
  if (typeof name !== 'string' || name.trim() === '' || !isRecord(args)) return undefined;
  return { name, arguments: args };
}

/** The value, if it is an object without any other keys. */
function objectOf(value: unknown, keys: readonly string[]): JsonObject | undefined {
  return isRecord(value) && Object.keys(value).every((key) => keys.includes(key)) ? value : undefined;
}

const PLAUSIBLE = /^[\w.:-]{1,64}$/;

/** How calls of unknown tools are handled: as text; or as calls, if they are between marks that only calls have. */
type UnknownTools = 'text' | 'call';

/** The given tools; a registry is read again for each instance. */
class ToolNames implements KnownTools {
  readonly any: boolean;
  readonly reportsUnknown: boolean;
  /** A Map, because names come from a model: `constructor` is found only if it is a tool. */
  readonly #schemas = new Map<string, () => JsonSchema | undefined>();

  constructor(source: KnownToolSource | undefined, unknown: UnknownTools = 'text') {
    this.any = source === undefined;
    if (source !== undefined && 'list' in source)
      for (const name of source.list()) this.#schemas.set(name, () => source.get?.(name)?.parameters);
    else
      for (const tool of source ?? []) {
        const named = typeof tool === 'string' ? { name: tool } : tool;
        const { name, parameters } = 'function' in named ? named.function : named;
        this.#schemas.set(name, () => parameters);
      }
    // Without offered tools, there are no calls.
    this.reportsUnknown = unknown === 'call' && this.#schemas.size > 0;
  }

  has(name: string): boolean {
    return this.any ? name.trim() !== '' : this.#schemas.has(name);
  }

  mayBe(name: string): boolean {
    return this.has(name) || (this.reportsUnknown && PLAUSIBLE.test(name));
  }

  takes(tool: string, name: string): boolean {
    const properties = this.#schemas.get(tool)?.()?.properties ?? {};
    return Object.hasOwn(properties, name) || Object.keys(properties).length === 0;
  }

  parameter(tool: string, name: string): JsonSchema | undefined {
    const properties = this.#schemas.get(tool)?.()?.properties ?? {};
    return Object.hasOwn(properties, name) ? properties[name] : undefined;
  }
}

/** Finds the positions where one of many literals starts, or may start. Built for the first text. */
class LiteralIndex {
  #built: Literals | undefined;

  constructor(private readonly all: Iterable<string>) {}

  get #literals(): Literals {
    if (this.#built === undefined) {
      // If one literal is the beginning of another, the longer wins.
      const literals = [...new Set(this.all)].sort((a, b) => b.length - a.length);
      const beginnings = new Set<string>();
      for (const literal of literals)
        for (let end = 1; end < literal.length; end += 1) beginnings.add(literal.slice(0, end));
      const pattern = new RegExp(literals.map(escapePattern).join('|'), 'g');
      this.#built = { pattern, beginnings, longest: literals[0]?.length ?? 0 };
    }
    return this.#built;
  }

  /** The next literal at or after a position. */
  next(text: string, from: number): { readonly literal: string; readonly start: number } | undefined {
    const { pattern } = this.#literals;
    pattern.lastIndex = from;
    const match = pattern.exec(text);
    return match === null ? undefined : { literal: match[0], start: match.index };
  }

  /** Whether the text from `start` on is only the beginning of a longer literal. */
  endsInside(text: string, start: number): boolean {
    const { longest, beginnings } = this.#literals;
    return text.length - start < longest && beginnings.has(text.slice(start));
  }

  /**
   * The position at which the end of the text may be the beginning of a literal; the text's length if there is none.
   */
  tailStart(text: string, from: number): number {
    let start = Math.max(from, text.length - this.#literals.longest);
    while (start < text.length && !this.endsInside(text, start)) start += 1;
    return start;
  }
}

/** One pattern for all literals, so that a text is searched once. */
interface Literals {
  readonly pattern: RegExp;
  readonly beginnings: ReadonlySet<string>;
  readonly longest: number;
}

/** A part of the scanned text: plain text, or calls. */
type ScannedPiece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'calls'; readonly calls: readonly DraftCall[] };

/** The text before calls, which may make them an example. */
interface CallContextText {
  /** Only white space comes before them in their line. */
  startsLine: boolean;
  isFenced: boolean;
  /** The closing mark of the quotation or inline code around their line. */
  quotation: string | undefined;
  /** The closing mark of the quotation that starts right before them. */
  quote: string | undefined;
}

const QUOTE_CLOSERS: ReadonlyMap<string, string> = new Map([
  ...(['`', '"', "'"].map((mark) => [mark, mark]) as [string, string][]),
  ['“', '”'],
  ['«', '»'],
]);
const FENCE = '```';
/** Line ends and quotation marks; `'` is omitted, because it is usually an apostrophe. */
const MARKS = /```|[\n`"“”«»]/g;

/** Follows the decided text in one pass, with the context for the next calls. */
class ContextReader {
  readonly now: CallContextText = {
    startsLine: true,
    isFenced: false,
    quotation: undefined,
    quote: undefined,
  };

  /** Adds text that is not empty and that does not cut a fence in two. */
  addText(text: string): void {
    for (const [mark] of text.matchAll(MARKS)) {
      if (mark === FENCE) this.now.isFenced = !this.now.isFenced;
      if (mark === FENCE || mark === '\n' || mark === this.now.quotation) this.now.quotation = undefined;
      else if (!this.now.isFenced) this.now.quotation ??= QUOTE_CLOSERS.get(mark);
    }
    const blank = text.slice(text.trimEnd().length);
    this.now.startsLine = blank.includes('\n') || (this.now.startsLine && blank.length === text.length);
    // Two and more are a fence.
    this.now.quote = text.endsWith('``') ? undefined : QUOTE_CLOSERS.get(text.at(-1) ?? '');
  }

  /** Adds calls as they were written. */
  addCalls(written: string): void {
    if (written.startsWith(FENCE)) this.now.isFenced = !written.endsWith(FENCE);
    this.now.startsLine = false;
    this.now.quote = undefined;
  }
}

/** A piece that depends only on the following text, with its original text. */
interface KeptPiece {
  readonly piece: ScannedPiece;
  readonly written: string;
  readonly place?: CallPlace;
}

/** The facts that make calls an example, depending on the following text. */
interface CallPlace extends CallContextText, Pick<CallsReading, 'looksLikeProse' | 'mustEnd'> {}

/** The formats by opener, in order. */
const FORMATS = new Map(
  ALL_FORMATS.flatMap(({ openers }) =>
    openers.map((opener) => [opener, ALL_FORMATS.filter((format) => format.openers.includes(opener))]),
  ),
);
const LITERALS = new LiteralIndex(
  [...FORMATS.keys(), ...REASONING_OPENERS.keys(), ...REASONING_CLOSERS].filter((literal) => literal !== ''),
);
const CLOSERS = new Map(REASONING_MARKS.map((mark) => [mark, new LiteralIndex(mark.closes)]));
/** White space and closing marks: `</answer>`, `<|im_end|>`. */
const ONLY_MARKS = /^\s*(?:<[/|][^<>\s]{1,30}>\s*)*$/;
const END_OF_LINE = /^[ \t]*\r?\n/;
const OFTEN_UP_TO = 4096;
const GROWTH = 1.125;

/**
 * Splits a text that arrives in pieces of any size into plain text and calls. The result does not depend on the cuts
 * between the pieces: text that may still become (part of) a call is held back until that is decided.
 *
 * Text inside reasoning is never a call. If its opening mark was part of the prompt, only the closing mark shows that
 * all earlier text was reasoning: from the first call on, nothing is returned before the text ends.
 */
class CallScanner {
  #held = '';
  #half = '';
  #scanFrom = 0;
  /** Only white space and reasoning so far. */
  #isBlankSoFar = true;
  #reasoning: (typeof REASONING_MARKS)[number] | undefined;
  #context = new ContextReader();
  #kept: KeptPiece[] = [];
  #pieces: ScannedPiece[] = [];

  readonly #tools: KnownTools;

  constructor(tools: KnownToolSource | undefined, unknown?: UnknownTools) {
    this.#tools = new ToolNames(tools, unknown);
  }

  /** Adds text; returns the pieces that are now decided. */
  push(text: string): readonly ScannedPiece[] {
    const come = this.#half + text;
    // Half of a surrogate pair is neither checked nor returned.
    const whole = withoutHalf(come);
    this.#half = come.slice(whole.length);
    this.#held += whole;
    // A long call is not read again for every new piece, because that would be quadratic.
    if (this.#held.length >= this.#scanFrom) this.#scan(false);
    return this.#takePieces();
  }

  /** Ends the text; returns the rest. */
  end(): readonly ScannedPiece[] {
    this.#held += this.#half;
    this.#scan(true);
    this.#pieces.push(...withoutExamples(this.#kept));
    return this.#takePieces();
  }

  #takePieces(): readonly ScannedPiece[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    return pieces;
  }

  #scan(isFinal: boolean): void {
    const text = this.#held;
    let decided = 0;
    let at = 0;
    let firstAt = this.#firstAt(0);
    let isAtStart = firstAt >= 0 && this.#reasoning === undefined;
    // A call that is cut off at the end is not a call; but reasoning may still end there.
    let isOver = false;
    for (;;) {
      const found = isAtStart ? { literal: '', start: firstAt } : this.#literals.next(text, at);
      isAtStart = false;
      if (found === undefined || (!isFinal && !this.#reasoning && LITERALS.endsInside(text, found.start)))
        break;
      const { literal, start } = found;
      at = start + literal.length;
      const mark = REASONING_OPENERS.get(literal);
      if (this.#reasoning !== undefined || REASONING_CLOSERS.has(literal)) {
        this.#endReasoning(text.slice(decided, at));
        decided = at;
        firstAt = this.#firstAt(at);
        isAtStart = firstAt >= 0;
      } else if (mark !== undefined) {
        if (mark.isFirst && start !== firstAt) continue;
        this.#addAnswer(text.slice(decided, start));
        this.#reasoning = mark;
        decided = start;
      } else if (!isOver) {
        const isFirst = start === firstAt;
        const reading = readCallAt(text, found, { tools: this.#tools, isFirst, isFinal });
        if (reading.kind === 'open' && !isFinal) {
          this.#holdBack(decided, start);
          return;
        }
        isOver = reading.kind === 'open';
        if (reading.kind !== 'open') at = reading.end;
        if (reading.kind !== 'calls') continue;
        this.#addAnswer(text.slice(decided, start));
        const written = text.slice(start, at);
        const { calls, looksLikeProse, mustEnd } = reading;
        const place = { ...this.#context.now, looksLikeProse, mustEnd };
        this.#kept.push({ piece: { kind: 'calls', calls }, written, place });
        this.#context.addCalls(written);
        this.#isBlankSoFar = false;
        decided = at;
      }
    }
    this.#holdBack(decided, isFinal ? text.length : this.#literals.tailStart(text, at));
  }

  /** The literals that count here: in reasoning, only its closing marks. */
  get #literals(): LiteralIndex {
    return (this.#reasoning && CLOSERS.get(this.#reasoning)) ?? LITERALS;
  }

  /** The start of the answer, if all text before it is blank. */
  #firstAt(from: number): number {
    if (!this.#isBlankSoFar) return -1;
    return this.#held.length - this.#held.slice(from).trimStart().length;
  }

  /** Handles the text up to a closing mark; without an opening mark, all earlier text was reasoning too. */
  #endReasoning(text: string): void {
    if (this.#reasoning === undefined) {
      const written = this.#kept.map((kept) => kept.written).join('');
      this.#kept = [];
      this.#addText(written);
      this.#isBlankSoFar = true;
    }
    this.#reasoning = undefined;
    this.#addText(text);
    this.#context = new ContextReader();
  }

  /** Returns the text up to `from`; holds back the rest. */
  #holdBack(decided: number, from: number): void {
    const text = this.#held.slice(decided, from);
    if (this.#reasoning === undefined) this.#addAnswer(text);
    else this.#addText(text);
    this.#held = this.#held.slice(from);
    this.#scanFrom = this.#held.length < OFTEN_UP_TO ? 0 : this.#held.length * GROWTH;
  }

  #addAnswer(text: string): void {
    this.#isBlankSoFar &&= text.trim() === '';
    this.#addText(text);
  }

  #addText(text: string): void {
    if (text === '') return;
    const piece = { kind: 'text', text } as const;
    this.#context.addText(text);
    if (this.#kept.length > 0) this.#kept.push({ piece, written: text });
    else this.#pieces.push(piece);
  }
}

/** Turns calls that are examples into text. */
function withoutExamples(kept: readonly KeptPiece[]): readonly ScannedPiece[] {
  let behind = '';
  let isFollowed = false;
  const pieces: ScannedPiece[] = [];
  for (const { piece, written, place } of kept.toReversed()) {
    if (place === undefined) {
      behind = written + behind;
      pieces.push(piece);
      continue;
    }
    const isQuoted = place.quote !== undefined && behind.startsWith(place.quote);
    isFollowed ||= !ONLY_MARKS.test(isQuoted ? behind.slice(1) : behind);
    const { mustEnd, startsLine, isFenced, quotation } = place;
    // A model that calls a tool stops there.
    const mayBeFollowed =
      mustEnd === undefined || (mustEnd === 'line' && startsLine && END_OF_LINE.test(behind));
    const [line = ''] = behind.split('\n', 1);
    // In a code fence, in a quotation on their line, or the text of a Markdown link.
    const isCited =
      isFenced || behind.startsWith('(') || (quotation !== undefined && line.includes(quotation));
    const isExample =
      (isFollowed && (isQuoted || !mayBeFollowed)) || (place.looksLikeProse && (isQuoted || isCited));
    behind = '';
    pieces.push(isExample ? { kind: 'text', text: written } : piece);
  }
  return pieces.reverse();
}

/**
 * Gives each call an id: the model's own if it is new, otherwise `call_1`, `call_2`, …, continuing after the highest
 * number among existing ids.
 */
function numberDrafts(drafts: readonly DraftCall[], taken: Iterable<string> = []): readonly ToolCall[] {
  const used = new Set(taken);
  let last = 0;
  for (const id of used) last = Math.max(last, Number(/^call_(\d{1,9})$/.exec(id)?.[1] ?? 0));
  const ids: (string | undefined)[] = [];
  for (const { id } of drafts) {
    const isNew = id !== undefined && !used.has(id);
    ids.push(isNew ? id : undefined);
    if (isNew) used.add(id);
  }
  const calls: ToolCall[] = [];
  for (const [index, { name, arguments: args }] of drafts.entries()) {
    let id = ids[index];
    if (id === undefined) {
      do last += 1;
      while (used.has(`call_${last}`));
      id = `call_${last}`;
    }
    calls.push({ id, name, arguments: args });
  }
  return calls;
}

/** Finds the calls of known tools in a text, without tools of any name, and the text before the first call. */
export function scanText(
  text: string,
  tools: KnownToolSource | undefined,
  { unknown }: { readonly unknown?: UnknownTools } = {},
): { readonly calls: readonly DraftCall[]; readonly textBefore: string } {
  const scanner = new CallScanner(tools, unknown);
  const calls: DraftCall[] = [];
  let textBefore = '';
  for (const piece of [...scanner.push(text), ...scanner.end()]) {
    if (piece.kind === 'calls') calls.push(...piece.calls);
    else if (calls.length === 0) textBefore += piece.text;
  }
  return { calls, textBefore };
}

/** The result of reading at an opener. */
type CallReading =
  | CallsReading
  /** No call; the search continues at `end`. */
  | { readonly kind: 'none'; readonly end: number }
  /** Possibly a call: the text ends too early to decide. */
  | { readonly kind: 'open' };

interface CallsReading {
  readonly kind: 'calls';
  readonly calls: readonly DraftCall[];
  readonly end: number;
  readonly looksLikeProse: boolean;
  /** They must end the message, or fill their line, to count as calls; nothing else shows that they are meant. */
  readonly mustEnd: 'message' | 'line' | undefined;
}

/**
 * Tries the formats with an opener, one after the other. `isFirst`: only white space and reasoning come before it;
 * `isFinal`: the text is complete.
 */
function readCallAt(
  text: string,
  { start, literal }: { readonly start: number; readonly literal: string },
  context: { readonly tools: KnownTools; readonly isFirst: boolean; readonly isFinal: boolean },
): CallReading {
  const { tools, isFirst, isFinal } = context;
  let reached = start + literal.length;
  let unknown: CallsReading | undefined;
  for (const format of FORMATS.get(literal) ?? []) {
    const cursor = new TextCursor(text, start + literal.length);
    const found = format.read(cursor, { tools, opener: literal, start }) ?? [];
    if (cursor.tailOpen && !isFinal) return { kind: 'open' };
    const isReported = tools.reportsUnknown && format.looksLike === undefined;
    const known = found.filter(({ name }) => tools.has(name));
    const looksLikeProse = format.looksLike === 'prose';
    // Prose has brackets too. Calls are recognized by the name of a known tool, or if nothing comes before them.
    const isSure = !looksLikeProse || (literal !== '' && (isFirst || !tools.any));
    let mustEnd: CallsReading['mustEnd'];
    if (!isSure) mustEnd = literal === '[' ? 'line' : 'message';
    if (known.length > 0)
      return { kind: 'calls', calls: isReported ? found : known, looksLikeProse, mustEnd, end: cursor.at };
    if (found.length === 0 && cursor.ranOut) return { kind: 'open' };
    if (found.length > 0 && isReported)
      unknown ??= { kind: 'calls', calls: found, looksLikeProse, mustEnd: 'message', end: cursor.at };
    if (cursor.at > reached) reached = cursor.at;
  }
  return unknown ?? { kind: 'none', end: reached };
}

/** Options of {@link withTextTools}. */
export interface TextToolsOptions {
  /** Writes the instructions; default: English, with the tools as JSON and calls in the Hermes form. */
  readonly instructions?: (tools: readonly ToolSchema[]) => string;
}

const TEXT_TOOLS_OPTIONS = optionTable<TextToolsOptions>('withTextTools', { instructions: FUNCTION });

const NO_PROVIDER: InvalidOption = {
  where: 'withTextTools',
  option: 'provider',
  problem: 'the first argument is not a provider',
  fix: 'withTextTools(new OpenAIProvider({ baseURL }))',
};

/**
 * Adds tools to a model without native tool calling: they are described in the prompt, calls are read from the text
 * of the answer, and calls and results of the history are written as text. The wrapped provider receives plain
 * messages and no tools; the wrapper behaves like a provider with native calling. It streams if the wrapped provider
 * does: text is passed on immediately, unless it may be the beginning of a call.
 *
 * @example
 * ```ts
 * const local = withTextTools(new OpenAIProvider({ baseURL: 'http://localhost:8080/v1' }));
 * const run = await runToolLoop({ provider: local, model: 'qwen2.5', tools }, messages);
 * ```
 */
export function withTextTools(provider: LLMProvider, options: TextToolsOptions = {}): LLMProvider {
  refuseOptions([
    ...(PROVIDER.accepts(provider) ? [] : [NO_PROVIDER]),
    ...invalidOptions(options, TEXT_TOOLS_OPTIONS),
  ]);
  const wrapped: LLMProvider & { readonly [TEXT_TOOLS]: true } = {
    [TEXT_TOOLS]: true,
    ...(provider.itemKey ? { itemKey: provider.itemKey.bind(provider) } : {}),
    ...(provider.identity ? { identity: provider.identity.bind(provider) } : {}),
    async chat(request) {
      const response = await provider.chat(toTextRequest(request, options));
      const reply = new TextReply(request);
      reply.push(response.content ?? '');
      reply.end();
      return reply.toResponse(response);
    },
  };
  if (provider.stream === undefined) return wrapped;
  const stream = provider.stream.bind(provider);
  return { ...wrapped, stream: (request) => streamReply(stream(toTextRequest(request, options)), request) };
}

async function* streamReply(
  parts: AsyncIterable<LLMStreamPart>,
  request: LLMRequest,
): AsyncGenerator<LLMStreamPart> {
  const reply = new TextReply(request);
  for await (const part of parts) {
    if (part.type === 'text-delta') {
      yield* textDelta(reply.push(part.text));
    } else if (part.type !== 'response') {
      yield part;
    } else {
      // Some providers send no deltas, or not all of them.
      const { content } = part.response;
      if (content?.startsWith(reply.received))
        yield* textDelta(reply.push(content.slice(reply.received.length)));
      yield* textDelta(reply.end());
      yield { type: 'response', response: reply.toResponse(part.response) };
    }
  }
}

function* textDelta(text: string): Generator<LLMStreamPart> {
  if (text !== '') yield { type: 'text-delta', text };
}

function toTextRequest(
  request: LLMRequest,
  { instructions = toolInstructions }: TextToolsOptions,
): LLMRequest {
  const { tools = [], toolChoice: _1, parallelToolCalls: _2, messages, options, ...rest } = request;
  // Servers refuse these in a request without native tools.
  const { tool_choice: _3, parallel_tool_calls: _4, ...others } = options ?? {};
  const history = rewriteHistory(messages);
  return {
    ...rest,
    options: others,
    messages: tools.length > 0 ? addInstructions(history, instructions(tools)) : history,
  };
}

/**
 * A reply that is being received: splits it into text for people and calls. Text around calls stays; white space
 * before the first call and at the end is removed.
 */
class TextReply {
  /** The model's reply, as far as it was received. */
  received = '';
  readonly #scanner: CallScanner;
  readonly #drafts: DraftCall[] = [];
  #content = '';
  #space = '';

  constructor(private readonly request: LLMRequest) {
    // Without offered tools, there are no calls; a call of an unknown tool is answered, so that the model can correct it.
    this.#scanner = new CallScanner(request.tools ?? [], 'call');
  }

  /** Adds a part of the reply; returns the text that can be shown now, `''` if there is none. */
  push(text: string): string {
    this.received += text;
    return this.#take(this.#scanner.push(text));
  }

  /** Ends the reply; returns the rest of the text. */
  end(): string {
    const text = this.#take(this.#scanner.end());
    if (this.#drafts.length > 0) return text;
    this.#content += this.#space;
    return text + this.#space;
  }

  /** The ended reply in the provider's form. Its own native calls, if any, come first. */
  toResponse(response: LLMResponse): LLMResponse {
    const native = response.toolCalls ?? [];
    const taken = [...this.request.messages.flatMap(callsOf), ...native].map(({ id }) => id);
    const calls = [...native, ...numberDrafts(this.#drafts, taken)];
    // A reply that was cut off stays cut off: its calls must not run.
    const isCalling = calls.length > 0 && response.finishReason === 'stop';
    return {
      ...response,
      content: this.#content,
      toolCalls: calls,
      finishReason: isCalling ? 'tool_calls' : response.finishReason,
    };
  }

  #take(pieces: readonly ScannedPiece[]): string {
    // Collected separately: removing it from the content would copy the content for every piece.
    let shown = '';
    for (const piece of pieces) {
      if (piece.kind === 'calls') {
        this.#drafts.push(...piece.calls);
        if (this.#content === '' && shown === '') this.#space = '';
        continue;
      }
      const { text } = piece;
      const trimmed = text.trimEnd();
      if (trimmed === '') this.#space += text;
      else {
        shown += this.#space + trimmed;
        this.#space = text.slice(trimmed.length);
      }
    }
    this.#content += shown;
    return shown;
  }
}

/**
 * Writes calls and their results as text for a model without native calling: calls as `<tool_call>` in the
 * assistant's message, results as `<tool_response>` in one user message. Other messages do not change.
 */
function rewriteHistory(messages: readonly Message[]): readonly Message[] {
  const names = new Map<string, string>();
  const rewritten: Message[] = [];
  let responses: string[] = [];
  // One message for all results of a turn: many chat templates require alternating user and assistant messages.
  const flush = (): void => {
    if (responses.length > 0) rewritten.push({ role: 'user', content: responses.join('\n') });
    responses = [];
  };
  for (const message of messages) {
    const { content } = message;
    if (message.role === 'tool') {
      const name = names.get(message.tool_call_id);
      const json = JSON.stringify(name === undefined ? { content } : { name, content });
      // JSON allows `<\/`, so that a result cannot close its own tag and imitate the user.
      responses.push(`<tool_response>\n${json.replaceAll('</', '<\\/')}\n</tool_response>`);
      continue;
    }
    flush();
    const calls = callsOf(message);
    if (message.role !== 'assistant' || calls.length === 0) rewritten.push(message);
    else {
      const { tool_calls: _, ...rest } = message;
      const lines = message.content?.trim() ? [message.content] : [];
      for (const { function: called } of calls) {
        const { name, arguments: args } = called;
        const json = parsedJson(args) !== undefined ? args : JSON.stringify(args);
        lines.push(`<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${json}}\n</tool_call>`);
      }
      rewritten.push({ ...rest, content: lines.join('\n') });
    }
    for (const call of calls) names.set(call.id, call.function.name);
  }
  flush();
  return rewritten;
}

function callsOf(message: Message): readonly MessageToolCall[] {
  return (message.role === 'assistant' && message.tool_calls) || [];
}

/**
 * The instructions for a model without native calling: the Hermes form, which most open models have seen in training.
 * The same tools give the same bytes, so that prompt caches stay valid.
 */
function toolInstructions(tools: readonly ToolSchema[]): string {
  return [
    '# Tools',
    '',
    'You can call the functions below. Each line is one function as JSON, with a JSON Schema of its arguments.',
    '',
    '<tools>',
    ...tools.map(({ input: _, ...tool }) => JSON.stringify(tool)),
    '</tools>',
    '',
    'To call a function, write one JSON object between <tool_call> tags, exactly like this:',
    '',
    '<tool_call>',
    '{"name": "the_function", "arguments": {"key": "value"}}',
    '</tool_call>',
    '',
    'Use only the names above and only arguments that fit the schema. For several calls write several',
    '<tool_call> blocks. Then stop: the results come in the next message between <tool_response> tags. If no',
    'function is needed, answer in plain text and write no <tool_call>.',
  ].join('\n');
}

/**
 * Adds instructions to the leading system message, or as a new one if there is none: many chat templates accept only
 * one system message, and only at the start. Messages that already contain them do not change.
 */
function addInstructions(messages: readonly Message[], instructions: string): readonly Message[] {
  const [first, ...others] = messages;
  if (first?.role !== 'system' && first?.role !== 'developer') {
    return [{ role: 'system', content: instructions }, ...messages];
  }
  if (first.content.includes(instructions)) return messages;
  return [{ ...first, content: `${first.content}\n\n${instructions}` }, ...others];
}

/**
 * Marks a provider that reads calls from text, also for another copy of this package. Such models get fewer
 * iterations.
 */
export const TEXT_TOOLS: unique symbol = Symbol.for('toolwright.TextTools');
