import { connect } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import { InvalidOptionsError } from 'toolwright';
import { createAssistantHandler, MemoryConversationStore, toNodeHandler } from 'toolwright/satellite';
import { ScriptedProvider } from 'toolwright/testing';
import { serve } from '../../setup/loopback.js';
import { AssistantServer, requestText, toolResult } from './assistant-server.js';

const HI = { role: 'user', content: 'Hi' };
const RULE =
  'conversation_id must be 1 to 128 letters, digits and . _ ~ : @ -, beginning with a letter or a digit';

/** Invalid bodies with the code and the message of the error. */
const WRONG_BODIES: readonly (readonly [string, unknown, string, string])[] = [
  ['broken JSON', '{"messages":', 'invalid_json', 'the body is not JSON'],
  ['an empty body', '', 'invalid_json', 'the body is not JSON'],
  ['an array', [HI], 'invalid_request', 'the body must be an object'],
  ['null', 'null', 'invalid_request', 'the body must be an object'],
  ['a JSON string', '"Hi"', 'invalid_request', 'the body must be an object'],
  ['no messages', {}, 'invalid_request', 'messages must be an array with at least one message'],
  [
    'empty messages',
    { messages: [] },
    'invalid_request',
    'messages must be an array with at least one message',
  ],
  ['messages as an object', { messages: { 0: HI } }, 'invalid_request', 'messages must be an array with'],
  [
    'an unknown field',
    { messages: [HI], model: 'x' },
    'invalid_request',
    'the body has an unknown field "model"',
  ],
  [
    '__proto__',
    '{"messages":[{"role":"user","content":"Hi"}],"__proto__":{}}',
    'invalid_request',
    '"__proto__"',
  ],
  ['a message that is text', { messages: ['Hi'] }, 'invalid_request', 'messages[0] must be an object'],
  ['a message that is null', { messages: [HI, null] }, 'invalid_request', 'messages[1] must be an object'],
  ...['assistant', 'system', 'developer', 'tool', 'User', '', null, 1, ['user'], undefined].map(
    (role) =>
      [
        `role ${JSON.stringify(role)}`,
        { messages: [{ role, content: 'Hi' }] },
        'invalid_request',
        'messages[0].role must be "user" or "tool_result"',
      ] as const,
  ),
  ['no content', { messages: [{ role: 'user' }] }, 'invalid_request', 'messages[0].content must be a string'],
  ['parts', { messages: [{ role: 'user', content: [] }] }, 'invalid_request', 'content must be a string'],
  ['blank content', { messages: [{ role: 'user', content: ' \n' }] }, 'invalid_request', 'must not be blank'],
  [
    'a named user',
    { messages: [{ ...HI, name: 'ada' }] },
    'invalid_request',
    'messages[0] has an unknown field "name"',
  ],
  [
    'a result with a call id',
    { messages: [{ role: 'tool_result', name: 'a', content: '', tool_call_id: 'c' }] },
    'invalid_request',
    'messages[0] has an unknown field "tool_call_id"',
  ],
  [
    'a result without a name',
    { messages: [{ role: 'tool_result', content: '' }] },
    'invalid_request',
    'name must be',
  ],
  [
    'a blank name',
    { messages: [{ role: 'tool_result', name: ' ', content: '' }] },
    'invalid_request',
    'name must be',
  ],
  [
    'a result as an object',
    { messages: [{ role: 'tool_result', name: 'a', content: {} }] },
    'invalid_request',
    'content',
  ],
  ...['', ' ', 'a b', '../x', '-a', 'é', 'a/b', 'a\n', 'x'.repeat(129), 7, {}, false].map(
    (conversation_id) =>
      [
        `id ${JSON.stringify(conversation_id)}`,
        { conversation_id, messages: [HI] },
        'invalid_request',
        RULE,
      ] as const,
  ),
];

describe('an invalid request', () => {
  test.each(WRONG_BODIES)('%s is refused with the reason', async (_what, sent, code, message) => {
    await using server = await AssistantServer.start([]);
    const { status, body } = await server.post(sent);
    expect([status, body]).toEqual([400, { error: { code, message: expect.stringContaining(message) } }]);
    expect(server.provider.requests).toEqual([]);
  });

  test('bytes that are not UTF-8 are refused', async () => {
    await using server = await AssistantServer.start([]);
    const headers = { 'content-type': 'application/json' };
    const body = Uint8Array.of(0x22, 0xff, 0x22);
    const answer = await server.send('/v1/chat', { method: 'POST', headers, body });
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_json']);
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/jsonp',
    'multipart/form-data',
    '',
  ])('content type %j is refused, so that forms of other pages cannot send it', async (type) => {
    await using server = await AssistantServer.start([]);
    const { status, body } = await server.post({ messages: [HI] }, { 'content-type': type });
    expect([status, body.error.code]).toEqual([415, 'unsupported_media_type']);
  });

  test.each(['application/json', 'Application/JSON; charset=utf-8'])(
    'content type %j is accepted',
    async (type) => {
      await using server = await AssistantServer.start([{ content: 'Hello.' }]);
      expect((await server.post({ messages: [HI] }, { 'content-type': type })).status).toBe(200);
    },
  );

  test.each([
    ['/', 'GET', 404, 'not_found'],
    ['/v1/chat/', 'POST', 404, 'not_found'],
    ['/v1/chat/a/b', 'GET', 404, 'not_found'],
    ['/v1/chats', 'POST', 404, 'not_found'],
    ['/V1/chat', 'POST', 404, 'not_found'],
    ['/v1/chat', 'GET', 405, 'method_not_allowed'],
    ['/v1/chat', 'PUT', 405, 'method_not_allowed'],
    ['/v1/chat', 'OPTIONS', 405, 'method_not_allowed'],
    ['/v1/chat/c1', 'POST', 405, 'method_not_allowed'],
    ['/v1/chat/c1', 'DELETE', 405, 'method_not_allowed'],
    ['/v1/chat/unknown', 'GET', 404, 'conversation_not_found'],
    ['/v1/chat/%20', 'GET', 400, 'invalid_request'],
    ['/v1/chat/%FF', 'GET', 400, 'invalid_request'],
    [`/v1/chat/${'x'.repeat(129)}`, 'GET', 400, 'invalid_request'],
  ])('%s with method %s returns status %i', async (path, method, status, code) => {
    await using server = await AssistantServer.start([]);
    const answer = await server.send(path, { method });
    expect([answer.status, answer.body.error.code]).toEqual([status, code]);
    expect(answer.headers.has('allow')).toBe(status === 405);
  });

  test.each(['TRACE /v1/chat', 'GET http://else/v1', 'GET *'])(
    'the raw request %s gets an error response',
    async (line) => {
      await using server = await AssistantServer.start([]);
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
      socket.end(`${line} HTTP/1.1\r\nhost: [\r\nconnection: close\r\n\r\n`);
      expect(await readText(socket)).toMatch(/^HTTP\/1\.1 40[045] /);
    },
  );
});

describe('a body that is too large', () => {
  const large = JSON.stringify({ messages: [{ role: 'user', content: 'x'.repeat(3_000_000) }] });

  test('is refused by its Content-Length', async () => {
    await using server = await AssistantServer.start([]);
    const { status, body } = await server.post(large);
    expect([status, body.error]).toEqual([
      413,
      { code: 'body_too_large', message: 'the body has more than 1048576 bytes' },
    ]);
  });

  test('is refused while it arrives if it has no Content-Length', async () => {
    await using server = await AssistantServer.start([], { maxBodyBytes: 1000 });
    const body = new Blob([large]).stream();
    const headers = { 'content-type': 'application/json' };
    const answer = await server.send('/v1/chat', {
      method: 'POST',
      headers,
      body,
      duplex: 'half',
    } as RequestInit);
    expect([answer.status, answer.body.error.code]).toEqual([413, 'body_too_large']);
  });

  test('the refusal arrives although the client is still sending', async () => {
    await using server = await AssistantServer.start([], { maxBodyBytes: 1000 });
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    const head = 'POST /v1/chat HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n';
    const piece = `400\r\n${'x'.repeat(0x400)}\r\n`;
    socket.write(`${head}transfer-encoding: chunked\r\nconnection: close\r\n\r\n${piece}`);
    let answer = '';
    for await (const text of socket.setEncoding('utf8')) {
      answer += text;
      if (!answer.endsWith('\r\n0\r\n\r\n')) continue;
      socket.write(`${piece}0\r\n\r\n`);
      break;
    }
    expect(answer).toMatch(/^HTTP\/1\.1 413 [\s\S]*"code":"body_too_large"/);
  });

  test.each([
    ['with Content-Length', 'content-length: 9000000', (body: string) => body],
    [
      'without Content-Length',
      'transfer-encoding: chunked',
      (body: string) => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    ],
    ['to an unknown path', 'content-length: 9000000', (body: string) => body, '/v2/chat'],
  ])(
    'a client that sends everything before it reads gets the refusal and can send another request: %s',
    async (_what, length, encode, path = '/v1/chat') => {
      await using server = await AssistantServer.start([]);
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
        .setEncoding('utf8')
        .pause();
      const head = `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n${length}\r\n\r\n`;
      await new Promise((sent) => socket.write(head + encode('x'.repeat(9_000_000)), sent));
      socket.end('GET /v1/chat/unknown HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
      const answers = await readText(socket);
      const codes = [...answers.matchAll(/"code":"(\w+)"/g)].map(([, code]) => code);
      expect(codes).toEqual([path === '/v1/chat' ? 'body_too_large' : 'not_found', 'conversation_not_found']);
    },
  );

  test('a body of exactly the limit is accepted', async () => {
    const body = JSON.stringify({ messages: [HI] });
    const { length } = body;
    await using server = await AssistantServer.start([{ content: 'Hello.' }], { maxBodyBytes: length });
    expect((await server.post(body)).status).toBe(200);
    expect((await server.post(`${body} `)).status).toBe(413);
  });
});

describe('a client that disconnects', () => {
  test('in the middle of its body does not affect the server and is not logged', async () => {
    const logged: string[] = [];
    const log = (message: string): void => void logged.push(message);
    const ended = Promise.withResolvers<void>();
    const provider = new ScriptedProvider([{ content: 'Hello.' }]);
    const logger = { debug: log, info: log, warn: log, error: log };
    const handler = createAssistantHandler({ provider, model: 'm', logger });
    await using server = await serve(
      toNodeHandler(async (request) => {
        const response = await handler(request);
        ended.resolve();
        return response;
      }),
    );
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    const head =
      'POST /v1/chat HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n';
    socket.write(`${head}{"messages":[`, () => socket.destroy());
    await ended.promise;
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ messages: [HI] });
    expect((await fetch(`${server.url}/v1/chat`, { method: 'POST', headers, body })).status).toBe(200);
    expect([logged, provider.requests.length]).toEqual([[], 1]);
  });
});

describe('a failed request changes nothing', () => {
  test('the pending request remains after invalid requests and provider failures', async () => {
    const secret = 'connect ECONNREFUSED 10.0.0.7 key=sk-123';
    await using server = await AssistantServer.start([
      { content: requestText('lookup_weather') },
      new Error(secret),
      (request) => (request.messages.length === 3 ? { content: 'Clear.' } : new Error('a message too many')),
    ]);
    await server.say('c1', 'Weather?');
    for (const body of [{ conversation_id: 'c1', messages: [] }, '{', { conversation_id: 'c1' }])
      expect((await server.post(body)).status).toBe(400);
    const failed = await server.say('c1', toolResult('18°C'));
    expect([failed.status, failed.body]).toEqual([
      502,
      { error: { code: 'provider_failed', message: 'the model gave no usable reply' } },
    ]);
    expect((await server.send('/v1/chat/c1')).body.tool_request.name).toBe('lookup_weather');
    expect((await server.say('c1', toolResult('18°C'))).body.message.content).toBe('Clear.');
  });

  test('a conversation whose first request failed does not exist', async () => {
    await using server = await AssistantServer.start([new Error('down')]);
    await server.say('c1', 'Hi');
    expect((await server.send('/v1/chat/c1')).status).toBe(404);
  });

  test('the reasons are logged, even if the logger throws', async () => {
    const entries: unknown[] = [];
    const nothing = (): void => {};
    const error = (message: string, fields?: object): void => {
      entries.push([message, fields]);
      throw new Error('the log is full');
    };
    const logger = { debug: nothing, info: nothing, warn: nothing, error };
    const store = new MemoryConversationStore();
    const failing = Object.assign(Object.create(store), { load: () => Promise.reject(new Error('disk')) });
    await using broken = await AssistantServer.start([], { store: failing, logger });
    const { status, body } = await broken.say('c1', 'Hi');
    expect([status, body]).toEqual([
      500,
      { error: { code: 'internal_error', message: 'the server failed' } },
    ]);
    await using server = await AssistantServer.start([new Error('down')], { logger });
    expect((await server.say('c1', 'Hi')).status).toBe(502);
    expect(entries).toEqual([
      ['Request failed', { error: expect.objectContaining({ message: 'disk' }) }],
      ['Provider failed', { conversationId: 'c1', error: expect.objectContaining({ message: 'down' }) }],
    ]);
  });

  test('a conversation over maxMessages is refused as full', async () => {
    await using server = await AssistantServer.start([{ content: 'One.' }, { content: 'Two.' }], {
      maxMessages: 4,
    });
    await server.say('c1', 'Hi');
    expect((await server.say('c1', 'a', 'b')).status).toBe(422);
    expect((await server.say('c1', 'a')).status).toBe(200);
    expect((await server.say('c1', 'b')).body.error.code).toBe('conversation_full');
  });
});

describe('an unusual reply of the model', () => {
  test.each([
    ['an undefined reply', undefined, ''],
    ['a reply without text', { content: null, toolCalls: [], finishReason: 'stop' }, ''],
    [
      'a reply with native calls',
      { content: 'x', toolCalls: [{ id: 'c', name: 'a', arguments: {} }], finishReason: 'tool_calls' },
      'x',
    ],
  ])('%s becomes an error or plain text', async (_what, reply, content) => {
    const provider = { chat: async () => reply as never };
    await using server = await AssistantServer.start([], { provider });
    const { status, body } = await server.say('c1', 'Hi');
    expect([status, body.message?.content ?? '']).toEqual([reply === undefined ? 502 : 200, content]);
    expect(body).not.toHaveProperty('tool_request');
  });

  test('a truncated or filtered tool request is returned as text', async () => {
    for (const finishReason of ['length', 'content_filter'] as const) {
      await using server = await AssistantServer.start([{ content: requestText('a'), finishReason }]);
      const { body } = await server.say('c1', 'Hi');
      expect(body).toMatchObject({ message: { content: requestText('a') }, finish_reason: finishReason });
    }
  });

  test('a tool request that is nested too deeply is returned as text', async () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
    const content = `{"tool_request":{"name":"a","arguments":{"deep":${deep}}}}`;
    await using server = await AssistantServer.start([{ content }]);
    const { status, body } = await server.say('c1', 'Hi');
    expect([status, body.message.content.length]).toEqual([200, content.length]);
  });
});

describe('invalid options of createAssistantHandler', () => {
  const provider = new ScriptedProvider([]);
  test.each([
    [{}, ['provider is missing', 'model is missing']],
    [{ provider }, ['model is missing']],
    [{ provider, model: ' ' }, ["model is ' '"]],
    [{ provider, model: 'm', token: undefined }, ['token is undefined']],
    [{ provider, model: 'm', token: ' ' }, ['token is empty']],
    [{ provider, model: 'm', basePath: 'assistant/' }, ['basePath']],
    [{ provider, model: 'm', maxBodyBytes: Number.NaN }, ['maxBodyBytes']],
    [{ provider, model: 'm', heartbeatMs: 0 }, ['heartbeatMs']],
  ])('%j throws immediately', (options, problems) => {
    const create = () => createAssistantHandler(options as never);
    expect(create).toThrow(InvalidOptionsError);
    for (const problem of problems) expect(create).toThrow(problem);
  });
});
