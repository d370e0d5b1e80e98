import { describe, expect, test } from '@jest/globals';
import type { LLMRequest, LLMResponse } from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import {
  type Answer,
  collect,
  completion,
  delta,
  events,
  json,
  LoopbackServer,
  page,
} from './loopback-server.js';

const REQUEST: LLMRequest = { model: 'm', messages: [{ role: 'user', content: 'x' }], options: {} };

async function chat(answer: Answer, request = REQUEST): Promise<LLMResponse> {
  await using server = await LoopbackServer.start(answer);
  return await new OpenAIProvider({ baseURL: server.baseURL, maxRetries: 0 }).chat(request);
}

async function stream(answer: Answer, request = REQUEST) {
  await using server = await LoopbackServer.start(answer);
  const provider = new OpenAIProvider({ baseURL: server.baseURL, maxRetries: 0 });
  const parts = await collect(provider.stream(request));
  const texts = parts.flatMap((part) => (part.type === 'text-delta' ? [part.text] : []));
  const responses = parts.flatMap((part) => (part.type === 'response' ? [part.response] : []));
  expect(responses).toHaveLength(1);
  expect(parts.at(-1)?.type).toBe('response');
  return { texts, response: responses[0]!, requests: server.requests };
}

function call(name: string, args: unknown, more: Record<string, unknown> = {}) {
  return { function: { name, arguments: args }, ...more };
}

describe('whole replies of compatible servers', () => {
  test('arguments with a number too large for JavaScript stay text', async () => {
    const sent = '{"id":12345678901234567890}';
    const message = { tool_calls: [call('find', sent), call('find', '{"id":1234567890123456}')] };
    const { toolCalls } = await chat(json({ choices: [{ message }] }));
    expect(toolCalls.map(({ arguments: args }) => args)).toEqual([sent, { id: 1234567890123456 }]);
  });

  test('null content becomes an empty text, and missing fields are omitted', async () => {
    expect(await chat(json({ choices: [{ message: { content: null } }] }))).toEqual({
      content: '',
      toolCalls: [],
      finishReason: 'stop',
    });
  });

  test('a call without an id gets an empty id, and finish_reason stop with calls becomes tool_calls', async () => {
    const reply = await chat(json(completion({ tool_calls: [call('a', '{}'), call('a', '{}')] })));
    expect(reply.toolCalls).toEqual([
      { id: '', name: 'a', arguments: {} },
      { id: '', name: 'a', arguments: {} },
    ]);
    expect(reply.finishReason).toBe('tool_calls');
  });

  test.each([
    ['an object', { city: 'Rome' }, { city: 'Rome' }],
    ['the JSON of an object', '{"city":"Rome"}', { city: 'Rome' }],
    ['broken JSON', '{"city":"Ro', '{"city":"Ro'],
    ['the JSON of something else', '["Rome"]', '["Rome"]'],
    ['a list', ['Rome'], '["Rome"]'],
    ['an empty text', '', ''],
    ['null', null, ''],
    ['missing', undefined, ''],
  ])('arguments that are %s are returned as an object or as raw text', async (_name, sent, got) => {
    const reply = await chat(json(completion({ tool_calls: [call('a', sent, { id: 'i' })] })));
    expect(reply.toolCalls).toEqual([{ id: 'i', name: 'a', arguments: got }]);
  });

  test('an argument called __proto__ is an ordinary argument', async () => {
    const reply = await chat(json(completion({ tool_calls: [call('a', '{"__proto__":{"admin":true}}')] })));
    const args = reply.toolCalls[0]?.arguments as object;
    expect(Object.hasOwn(args, '__proto__')).toBe(true);
    expect(Object.getPrototypeOf(args)).toBe(Object.prototype);
  });

  test('the legacy function_call becomes a call without an id', async () => {
    const message = { content: null, function_call: { name: 'a', arguments: '{"b":1}' } };
    const reply = await chat(json(completion(message, { finish_reason: 'function_call' })));
    expect(reply.toolCalls).toEqual([{ id: '', name: 'a', arguments: { b: 1 } }]);
    expect(reply.finishReason).toBe('tool_calls');
  });

  test('the input of a custom call stays raw text even if it looks like JSON', async () => {
    const custom = { id: 'c', type: 'custom', custom: { name: 'sql', input: '{"a":1}' } };
    const reply = await chat(json(completion({ tool_calls: [custom] })));
    expect(reply.toolCalls).toMatchObject([{ id: 'c', name: 'sql', arguments: '{"a":1}' }]);
  });

  test('a refusal becomes the content if there is no other content', async () => {
    const refusal = 'I cannot help with that.';
    expect((await chat(json(completion({ content: null, refusal })))).content).toBe(refusal);
    expect((await chat(json(completion({ content: 'But yes.', refusal })))).content).toBe('But yes.');
    expect((await chat(json(completion({ content: [{ type: 'refusal', refusal }] })))).content).toBe(refusal);
  });

  test('content in parts is the joined text parts without the thinking', async () => {
    const content = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
      { type: 'text', text: 'Four' },
      { type: 'text', text: '.' },
    ];
    expect((await chat(json(completion({ content })))).content).toBe('Four.');
  });

  test.each([
    ['length', 'length'],
    ['MAX_TOKENS', 'length'],
    ['model_length', 'length'],
    ['error', 'length'],
    ['content_filter', 'content_filter'],
    ['SAFETY', 'content_filter'],
    ['stop', 'stop'],
    ['tool_calls', 'stop'],
    ['eos', 'stop'],
    ['constructor', 'stop'],
    [null, 'stop'],
  ])('finish reason %p of a reply without calls becomes %p', async (sent, got) => {
    expect((await chat(json(completion({ content: 'x' }, { finish_reason: sent })))).finishReason).toBe(got);
  });

  test('finish reason length is kept for a reply with calls', async () => {
    const body = completion({ tool_calls: [call('a', '{"b":')] }, { finish_reason: 'length' });
    expect((await chat(json(body))).finishReason).toBe('length');
  });

  test('the total of the usage is computed if it is missing', async () => {
    const usage = { prompt_tokens: 3, completion_tokens: 4 };
    const reply = await chat(json({ ...(completion({ content: '' }) as object), usage }));
    expect(reply.usage).toEqual({ inputTokens: 3, outputTokens: 4, totalTokens: 7, raw: usage });
  });

  test.each(['', 'text/plain'])('JSON sent with content type "%s" is parsed', async (type) => {
    expect((await chat(page(JSON.stringify(completion({ content: 'ok' })), type))).content).toBe('ok');
  });

  test('stream options are not sent with a request that is not streamed', async () => {
    await using server = await LoopbackServer.start(json(completion({ content: 'ok' })));
    const provider = new OpenAIProvider({ baseURL: server.baseURL });
    await provider.chat({ ...REQUEST, options: { stream: true, stream_options: {}, seed: 1 } });
    expect(server.requests[0]?.body).toEqual({ model: 'm', messages: REQUEST.messages, seed: 1 });
  });
});

describe('streams of compatible servers', () => {
  test('usage is requested, and read from the last chunk that contains it', async () => {
    const chunks = [
      { ...(delta({ content: 'a' }) as object), usage: null },
      { ...(delta({}, 'stop') as object), usage: { prompt_tokens: 1, completion_tokens: 1 } },
      { choices: [], usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } },
    ];
    const { response, requests } = await stream(events(chunks));
    expect(response.usage).toMatchObject({ inputTokens: 1, outputTokens: 2, totalTokens: 3 });
    expect(requests[0]?.body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
  });

  test.each([
    [{ include_usage: false }, { include_usage: false }],
    [{ vendor: 1 }, { include_usage: true, vendor: 1 }],
    [null, undefined],
    [false, undefined],
  ])('stream_options %j of the caller are sent as %j', async (given, sent) => {
    const request = { ...REQUEST, options: { stream_options: given } };
    const { requests } = await stream(events([delta({ content: 'a' }, 'stop')]), request);
    expect(requests[0]?.body.stream_options).toEqual(sent);
  });

  test('stream_options are omitted after a server refused them once', async () => {
    await using server = await LoopbackServer.start((response, request) => {
      const refuse = 'stream_options' in request.body;
      const answer = refuse
        ? json({ error: { message: 'Unknown field: stream_options' } }, 400)
        : events([delta({ content: 'ok' }, 'stop')]);
      answer(response, request);
    });
    const provider = new OpenAIProvider({ baseURL: server.baseURL, maxRetries: 0 });
    for (const _ of [1, 2]) {
      const parts = await collect(provider.stream(REQUEST));
      expect(parts.at(-1)).toMatchObject({ type: 'response', response: { content: 'ok' } });
    }
    expect(server.requests.map(({ body }) => 'stream_options' in body)).toEqual([true, false, false]);
  });

  test('pieces of a call without an index are joined if they repeat its id and name', async () => {
    const chunks = [
      delta({ tool_calls: [call('a', '{"x"', { id: '1' })] }),
      delta({ tool_calls: [call('a', ':1}', { id: '1' })] }),
      delta({ tool_calls: [call('a', '{"x":2}', { id: '2' })] }),
      delta({ tool_calls: [call('b', '', { id: '3' })] }),
      delta({ tool_calls: [{ function: { arguments: '{}' } }] }, 'tool_calls'),
    ];
    expect((await stream(events(chunks))).response.toolCalls).toEqual([
      { id: '1', name: 'a', arguments: { x: 1 } },
      { id: '2', name: 'a', arguments: { x: 2 } },
      { id: '3', name: 'b', arguments: {} },
    ]);
  });

  test('several calls with index 0 stay separate', async () => {
    const chunks = [
      delta({ tool_calls: [call('a', '{"x":1}', { id: '1', index: 0 })] }),
      delta({ tool_calls: [call('a', '{"x":2}', { id: '2', index: 0 })] }),
      delta({ tool_calls: [call('b', '{}', { id: '3', index: 0 })] }, 'stop'),
    ];
    const { response } = await stream(events(chunks));
    expect(response.toolCalls.map(({ id }) => id)).toEqual(['1', '2', '3']);
    expect(response.finishReason).toBe('tool_calls');
  });

  test('an id that changes within a call does not split the call', async () => {
    const chunks = [
      delta({ tool_calls: [call('a', '{"x":', { id: 'r1', index: 0 })] }),
      delta({ tool_calls: [call('a', '1}', { id: 'r2', index: 0 })] }, 'tool_calls'),
    ];
    expect((await stream(events(chunks))).response.toolCalls).toEqual([
      { id: 'r1', name: 'a', arguments: { x: 1 } },
    ]);
  });

  test('calls are ordered by their index, not by their start', async () => {
    const chunks = [
      delta({ tool_calls: [call('b', '{}', { id: '2', index: 1 })] }),
      delta({ tool_calls: [call('a', '{}', { id: '1', index: 0 })] }, 'tool_calls'),
    ];
    const { response } = await stream(events(chunks));
    expect(response.toolCalls.map(({ name }) => name)).toEqual(['a', 'b']);
  });

  test('a legacy function_call that arrives in pieces is assembled', async () => {
    const chunks = [
      delta({ function_call: { name: 'a', arguments: '' } }),
      delta({ function_call: { arguments: '{"b":1}' } }),
      delta({}, 'function_call'),
    ];
    const { response } = await stream(events(chunks));
    expect(response.toolCalls).toEqual([{ id: '', name: 'a', arguments: { b: 1 } }]);
  });

  test('a custom call that arrives in pieces is assembled', async () => {
    const chunks = [
      delta({ tool_calls: [{ index: 0, id: 'c', type: 'custom', custom: { name: 'sql', input: '' } }] }),
      delta({ tool_calls: [{ index: 0, custom: { input: '{"a"' } }] }),
      delta({ tool_calls: [{ index: 0, custom: { input: ':1}' } }] }, 'tool_calls'),
    ];
    const { response } = await stream(events(chunks));
    expect(response.toolCalls).toMatchObject([{ id: 'c', name: 'sql', arguments: '{"a":1}' }]);
  });

  test('a refusal becomes the content and is streamed as text at the end', async () => {
    const chunks = [delta({ refusal: 'I ' }), delta({ refusal: 'cannot.' }, 'stop')];
    const { texts, response } = await stream(events(chunks));
    expect(texts).toEqual(['I cannot.']);
    expect(response.content).toBe('I cannot.');
  });

  test('a stream without [DONE] is complete if it had a finish reason', async () => {
    const { response } = await stream(events([delta({ content: 'all' }, 'stop')], ''));
    expect(response).toMatchObject({ content: 'all', toolCalls: [], finishReason: 'stop' });
  });

  const CALLING = (args: string) => delta({ tool_calls: [call('remove', args, { id: '1', index: 0 })] });

  test.each([
    ['before its first chunk', undefined],
    ['in a text', delta({ content: 'The whole answer is forty' })],
    ['inside the arguments', CALLING('{"path":"/tmp","all":true')],
    ['before the arguments', CALLING('')],
    ['after whole arguments', CALLING('{"x":1}')],
    ['after a text that contains [DONE]', delta({ content: '\ndata: [DONE]\n\n' })],
  ])(
    'a stream that ends %s, without finish reason and [DONE], throws a retryable error',
    async (_where, chunk) => {
      const failure: unknown = await stream(events(chunk === undefined ? [] : [chunk], '')).catch(
        (error: unknown) => error,
      );
      expect(failure).toMatchObject({
        name: 'ProviderError',
        retryable: true,
        message: expect.stringContaining('ended the stream before the reply was complete; try again'),
      });
    },
  );

  test('[DONE] without a finish reason completes a reply, even if split into pieces', async () => {
    const text = `data: ${JSON.stringify(delta({ content: 'all' }))}\n\ndata: [DONE]\n\n`;
    for (let at = 1; at < text.length; at += 7) {
      const { response } = await stream((response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(text.slice(0, at), () => setImmediate(() => response.end(text.slice(at))));
      });
      expect(response).toMatchObject({ content: 'all', finishReason: 'stop' });
    }
  });

  test('[DONE] or a final usage chunk completes calls if their arguments are complete', async () => {
    const usage = { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } };
    for (const answer of [events([CALLING('{"x":1}')]), events([CALLING('{"x":1}'), usage], '')])
      expect((await stream(answer)).response.finishReason).toBe('tool_calls');
    expect((await stream(events([CALLING('{"x":1')]))).response.finishReason).toBe('length');
  });

  test('a complete reply instead of a stream is accepted', async () => {
    const { texts, response } = await stream(
      json(completion({ content: 'whole', tool_calls: [call('a', '{}')] })),
    );
    expect(texts).toEqual(['whole']);
    expect(response.toolCalls).toEqual([{ id: '', name: 'a', arguments: {} }]);
  });
});
