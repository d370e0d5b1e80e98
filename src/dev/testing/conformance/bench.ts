import type { JsonSchema } from '../../../core/contract/json-schema.js';
import type {
  LLMRequest,
  LLMResponse,
  LLMStreamPart,
  Message,
  ToolCall,
  ToolSchema,
} from '../../../core/contract/llm-provider.js';
import { parsedJson } from '../../../core/kernel/json.js';
import { BrokenRule, expectSame, expectThat } from './expectations.js';
import { type ModelFailure, ModelReply, type ProviderBackend, Route, Sliceable } from './provider-backend.js';

/** The two methods of a provider. */
export type Method = 'chat' | 'stream';

/** A tool for the models of the cases. */
export const LOOK_UP = offer('look_up', 'Look up the weather of a city', {
  city: { type: 'string', description: 'Name of the city' },
  days: { type: 'integer', description: 'Number of days' },
});
const NOTE: ToolSchema = offer('note', 'Keep a note', { text: { type: 'string' } });
export const SAMPLE_TOOLS: readonly ToolSchema[] = [LOOK_UP, NOTE];

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

/** The parts of a reply that matter to a case. */
export type ReplyDraft = Partial<ModelReply>;

/** Cuts texts into pieces of a given length. */
export function inPieces(size: number): ModelReply['deltas'] {
  return (text) => text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
}

/** The parts of a request that matter to a case. */
type RequestDraft = Partial<LLMRequest>;

/** A provider under test, with the model behind it. */
export class Bench {
  readonly #backend: ProviderBackend;
  readonly method: Method;

  constructor(backend: ProviderBackend, method: Method) {
    this.#backend = backend;
    this.method = method;
  }

  /** The key of the provider items in its replies; `undefined` if it has none. */
  get itemKey(): string | undefined {
    const { provider, model } = this.#backend;
    return provider.itemKey?.(model);
  }

  /** The `options` of the backend, which all requests have. */
  get options(): LLMRequest['options'] {
    const { options } = this.#backend;
    if (options === undefined)
      throw new BrokenRule(
        "the backend has no `options` to send: set some, for example { temperature: 0.5 }, or add without: ['options']",
      );
    return options;
  }

  /** The last request to the model. */
  get lastSent(): unknown {
    const { sent } = this.#backend;
    if (sent === undefined)
      throw new BrokenRule(
        "the backend does not record the requests to its model (`sent`): record them, or add without: ['sent']",
      );
    return sent.at(-1);
  }

  /** Scripts a reply and requests it. */
  async reply(draft: ReplyDraft, request?: RequestDraft, route?: Route): Promise<LLMResponse> {
    return this.ask(this.script(draft, request, route).request);
  }

  /**
   * Scripts all further replies. Returns the request for them, and a promise that resolves when a reply has reached its
   * stop.
   */
  script({ calls = [], ...draft }: ReplyDraft, request: RequestDraft = {}, route: Route = {}) {
    const reply: ModelReply = {
      id: 'reply_1',
      model: 'test-model-2026-01-31',
      text: '',
      usage: USAGE,
      calls,
      finishReason: calls.length > 0 ? 'tool_calls' : 'stop',
      deltas: inPieces(7),
      ...draft,
    };
    const reached = Promise.withResolvers<void>();
    async function* transmit<Units extends Sliceable<Units>>(units: Units): AsyncGenerator<Units> {
      const { cuts = () => [], stop } = route;
      const { length } = units;
      const places = cuts(length);
      const end = stop?.at(length) ?? length;
      try {
        yield* piecesOf(units, [...places.filter((place) => place < end), end]);
      } finally {
        reached.resolve();
      }
      if ((await stop?.wait()) === 'end') return;
      yield* piecesOf(units, [end, ...places.filter((place) => place > end), length], end);
    }
    const prompt = this.#backend.script({ kind: 'reply', reply, transmit });
    return { reached: reached.promise, request: this.#requestOf({ ...request, ...prompt }) };
  }

  /** Scripts a failure of the server and sends a request. */
  async fail(failure: ModelFailure): Promise<LLMResponse> {
    this.#backend.script({ kind: 'failure', failure });
    return this.ask(this.#requestOf({}));
  }

  /** The reply to a request. For a stream, its last part; all earlier parts must add up to the same reply. */
  async ask(request: LLMRequest): Promise<LLMResponse> {
    if (this.method === 'chat') return this.#backend.provider.chat(request);
    const parts: LLMStreamPart[] = [];
    for await (const part of this.parts(request)) parts.push(part);
    return responseIn(parts);
  }

  parts(request: LLMRequest): AsyncIterable<LLMStreamPart> {
    const { provider } = this.#backend;
    if (provider.stream === undefined)
      throw new BrokenRule("it has no method `stream`: implement it, or add without: ['streaming']");
    return provider.stream(request);
  }

  #requestOf(draft: RequestDraft): LLMRequest {
    const { model, options = {} } = this.#backend;
    return { model, options, messages: [QUESTION], tools: SAMPLE_TOOLS, ...draft };
  }
}

/** The response at the end of a stream; checks that all earlier parts add up to it. */
function responseIn(parts: readonly LLMStreamPart[]): LLMResponse {
  const last = parts.at(-1);
  expectThat(
    last?.type === 'response',
    `its stream ends with ${last?.type ?? 'no part'} instead of the response`,
  );
  const { response } = last as Extract<LLMStreamPart, { type: 'response' }>;
  expectThat(
    parts.filter(({ type }) => type === 'response').length === 1,
    'its stream has more than one response',
  );
  expectSame('the joined text of all text-delta', textOf(parts, 'text-delta'), response.content);
  expectSame(
    'the joined text of all reasoning-delta',
    textOf(parts, 'reasoning-delta'),
    response.reasoning ?? '',
  );
  const attachments = parts.flatMap((part) => (part.type === 'attachment' ? [part.attachment] : []));
  expectSame('all attachments', attachments, response.attachments ?? []);
  expectInputs(parts, response.toolCalls);
  return response;
}

function textOf(parts: readonly LLMStreamPart[], type: 'text-delta' | 'reasoning-delta'): string {
  return parts.map((part) => (part.type === type ? part.text : '')).join('');
}

/** Checks that the input of each call is streamed from start to end, and equals the call's arguments. */
function expectInputs(parts: readonly LLMStreamPart[], calls: readonly ToolCall[]): void {
  const inputs = new Map<string, { text: string; isEnded: boolean }>();
  for (const part of parts) {
    if (!('callId' in part)) continue;
    const { type, callId } = part;
    const input = inputs.get(callId);
    if (type === 'call-input-start') {
      expectThat(input === undefined, `its stream starts the input of ${callId} twice`);
      const { name } = calls.find(({ id }) => id === callId) ?? {};
      expectSame(`the tool of call-input-start for ${callId}`, part.tool, name);
      inputs.set(callId, { text: '', isEnded: false });
      continue;
    }
    if (input === undefined || input.isEnded)
      throw new BrokenRule(
        `its stream has ${type} for ${callId}, whose input ${input ? 'has ended' : 'never started'}`,
      );
    if (type === 'call-input-delta') input.text += part.text;
    else input.isEnded = true;
  }
  for (const [callId, { text, isEnded }] of inputs) {
    expectThat(isEnded, `its stream starts the input of ${callId} but never ends it`);
    const args = calls.find(({ id }) => id === callId)?.arguments;
    // Some models send no arguments for a call without parameters.
    const parsed = typeof args === 'string' ? undefined : parsedJson(text || '{}');
    expectSame(`the streamed input of ${callId}`, parsed === undefined ? text : parsed, args);
  }
}

/** Names of capabilities that providers may lack; the guide on testing explains them. */
export const CAPABILITIES = [
  'streaming',
  'call-input',
  'any-reply',
  'raw-arguments',
  'long-integers',
  'parallel-calls',
  'call-ids',
  'waiting',
  'wire',
  'errors',
  'retry-after',
  'stream-errors',
  'origin',
  'usage',
  'cache-read-tokens',
  'cache-write-tokens',
  'reasoning-tokens',
  'reasoning',
  'provider-items',
  'sent',
  'images',
  'files',
  'result-errors',
  'merged-results',
  'options',
  'output-limit',
  'tool-choice',
  'parallel-choice',
  'response-format',
  'json-format',
] as const;

/** A capability that some providers lack. */
export type ProviderCapability = (typeof CAPABILITIES)[number];

/** A case before it is bound to a provider. */
export interface CaseDraft {
  /** The rule of the contract. */
  readonly rule: string;
  readonly needs?: readonly ProviderCapability[];
  /** Default: both. */
  readonly methods?: readonly Method[];
  run(bench: Bench): Promise<void>;
}

/** Cases by title: the behaviour of the provider, as the end of a sentence that starts with its name. */
export type CaseDrafts = Readonly<Record<string, CaseDraft>>;

function* piecesOf<Units extends Sliceable<Units>>(
  units: Units,
  places: readonly number[],
  begin = 0,
): Generator<Units> {
  let from = begin;
  for (const place of places) {
    if (place <= from) continue;
    yield units.slice(from, place);
    from = place;
  }
}
