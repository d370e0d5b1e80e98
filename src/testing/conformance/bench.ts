import type { JsonSchema } from '../../contract/json-schema.js';
import type {
  AssistantMessage,
  LLMRequest,
  LLMResponse,
  LLMStreamPart,
  Message,
  ToolCall,
  ToolSchema,
} from '../../contract/llm-provider.js';
import { BrokenRule } from './expectations.js';
import {
  type ModelFailure,
  type ModelReply,
  type ProviderBackend,
  type Route,
  routedTurn,
} from './provider-backend.js';
import { responseIn } from './stream-response.js';

/** The two ways to ask a provider. */
export type Method = 'chat' | 'stream';

/** A tool that models of the cases call. */
export const LOOK_UP = offer('look_up', 'Look up the weather of a city', {
  city: { type: 'string', description: 'Name of the city' },
  days: { type: 'integer', description: 'Number of days' },
});
const NOTE: ToolSchema = offer('note', 'Keep a note', { text: { type: 'string' } });
export const TOOLS: readonly ToolSchema[] = [LOOK_UP, NOTE];

function offer(name: string, description: string, properties: Record<string, JsonSchema>): ToolSchema {
  const parameters = { type: 'object', properties, required: Object.keys(properties) };
  return { type: 'function', function: { name, description, parameters } };
}

export const QUESTION: Message = { role: 'user', content: 'What is the weather like?' };

const USAGE: ModelReply['usage'] = {
  inputTokens: 1_200,
  outputTokens: 340,
  totalTokens: 1_540,
  cacheReadTokens: 1_000,
  cacheWriteTokens: 50,
  reasoningTokens: 200,
};

/** What a case says of a reply; the rest is as in most replies. */
export type ReplyDraft = Partial<ModelReply>;

/** A reply with what a case does not say of it. */
function completed({ calls = [], ...draft }: ReplyDraft): ModelReply {
  return {
    text: '',
    usage: USAGE,
    calls,
    finishReason: calls.length > 0 ? 'tool_calls' : 'stop',
    deltas: inPieces(7),
    ...draft,
  };
}

/** Cuts texts into pieces of so many characters. */
export function inPieces(size: number): ModelReply['deltas'] {
  return (text) => text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
}

/** What a case asks with beside what each case has. */
type RequestDraft = Partial<LLMRequest>;

/** A provider under test, and the model behind it. */
export class Bench {
  readonly #backend: ProviderBackend;
  readonly method: Method;

  constructor(backend: ProviderBackend, method: Method) {
    this.#backend = backend;
    this.method = method;
  }

  /** The one key of what its replies carry; `undefined` where it carries nothing. */
  get itemKey(): string | undefined {
    const { provider, model } = this.#backend;
    return provider.itemKey?.(model);
  }

  /** What the model was sent last. */
  get lastSent(): unknown {
    const { sent } = this.#backend;
    if (sent === undefined)
      throw new BrokenRule("the backend does not say what its model was sent (`sent`): without: ['sent']");
    return sent.at(-1);
  }

  /** Says what the model replies, and asks for it. */
  async reply(draft: ReplyDraft, request?: RequestDraft, route?: Route): Promise<LLMResponse> {
    return this.ask(this.script(draft, request, route).request);
  }

  /**
   * Says what the model replies from now on. Gives the request that asks for it, and tells when the reply has come to
   * where it stays.
   */
  script(draft: ReplyDraft, request: RequestDraft = {}, route: Route = {}) {
    const { turn, reached } = routedTurn(completed(draft), route);
    const prompt = this.#backend.script(turn);
    return { reached, request: this.#requestOf({ ...request, ...prompt }) };
  }

  /** Says with what the server fails, and asks. */
  async fail(failure: ModelFailure): Promise<LLMResponse> {
    this.#backend.script({ kind: 'failure', failure });
    return this.ask(this.#requestOf({}));
  }

  /** The reply to a request; of a stream its last part, the parts before which have to be the same reply. */
  async ask(request: LLMRequest): Promise<LLMResponse> {
    if (this.method === 'chat') return this.#backend.provider.chat(request);
    const parts: LLMStreamPart[] = [];
    for await (const part of this.parts(request)) parts.push(part);
    return responseIn(parts);
  }

  parts(request: LLMRequest): AsyncIterable<LLMStreamPart> {
    const { provider } = this.#backend;
    if (provider.stream === undefined)
      throw new BrokenRule("it has no method `stream`: declare it without: ['streaming']");
    return provider.stream(request);
  }

  #requestOf(draft: RequestDraft): LLMRequest {
    const { model, options = {} } = this.#backend;
    return { model, options, messages: [QUESTION], tools: TOOLS, ...draft };
  }
}

/** A reply as histories keep it, through JSON as stores do, with an answer to each of its calls. */
export function historyAfter(
  response: LLMResponse,
  answer: (call: ToolCall) => Pick<Extract<Message, { role: 'tool' }>, 'content' | 'parts'> = ({ name }) => ({
    content: `Result of ${name}`,
  }),
): readonly Message[] {
  const { content, toolCalls, reasoning, providerItems } = response;
  const calls = toolCalls.map(({ id, name, arguments: args, providerItems: items }) => ({
    id,
    type: 'function' as const,
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
    ...(items && { providerItems: items }),
  }));
  const message: AssistantMessage = {
    role: 'assistant',
    content,
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(reasoning && { reasoning }),
    ...(providerItems && { providerItems }),
  };
  const answers = toolCalls.map((call) => ({ role: 'tool', tool_call_id: call.id, ...answer(call) }));
  return JSON.parse(JSON.stringify([message, ...answers])) as readonly Message[];
}
