import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type LLMRequest, type LLMResponse, type Message, ProviderError } from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import { collect, events, json, LoopbackServer } from './loopback-server.js';
import { exchange, historyAfter, textOf } from './openai-dialogue.js';
import { customCall, eventsOf, functionCall, message, reasoning, responseOf } from './responses-bodies.js';

type Fields = Readonly<Record<string, unknown>>;

const METHODS = ['chat', 'stream'] as const;
const KEY = 'openai.responses/gpt-5';
const LOOK = {
  type: 'function',
  function: { name: 'look', description: 'Looks', parameters: { type: 'object' } },
} as const;
const SEARCH = {
  id: 'ws_1',
  type: 'web_search_call',
  status: 'completed',
  action: { type: 'search', query: 'x' },
};
/** A schema that is already strict. */
const STRICT = {
  type: 'object',
  properties: { at: { type: 'integer' } },
  required: ['at'],
  additionalProperties: false,
};
const PIXEL = 'iVBORw0KGgo=';

async function ask(response: Fields, method: 'chat' | 'stream', more: Partial<LLMRequest> = {}) {
  const answer = method === 'chat' ? json(response) : events(eventsOf(response), '');
  return exchange(answer, { method, model: 'gpt-5', ...more }, { api: 'responses' });
}

async function bodyOf(more: Partial<LLMRequest>): Promise<Fields> {
  return (await ask(responseOf([message('ok')]), 'chat', more)).body;
}

async function failureOf(response: Fields, method: 'chat' | 'stream'): Promise<unknown> {
  return ask(response, method).then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe('a request of OpenAIProvider to Responses', () => {
  test('disables storage, separates the instructions and sets strict for every tool', async () => {
    const strict = { ...LOOK, function: { ...LOOK.function, name: 'see', strict: true } };
    const messages: Message[] = [
      { role: 'system', content: 'Be brief.' },
      { role: 'developer', content: 'Be kind.' },
      { role: 'user', content: 'Hi' },
      { role: 'system', content: 'It is Monday.' },
    ];
    expect(await bodyOf({ messages, tools: [LOOK, strict] })).toEqual({
      model: 'gpt-5',
      instructions: 'Be brief.\n\nBe kind.',
      input: [
        { type: 'message', role: 'user', content: 'Hi' },
        { type: 'message', role: 'system', content: 'It is Monday.' },
      ],
      include: ['reasoning.encrypted_content'],
      store: false,
      tools: [
        {
          type: 'function',
          name: 'look',
          description: 'Looks',
          parameters: { type: 'object' },
          strict: false,
        },
        {
          type: 'function',
          name: 'see',
          description: 'Looks',
          parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
          strict: true,
        },
      ],
    });
  });

  test.each([
    ['auto', 'auto'],
    [{ tool: 'look' }, { type: 'function', name: 'look' }],
    [
      { tools: ['look'] },
      { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'look' }] },
    ],
  ] as const)('contains the tool choice %j', async (toolChoice, wire) => {
    const body = await bodyOf({ toolChoice, tools: [LOOK], parallelToolCalls: false });
    expect(body).toMatchObject({ tool_choice: wire, parallel_tool_calls: false });
    expect(await bodyOf({ toolChoice })).not.toHaveProperty('tool_choice');
  });

  test.each([
    [{ type: 'text' }, { type: 'text' }],
    [{ type: 'json' }, { type: 'json_object' }],
    [
      { type: 'json', schema: { type: 'object' }, name: 'order' },
      { type: 'json_schema', name: 'order', schema: { type: 'object' }, strict: false },
    ],
    [
      { type: 'json', schema: STRICT },
      { type: 'json_schema', name: 'reply', schema: STRICT, strict: true },
    ],
  ] as const)('contains the response format %j', async (responseFormat, format) => {
    expect((await bodyOf({ responseFormat })).text).toEqual({ format });
  });

  test('merges tools, includes and text of the options, whose other fields win', async () => {
    const options = {
      tools: [{ type: 'web_search' }],
      include: ['web_search_call.action.sources'],
      tool_choice: 'required',
      text: { verbosity: 'low' },
      instructions: 'Mine.',
      reasoning: { effort: 'low', summary: 'auto' },
      stream: true,
    };
    const body = await bodyOf({
      tools: [LOOK],
      toolChoice: 'auto',
      responseFormat: { type: 'json' },
      messages: [{ role: 'system', content: 'Be brief.' }],
      options,
    });
    expect(body).toMatchObject({
      tools: [{ type: 'web_search' }, { name: 'look' }],
      include: ['web_search_call.action.sources', 'reasoning.encrypted_content'],
      tool_choice: 'required',
      text: { verbosity: 'low', format: { type: 'json_object' } },
      instructions: 'Mine.',
      input: [{ role: 'system', content: 'Be brief.' }],
      reasoning: { effort: 'low', summary: 'auto' },
    });
    expect(body).not.toHaveProperty('stream');
  });

  test('translates the parts of a user message', async () => {
    const content = [
      { type: 'text', text: 'Look' },
      { type: 'image_url', image_url: { url: 'https://a.example/b.png', detail: 'low' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,YQ==' } },
      { type: 'input_audio', input_audio: { data: 'YQ==', format: 'mp3' } },
      { type: 'input_text', text: 'in its own words already' },
    ];
    expect((await bodyOf({ messages: [{ role: 'user', content }] })).input).toEqual([
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'Look' },
          { type: 'input_image', image_url: 'https://a.example/b.png', detail: 'low' },
          { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,YQ==' },
          content[3],
          content[4],
        ],
      },
    ]);
  });

  test('contains images and files of tools in their outputs', async () => {
    const [first, assistant, answer] = historyAfter({
      content: '',
      toolCalls: [{ id: 'c1', name: 'look', arguments: {} }],
      finishReason: 'tool_calls',
    });
    const parts = [
      { type: 'text', content: 'of c1' },
      { type: 'image', data: PIXEL, mimeType: 'image/png' },
      { type: 'file', data: 'YQ==', mimeType: 'text/plain', filename: 'a.txt' },
    ] as const;
    const messages = [first, assistant, { ...answer, parts }] as Message[];
    expect((await bodyOf({ messages })).input).toMatchObject([
      { role: 'user' },
      { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
      {
        type: 'function_call_output',
        call_id: 'c1',
        output: [
          { type: 'input_text', text: 'of c1' },
          { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}`, detail: 'auto' },
          { type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,YQ==' },
        ],
      },
    ]);
  });
});

describe.each(METHODS)('a reply of Responses that OpenAIProvider reads (%s)', (method) => {
  test('has text, calls, reasoning and usage', async () => {
    const output = [
      reasoning('**One** a', '**Two** b'),
      message('Looking.', { phase: 'commentary' }),
      functionCall('c1', '{"at":1}', { namespace: 'eyes', async: true }),
      functionCall('c2', '{"at":12345678901234567890}'),
    ];
    const { response, parts, body } = await ask(responseOf(output), method);
    expect(body.stream).toBe(method === 'stream' ? true : undefined);
    expect(response).toEqual({
      origin: { id: 'resp_1' },
      content: 'Looking.',
      toolCalls: [
        { id: 'c1', name: 'look', arguments: { at: 1 } },
        { id: 'c2', name: 'look', arguments: '{"at":12345678901234567890}' },
      ],
      finishReason: 'tool_calls',
      rawFinishReason: 'completed',
      usage: {
        inputTokens: 10,
        outputTokens: 6,
        totalTokens: 16,
        cacheReadTokens: 4,
        reasoningTokens: 5,
        raw: responseOf([]).usage,
      },
      reasoning: '**One** a\n\n**Two** b',
      providerItems: { [KEY]: { output } },
    });
    if (method === 'chat') return;
    expect(textOf(parts, 'text-delta')).toBe('Looking.');
    expect(textOf(parts, 'reasoning-delta')).toBe('**One** a\n\n**Two** b');
    const ofCalls = parts.filter(({ type }) => type.startsWith('call-input'));
    expect(ofCalls.slice(0, 2)).toEqual([
      { type: 'call-input-start', callId: 'c1', tool: 'look' },
      { type: 'call-input-delta', callId: 'c1', text: '{"a' },
    ]);
    expect(ofCalls.filter(({ type }) => type === 'call-input-end')).toHaveLength(2);
  });

  test('has items that the next request sends back unchanged, followed by the tool results', async () => {
    const output = [
      reasoning('Let me see.'),
      SEARCH,
      message('Looking.', { phase: 'commentary' }),
      functionCall('c1', '{ "at": 1 }', { caller: { type: 'program', caller_id: 'prog_1' } }),
      customCall('c2', 'SELECT 1'),
    ];
    const { response } = await ask(responseOf(output), method);
    const { input } = await bodyOf({ messages: historyAfter(response) });
    expect(JSON.stringify((input as unknown[]).slice(1, 6))).toBe(JSON.stringify(output));
    expect((input as unknown[]).slice(6)).toEqual([
      {
        type: 'function_call_output',
        call_id: 'c1',
        output: 'of c1',
        caller: { type: 'program', caller_id: 'prog_1' },
      },
      { type: 'custom_tool_call_output', call_id: 'c2', output: 'of c2' },
      { type: 'message', role: 'user', content: 'second' },
    ]);
  });

  test('has the text input of a custom call as arguments', async () => {
    const { response } = await ask(responseOf([customCall('c1', '{"a":1}')]), method);
    expect(response.toolCalls).toMatchObject([{ id: 'c1', name: 'sql', arguments: '{"a":1}' }]);
  });

  test('has a refusal as its content', async () => {
    const refused = message('', { content: [{ type: 'refusal', refusal: 'I cannot.' }] });
    const { response, parts } = await ask(responseOf([refused]), method);
    expect(response).toMatchObject({ content: 'I cannot.', finishReason: 'stop' });
    if (method === 'stream') expect(textOf(parts, 'text-delta')).toBe('I cannot.');
  });

  test.each([
    ['max_output_tokens', 'length'],
    ['content_filter', 'content_filter'],
  ])('has the finish reason of a response that is incomplete for %s', async (reason, finishReason) => {
    const more = { status: 'incomplete', incomplete_details: { reason } };
    const { response } = await ask(responseOf([functionCall('c1', '{"at"')], more), method);
    expect(response).toMatchObject({
      finishReason,
      rawFinishReason: reason,
      toolCalls: [{ arguments: '{"at"' }],
    });
  });

  test.each([
    ['server_error', true],
    ['rate_limit_exceeded', true],
    ['invalid_prompt', false],
  ])('throws a ProviderError if the response failed for %s', async (code, retryable) => {
    const error = await failureOf(
      responseOf([], { status: 'failed', error: { code, message: 'So it is.' } }),
      method,
    );
    expect(ProviderError.is(error)).toBe(true);
    expect(error).toMatchObject({ retryable });
    expect(String(error)).toContain(`${code}: So it is.`);
  });
});

describe('histories that OpenAIProvider sends to Responses', () => {
  const output = [reasoning('Let me see.'), message('Looking.'), functionCall('c1', '{"at":1}')];
  const own: LLMResponse = {
    content: 'Looking.',
    toolCalls: [{ id: 'c1', name: 'look', arguments: { at: 1 } }],
    finishReason: 'tool_calls',
    reasoning: 'secret',
    providerItems: { [KEY]: { id: 'resp_1', output } },
  };
  const rebuilt = [
    { type: 'message', role: 'assistant', content: 'Looking.' },
    { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"at":1}' },
  ];

  async function sent(messages: readonly unknown[], more: Partial<LLMRequest> = {}) {
    return (await bodyOf({ messages: messages as Message[], ...more })).input as readonly Fields[];
  }

  test('of other providers are built from their texts and calls', async () => {
    const foreign = { ...own, providerItems: { 'openai.chat/gpt-5': { reasoning_content: 'secret' } } };
    const input = await sent(historyAfter(foreign));
    expect(input.slice(1, 3)).toEqual(rebuilt);
    expect(JSON.stringify(input)).not.toMatch(/secret|providerItems/);
  });

  test('use the current text of a message that was changed', async () => {
    const [first, assistant, ...rest] = historyAfter(own);
    const changed = await sent([first, { ...assistant, content: '[removed]' }, ...rest]);
    expect(changed[1]).toEqual({ type: 'message', role: 'assistant', content: '[removed]' });
    expect(JSON.stringify(changed)).not.toContain('Looking');
  });

  test('use the call id of the server if the loop renamed the call', async () => {
    const [first, assistant, answer, next] = historyAfter(own) as readonly [
      Message,
      Message,
      Message,
      Message,
    ];
    const renamed = {
      ...assistant,
      tool_calls: [{ id: 'call_9', type: 'function', function: { name: 'look', arguments: '{}' } }],
    };
    const input = await sent([first, renamed, { ...answer, tool_call_id: 'call_9' }, next]);
    expect(input.slice(1, 4)).toEqual(output);
    expect(input[4]).toMatchObject({ type: 'function_call_output', call_id: 'c1' });
  });

  test('are rebuilt from text and calls if the reasoning is not encrypted and nothing is stored', async () => {
    const { encrypted_content, ...bare } = reasoning('Let me see.');
    const kept = { ...own, providerItems: { [KEY]: { id: 'resp_1', output: [bare, ...output.slice(1)] } } };
    expect((await sent(historyAfter(kept))).slice(1, 3)).toEqual(rebuilt);
  });

  test('continue from the id of the last reply if the server stores replies', async () => {
    const answer = json(responseOf([message('ok')], { store: true }));
    const messages: Message[] = [{ role: 'system', content: 'Be brief.' }, ...historyAfter(own)];
    const how = { method: 'chat', model: 'gpt-5', messages } as const;
    const { body } = await exchange(answer, how, { api: 'responses', store: true });
    expect(body).toMatchObject({ store: true, previous_response_id: 'resp_1', instructions: 'Be brief.' });
    expect(body).not.toHaveProperty('include');
    expect(body.input).toEqual([
      { type: 'function_call_output', call_id: 'c1', output: 'of c1' },
      { type: 'message', role: 'user', content: 'second' },
    ]);
    const first = await exchange(
      answer,
      { ...how, messages: messages.slice(0, 2) },
      { api: 'responses', store: true },
    );
    expect(first.body).not.toHaveProperty('previous_response_id');
    expect(first.response.providerItems).toMatchObject({ [KEY]: { id: 'resp_1' } });
    const wins = { previous_response_id: 'resp_0', store: true };
    expect(await bodyOf({ messages, options: wins })).toMatchObject(wins);
  });

  test('contain only new items in a server-side conversation', async () => {
    const body = await bodyOf({ messages: historyAfter(own), options: { conversation: 'conv_1' } });
    expect(body.input).toHaveLength(2);
    expect(body.store).toBe(true);
    expect(body).not.toHaveProperty('previous_response_id');
  });
});

describe('OpenAIProvider and servers of Responses', () => {
  test('a request is retried without encrypted content if the server refuses it, and later ones omit it', async () => {
    await using server = await LoopbackServer.start((response, request) => {
      const refuse = 'include' in request.body;
      const answer = refuse
        ? json({ error: { message: 'Encrypted content is not supported with this model.' } }, 400)
        : json(responseOf([message('ok')]));
      answer(response, request);
    });
    const provider = new OpenAIProvider({ api: 'responses', baseURL: server.baseURL, maxRetries: 0 });
    const request = { model: 'gpt-4.1', messages: [{ role: 'user', content: 'x' }], options: {} } as const;
    for (const _ of [1, 2]) expect((await provider.chat(request)).content).toBe('ok');
    expect(server.requests.map(({ body }) => 'include' in body)).toEqual([true, false, false]);
    expect(server.requests[0]?.path).toBe('/v1/responses');
  });

  test('items whose id changes in every event are read', async () => {
    const response = responseOf([reasoning('a'), functionCall('c1', '{"at":1}')]);
    let count = 0;
    const renamed = eventsOf(response).map((event) => {
      const item = event.item as Fields | undefined;
      return { ...event, item_id: `${count++}`, ...(item ? { item: { ...item, id: `${count++}` } } : {}) };
    });
    const { response: got, parts } = await exchange(
      events(renamed, ''),
      { method: 'stream', model: 'gpt-5' },
      { api: 'responses' },
    );
    expect(got.toolCalls).toEqual([{ id: 'c1', name: 'look', arguments: { at: 1 } }]);
    expect(parts.filter(({ type }) => type === 'call-input-start')).toHaveLength(1);
  });

  test('a whole response instead of a stream is accepted', async () => {
    const output = [reasoning('a'), message('Looking.'), functionCall('c1', '{"at":1}')];
    const { response, parts } = await exchange(
      json(responseOf(output)),
      { method: 'stream' },
      { api: 'responses' },
    );
    expect(response.toolCalls).toHaveLength(1);
    expect(parts.map(({ type }) => type)).toEqual([
      'reasoning-delta',
      'text-delta',
      'call-input-start',
      'call-input-delta',
      'call-input-end',
      'response',
    ]);
  });

  test('a queued background response throws', async () => {
    const error = await failureOf(responseOf([], { status: 'queued' }), 'chat');
    expect(String(error)).toContain('the reply was queued');
  });

  test('a body that is not a response throws with a hint to check the base URL', async () => {
    const error = await failureOf({ hello: 1 }, 'chat');
    expect(String(error)).toMatch(/check that it serves Responses at the base URL/);
  });

  test('an error event throws a retryable error', async () => {
    const answer = events([{ type: 'error', code: 'server_error', message: 'Oops', param: null }], '');
    const asked = exchange(answer, { method: 'stream' }, { api: 'responses' });
    await expect(asked).rejects.toMatchObject({ retryable: true, message: expect.stringContaining('Oops') });
  });
});

describe('OpenAIProvider and streams of Responses', () => {
  const args = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value));
  const output = fc
    .tuple(fc.string({ unit: 'grapheme' }), fc.array(args, { maxLength: 3 }))
    .map(([text, all]) => [
      reasoning(text),
      ...(text === '' ? [] : [message(text)]),
      ...all.map((input, at) => functionCall(`c${at}`, input)),
    ]);

  async function read(api: 'chat' | 'responses', text: string) {
    await using server = await LoopbackServer.start((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text);
    });
    const provider = new OpenAIProvider({ api, baseURL: server.baseURL, apiKey: 'k', maxRetries: 0 });
    return await collect(
      provider.stream({ model: 'gpt-5', messages: [{ role: 'user', content: 'x' }], options: {} }),
    );
  }

  test('events of any size give the same response as the whole reply', async () => {
    await fc.assert(
      fc.asyncProperty(output, fc.integer({ min: 1, max: 9 }), async (items, size) => {
        const whole = await ask(responseOf(items), 'chat');
        const lines = eventsOf(responseOf(items), size).map((event) => `data: ${JSON.stringify(event)}\n\n`);
        const parts = await read('responses', lines.join(''));
        expect(parts.at(-1)).toEqual({ type: 'response', response: whole.response });
        const inputs = parts.map((part) => (part.type === 'call-input-delta' ? part.text : '')).join('');
        expect(inputs).toBe(items.map((item) => ('arguments' in item ? item.arguments : '')).join(''));
      }),
      { numRuns: 25 },
    );
  });

  test('a stream cut at any byte throws a ProviderError and gives no response', async () => {
    const items = [reasoning('é'), message('Lóoking 🙂'), functionCall('c1', '{"path":"/ä","all":true}')];
    const bytes = Buffer.from(
      eventsOf(responseOf(items), 4)
        .map((event) => `data: ${JSON.stringify(event)}\n\n`)
        .join(''),
    );
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: bytes.length - 4 }), async (length) => {
        await using server = await LoopbackServer.start((response) => {
          response.writeHead(200, { 'content-type': 'text/event-stream' }).end(bytes.subarray(0, length));
        });
        const provider = new OpenAIProvider({
          api: 'responses',
          baseURL: server.baseURL,
          apiKey: 'k',
          maxRetries: 0,
        });
        const request = { model: 'm', messages: [{ role: 'user', content: 'x' }], options: {} } as const;
        const seen: string[] = [];
        const reading = (async () => {
          for await (const part of provider.stream(request)) seen.push(part.type);
        })();
        const error: unknown = await reading.catch((failure: unknown) => failure);
        expect(ProviderError.is(error)).toBe(true);
        expect(seen).not.toContain('response');
      }),
      { numRuns: 60 },
    );
  });

  test('a Chat Completions stream cut at any byte never gives a call with partial arguments', async () => {
    const piece = (text: string, first: boolean) => ({
      choices: [
        {
          index: 0,
          delta: {
            tool_calls: [
              {
                index: 0,
                ...(first ? { id: 'c1' } : {}),
                function: { ...(first ? { name: 'look' } : {}), arguments: text },
              },
            ],
          },
        },
      ],
    });
    const input = '{"path":"/ä/é","all":true}';
    const chunks = [piece('', true), ...Array.from(input, (letter) => piece(letter, false))];
    const bytes = Buffer.from(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(''));
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: bytes.length }), async (length) => {
        const text = bytes.subarray(0, length).toString('latin1');
        const parts = await read('chat', Buffer.from(text, 'latin1').toString('utf8')).catch(() => []);
        const last = parts.at(-1);
        if (last?.type !== 'response') return;
        const [call] = last.response.toolCalls;
        if (call && typeof call.arguments === 'string') expect(last.response.finishReason).toBe('length');
        else if (call) expect(call.arguments).toEqual(JSON.parse(input));
      }),
      { numRuns: 60 },
    );
  });

  test('a stream that is aborted throws the abort error of the client', async () => {
    await using server = await LoopbackServer.start((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: ${JSON.stringify({ type: 'response.output_text.delta', delta: 'Hel' })}\n\n`);
    });
    const controller = new AbortController();
    const provider = new OpenAIProvider({ api: 'responses', baseURL: server.baseURL });
    const request = { model: 'm', messages: [], options: {}, signal: controller.signal };
    const reading = (async () => {
      for await (const part of provider.stream(request)) {
        expect(part).toEqual({ type: 'text-delta', text: 'Hel' });
        controller.abort();
      }
    })();
    await expect(reading).rejects.toMatchObject({ name: 'AbortError' });
  });
});
