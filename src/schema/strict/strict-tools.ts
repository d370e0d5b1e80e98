import type {
  AssistantMessage,
  LLMRequest,
  LLMResponse,
  Message,
  MessageToolCall,
  ToolCall,
  ToolSchema,
} from '../../contract/llm-provider.js';
import { isRecord } from '../../kernel/json.js';
import { type StrictForm, strictSchema } from './strict-schema.js';

/**
 * Which tools go out with `strict: true`: all that have a strict form (`true`), these but for those that say
 * `strict: false` (`'auto'`), none (`false`).
 */
export type StrictMode = 'auto' | boolean;

/** Tools as a request offers them, and the forms of those that are strict, by name. */
interface Offered {
  readonly tools: readonly ToolSchema[];
  readonly forms: ReadonlyMap<string, StrictForm>;
}

/**
 * Offers tools in their strict form and takes the calls of replies back to what the tools' own schemas say. Histories
 * are shown to the model in the strict form, too: what it sees of itself is what it is asked for.
 */
export class StrictTools {
  readonly #mode: StrictMode | undefined;
  readonly #offered = new WeakMap<readonly ToolSchema[], Offered>();
  readonly #shown = new WeakMap<MessageToolCall, MessageToolCall>();

  /** Without a mode, only tools that say `strict: true` are strict. */
  constructor(mode: StrictMode | undefined) {
    this.#mode = mode;
  }

  /** The request as it goes out. */
  request(request: LLMRequest): LLMRequest {
    const { tools, forms } = this.#offer(request.tools);
    if (tools === request.tools) return request;
    return { ...request, tools, messages: request.messages.map((message) => this.#show(message, forms)) };
  }

  /** The reply to a request as the tools' schemas speak of it. */
  response(response: LLMResponse, request: LLMRequest): LLMResponse {
    const { forms } = this.#offer(request.tools);
    if (forms.size === 0 || response.toolCalls.length === 0) return response;
    return { ...response, toolCalls: response.toolCalls.map((call) => restored(call, forms)) };
  }

  #offer(tools: readonly ToolSchema[] = NO_TOOLS): Offered {
    let offered = this.#offered.get(tools);
    if (offered === undefined) {
      offered = offer(tools, this.#mode);
      this.#offered.set(tools, offered);
    }
    return offered;
  }

  #show(message: Message, forms: Offered['forms']): Message {
    if (message.role !== 'assistant' || !hasStrictCalls(message, forms)) return message;
    return { ...message, tool_calls: message.tool_calls?.map((call) => this.#showCall(call, forms)) };
  }

  #showCall(call: MessageToolCall, forms: Offered['forms']): MessageToolCall {
    const form = forms.get(call.function.name);
    const args = form && parseArguments(call.function.arguments);
    if (form === undefined || args === undefined) return call;
    let shown = this.#shown.get(call);
    if (shown === undefined) {
      const strict = JSON.stringify(form.forward(args));
      shown = { ...call, function: { ...call.function, arguments: strict } };
      this.#shown.set(call, shown);
    }
    return shown;
  }
}

/** What is no JSON of an object is shown as it is. */
function parseArguments(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const NO_TOOLS: readonly ToolSchema[] = [];

function hasStrictCalls({ tool_calls: calls }: AssistantMessage, forms: Offered['forms']): boolean {
  return calls?.some((call) => forms.has(call.function.name)) ?? false;
}

function offer(tools: readonly ToolSchema[], mode: StrictMode | undefined): Offered {
  const forms = new Map<string, StrictForm>();
  const offered = tools.map((tool) => {
    const { strict, ...named } = tool.function;
    const form = isWanted(strict, mode) ? strictSchema(named.parameters) : undefined;
    if (!form?.isStrict)
      return strict === undefined ? tool : { ...tool, function: { ...named, strict: false } };
    forms.set(named.name, form);
    return { ...tool, function: { ...named, parameters: form.schema, strict: true } };
  });
  const isSame = offered.every((tool, index) => tool === tools[index]);
  return { tools: isSame ? tools : offered, forms };
}

function isWanted(strict: boolean | undefined, mode: StrictMode | undefined): boolean {
  if (mode === undefined) return strict === true;
  return mode === 'auto' ? strict !== false : mode;
}

function restored(call: ToolCall, forms: Offered['forms']): ToolCall {
  const form = forms.get(call.name);
  if (form === undefined || typeof call.arguments === 'string') return call;
  return { ...call, arguments: form.restore(call.arguments) as ToolCall['arguments'] };
}
