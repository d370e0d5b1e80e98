import {
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamPart,
  PROVIDER,
} from '../../contract/llm-provider.js';
import type { Message } from '../../contract/message.js';
import type { ToolSchema } from '../../contract/tool-schema.js';
import { type InvalidOption, invalidOptions, refuseOptions } from '../../errors/invalid-options.js';
import { FUNCTION } from '../../kernel/option-rules.js';
import { optionTable } from '../../kernel/options.js';
import { knownTools } from '../known-tools.js';
import { addInstructions } from './add-instructions.js';
import { TEXT_TOOLS } from './has-text-tools.js';
import { rewriteHistory } from './rewrite-history.js';
import { TextReply } from './text-reply.js';
import { toolInstructions } from './tool-instructions.js';

/** Options of {@link withTextTools}. */
export interface TextToolsOptions {
  /** Writes the instructions; default: English, with the tools as JSON and calls in the Hermes form. */
  readonly instructions?: (tools: readonly ToolSchema[]) => string;
}

const OPTIONS = optionTable<TextToolsOptions>('withTextTools', { instructions: FUNCTION });

const NO_PROVIDER: InvalidOption = {
  where: 'withTextTools',
  option: 'provider',
  problem: 'the first argument is no provider',
  fix: 'withTextTools(new OpenAIProvider({ baseURL }))',
};

/**
 * Gives tools to a model that has no native tool calling: they go into the prompt, calls are read from the
 * text of the answer, and calls and results of the history are written as text. The wrapped provider sees
 * plain messages and no tools; whoever uses the wrapper sees no difference to native calling. It streams
 * if the wrapped provider does: text is handed on at once, unless it may be the beginning of a call.
 *
 * @example
 * ```ts
 * const local = withTextTools(new OpenAIProvider({ baseURL: 'http://localhost:8080/v1' }));
 * const run = await runToolLoop({ provider: local, model: 'qwen2.5', tools }, messages);
 * ```
 */
export function withTextTools(provider: LLMProvider, options: TextToolsOptions = {}): LLMProvider {
  refuseOptions([...(PROVIDER.accepts(provider) ? [] : [NO_PROVIDER]), ...invalidOptions(options, OPTIONS)]);
  const wrapped: LLMProvider = {
    ...TEXT_TOOLS,
    async chat(request) {
      const response = await provider.chat(toTextRequest(request, options));
      const reply = new TextReply(toolsOf(request));
      reply.push(response.content ?? '');
      reply.end();
      return reply.toResponse(response, callIds(request.messages));
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
  const reply = new TextReply(toolsOf(request));
  for await (const part of parts) {
    if (part.type === 'text-delta') {
      yield* textDelta(reply.push(part.text));
    } else {
      // Some providers send no deltas, or not all of them.
      const { content } = part.response;
      if (content?.startsWith(reply.received))
        yield* textDelta(reply.push(content.slice(reply.received.length)));
      yield* textDelta(reply.end());
      yield { type: 'response', response: finish(reply, part.response, request) };
    }
  }
}

function* textDelta(text: string): Generator<LLMStreamPart> {
  if (text !== '') yield { type: 'text-delta', text };
}

function finish(reply: TextReply, response: LLMResponse, request: LLMRequest): LLMResponse {
  return reply.toResponse(response, callIds(request.messages));
}

function toTextRequest(
  request: LLMRequest,
  { instructions = toolInstructions }: TextToolsOptions,
): LLMRequest {
  const { tools = [], messages, options, ...rest } = request;
  const history = rewriteHistory(messages);
  return {
    ...rest,
    options: withoutToolOptions(options),
    messages: tools.length > 0 ? addInstructions(history, instructions(tools)) : history,
  };
}

/** Servers refuse these where a request has no native tools. */
function withoutToolOptions(options: LLMRequest['options']): LLMRequest['options'] {
  const { tool_choice: _, parallel_tool_calls: __, ...others } = options ?? {};
  return others;
}

/** Where nothing is offered, nothing is a call; a call of another tool is answered, so that the model can mend it. */
function toolsOf({ tools = [] }: LLMRequest) {
  return knownTools(tools, { unknown: 'call' });
}

function callIds(messages: readonly Message[]): readonly string[] {
  return messages.flatMap((message) =>
    message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : [],
  );
}
