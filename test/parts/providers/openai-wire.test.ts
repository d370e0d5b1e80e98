import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { LLMRequest, LLMStreamPart } from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import { collect } from './loopback-server.js';

const WEATHER = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
} as const;

function ask(text: string, more: Partial<LLMRequest> = {}): LLMRequest {
  return { model: 'gpt-test', messages: [{ role: 'user', content: text }], options: {}, ...more };
}

describe('OpenAIProvider against a mock server', () => {
  const mock = new LLMock({ port: 0, host: '127.0.0.1', chunkSize: 5 });
  let provider: OpenAIProvider;

  beforeAll(async () => {
    await mock.start();
    provider = new OpenAIProvider({ baseURL: `${mock.url}/v1`, apiKey: 'test-key', maxRetries: 0 });
    mock.onMessage('hello', {
      content: 'Hello there, friend.',
      usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 },
    });
    mock.onMessage('weather', {
      toolCalls: [
        { id: 'call_a', name: 'get_weather', arguments: '{"city":"Paris"}' },
        { id: 'call_b', name: 'get_weather', arguments: '{"city":"Rome"}' },
      ],
    });
    mock.onMessage('both', {
      content: 'Let me look.',
      toolCalls: [{ id: 'call_c', name: 'get_weather', arguments: '{"city":"Oslo"}' }],
    });
    mock.onMessage('cut', { content: 'Once upon', finishReason: 'length' });
    mock.onMessage('filtered', { content: 'No', finishReason: 'content_filter' });
  });
  beforeEach(() => mock.clearRequests());
  afterAll(() => mock.stop());

  test('returns the content, finish reason and usage of a text reply', async () => {
    expect(await provider.chat(ask('hello'))).toEqual({
      origin: { id: expect.stringMatching(/^chatcmpl-/), model: 'gpt-test' },
      content: 'Hello there, friend.',
      toolCalls: [],
      finishReason: 'stop',
      rawFinishReason: 'stop',
      usage: {
        inputTokens: 7,
        outputTokens: 5,
        totalTokens: 12,
        raw: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 },
      },
    });
  });

  test('returns calls in order with their arguments as objects', async () => {
    const { content, toolCalls, finishReason } = await provider.chat(ask('weather', { tools: [WEATHER] }));
    expect(content).toBe('');
    expect(finishReason).toBe('tool_calls');
    expect(toolCalls).toEqual([
      { id: 'call_a', name: 'get_weather', arguments: { city: 'Paris' } },
      { id: 'call_b', name: 'get_weather', arguments: { city: 'Rome' } },
    ]);
  });

  test('returns the text next to calls', async () => {
    const reply = await provider.chat(ask('both', { tools: [WEATHER] }));
    expect(reply.content).toBe('Let me look.');
    expect(reply.toolCalls).toHaveLength(1);
  });

  test.each([
    ['cut', 'length'],
    ['filtered', 'content_filter'],
  ])('returns the finish reason of a reply that was %s', async (text, reason) => {
    expect((await provider.chat(ask(text))).finishReason).toBe(reason);
    expect((await read(provider, ask(text))).response.finishReason).toBe(reason);
  });

  test('sends messages, tools and options unchanged', async () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'weather' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'x', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'x', content: 'rain' },
      { role: 'user', content: 'hello' },
    ] as const;
    const options = { max_tokens: 5, temperature: 0.5, tool_choice: 'auto', vendor_field: [1] };
    await provider.chat(ask('', { messages, tools: [WEATHER], options }));
    expect(mock.getLastRequest()?.body).toMatchObject({
      model: 'gpt-test',
      messages,
      tools: [WEATHER],
      ...options,
    });
    expect(mock.getLastRequest()?.headers).toHaveProperty('authorization');
  });

  test('omits tools from the request if there are none', async () => {
    await provider.chat(ask('hello', { tools: [] }));
    expect(mock.getLastRequest()?.body).not.toHaveProperty('tools');
  });

  test('streams the text in pieces and then the same response as chat', async () => {
    const { texts, response } = await read(provider, ask('hello'));
    expect(texts.length).toBeGreaterThan(1);
    expect(texts.join('')).toBe('Hello there, friend.');
    const origin = { id: expect.stringMatching(/^chatcmpl-/), model: 'gpt-test' };
    expect(response).toEqual({ ...(await provider.chat(ask('hello'))), origin });
  });

  test('assembles a streamed call from its pieces', async () => {
    const { texts, response } = await read(provider, ask('weather', { tools: [WEATHER] }));
    expect(texts).toEqual([]);
    expect(response.toolCalls).toEqual((await provider.chat(ask('weather', { tools: [WEATHER] }))).toolCalls);
    expect(response.finishReason).toBe('tool_calls');
  });
});

async function read(provider: OpenAIProvider, request: LLMRequest) {
  const parts: LLMStreamPart[] = await collect(provider.stream(request));
  const last = parts.pop();
  if (last?.type !== 'response') throw new Error('a stream ends with its response');
  return {
    texts: parts.flatMap((part) => (part.type === 'text-delta' ? [part.text] : [])),
    response: last.response,
  };
}
