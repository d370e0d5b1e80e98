import { describe, expect, test } from '@jest/globals';
import { OpenAIProvider } from 'toolwright/openai';
import { collect, completion, events, json, LoopbackServer } from './loopback-server.js';
import { customCall, eventsOf, functionCall, message, responseOf } from './responses-bodies.js';

const ASKED = { model: 'm', messages: [{ role: 'user' as const, content: 'Hello' }], tools: [], options: {} };

function provider(api: 'chat' | 'responses', baseURL: string): OpenAIProvider {
  return new OpenAIProvider({ api, baseURL, apiKey: 'k', maxRetries: 0 });
}

describe('OpenAIProvider', () => {
  const searches = { ...customCall('xs_call_7', '{"query":"cats"}'), name: 'x_keyword_search' };
  const body = responseOf([searches, message('Cats are popular.'), functionCall('call_1', '{"a":1}')]);

  test.each([
    ['chat', json(body)],
    ['stream', events(eventsOf(body))],
  ])('does not return calls that xAI executed itself, but sends them back (%s)', async (method, answer) => {
    await using server = await LoopbackServer.start(answer);
    const model = provider('responses', server.baseURL);
    const parts = method === 'chat' ? [] : await collect(model.stream(ASKED));
    const last = parts.at(-1);
    const response = last?.type === 'response' ? last.response : await model.chat(ASKED);
    expect(response.toolCalls.map(({ id }) => id)).toEqual(['call_1']);
    expect(parts.filter(({ type }) => type === 'call-input-start')).toHaveLength(method === 'chat' ? 0 : 1);
    const { content, toolCalls, providerItems } = response;
    const calls = toolCalls.map(({ id, name }) => ({
      id,
      type: 'function' as const,
      function: { name, arguments: '{"a":1}' },
    }));
    const history = [
      ...ASKED.messages,
      { role: 'assistant' as const, content, tool_calls: calls, providerItems },
      { role: 'tool' as const, tool_call_id: 'call_1', content: 'done' },
    ];
    await model.chat({ ...ASKED, messages: history }).catch(() => undefined);
    expect(server.requests.at(-1)?.body.input).toContainEqual(searches);
  });

  test('names a search call tool_search if no offered tool searches', async () => {
    const item = {
      type: 'tool_search_call',
      execution: 'client',
      id: 'ts_1',
      call_id: 'call_1',
      status: 'completed',
      arguments: { query: 'orders' },
    };
    await using server = await LoopbackServer.start(json(responseOf([item])));
    const { toolCalls } = await provider('responses', server.baseURL).chat(ASKED);
    expect(toolCalls).toEqual([{ id: 'call_1', name: 'tool_search', arguments: { query: 'orders' } }]);
  });

  test('sends the thought signature of a function back with its call', async () => {
    const called = { name: 'find', arguments: '{}', thought_signature: 'sig' };
    const reply = completion(
      { content: null, tool_calls: [{ id: 'call_1', type: 'function', function: called }] },
      { finish_reason: 'tool_calls' },
    );
    await using server = await LoopbackServer.start(json(reply));
    const model = provider('chat', server.baseURL);
    const [call] = (await model.chat(ASKED)).toolCalls;
    const history = [
      ...ASKED.messages,
      {
        role: 'assistant' as const,
        content: null,
        tool_calls: [
          {
            id: 'call_1',
            type: 'function' as const,
            function: { name: 'find', arguments: '{}' },
            providerItems: call?.providerItems,
          },
        ],
      },
      { role: 'tool' as const, tool_call_id: 'call_1', content: 'found' },
    ];
    await model.chat({ ...ASKED, messages: history });
    expect(server.requests.at(-1)?.body.messages).toMatchObject([
      {},
      { tool_calls: [{ id: 'call_1', function: called }] },
      {},
    ]);
  });

  const parts = [
    { type: 'text', text: 'What is this?' },
    { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
    { type: 'file', data: 'YQ==', mimeType: 'text/plain', filename: 'a.txt' },
  ];

  test.each([
    [
      'chat' as const,
      json(completion({ content: 'A pixel.' })),
      [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
        { type: 'file', file: { filename: 'a.txt', file_data: 'data:text/plain;base64,YQ==' } },
      ],
    ],
    [
      'responses' as const,
      json(responseOf([message('A pixel.')])),
      [
        { type: 'input_text', text: 'What is this?' },
        { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'auto' },
        { type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,YQ==' },
      ],
    ],
  ])(
    'sends images and files of users in the format of the API %s, and rejects unknown parts',
    async (api, answer, wire) => {
      await using server = await LoopbackServer.start(answer);
      const model = provider(api, server.baseURL);
      await model.chat({ ...ASKED, messages: [{ role: 'user', content: parts }] });
      const { messages, input } = server.requests[0]?.body ?? {};
      expect((api === 'chat' ? messages : input) as unknown[]).toMatchObject([
        { role: 'user', content: wire },
      ]);
      for (const part of [{ type: 'hologram', data: '' }, { type: 'image', data: 'a' }, 'text']) {
        const wrong = model.chat({ ...ASKED, messages: [{ role: 'user', content: [part] }] });
        await expect(wrong).rejects.toThrow(/A user message has .*, which cannot be sent/);
      }
      expect(server.requests).toHaveLength(1);
    },
  );
});
