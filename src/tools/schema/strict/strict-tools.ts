import type {
  LLMRequest,
  LLMResponse,
  Message,
  MessageToolCall,
  ToolCall,
  ToolSchema,
} from '../../../core/contract/llm-provider.js';
import { cached } from '../../../core/kernel/cached.js';
import { readExactJson } from '../../../core/kernel/exact-json.js';
import { type Fields, isRecord } from '../../../core/kernel/json.js';
import { type StrictForm, strictSchema } from './strict-schema.js';

/**
 * Which tools are sent with `strict: true`: all that have a strict form (`true`), all except those with
 * `strict: false` (`'auto'`), or no tools (`false`).
 */
export type StrictMode = 'auto' | boolean;

/** The tools of a request, and the forms of the strict ones by name. */
interface Offered {
  readonly tools: readonly ToolSchema[];
  readonly forms: ReadonlyMap<string, StrictForm>;
}

const NO_TOOLS: readonly ToolSchema[] = [];

/**
 * Offers tools in their strict form, and converts the calls of replies to the tools' own schemas. Earlier calls in
 * the history are also converted to the strict form, so that the model sees the same form everywhere.
 */
export class StrictTools {
  readonly #mode: StrictMode | undefined;
  readonly #offered = new WeakMap<readonly ToolSchema[], Offered>();
  readonly #shown = new WeakMap<MessageToolCall, MessageToolCall>();

  /** Without a mode, only tools with `strict: true` are strict. */
  constructor(mode: StrictMode | undefined) {
    this.#mode = mode;
  }

  /** The request in the form that is sent. */
  request(request: LLMRequest): LLMRequest {
    const { tools, forms } = this.#offer(request.tools);
    if (tools === request.tools) return request;
    return { ...request, tools, messages: request.messages.map((message) => this.#show(message, forms)) };
  }

  /** The reply, with arguments for the tools' own schemas. */
  response(response: LLMResponse, request: LLMRequest): LLMResponse {
    const { forms } = this.#offer(request.tools);
    if (forms.size === 0 || response.toolCalls.length === 0) return response;
    const toolCalls = response.toolCalls.map((call): ToolCall => {
      const form = forms.get(call.name);
      const args = typeof call.arguments === 'string' ? exactRecord(call.arguments) : call.arguments;
      if (form === undefined || args === undefined) return call;
      return { ...call, arguments: form.restore(args) as ToolCall['arguments'] };
    });
    return { ...response, toolCalls };
  }

  #offer(tools: readonly ToolSchema[] = NO_TOOLS): Offered {
    return cached(this.#offered, tools, () => {
      const forms = new Map<string, StrictForm>();
      const strictTools = tools.map((tool) => {
        const { strict, ...named } = tool.function;
        const isWanted = (this.#mode === 'auto' ? strict !== false : this.#mode) ?? strict;
        const form = isWanted ? strictSchema(named.parameters) : undefined;
        if (!form?.isStrict)
          return strict === undefined ? tool : { ...tool, function: { ...named, strict: false } };
        forms.set(named.name, form);
        return { ...tool, function: { ...named, parameters: form.schema, strict: true } };
      });
      const isSame = strictTools.every((tool, index) => tool === tools[index]);
      return { tools: isSame ? tools : strictTools, forms };
    });
  }

  #show(message: Message, forms: Offered['forms']): Message {
    if (message.role !== 'assistant') return message;
    const { tool_calls: calls } = message;
    if (!calls?.some((call) => forms.has(call.function.name))) return message;
    const shown = calls.map((call): MessageToolCall => {
      const form = forms.get(call.function.name);
      const args = form && exactRecord(call.function.arguments);
      if (form === undefined || args === undefined) return call;
      return cached(this.#shown, call, () => {
        const strict = JSON.stringify(form.forward(args));
        return { ...call, function: { ...call.function, arguments: strict } };
      });
    });
    return { ...message, tool_calls: shown };
  }
}

/** `undefined` for text that is not a JSON object; the reader of the arguments reports it. */
function exactRecord(text: string): Fields | undefined {
  const value = readExactJson(text)?.value;
  return isRecord(value) ? value : undefined;
}
