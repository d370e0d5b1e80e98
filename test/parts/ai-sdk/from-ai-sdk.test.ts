import type {
  LanguageModelV4Content,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';
import { describe, expect, test } from '@jest/globals';
import { APICallError, wrapLanguageModel } from 'ai';
import { convertArrayToReadableStream, MockLanguageModelV3, MockLanguageModelV4 } from 'ai/test';
import fc from 'fast-check';
import {
  complete,
  InvalidOptionsError,
  type LLMRequest,
  type Logger,
  type Message,
  runToolLoop,
  streamToolLoop,
} from 'toolwright';
import { fromAiSdk } from 'toolwright/ai-sdk';
import { collect } from '../providers/loopback-server.js';
import { asMessage, weather } from './talk.js';

const USAGE: LanguageModelV4Usage = {
  inputTokens: { total: 11, noCache: 4, cacheRead: 5, cacheWrite: 2 },
  outputTokens: { total: 7, text: 4, reasoning: 3 },
  raw: { prompt: 11 },
};
const NO_USAGE: LanguageModelV4Usage = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};
const HELLO: LanguageModelV4Content = { type: 'text', text: 'Hello' };
const STOP = { unified: 'stop', raw: 'end' } as const;
const MODEL = 'mock-model-id';
const HI: Message = { role: 'user', content: 'Hi' };
const REQUEST: LLMRequest = { model: MODEL, messages: [HI], options: {} };
const SIGNED = { mock: { signature: 's+/=' } };

type Result = Awaited<ReturnType<MockLanguageModelV4['doGenerate']>>;

function result(content: LanguageModelV4Content[] = [HELLO], more: Partial<Result> = {}): Result {
  return { content, finishReason: STOP, usage: USAGE, warnings: [], ...more };
}

function modelOf(...results: Result[]): MockLanguageModelV4 {
  return new MockLanguageModelV4({ doGenerate: results.length === 0 ? result() : results });
}

function streaming(...parts: LanguageModelV4StreamPart[]): MockLanguageModelV4 {
  return new MockLanguageModelV4({ doStream: async () => ({ stream: convertArrayToReadableStream(parts) }) });
}

const FINISH: LanguageModelV4StreamPart = { type: 'finish', usage: USAGE, finishReason: STOP };

function faultsOf(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    if (error instanceof InvalidOptionsError) return error.message;
    throw error;
  }
  return 'nothing was thrown';
}

describe('fromAiSdk: arguments', () => {
  test('fromAiSdk refuses models of older specifications and names wrapLanguageModel as the fix', async () => {
    const old = [{ specificationVersion: 'v2', provider: 'mock', modelId: 'm' }, new MockLanguageModelV3()];
    const told = old.map((model) => faultsOf(() => fromAiSdk(model as never)));
    expect(told.map((text) => /specification (v\d) of (AI SDK \d)/.exec(text)?.slice(1))).toEqual([
      ['v2', 'AI SDK 5'],
      ['v3', 'AI SDK 6'],
    ]);
    expect(told.every((text) => text.includes('wrapLanguageModel({ model, middleware: [] })'))).toBe(true);
    const model = new MockLanguageModelV3({ doGenerate: result() as never });
    const wrapped = fromAiSdk(wrapLanguageModel({ model, middleware: [] }));
    expect(await wrapped.chat(REQUEST)).toMatchObject({ content: 'Hello', finishReason: 'stop' });
  });

  test('fromAiSdk refuses model names, values that are not models, and unknown options', () => {
    expect(faultsOf(() => fromAiSdk('anthropic/claude-sonnet-5' as never))).toContain(
      "gateway('anthropic/claude-sonnet-5')",
    );
    for (const given of [undefined, null, 5, {}, [], { specificationVersion: 'v9' }])
      expect(faultsOf(() => fromAiSdk(given as never))).toMatch(/a language model of AI SDK 7/);
    expect(faultsOf(() => fromAiSdk(modelOf(), { maxRetrys: 1 } as never))).toContain(
      'did you mean `maxRetries`?',
    );
  });

  test('fromAiSdk refuses runs that name a different model', async () => {
    const model = modelOf();
    const provider = fromAiSdk(model);
    await expect(provider.chat({ ...REQUEST, model: 'other' })).rejects.toThrow(
      "the run requests the model 'other', but fromAiSdk received mock-provider/mock-model-id",
    );
    expect(model.doGenerateCalls).toEqual([]);
    expect(provider.itemKey('other')).toBe('ai-sdk.mock-provider/mock-model-id');
  });

  test('fromAiSdk with a function selects the model that the run names', async () => {
    const models = ['small', 'large'].map(
      (modelId) => new MockLanguageModelV4({ modelId, doGenerate: result() }),
    );
    const provider = fromAiSdk((id) => models.find(({ modelId }) => modelId === id) as MockLanguageModelV4);
    await provider.chat({ ...REQUEST, model: 'large' });
    expect(models.map(({ doGenerateCalls }) => doGenerateCalls.length)).toEqual([0, 1]);
    expect(provider.itemKey('small')).toBe('ai-sdk.mock-provider/small');
    await expect(provider.chat({ ...REQUEST, model: 'none' })).rejects.toThrow(InvalidOptionsError);
  });

  test('fromAiSdk stores items under the itemKey option', async () => {
    const provider = fromAiSdk(modelOf(result([{ type: 'reasoning', text: 'Hm' }, HELLO])), {
      itemKey: 'family',
    });
    expect(Object.keys((await provider.chat(REQUEST)).providerItems ?? {})).toEqual(['family']);
    expect(provider.itemKey(MODEL)).toBe('family');
  });
});

describe('fromAiSdk: requests', () => {
  test('fromAiSdk sends messages, tools, choice, format, options and the signal', async () => {
    const model = modelOf();
    const { signal } = new AbortController();
    const schema = { type: 'object', properties: {} } as const;
    await fromAiSdk(model).chat({
      model: MODEL,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'developer', content: 'Be kind.' },
        HI,
        {
          role: 'assistant',
          content: null,
          tool_calls: [wireCall('c1', '{"city":"Oslo"}'), wireCall('c2', 'Oslo')],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'cold' },
        { role: 'tool', tool_call_id: 'c2', content: 'no object' },
      ],
      tools: [{ type: 'function', function: { name: 'weather', description: 'W', parameters: schema } }],
      toolChoice: { tool: 'weather' },
      responseFormat: { type: 'json', schema, name: 'answer' },
      options: { temperature: 0.5, maxOutputTokens: 9, reasoning: 'low', headers: { 'x-team': 'shop' } },
      signal,
    });
    expect(model.doGenerateCalls).toEqual([
      {
        prompt: [
          { role: 'system', content: 'Be brief.' },
          { role: 'system', content: 'Be kind.' },
          { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
          {
            role: 'assistant',
            content: [
              { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input: { city: 'Oslo' } },
              { type: 'tool-call', toolCallId: 'c2', toolName: 'weather', input: {} },
            ],
          },
          {
            role: 'tool',
            content: [resultPart('c1', 'cold'), resultPart('c2', 'no object')],
          },
        ],
        tools: [{ type: 'function', name: 'weather', description: 'W', inputSchema: schema }],
        toolChoice: { type: 'tool', toolName: 'weather' },
        responseFormat: { type: 'json', schema, name: 'answer' },
        temperature: 0.5,
        maxOutputTokens: 9,
        reasoning: 'low',
        headers: { 'x-team': 'shop' },
        abortSignal: signal,
      },
    ]);
  });

  test('fromAiSdk omits the tools that toolChoice does not allow', async () => {
    const model = modelOf();
    const tools = ['a', 'b', 'c'].map((name) => ({
      type: 'function' as const,
      function: { name, description: '', parameters: { type: 'object' as const } },
    }));
    await fromAiSdk(model).chat({ ...REQUEST, tools, toolChoice: { tools: ['c', 'a'], mode: 'required' } });
    const [sent] = model.doGenerateCalls;
    expect(sent?.tools?.map(({ name }) => name)).toEqual(['a', 'c']);
    expect(sent?.toolChoice).toEqual({ type: 'required' });
  });

  test('fromAiSdk replaces a tool with the provider tool of the same name', async () => {
    const model = modelOf();
    const bash = { type: 'provider', id: 'mock.bash', args: { version: 2 } } as const;
    const parameters = { type: 'object' } as const;
    const tools = ['bash', 'say'].map((name) => ({
      type: 'function' as const,
      function: { name, description: 'D', parameters },
    }));
    await fromAiSdk(model, { providerTools: { bash } }).chat({ ...REQUEST, tools });
    expect(model.doGenerateCalls[0]?.tools).toEqual([
      { type: 'function', name: 'say', description: 'D', inputSchema: parameters },
      { ...bash, name: 'bash' },
    ]);
  });

  test('fromAiSdk accepts images and files in the formats of this package, the AI SDK and Chat Completions', async () => {
    const model = new MockLanguageModelV4({
      provider: 'openai.chat',
      doGenerate: result(),
      supportedUrls: { 'image/*': [/^https:/] },
    });
    const bytes = new Uint8Array([1, 2]);
    const content = [
      { type: 'text', text: 'See', providerOptions: SIGNED },
      { type: 'text', content: 'this' },
      { type: 'text', text: '' },
      { type: 'image', data: 'aW1n', mimeType: 'image/png' },
      { type: 'image', image: bytes },
      { type: 'image_url', image_url: { url: 'data:image/gif;base64,R0lG' } },
      { type: 'image_url', image_url: { url: 'https://shop.test/a.png' } },
      { type: 'file', data: 'YQ==', mimeType: 'text/plain', filename: 'a.txt' },
      { type: 'file', data: { type: 'text', text: 'b' }, mediaType: 'text/plain' },
      { type: 'file', file: { filename: 'c.txt', file_data: 'data:text/plain,c%20c' } },
      { type: 'file', file: { file_id: 'file-1' } },
      { type: 'input_audio', input_audio: { data: 'bXAz', format: 'mp3' } },
    ];
    await fromAiSdk(model).chat({ ...REQUEST, messages: [{ role: 'user', content }] });
    const file = (data: unknown, mediaType: string, filename?: string) => ({
      type: 'file',
      data,
      mediaType,
      ...(filename && { filename }),
    });
    const inline = (data: unknown) => ({ type: 'data', data });
    expect(model.doGenerateCalls[0]?.prompt[0]?.content).toEqual([
      { type: 'text', text: 'See', providerOptions: SIGNED },
      { type: 'text', text: 'this' },
      file(inline('aW1n'), 'image/png'),
      file(inline(bytes), 'image'),
      file(inline('R0lG'), 'image/gif'),
      file({ type: 'url', url: new URL('https://shop.test/a.png') }, 'image'),
      file(inline('YQ=='), 'text/plain', 'a.txt'),
      file({ type: 'text', text: 'b' }, 'text/plain'),
      file(inline(Buffer.from('c c').toString('base64')), 'text/plain', 'c.txt'),
      file({ type: 'reference', reference: { openai: 'file-1' } }, 'application'),
      file(inline('bXAz'), 'audio/mpeg'),
    ]);
  });

  test.each([
    ['a part of an unknown type', { type: 'video' }, "a part of the type 'video'"],
    ['a part that is text', 'Hi', 'a part that is string'],
    ['a file without data', { type: 'file', mimeType: 'text/plain' }, "a part of the type 'file'"],
    [
      'a URL that the model does not support',
      { type: 'image_url', image_url: 'http://10.0.0.1/a' },
      'takes no image from http://10.0.0.1',
    ],
  ])('fromAiSdk refuses %s before it sends a request', async (_, part, problem) => {
    const model = modelOf();
    const asked = fromAiSdk(model).chat({ ...REQUEST, messages: [{ role: 'user', content: [part] }] });
    await expect(asked).rejects.toThrow(problem);
    expect(model.doGenerateCalls).toEqual([]);
  });

  test('fromAiSdk refuses unknown options and suggests the AI SDK names', async () => {
    const asked = fromAiSdk(modelOf()).chat({ ...REQUEST, options: { max_tokens: 5, stop: 'x', topp: 1 } });
    await expect(asked).rejects.toThrow(/maxOutputTokens: …[\s\S]*stopSequences[\s\S]*did you mean `topP`/);
  });

  test('fromAiSdk sets parallelToolCalls in the option of the provider, or warns if there is none', async () => {
    const sent = async (provider: string, options = {}, { modelId = MODEL } = {}) => {
      const model = new MockLanguageModelV4({ provider, modelId, doGenerate: result() });
      const logger = new Notes();
      await fromAiSdk(model, { logger }).chat({
        ...REQUEST,
        model: modelId,
        parallelToolCalls: false,
        options,
      });
      return [model.doGenerateCalls[0]?.providerOptions, logger.notes.length];
    };
    expect(await sent('openai.responses')).toEqual([{ openai: { parallelToolCalls: false } }, 0]);
    const given = { providerOptions: { anthropic: { effort: 'low' } } };
    expect(await sent('anthropic.messages', given)).toEqual([
      { anthropic: { disableParallelToolUse: true, effort: 'low' } },
      0,
    ]);
    const claude = { modelId: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0' };
    expect(await sent('amazon-bedrock', {}, claude)).toEqual([
      { anthropic: { disableParallelToolUse: true } },
      0,
    ]);
    expect(await sent('amazon-bedrock', {}, { modelId: 'amazon.nova-pro-v1:0' })).toEqual([undefined, 1]);
    expect(await sent('google.generative-ai')).toEqual([undefined, 1]);
  });
});

describe('fromAiSdk: requests that continue a conversation', () => {
  const call = (id: string) =>
    ({ id, type: 'function', function: { name: 'weather', arguments: '{}' } }) as const;
  const calls: Message = { role: 'assistant', content: null, tool_calls: [call('c1'), call('c2')] };
  const answer = (id: string, content: string): Message => ({ role: 'tool', tool_call_id: id, content });

  /** The prompts of the same requests, each sent by a provider and with messages that were not used before. */
  async function separatePrompts(histories: readonly (readonly Message[])[]) {
    const model = modelOf();
    for (const messages of histories)
      await fromAiSdk(model).chat({ ...REQUEST, messages: structuredClone(messages) });
    return model.doGenerateCalls.map(({ prompt }) => prompt);
  }

  test('fromAiSdk converts each message once, although every request contains all earlier messages', async () => {
    let conversions = 0;
    const reply: Message = {
      role: 'assistant',
      content: 'Hello',
      get providerItems() {
        conversions += 1;
        return undefined;
      },
    };
    const provider = fromAiSdk(modelOf());
    const messages: Message[] = [{ ...HI }, reply];
    for (let turn = 0; turn < 3; turn += 1) {
      messages.push({ ...HI });
      await provider.chat({ ...REQUEST, messages });
    }
    expect(conversions).toBe(1);
  });

  test('fromAiSdk sends a changed history as if no request had preceded it', async () => {
    const hi = { ...HI } as { role: 'user'; content: string };
    const one = answer('c1', 'sunny');
    const histories: Message[][] = [
      [hi, calls, one],
      [hi, calls, one, answer('c2', 'rainy')],
      [hi, calls, one, answer('c2', 'windy'), HI],
      [hi, HI],
      [hi, { role: 'assistant', content: '' }, HI],
      [hi],
    ];
    const model = modelOf();
    const provider = fromAiSdk(model);
    for (const messages of histories) await provider.chat({ ...REQUEST, messages });
    expect(model.doGenerateCalls.map(({ prompt }) => prompt)).toEqual(await separatePrompts(histories));
    hi.content = 'Edited';
    await provider.chat({ ...REQUEST, messages: [hi, HI] });
    expect(model.doGenerateCalls.at(-1)?.prompt[0]?.content).toEqual([{ type: 'text', text: 'Edited' }]);
  });

  test('fromAiSdk converts the same history separately for concurrent requests and for each model', async () => {
    const models = [
      modelOf(),
      new MockLanguageModelV4({ modelId: MODEL, provider: 'other', doGenerate: result() }),
    ];
    const messages = [{ ...HI }, calls, answer('c1', 'sunny'), answer('c2', 'rainy')];
    const providers = models.map((model) => fromAiSdk(model));
    await Promise.all(
      providers.flatMap((provider) => [1, 2].map(() => provider.chat({ ...REQUEST, messages }))),
    );
    const [[expected] = []] = [await separatePrompts([messages])];
    for (const { doGenerateCalls } of models)
      expect(doGenerateCalls.map(({ prompt }) => prompt)).toEqual([expected, expected]);
  });
});

describe('fromAiSdk: replies', () => {
  test('fromAiSdk returns text, calls, finish reason and usage, and stores no items if none are needed', async () => {
    const call = {
      type: 'tool-call',
      toolCallId: 'c1',
      toolName: 'weather',
      input: '{"city":"Oslo"}',
    } as const;
    const { raw, ...reply } = { raw: 0, ...(await fromAiSdk(modelOf(result([HELLO, call]))).chat(REQUEST)) };
    expect(reply).toEqual({
      content: 'Hello',
      toolCalls: [{ id: 'c1', name: 'weather', arguments: { city: 'Oslo' } }],
      finishReason: 'tool_calls',
      rawFinishReason: 'end',
      usage: {
        inputTokens: 11,
        outputTokens: 7,
        totalTokens: 18,
        cacheReadTokens: 5,
        cacheWriteTokens: 2,
        reasoningTokens: 3,
        raw: { prompt: 11 },
      },
    });
    const silent = await fromAiSdk(modelOf(result([], { usage: NO_USAGE }))).chat(REQUEST);
    expect(silent).toEqual({ content: '', toolCalls: [], finishReason: 'stop', rawFinishReason: 'end' });
  });

  test.each([
    ['stop', 'stop', 'tool_calls'],
    ['tool-calls', 'stop', 'tool_calls'],
    ['length', 'length', 'length'],
    ['interrupted', 'length', 'length'],
    ['content-filter', 'content_filter', 'content_filter'],
    ['error', 'other', 'length'],
    ['other', 'other', 'tool_calls'],
  ] as const)(
    'fromAiSdk maps the finish reason %s to %s, and to %s if there are calls',
    async (unified, alone, withCalls) => {
      const finishReason = { unified, raw: undefined };
      const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input: '' } as const;
      const provider = fromAiSdk(
        modelOf(result([HELLO], { finishReason }), result([call], { finishReason })),
      );
      const [first, second] = [await provider.chat(REQUEST), await provider.chat(REQUEST)];
      expect([first.finishReason, second.finishReason]).toEqual([alone, withCalls]);
      expect(first).not.toHaveProperty('rawFinishReason');
    },
  );

  test.each(['', 'null', '[1]', '{"city": "Os', '{"id": 12345678901234567890}'])(
    'fromAiSdk passes the arguments %s on as text',
    async (input) => {
      const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input } as const;
      const reply = await fromAiSdk(modelOf(result([call]))).chat(REQUEST);
      expect(reply.toolCalls[0]?.arguments).toBe(input);
    },
  );

  test('fromAiSdk stores calls that the provider executed itself and does not return them as calls', async () => {
    const content: LanguageModelV4Content[] = [
      { type: 'tool-call', toolCallId: 's1', toolName: 'search', input: '{"q":"x"}', providerExecuted: true },
      {
        type: 'tool-result',
        toolCallId: 's1',
        toolName: 'search',
        result: { hits: 1 },
        providerMetadata: SIGNED,
      },
      { type: 'source', sourceType: 'url', id: 'u1', url: 'https://shop.test' },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array([104, 105]) } },
      {
        type: 'reasoning-file',
        mediaType: 'image/png',
        data: { type: 'url', url: new URL('https://shop.test/a') },
      },
      { type: 'custom', kind: 'mock.compaction', providerMetadata: SIGNED },
      HELLO,
    ];
    const model = modelOf(result(content), result());
    const provider = fromAiSdk(model);
    const reply = await provider.chat(REQUEST);
    expect([reply.toolCalls, reply.finishReason]).toEqual([[], 'stop']);
    await provider.chat({ ...REQUEST, messages: [HI, asMessage(reply), HI] });
    expect(model.doGenerateCalls[1]?.prompt[1]?.content).toEqual([
      { type: 'tool-call', toolCallId: 's1', toolName: 'search', input: { q: 'x' }, providerExecuted: true },
      {
        type: 'tool-result',
        toolCallId: 's1',
        toolName: 'search',
        output: { type: 'json', value: { hits: 1 } },
        providerOptions: SIGNED,
      },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } },
      {
        type: 'reasoning-file',
        mediaType: 'image/png',
        data: { type: 'url', url: new URL('https://shop.test/a') },
      },
      { type: 'custom', kind: 'mock.compaction', providerOptions: SIGNED },
      HELLO,
    ]);
  });

  test('fromAiSdk sends any reply back with the parts that it received', async () => {
    const metadata = fc.option(fc.record({ mock: fc.dictionary(fc.string(), fc.string()) }), {
      nil: undefined,
    });
    const part = fc.oneof(
      fc.record({
        type: fc.constantFrom('text', 'reasoning'),
        text: fc.string(),
        providerMetadata: metadata,
      }),
      fc.record({
        type: fc.constant('tool-call'),
        toolCallId: fc.uuid(),
        toolName: fc.constant('weather'),
        input: fc.dictionary(fc.string(), fc.string()).map((input) => JSON.stringify(input)),
        providerMetadata: metadata,
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part), async (parts) => {
        const model = modelOf(result(parts as LanguageModelV4Content[]), result());
        const provider = fromAiSdk(model);
        const reply = await provider.chat(REQUEST);
        await provider.chat({ ...REQUEST, messages: [HI, asMessage(reply), HI] });
        const sent = parts.flatMap(({ providerMetadata, ...said }) => {
          if (said.type === 'text' && 'text' in said && said.text === '' && !providerMetadata) return [];
          const input = 'input' in said ? { input: JSON.parse(said.input) } : {};
          return [{ ...said, ...input, ...(providerMetadata && { providerOptions: providerMetadata }) }];
        });
        const [, second] = model.doGenerateCalls[1]?.prompt ?? [];
        expect(second?.role === 'assistant' ? second.content : []).toEqual(sent);
      }),
    );
  });

  test('fromAiSdk reads a text part without text as empty and does not send it back', async () => {
    const parts = [{ type: 'text' }, { type: 'text', text: 'Hello' }] as unknown as LanguageModelV4Content[];
    const model = modelOf(result(parts), result());
    const provider = fromAiSdk(model);
    const reply = await provider.chat(REQUEST);
    expect(reply).toMatchObject({ content: 'Hello' });
    await provider.chat({ ...REQUEST, messages: [HI, asMessage(reply), HI] });
    expect(model.doGenerateCalls[1]?.prompt[1]?.content).toEqual([{ type: 'text', text: 'Hello' }]);
  });
});

describe('fromAiSdk: streams', () => {
  test('fromAiSdk separates blocks of reasoning by a blank line, in the stream and in the final reply', async () => {
    const model = streaming(
      { type: 'stream-start', warnings: [] },
      ...['1', '2', '3'].flatMap((id): LanguageModelV4StreamPart[] => [
        { type: 'reasoning-start', id },
        { type: 'reasoning-delta', id, delta: id === '2' ? '' : `thought ` },
        { type: 'reasoning-delta', id, delta: id === '2' ? '' : id, providerMetadata: SIGNED },
        { type: 'reasoning-end', id },
      ]),
      { type: 'tool-input-start', id: 's1', toolName: 'search', providerExecuted: true },
      { type: 'tool-input-delta', id: 's1', delta: '{}' },
      { type: 'tool-input-end', id: 's1' },
      // Another block with an id that was already used.
      ...['Hel', 'lo'].flatMap((delta): LanguageModelV4StreamPart[] => [
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta },
        { type: 'text-end', id: '1', providerMetadata: SIGNED },
      ]),
      FINISH,
    );
    const provider = fromAiSdk(model);
    const parts = await collect(provider.stream(REQUEST));
    expect(parts.slice(0, -1)).toEqual([
      { type: 'reasoning-delta', text: 'thought ' },
      { type: 'reasoning-delta', text: '1' },
      { type: 'reasoning-delta', text: '\n\nthought ' },
      { type: 'reasoning-delta', text: '3' },
      { type: 'text-delta', text: 'Hel' },
      { type: 'text-delta', text: 'lo' },
    ]);
    const providerOptions = SIGNED;
    expect(parts.at(-1)).toMatchObject({
      response: {
        content: 'Hello',
        reasoning: 'thought 1\n\nthought 3',
        finishReason: 'stop',
        providerItems: {
          [provider.itemKey(MODEL)]: {
            parts: [
              { type: 'reasoning', text: 'thought 1', providerOptions },
              { type: 'reasoning', text: '', providerOptions },
              { type: 'reasoning', text: 'thought 3', providerOptions },
              { type: 'text', text: 'Hel', providerOptions },
              { type: 'text', text: 'lo', providerOptions },
            ],
          },
        },
      },
    });
  });

  test('fromAiSdk throws the error that a stream reports, and throws if the stream ends too early', async () => {
    const error = new Error('overloaded');
    await expect(
      collect(fromAiSdk(streaming({ type: 'error', error })).stream(REQUEST)),
    ).rejects.toMatchObject({
      message: 'mock-provider/mock-model-id: overloaded',
      retryable: false,
      cause: error,
    });
    await expect(collect(fromAiSdk(streaming()).stream(REQUEST))).rejects.toThrow(
      'mock-provider/mock-model-id: the stream ended before the reply was complete',
    );
  });

  test('fromAiSdk cancels the stream when the consumer stops reading', async () => {
    const cancelled = Promise.withResolvers<void>();
    const stream = new ReadableStream<LanguageModelV4StreamPart>({
      pull: (controller) => controller.enqueue({ type: 'text-delta', id: '1', delta: 'a' }),
      cancel: () => cancelled.resolve(),
    });
    const provider = fromAiSdk(new MockLanguageModelV4({ doStream: { stream } }));
    for await (const part of provider.stream(REQUEST)) if (part.type === 'text-delta') break;
    await cancelled.promise;
  });

  test('fromAiSdk throws instead of returning a reply when the stream was aborted', async () => {
    const controller = new AbortController();
    const model = new MockLanguageModelV4({
      doStream: async () => {
        controller.abort(new Error('enough'));
        return { stream: convertArrayToReadableStream([FINISH]) };
      },
    });
    const parts = collect(fromAiSdk(model).stream({ ...REQUEST, signal: controller.signal }));
    await expect(parts).rejects.toThrow('enough');
  });
});

class Notes implements Logger {
  readonly notes: string[] = [];
  debug() {}
  info() {}
  error() {}
  warn(message: string) {
    this.notes.push(message);
  }
}

describe('fromAiSdk: warnings and errors', () => {
  test('fromAiSdk logs each warning once', async () => {
    const logger = new Notes();
    const warnings: Result['warnings'] = [
      { type: 'unsupported', feature: 'topK', details: 'not with thinking' },
      { type: 'compatibility', feature: 'tools' },
      { type: 'deprecated', setting: 'user', message: 'use safetyId' },
      { type: 'other', message: 'something' },
    ];
    const provider = fromAiSdk(modelOf(result([HELLO], { warnings }), result([HELLO], { warnings })), {
      logger,
    });
    await provider.chat(REQUEST);
    await provider.chat(REQUEST);
    const where = 'fromAiSdk (mock-provider/mock-model-id)';
    const fix = '(remove it, or use another model)';
    expect(logger.notes).toEqual([
      `${where}: it does not support topK: not with thinking ${fix}`,
      `${where}: it supports only a part of tools ${fix}`,
      `${where}: user is deprecated: use safetyId ${fix}`,
      `${where}: something ${fix}`,
    ]);
  });

  test('fromAiSdk retries a request after a temporary failure and waits as long as the server asks', async () => {
    const failures = [503, 429];
    const doGenerate = async (): Promise<Result> => {
      const statusCode = failures.shift();
      if (statusCode === undefined) return result();
      throw failure(statusCode);
    };
    expect(await fromAiSdk(new MockLanguageModelV4({ doGenerate })).chat(REQUEST)).toMatchObject({
      content: 'Hello',
    });
    failures.push(503, 503);
    const impatient = fromAiSdk(new MockLanguageModelV4({ doGenerate }), { maxRetries: 1 });
    await expect(impatient.chat(REQUEST)).rejects.toMatchObject({
      name: 'ProviderError',
      message: '503 from mock-provider/mock-model-id: failed with 503',
      status: 503,
      retryable: true,
      retryAfterMs: 1,
    });
    failures.splice(0, 1, 400);
    await expect(impatient.chat(REQUEST)).rejects.toMatchObject({ status: 400, retryable: false });
    expect(failures).toEqual([]);
  });

  test('the retries of fromAiSdk count as retries of the run', async () => {
    let requests = 0;
    const doGenerate = async (): Promise<Result> => {
      requests += 1;
      throw failure(503);
    };
    const provider = fromAiSdk(new MockLanguageModelV4({ doGenerate }));
    expect((await runToolLoop({ provider, model: MODEL }, REQUEST.messages)).status).toBe('failed');
    expect(requests).toBe(3);
  });

  test('fromAiSdk does not wait for a retry after an abort', async () => {
    const controller = new AbortController();
    const provider = fromAiSdk(
      new MockLanguageModelV4({
        doStream: async () => {
          setImmediate(() => controller.abort());
          throw failure(503, '60000');
        },
      }),
    );
    const parts = collect(provider.stream({ ...REQUEST, signal: controller.signal }));
    await expect(parts).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe('fromAiSdk in runs', () => {
  const call = {
    type: 'tool-call',
    toolCallId: 'c1',
    toolName: 'weather',
    input: '{"city":"Oslo"}',
  } as const;

  test('fromAiSdk works with runToolLoop', async () => {
    const model = modelOf(result([call]), result());
    const run = await runToolLoop({ provider: fromAiSdk(model), model: MODEL, tools: [weather] }, [HI]);
    expect(run).toMatchObject({ status: 'completed', content: 'Hello' });
    expect(model.doGenerateCalls[1]?.prompt.at(-1)).toEqual({
      role: 'tool',
      content: [resultPart('c1', 'Oslo: -3 degrees')],
    });
  });

  test('fromAiSdk works with streamToolLoop and complete', async () => {
    const model = new MockLanguageModelV4({
      doGenerate: result(),
      doStream: async () => ({
        stream: convertArrayToReadableStream([
          { type: 'text-start', id: '1' },
          { type: 'text-delta', id: '1', delta: 'Hello' },
          { type: 'text-end', id: '1' },
          FINISH,
        ]),
      }),
    });
    const provider = fromAiSdk(model);
    const events = await collect(streamToolLoop({ provider, model: MODEL }, [HI]));
    expect(events.flatMap((event) => (event.type === 'text-delta' ? [event.text] : []))).toEqual(['Hello']);
    const { content } = await complete({ provider, model: MODEL }, { messages: [HI] });
    expect(content).toEqual([{ type: 'text', content: 'Hello' }]);
  });
});

function failure(statusCode: number, pause = '1'): APICallError {
  return new APICallError({
    message: `failed with ${statusCode}`,
    url: 'http://127.0.0.1',
    requestBodyValues: {},
    statusCode,
    responseHeaders: { 'retry-after-ms': pause },
  });
}

function wireCall(id: string, args: string) {
  return { id, type: 'function' as const, function: { name: 'weather', arguments: args } };
}

function resultPart(toolCallId: string, value: string) {
  return { type: 'tool-result', toolCallId, toolName: 'weather', output: { type: 'text', value } };
}

const ATTACHED: LanguageModelV4Content[] = [
  { type: 'source', sourceType: 'url', id: 's1', url: 'https://example.org/a', title: 'A' },
  { type: 'source', sourceType: 'document', id: 's2', title: 'Terms', mediaType: 'application/pdf' },
  { type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array([1, 2, 3]) } },
  { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://example.org/i.png') } },
];
const ATTACHMENTS = [
  { type: 'page', url: 'https://example.org/a', title: 'A' },
  { type: 'document', title: 'Terms', mimeType: 'application/pdf' },
  { type: 'file', url: 'data:image/png;base64,AQID', mimeType: 'image/png' },
  { type: 'file', url: 'https://example.org/i.png', mimeType: 'image/png' },
];

describe('fromAiSdk with sources and files in a reply', () => {
  test('fromAiSdk returns sources and files as attachments', async () => {
    const reply = await fromAiSdk(modelOf(result([...ATTACHED, HELLO]))).chat(REQUEST);
    expect(reply).toMatchObject({ content: 'Hello', attachments: ATTACHMENTS });
  });

  test('fromAiSdk streams sources and files as they arrive, and so does a run', async () => {
    const parts = await collect(
      fromAiSdk(streaming(...(ATTACHED as LanguageModelV4StreamPart[]), FINISH)).stream(REQUEST),
    );
    expect(parts.flatMap((part) => (part.type === 'attachment' ? [part.attachment] : []))).toEqual(
      ATTACHMENTS,
    );
    expect(parts.at(-1)).toMatchObject({ response: { attachments: ATTACHMENTS } });
  });
});
