import { describe, expect, test } from '@jest/globals';
import type { AssistantHandlerOptions } from 'toolwright/satellite';
import { AssistantServer } from './assistant-server.js';

const HI = { messages: [{ role: 'user', content: 'Hi' }] };
const ORIGIN = 'https://app.example.org';

function start(options: Partial<AssistantHandlerOptions>) {
  return AssistantServer.start([{ content: 'Hello.' }, { content: 'Bye.' }], options);
}

describe('a token', () => {
  test.each([
    [undefined, 401],
    ['', 401],
    ['secret', 401],
    ['Basic secret', 401],
    ['Bearer', 401],
    ['Bearer ', 401],
    ['Bearer secre', 401],
    ['Bearer secret2', 401],
    ['Bearer Secret', 401],
    ['Bearer secret', 200],
    ['bearer  secret', 200],
  ])('authorization %j returns status %i', async (authorization, status) => {
    await using server = await start({ token: 'secret' });
    const answer = await server.post(HI, authorization === undefined ? {} : { authorization });
    expect(answer.status).toBe(status);
    if (status === 200) return;
    expect(answer.body).toEqual({ error: { code: 'unauthorized', message: 'a bearer token is required' } });
    expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    expect(server.provider.requests).toEqual([]);
  });

  test('is also required to read a conversation, and is checked before the body', async () => {
    await using server = await start({ token: 'secret' });
    expect((await server.send('/v1/chat/c1')).status).toBe(401);
    expect((await server.post('{')).status).toBe(401);
  });
});

describe('a rate limit', () => {
  test.each([
    [true, 200, null],
    [{ allow: true }, 200, null],
    [false, 429, null],
    [{ allow: false, retryAfterSeconds: 1.2 }, 429, '2'],
    [{ allow: false, retryAfterSeconds: -1 }, 429, '0'],
    [undefined as unknown as boolean, 429, null],
    ['yes' as unknown as boolean, 429, null],
  ])('that returns %j leads to status %i', async (decision, status, retryAfter) => {
    await using server = await start({ rateLimit: async () => decision });
    const answer = await server.post(HI);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([status, retryAfter]);
    if (status === 429) expect(answer.body.error.code).toBe('rate_limited');
  });

  test('that throws refuses the request', async () => {
    await using server = await start({
      rateLimit: () => {
        throw new Error('no counter');
      },
    });
    const { status, body } = await server.post(HI);
    expect([status, body.error.message]).toEqual([500, 'the server failed']);
  });

  test('receives the request, but cannot consume its body', async () => {
    const seen: unknown[] = [];
    await using server = await start({
      rateLimit: async (request) => {
        seen.push([request.method, new URL(request.url).pathname, request.headers.get('x-client')]);
        return (await request.text()) === '';
      },
    });
    expect((await server.post(HI, { 'x-client': 'a' })).status).toBe(200);
    expect(seen).toEqual([['POST', '/v1/chat', 'a']]);
  });
});

describe('pages of other origins', () => {
  const preflight = {
    method: 'OPTIONS',
    headers: { origin: ORIGIN, 'access-control-request-method': 'POST' },
  };

  test('get no CORS headers by default', async () => {
    await using server = await start({});
    const { headers, status } = await server.post(HI, { origin: ORIGIN });
    expect([status, [...headers.keys()].filter((name) => name.startsWith('access-control'))]).toEqual([
      200,
      [],
    ]);
    expect((await server.send('/v1/chat', preflight)).status).toBe(405);
  });

  test('can send requests, read errors and preflight without a token if they are listed', async () => {
    await using server = await start({ cors: { origins: [ORIGIN] }, token: 'secret' });
    const asked = await server.send('/v1/chat', preflight);
    expect([asked.status, Object.fromEntries(asked.headers)]).toEqual([
      204,
      expect.objectContaining({
        'access-control-allow-origin': ORIGIN,
        'access-control-allow-methods': 'GET, POST',
        'access-control-allow-headers': 'authorization, content-type, if-match, idempotency-key',
        vary: 'Origin',
      }),
    ]);
    const refused = await server.post(HI, { origin: ORIGIN });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, ORIGIN]);
    expect(refused.headers.get('access-control-expose-headers')).toBe('etag, retry-after');
  });

  test.each(['https://evil.example.org', 'https://app.example.org.evil.example', 'null'])(
    'are refused if they are not listed: %s',
    async (origin) => {
      await using server = await start({ cors: { origins: [ORIGIN] } });
      const { headers } = await server.post(HI, { origin });
      expect([headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual([null, 'Origin']);
    },
  );

  test('are all allowed if the option allows every origin', async () => {
    await using server = await start({ cors: { origins: '*' } });
    const { headers } = await server.post(HI, { origin: 'https://any.example' });
    expect([headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual(['*', null]);
  });
});

describe('the system prompt', () => {
  test('is sent first in every request and is not stored', async () => {
    await using server = await start({ systemPrompt: 'Be brief.' });
    await server.say('c1', 'Hi');
    await server.say('c1', 'Bye');
    expect(server.histories.map((history) => history.filter(({ role }) => role === 'system'))).toEqual([
      [{ role: 'system', content: 'Be brief.' }],
      [{ role: 'system', content: 'Be brief.' }],
    ]);
  });

  test('can depend on the request', async () => {
    await using server = await start({
      systemPrompt: async ({ headers }) => `You serve ${headers.get('x-site')}.`,
    });
    await server.post(HI, { 'x-site': 'the greenhouse' });
    expect(server.histories[0]?.[0]).toEqual({ role: 'system', content: 'You serve the greenhouse.' });
  });

  test('model options are passed on unchanged', async () => {
    await using server = await start({ llmOptions: { temperature: 0 } });
    await server.say('c1', 'Hi');
    expect(server.provider.requests[0]).toMatchObject({ model: 'scripted', options: { temperature: 0 } });
  });
});
