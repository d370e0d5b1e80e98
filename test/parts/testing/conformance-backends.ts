import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { APICallError } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { type LLMProvider, ProviderError } from 'toolwright';
import { type AiSdkProvider, fromAiSdk } from 'toolwright/ai-sdk';
import { OfflineProvider } from 'toolwright/offline';
import { OpenAIProvider, type OpenAIProviderOptions } from 'toolwright/openai';
import {
  httpBackend,
  type ModelFailure,
  type ModelReply,
  type ModelTurn,
  type ProviderBackend,
  type ProviderCapability,
  ScriptedProvider,
  type ScriptedReply,
} from 'toolwright/testing';
import { chatCompletions, messages, responses } from './conformance-wires.js';

/** A provider of this package, in the form that the suite needs. */
export interface TestedProvider {
  readonly name: string;
  readonly backend: () => ProviderBackend | Promise<ProviderBackend>;
  readonly without: readonly ProviderCapability[];
}

const MODEL = 'test-model';

/** Chat Completions on loopback, with the provider or a wrapper of it. */
export function overChat(
  change: (provider: OpenAIProvider) => LLMProvider = (provider) => provider,
  options: OpenAIProviderOptions = {},
): Promise<ProviderBackend> {
  return httpBackend({
    options: { temperature: 0.5, seed: 7 },
    create: (url) => change(new OpenAIProvider({ baseURL: `${url}/v1`, maxRetries: 0, ...options })),
    encode: chatCompletions,
  });
}

function overResponses(): Promise<ProviderBackend> {
  return httpBackend({
    options: { temperature: 0.5, top_p: 0.9 },
    create: (url) => new OpenAIProvider({ baseURL: `${url}/v1`, maxRetries: 0, api: 'responses' }),
    encode: responses,
  });
}

function overAiSdk(): Promise<ProviderBackend> {
  return httpBackend({
    model: 'gpt-5',
    options: { providerOptions: { openai: { store: false, include: ['reasoning.encrypted_content'] } } },
    create: (url) => fromAiSdk(createOpenAI({ baseURL: `${url}/v1`, apiKey: 'k' }), { maxRetries: 0 }),
    encode: responses,
  });
}

/** Anthropic’s Messages on loopback, with the provider or a wrapper of it. */
export function overAnthropic(
  change: (provider: AiSdkProvider) => LLMProvider = (provider) => provider,
): Promise<ProviderBackend> {
  return httpBackend({
    model: 'claude-sonnet-4-5',
    options: { temperature: 0.5, stopSequences: ['END'] },
    create: (url) =>
      change(fromAiSdk(createAnthropic({ baseURL: `${url}/v1`, apiKey: 'k' }), { maxRetries: 0 })),
    encode: messages,
  });
}

/** A model whose replies come from a script. */
interface ScriptedModel {
  turn?: ModelTurn;
  readonly sent: unknown[];
}

function scriptedBackend(): ProviderBackend {
  const script: ScriptedModel = { sent: [] };
  const provider = new ScriptedProvider(Array.from({ length: 200 }, () => () => scriptedReply(script.turn)));
  return backendOf(provider, script);
}

async function scriptedReply(turn: ModelTurn | undefined): Promise<ScriptedReply | Error> {
  if (turn?.kind !== 'reply') return scriptedError(turn?.failure);
  const { text, calls, finishReason, usage } = turn.reply;
  const toolCalls = calls.map((call) => ({ ...call, arguments: JSON.parse(call.arguments) }));
  return first(turn.transmit([{ content: text, toolCalls, finishReason, usage }]));
}

function scriptedError({
  status = 400,
  message = 'nothing scripted',
  retryAfter,
}: Partial<ModelFailure> = {}) {
  const retryable = status === 408 || status === 429 || status >= 500;
  const pause = retryAfter === undefined ? {} : { retryAfterMs: retryAfter * 1_000 };
  return new ProviderError(message, { status, retryable, ...pause });
}

async function first<Unit>(units: AsyncIterable<readonly Unit[]>): Promise<Unit> {
  for await (const [unit] of units) if (unit !== undefined) return unit;
  throw new Error('nothing came');
}

function backendOf(provider: ProviderBackend['provider'], script: ScriptedModel): ProviderBackend {
  return {
    provider,
    model: MODEL,
    options: { temperature: 0.5 },
    sent: script.sent,
    script(turn) {
      script.turn = turn;
      return undefined;
    },
  };
}

/** The offline provider gets its reply as part of the prompt. */
function offlineBackend(): ProviderBackend {
  return {
    provider: new OfflineProvider(),
    model: MODEL,
    script(turn) {
      if (turn.kind !== 'reply') return undefined;
      const wanted = turn.reply.calls.map(({ arguments: args }) => {
        const { city, days } = JSON.parse(args);
        return `look up the weather of the city "${city}" for ${days} days`;
      });
      const news = `[System: async:work] ${turn.reply.text}`;
      const content = wanted.length > 0 ? `Please ${wanted.join('; and ')}.` : news;
      return { messages: [{ role: 'user', content }] };
    },
  };
}

type Generated = Awaited<ReturnType<MockLanguageModelV4['doGenerate']>>;

/** The mock model of the AI SDK, which respects the signal as real models do. */
function mockBackend(): ProviderBackend {
  const script: ScriptedModel = { sent: [] };
  const model = new MockLanguageModelV4({
    modelId: MODEL,
    doGenerate: (options) => generate(script, options),
    doStream: (options) => open(script, options),
  });
  return backendOf(fromAiSdk(model, { maxRetries: 0 }), script);
}

function replyTo(script: ScriptedModel, { abortSignal, headers, ...said }: LanguageModelV4CallOptions) {
  abortSignal?.throwIfAborted();
  script.sent.push(said);
  if (script.turn?.kind !== 'reply') throw refusal(script.turn?.failure);
  return script.turn;
}

function refusal({ status = 400, message = 'nothing scripted', retryAfter }: Partial<ModelFailure> = {}) {
  return new APICallError({
    message,
    url: 'http://127.0.0.1',
    requestBodyValues: {},
    statusCode: status,
    ...(retryAfter && { responseHeaders: { 'retry-after': String(retryAfter) } }),
  });
}

async function generate(script: ScriptedModel, options: LanguageModelV4CallOptions): Promise<Generated> {
  const { reply, transmit } = replyTo(script, options);
  return Promise.race([first(transmit([resultOf(reply)])), abortOf(options)]);
}

async function open(script: ScriptedModel, options: LanguageModelV4CallOptions) {
  const { reply, transmit } = replyTo(script, options);
  const parts = transmit(partsOf(reply))[Symbol.asyncIterator]();
  const aborted = abortOf(options);
  const stream = new ReadableStream<LanguageModelV4StreamPart>(
    {
      async pull(controller) {
        const { done, value = [] } = await Promise.race([parts.next(), aborted]);
        for (const part of value) controller.enqueue(part);
        if (done) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  return { stream };
}

function abortOf({ abortSignal }: LanguageModelV4CallOptions): Promise<never> {
  return new Promise((_, reject) => {
    abortSignal?.addEventListener('abort', () => reject(abortSignal.reason));
  });
}

const FINISH = {
  stop: 'stop',
  tool_calls: 'tool-calls',
  length: 'length',
  content_filter: 'content-filter',
} as const;

function endOf({ finishReason, usage }: ModelReply): Pick<Generated, 'finishReason' | 'usage'> {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage;
  return {
    finishReason: { unified: FINISH[finishReason], raw: finishReason },
    usage: {
      inputTokens: {
        total: inputTokens,
        noCache: inputTokens - cacheReadTokens - cacheWriteTokens,
        cacheRead: cacheReadTokens,
        cacheWrite: cacheWriteTokens,
      },
      outputTokens: { total: outputTokens, text: outputTokens - reasoningTokens, reasoning: reasoningTokens },
    },
  };
}

const signed = (sealed: string) => ({ mock: { signature: sealed } });

function resultOf(reply: ModelReply): Generated {
  const { text, calls, reasoning } = reply;
  return {
    content: [
      ...(reasoning
        ? [{ type: 'reasoning' as const, text: reasoning.text, providerMetadata: signed(reasoning.sealed) }]
        : []),
      ...(text === '' ? [] : [{ type: 'text' as const, text }]),
      ...calls.map(({ id, name, arguments: input }) => ({
        type: 'tool-call' as const,
        toolCallId: id,
        toolName: name,
        input,
      })),
    ],
    ...endOf(reply),
    response: { id: reply.id, modelId: reply.model },
    warnings: [],
  };
}

function partsOf(reply: ModelReply): LanguageModelV4StreamPart[] {
  const { text, calls, reasoning, deltas } = reply;
  const block = (type: 'text' | 'reasoning', said: string, end = {}): LanguageModelV4StreamPart[] => [
    { type: `${type}-start`, id: type },
    ...deltas(said).map((delta) => ({ type: `${type}-delta` as const, id: type, delta })),
    { type: `${type}-end`, id: type, ...end },
  ];
  return [
    { type: 'stream-start', warnings: [] },
    { type: 'response-metadata', id: reply.id, modelId: reply.model },
    ...(reasoning ? block('reasoning', reasoning.text, { providerMetadata: signed(reasoning.sealed) }) : []),
    ...(text === '' ? [] : block('text', text)),
    ...calls.flatMap(({ id, name, arguments: input }): LanguageModelV4StreamPart[] => [
      { type: 'tool-input-start', id, toolName: name },
      ...deltas(input).map((delta) => ({ type: 'tool-input-delta' as const, id, delta })),
      { type: 'tool-input-end', id },
      { type: 'tool-call', toolCallId: id, toolName: name, input },
    ]),
    reply.error === undefined
      ? { type: 'finish', ...endOf(reply) }
      : { type: 'error', error: { type: 'overloaded_error', message: reply.error } },
  ];
}

/** Each result is a separate message without a field for errors. */
const OPENAI_LACKS = ['result-errors', 'merged-results'] as const;

/** All providers of this package, with the features that they lack. */
export const PROVIDERS: readonly TestedProvider[] = [
  { name: 'OpenAIProvider (Chat Completions)', backend: () => overChat(), without: OPENAI_LACKS },
  { name: 'OpenAIProvider (Responses)', backend: overResponses, without: OPENAI_LACKS },
  { name: 'fromAiSdk (@ai-sdk/openai)', backend: overAiSdk, without: OPENAI_LACKS },
  {
    name: 'fromAiSdk (@ai-sdk/anthropic)',
    backend: () => overAnthropic(),
    // On its wire arguments are objects, reasoning is not counted, and JSON needs a schema.
    without: ['raw-arguments', 'long-integers', 'reasoning-tokens', 'json-format'],
  },
  { name: 'fromAiSdk (a mock model)', backend: mockBackend, without: ['parallel-choice'] },
  {
    name: 'ScriptedProvider',
    backend: scriptedBackend,
    without: [
      'call-input',
      'raw-arguments',
      'long-integers',
      'wire',
      'stream-errors',
      'origin',
      'reasoning',
      'provider-items',
      // It sends no requests.
      'sent',
    ],
  },
  {
    name: 'OfflineProvider',
    backend: offlineBackend,
    without: [
      'streaming',
      'any-reply',
      'raw-arguments',
      'call-ids',
      'waiting',
      'errors',
      'origin',
      'usage',
      'reasoning',
      'provider-items',
      'sent',
    ],
  },
];
