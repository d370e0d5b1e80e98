import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { type LLMProvider, type LLMRequest, ProviderError } from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import { type Answer, completion, delta, events, json, LoopbackServer, page } from './loopback-server.js';

const REQUEST: LLMRequest = { model: 'm', messages: [{ role: 'user', content: 'x' }], options: {} };
const METHODS = ['chat', 'stream'] as const;

async function failure(provider: LLMProvider, method: 'chat' | 'stream', request = REQUEST): Promise<Error> {
  try {
    if (method === 'chat') await provider.chat(request);
    else for await (const _ of provider.stream!(request));
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('the request should have failed');
}

async function failureOf(answer: Answer, method: 'chat' | 'stream') {
  await using server = await LoopbackServer.start(answer);
  const provider = new OpenAIProvider({ baseURL: server.baseURL, maxRetries: 0, timeoutMs: 5_000 });
  const error = await failure(provider, method);
  expect(error.message).not.toMatch(/\n/);
  return { error, message: error.message.replaceAll(server.baseURL, 'BASE') };
}

describe.each(METHODS)('failures of %s have a message of one line that suggests a fix', (method) => {
  test('a refused connection reports that the server may not be running', async () => {
    const gone = await LoopbackServer.start(() => {});
    const { baseURL } = gone;
    await gone[Symbol.asyncDispose]();
    const error = await failure(new OpenAIProvider({ baseURL, maxRetries: 0 }), method);
    expect(error.message).toBe(`cannot reach ${baseURL}: connection refused; is the server running?`);
    expect(error.cause).toBeInstanceOf(OpenAI.APIConnectionError);
  });

  test('a blocked port reports that fetch does not allow it', async () => {
    const error = await failure(
      new OpenAIProvider({ baseURL: 'http://127.0.0.1:1/v1', maxRetries: 0 }),
      method,
    );
    expect(error.message).toMatch(/^cannot reach http:..127.0.0.1:1.v1: the fetch standard blocks this port/);
  });

  test.each([
    [401, 'Wrong key', '401 from BASE: the key was refused (Wrong key); check apiKey or OPENAI_API_KEY'],
    [
      404,
      'No model m',
      '404 from BASE: not found (No model m); check the model name, and that the base URL is right',
    ],
    [400, 'Bad\n schema', '400 from BASE: the request was refused (Bad schema)'],
    [429, 'Slow down', '429 from BASE: too many requests, or no quota left (Slow down); try again later'],
    [418, 'Teapot', '418 from BASE: the request failed (Teapot)'],
    [500, 'Oops', '500 from BASE: the server failed (Oops); try again later'],
  ])('status %i is explained', async (status, said, expected) => {
    const { error, message } = await failureOf(json({ error: { message: said } }, status), method);
    expect(message.startsWith(expected)).toBe(true);
    expect(error.cause).toMatchObject({ status });
  });

  test('an error status with an HTML page reports the title of the page', async () => {
    const html = '<!doctype html>\n<html><head><title>Bad Gateway</title></head><body>nginx</body></html>';
    const { message } = await failureOf(page(html, 'text/html', 502), method);
    expect(message).toBe('502 from BASE: the server failed (Bad Gateway); try again later');
  });

  test('an error status without a body is reported', async () => {
    const { message } = await failureOf(page('', '', 503), method);
    expect(message).toBe('503 from BASE: the server failed; try again later');
  });

  test('an HTML page instead of a reply reports that it is not JSON', async () => {
    const { message } = await failureOf(page('<html>\n<body>Welcome</body></html>', 'text/html'), method);
    expect(message).toBe(
      'BASE answered with text that is not JSON (<html> <body>Welcome</body></html>); check the base URL (most end with /v1)',
    );
  });

  test('a reply without choices is reported', async () => {
    const { message } = await failureOf(json({ choices: [] }), method);
    expect(message).toBe('BASE returned no choices; try again');
  });

  test('an error in a body of status 200 is reported', async () => {
    const { message } = await failureOf(json({ error: { message: 'Upstream is down' } }), method);
    expect(message).toBe('BASE reported an error: Upstream is down');
  });

  test('an empty body is reported', async () => {
    const { message } = await failureOf(page('', 'application/json'), method);
    // Clients before version 7 parse an empty body as JSON.
    expect(message).toMatch(/^BASE (did not return a completion|answered with broken JSON)/);
  });

  test('a connection that is cut before the answer is reported', async () => {
    const { message } = await failureOf((response) => response.socket?.destroy(), method);
    expect(message).toBe('cannot reach BASE: the connection was cut; try again');
  });

  test('an abort before the request rejects without sending it', async () => {
    await using server = await LoopbackServer.start(json(completion({ content: 'x' })));
    const provider = new OpenAIProvider({ baseURL: server.baseURL });
    const error = await failure(provider, method, { ...REQUEST, signal: AbortSignal.abort() });
    expect(error).toBeInstanceOf(OpenAI.APIUserAbortError);
    expect(server.requests).toHaveLength(0);
  });

  test('an abort during the request rejects with the abort error of the client', async () => {
    const controller = new AbortController();
    await using server = await LoopbackServer.start(() => controller.abort());
    const provider = new OpenAIProvider({ baseURL: server.baseURL });
    const error = await failure(provider, method, { ...REQUEST, signal: controller.signal });
    expect(error).toBeInstanceOf(OpenAI.APIUserAbortError);
  });

  test('a request is retried maxRetries times', async () => {
    await using server = await LoopbackServer.start((response) => {
      response.writeHead(503, { 'retry-after-ms': '1' }).end();
    });
    await failure(new OpenAIProvider({ baseURL: server.baseURL, maxRetries: 2 }), method);
    expect(server.requests).toHaveLength(3);
  });
});

describe('failures after the response started', () => {
  const begun = 'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n';

  function cutAfterBeginning(finish: (socket: () => void) => void): Answer {
    return (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(begun, () => finish(() => response.socket?.destroy()));
    };
  }

  test('a body that does not arrive in time is reported as a timeout', async () => {
    await using server = await LoopbackServer.start((response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    });
    const provider = new OpenAIProvider({ baseURL: server.baseURL, maxRetries: 0, timeoutMs: 2_000 });
    const error = await failure(provider, 'chat');
    expect(error.message).toBe(`${server.baseURL} did not answer in time; raise timeoutMs or try again`);
  });

  test.each(['chat', 'responses'] as const)(
    'a stream of %s that stalls is reported as a timeout',
    async (api) => {
      const event = api === 'chat' ? begun : 'data: {"type":"response.output_text.delta","delta":"Hel"}\n\n';
      await using server = await LoopbackServer.start((response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(event);
      });
      const provider = new OpenAIProvider({ baseURL: server.baseURL, api, maxRetries: 0, timeoutMs: 2_000 });
      const error = await failure(provider, 'stream');
      expect(error).toMatchObject({
        message: `${server.baseURL} did not answer in time; raise timeoutMs or try again`,
        retryable: true,
      });
    },
  );

  test('a stream with a slow reader is not a timeout', async () => {
    await using server = await LoopbackServer.start(
      events([delta({ content: 'Hel' }), delta({ content: 'lo' }, 'stop')]),
    );
    const provider = new OpenAIProvider({ baseURL: server.baseURL, maxRetries: 0, timeoutMs: 1_000 });
    const parts: string[] = [];
    for await (const { type } of provider.stream(REQUEST)) {
      parts.push(type);
      await new Promise((resolve) => setTimeout(resolve, 1_200));
    }
    expect(parts).toEqual(['text-delta', 'text-delta', 'response']);
  });

  test('a truncated body is reported as broken JSON', async () => {
    const { message } = await failureOf(page('{"choices": [', 'application/json'), 'chat');
    expect(message).toMatch(/^BASE answered with broken JSON: /);
  });

  test('a connection that is cut inside a stream throws after the text received so far', async () => {
    await using server = await LoopbackServer.start(cutAfterBeginning((cut) => setImmediate(cut)));
    const provider = new OpenAIProvider({ baseURL: server.baseURL, maxRetries: 0 });
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const part of provider.stream(REQUEST)) seen.push(part);
    })();
    await expect(reading).rejects.toThrow(
      `cannot reach ${server.baseURL}: the connection was cut; try again`,
    );
    expect(seen).toEqual([{ type: 'text-delta', text: 'Hel' }]);
  });

  test('a chunk that is not JSON throws', async () => {
    const { message } = await failureOf(events([delta({ content: 'a' }), '{"choices": [']), 'stream');
    expect(message).toMatch(/^BASE answered with broken JSON: /);
  });

  test('an error sent as a chunk throws with its message', async () => {
    const { message } = await failureOf(
      events([delta({ content: 'a' }), { error: { message: 'GPU fell off' } }]),
      'stream',
    );
    expect(message).toBe('the request to BASE failed: GPU fell off');
  });

  test('a stream without chunks throws', async () => {
    const { message } = await failureOf(events([]), 'stream');
    expect(message).toMatch(/^BASE did not return a completion/);
  });

  test('an abort inside a stream throws instead of completing the reply', async () => {
    const controller = new AbortController();
    await using server = await LoopbackServer.start(cutAfterBeginning(() => {}));
    const provider = new OpenAIProvider({ baseURL: server.baseURL });
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const part of provider.stream({ ...REQUEST, signal: controller.signal })) {
        seen.push(part);
        controller.abort();
      }
    })();
    await expect(reading).rejects.toMatchObject({ name: 'AbortError' });
    expect(seen).toHaveLength(1);
  });

  test('leaving a stream early closes the request', async () => {
    const closed = Promise.withResolvers<void>();
    await using server = await LoopbackServer.start((response, request) => {
      response.on('close', () => closed.resolve());
      cutAfterBeginning(() => {})(response, request);
    });
    for await (const _ of new OpenAIProvider({ baseURL: server.baseURL }).stream(REQUEST)) break;
    await closed.promise;
  });
});

describe('ProviderError.retryable of OpenAIProvider', () => {
  const failing = (
    status: number,
    headers: Record<string, string> = {},
    error: unknown = { message: 'No' },
  ) =>
    ((response) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify({ error }));
    }) satisfies Answer;

  test.each([
    [500, true],
    [529, true],
    [429, true],
    [408, true],
    [409, true],
    [400, false],
    [401, false],
    [404, false],
  ])('status %i has retryable %s', async (status, retryable) => {
    for (const method of METHODS) {
      const { error } = await failureOf(failing(status), method);
      expect(ProviderError.is(error)).toBe(true);
      expect(error).toMatchObject({ status, retryable });
      expect(error).not.toHaveProperty('retryAfterMs');
    }
  });

  test('the delay comes from the retry headers of the server', async () => {
    const waits = async (headers: Record<string, string>) =>
      (await failureOf(failing(429, headers), 'chat')).error;
    expect(await waits({ 'retry-after-ms': '1500.5', 'retry-after': '9' })).toMatchObject({
      retryAfterMs: 1500.5,
    });
    expect(await waits({ 'retry-after': '9' })).toMatchObject({ retryAfterMs: 9_000 });
    expect(await waits({ 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' })).toMatchObject({
      retryAfterMs: 0,
    });
    expect(await waits({ 'retry-after': 'soon' })).not.toHaveProperty('retryAfterMs');
  });

  test('an exhausted quota and x-should-retry: false are not retryable', async () => {
    const quota = { message: 'You have no quota', code: 'insufficient_quota' };
    expect((await failureOf(failing(429, {}, quota), 'chat')).error).toMatchObject({ retryable: false });
    const { error } = await failureOf(failing(500, { 'x-should-retry': 'false' }), 'chat');
    expect(error).toMatchObject({ retryable: false });
  });

  test('an error code in a body of status 200 is used as the status', async () => {
    const { error } = await failureOf(json({ error: { code: 502, message: 'Upstream failed' } }), 'chat');
    expect(error).toMatchObject({ status: 502, retryable: true });
    expect((await failureOf(page('<html></html>', 'text/html'), 'chat')).error).toMatchObject({
      retryable: false,
    });
  });

  test('a cut connection is retryable, a blocked address is not', async () => {
    await using server = await LoopbackServer.start((response) => response.destroy());
    const provider = new OpenAIProvider({ baseURL: server.baseURL, maxRetries: 0 });
    expect(await failure(provider, 'chat')).toMatchObject({ retryable: true });
    const wrong = new OpenAIProvider({ baseURL: 'http://127.0.0.1:1/v1', maxRetries: 0 });
    expect(await failure(wrong, 'chat')).toMatchObject({ retryable: false });
  });

  test('a server error in the middle of a stream is retryable', async () => {
    const broken = events([
      delta({ content: 'a' }),
      { error: { message: 'overloaded', type: 'server_error' } },
    ]);
    expect((await failureOf(broken, 'stream')).error).toMatchObject({ retryable: true });
  });
});

describe('keys and base URLs', () => {
  const saved = { ...process.env };
  beforeEach(() => {
    delete process.env.OPENAI_API_KEY;
    delete process.env.OPENAI_BASE_URL;
  });
  afterEach(() => {
    process.env = { ...saved };
  });

  test('the constructor throws with the missing settings if there is no key and no base URL', () => {
    expect(() => new OpenAIProvider()).toThrow(
      /there is no API key[\s\S]*set OPENAI_API_KEY, or pass apiKey/,
    );
  });

  test('the key and the base URL are read from the environment', async () => {
    await using server = await LoopbackServer.start(json(completion({ content: 'ok' })));
    process.env.OPENAI_API_KEY = 'from-env';
    process.env.OPENAI_BASE_URL = server.baseURL;
    await new OpenAIProvider().chat(REQUEST);
    expect(server.requests[0]?.path).toBe('/v1/chat/completions');
    expect(server.requests[0]?.headers.authorization).toBe('Bearer from-env');
  });

  test('options override the environment, and headers and organization are sent', async () => {
    await using server = await LoopbackServer.start(json(completion({ content: 'ok' })));
    process.env.OPENAI_API_KEY = 'from-env';
    process.env.OPENAI_BASE_URL = 'http://127.0.0.1:1/v1';
    const options = {
      apiKey: 'mine',
      baseURL: `${server.baseURL}/`,
      organization: 'org',
      headers: { 'x-a': 'b' },
    };
    await new OpenAIProvider(options).chat(REQUEST);
    const headers = { authorization: 'Bearer mine', 'openai-organization': 'org', 'x-a': 'b' };
    expect(server.requests[0]?.headers).toMatchObject(headers);
  });

  test('a local server needs no key', async () => {
    await using server = await LoopbackServer.start(json(completion({ content: 'ok' })));
    expect((await new OpenAIProvider({ baseURL: server.baseURL }).chat(REQUEST)).content).toBe('ok');
  });

  test('a client passed as an option is used unchanged', async () => {
    await using server = await LoopbackServer.start(json(completion({ content: 'ok' })));
    const client = new OpenAI({ apiKey: 'k', baseURL: server.baseURL, defaultHeaders: { 'x-mine': '1' } });
    await new OpenAIProvider({ client }).chat(REQUEST);
    expect(server.requests[0]?.headers['x-mine']).toBe('1');
  });

  test('credentials in the base URL do not appear in messages', async () => {
    const provider = new OpenAIProvider({
      baseURL: 'http://me:secret@127.0.0.1:1/v1?token=t',
      maxRetries: 0,
    });
    expect((await failure(provider, 'chat')).message).not.toMatch(/secret|token/);
  });
});
