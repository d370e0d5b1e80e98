import type { JsonSchema } from '../../../core/contract/json-schema.js';
import type {
  LLMRequest,
  LLMResponse,
  LLMStreamPart,
  Message,
  ToolCall,
  ToolSchema,
} from '../../../core/contract/llm-provider.js';
import { BrokenRule, expectSame, expectThat } from './expectations.js';
import {
  type ModelFailure,
  ModelReply,
  ModelTurn,
  type ProviderBackend,
  Route,
  Sliceable,
} from './provider-backend.js';

/** The two ways to ask a provider. */
export type Method = 'chat' | 'stream';

/** A tool that models of the cases call. */
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
    return { model, options, messages: [QUESTION], tools: SAMPLE_TOOLS, ...draft };
  }
}

/** The response that a stream ends with, which all parts before it have to be. */
function responseIn(parts: readonly LLMStreamPart[]): LLMResponse {
  const last = parts.at(-1);
  expectThat(
    last?.type === 'response',
    `its stream ends with ${last?.type ?? 'nothing'}, and not with the response`,
  );
  const { response } = last as Extract<LLMStreamPart, { type: 'response' }>;
  expectThat(
    parts.filter(({ type }) => type === 'response').length === 1,
    'its stream has more than one response',
  );
  expectSame('the text of all text-delta', toldIn(parts, 'text-delta'), response.content);
  expectSame('the text of all reasoning-delta', toldIn(parts, 'reasoning-delta'), response.reasoning ?? '');
  const attachments = parts.flatMap((part) => (part.type === 'attachment' ? [part.attachment] : []));
  expectSame('all attachments', attachments, response.attachments ?? []);
  expectInputs(parts, response.toolCalls);
  return response;
}

function toldIn(parts: readonly LLMStreamPart[], type: 'text-delta' | 'reasoning-delta'): string {
  return parts.map((part) => (part.type === type ? part.text : '')).join('');
}

/** The input of a call is told from its start to its end, and is what the call has then. */
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
    expectThat(isEnded, `its stream starts the input of ${callId} and never ends it`);
    const args = calls.find(({ id }) => id === callId)?.arguments;
    expectSame(`the input told of ${callId}`, typeof args === 'string' ? text : readJson(text), args);
  }
}

function readJson(text: string): unknown {
  try {
    // Of a call without arguments some models say nothing.
    return JSON.parse(text || '{}');
  } catch {
    return text;
  }
}

/** What providers may lack, by the name to declare it with; the guide on testing says what each means. */
export const CAPABILITIES = [
  'streaming',
  'call-input',
  'any-reply',
  'raw-arguments',
  'parallel-calls',
  'call-ids',
  'waiting',
  'wire',
  'errors',
  'retry-after',
  'usage',
  'cache-read-tokens',
  'cache-write-tokens',
  'reasoning-tokens',
  'reasoning',
  'provider-items',
  'sent',
  'images',
  'files',
  'tool-choice',
  'parallel-choice',
  'response-format',
  'json-format',
] as const;

/** Something that not all providers have. */
export type ProviderCapability = (typeof CAPABILITIES)[number];

/** One case before it is written for a provider. */
export interface CaseDraft {
  /** What the provider does, as the end of a sentence that begins with its name. */
  readonly title: string;
  /** What the contract says. */
  readonly rule: string;
  readonly needs?: readonly ProviderCapability[];
  /** Default: both. */
  readonly methods?: readonly Method[];
  run(bench: Bench): Promise<void>;
}

/** A turn, and when the reply has come to where it stays. */
interface RoutedTurn {
  readonly turn: ModelTurn;
  readonly reached: Promise<void>;
}

/** A turn whose reply travels by a route. */
function routedTurn(reply: ModelReply, route: Route): RoutedTurn {
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
    await stop?.wait();
    yield* piecesOf(units, [end, ...places.filter((place) => place > end), length], end);
  }
  return { turn: { kind: 'reply', reply, transmit }, reached: reached.promise };
}

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
