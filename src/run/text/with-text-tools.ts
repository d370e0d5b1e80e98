import {
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamPart,
  type Message,
  type MessageToolCall,
  PROVIDER,
  type ToolSchema,
} from '../../core/contract/llm-provider.js';
import { type InvalidOption, invalidOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { parsedJson } from '../../core/kernel/json.js';
import { FUNCTION, optionTable } from '../../core/kernel/options.js';
import type { DraftCall } from './call-formats.js';
import { CallScanner, numberDrafts, type ScannedPiece } from './tool-call-parser.js';

/** Options of {@link withTextTools}. */
export interface TextToolsOptions {
  /** Writes the instructions; default: English, with the tools as JSON and calls in the Hermes form. */
  readonly instructions?: (tools: readonly ToolSchema[]) => string;
}

const OPTIONS = optionTable<TextToolsOptions>('withTextTools', { instructions: FUNCTION });

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
  refuseOptions([...(PROVIDER.accepts(provider) ? [] : [NO_PROVIDER]), ...invalidOptions(options, OPTIONS)]);
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
      const text = message.content?.trim() ? [message.content] : [];
      rewritten.push({ ...rest, content: [...text, ...calls.map(callText)].join('\n') });
    }
    for (const call of calls) names.set(call.id, call.function.name);
  }
  flush();
  return rewritten;
}

function callsOf(message: Message): readonly MessageToolCall[] {
  return (message.role === 'assistant' && message.tool_calls) || [];
}

function callText({ function: { name, arguments: args } }: MessageToolCall): string {
  const json = parsedJson(args) !== undefined ? args : JSON.stringify(args);
  return `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${json}}\n</tool_call>`;
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
