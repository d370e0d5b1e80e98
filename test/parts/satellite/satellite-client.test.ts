import { describe, expect, jest, test } from '@jest/globals';
import { defineTool, InvalidOptionsError, ToolRegistry, ToolwrightError } from 'toolwright';
import {
  AssistantError,
  createAssistantHandler,
  SatelliteClient,
  type SatelliteClientOptions,
  type SatelliteEvent,
  toNodeHandler,
} from 'toolwright/satellite';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { readServerEvents } from '../../../src/models/wire/server-events.js';
import { serve } from '../../setup/loopback.js';
import { collect } from '../providers/loopback-server.js';
import { AssistantServer, requestText } from './assistant-server.js';

const REQUEST = { content: requestText('add', { a: 1, b: 2 }) };
const DONE = { content: 'It is 3.' };

const numbers = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a', 'b'],
} as const;

function addTool(
  run: (args: { readonly a: number; readonly b: number }, context: { callId: string }) => unknown,
) {
  return defineTool({
    name: 'add',
    description: 'Add',
    parameters: numbers,
    execute: (args, context) => run(args as { a: number; b: number }, context),
  });
}

const adding = addTool(({ a, b }) => a + b);

function clientOf({ url }: { readonly url: string }, options: Partial<SatelliteClientOptions> = {}) {
  return new SatelliteClient({ url, tools: new ToolRegistry().register(adding), ...options });
}

function resultsIn(server: AssistantServer): unknown[] {
  // Without the prefix that the server adds.
  return server.histories.map((history) =>
    String(history.at(-1)?.content).replace(/^\[tool_result:\w+\]\n/, ''),
  );
}

describe('tool calls of a satellite', () => {
  test('are repaired and validated, with defaults and messages for errors', async () => {
    await using server = await AssistantServer.start([
      { content: requestText('add', { a: '1', b: 2, c: 3 }) },
      { content: requestText('add', { a: 'x' }) },
      { content: requestText('subtract', {}) },
      { content: requestText('constructor', {}) },
      DONE,
    ]);
    const outcome = await clientOf(server).send('Add');
    expect(resultsIn(server).slice(1, 3)).toEqual([
      '3\n\nIgnored: c is not an argument of add.',
      expect.stringContaining("Validation failed for tool 'add':\n  - a: must be number\n  - b: is required"),
    ]);
    expect(resultsIn(server).slice(3)).toEqual(['tool not found: subtract', 'tool not found: constructor']);
    expect(outcome).toMatchObject({ status: 'completed', content: 'It is 3.', iterations: 5 });
    expect(outcome.toolCalls.map(({ status }) => status)).toEqual([
      'success',
      'rejected',
      'rejected',
      'rejected',
    ]);
    expect(outcome.toolCalls[0]).toMatchObject({ removed: ['c'], arguments: { a: 1, b: 2 } });
  });

  test('follow the policies and views of the registry', async () => {
    await using server = await AssistantServer.start([REQUEST, REQUEST, DONE]);
    const guarded = new ToolRegistry({ policy: () => ({ allow: false, reason: 'not today' }) }).register(
      adding,
    );
    await clientOf(server, { tools: guarded }).send('Add');
    expect(resultsIn(server)[1]).toContain('not today');
    await using other = await AssistantServer.start([REQUEST, DONE]);
    await clientOf(other, { tools: guarded.view({ deny: ['add'] }) }).send('Add');
    expect(resultsIn(other)[1]).toBe('tool not found: add');
  });

  test('time out by the limit of the tool, the client or the registry', async () => {
    const hanging = addTool(() => new Promise(() => {}));
    const cases: readonly Partial<SatelliteClientOptions>[] = [
      { tools: new ToolRegistry().register({ ...hanging, timeoutMs: 5 }) },
      { tools: new ToolRegistry().register(hanging), toolTimeoutMs: 5 },
      { tools: new ToolRegistry({ toolTimeoutMs: 5 }).register(hanging) },
    ];
    for (const options of cases) {
      await using server = await AssistantServer.start([REQUEST, DONE]);
      const { status, toolCalls } = await clientOf(server, options).send('Add');
      expect([status, toolCalls[0]?.status]).toEqual(['completed', 'timed_out']);
    }
  });

  test('have their results truncated to the limit of the server', async () => {
    const long = addTool(() => '\u0001'.repeat(2_000_000));
    await using server = await AssistantServer.start([REQUEST, DONE]);
    const { status } = await clientOf(server, { tools: new ToolRegistry().register(long) }).send('Add');
    expect(status).toBe('completed');
    expect(resultsIn(server)[1]).toContain('more characters were cut off');
  });

  test('that need an answer return an error as their result', async () => {
    const body = jest.fn(() => 'done');
    const tools = new ToolRegistry().register(
      defineTool({ name: 'approved', description: 'A', parameters: {}, approval: true, execute: body }),
      defineTool({ name: 'elsewhere', description: 'B', parameters: {} }),
    );
    await using server = await AssistantServer.start([
      { content: requestText('approved') },
      { content: requestText('elsewhere') },
      DONE,
    ]);
    const { status, toolCalls } = await clientOf(server, { tools }).send('Go');
    expect([status, body.mock.calls]).toEqual(['completed', []]);
    for (const [index, call] of toolCalls.entries()) {
      expect(call.result).toMatchObject({ isError: true, error: { code: 511 } });
      expect(resultsIn(server)[index + 1]).toBe(call.result.forLLM);
    }
  });

  test('receive the scope in their context, and background work is awaited', async () => {
    const seen: unknown[] = [];
    const tools = new ToolRegistry().register({
      ...adding,
      ignoresContext: false,
      execute: (_args, context) => {
        seen.push([context?.channel, context?.chatId, context?.data.user, context?.conversationId]);
        return context!.background(async () => 'the real result', 'started');
      },
    });
    await using server = await AssistantServer.start([REQUEST, DONE]);
    const scope = { channel: 'sms', chatId: '7', data: { user: 'ada' }, conversationId: 'c1' };
    await clientOf(server, { tools }).send('Add', scope);
    expect([seen, resultsIn(server)[1]]).toEqual([[['sms', '7', 'ada', 'c1']], 'the real result']);
  });
});

describe('the end of a run', () => {
  test('at the limit the request stays pending, no more tools run, and resume continues', async () => {
    await using server = await AssistantServer.start([REQUEST, REQUEST, REQUEST, DONE]);
    const client = clientOf(server, { maxIterations: 2 });
    const outcome = await client.send('Add');
    expect(outcome).toMatchObject({ status: 'limit', content: '', iterations: 2, pending: { name: 'add' } });
    expect(outcome.status === 'limit' && outcome.error).toMatchObject({ code: 504 });
    expect(outcome.toolCalls).toHaveLength(1);
    const { conversationId } = outcome;
    expect(await client.resume(conversationId)).toMatchObject({ status: 'completed', iterations: 2 });
    expect(await client.resume(conversationId)).toMatchObject({
      status: 'completed',
      content: 'It is 3.',
      iterations: 0,
    });
    server.provider.assertUsedUp();
  });

  test('an abort while a tool runs leaves the request pending', async () => {
    const stop = new AbortController();
    const tools = new ToolRegistry().register(
      addTool(() => {
        stop.abort();
        return new Promise(() => {});
      }),
    );
    await using server = await AssistantServer.start([REQUEST, DONE]);
    const types: string[] = [];
    const onEvent = ({ type }: SatelliteEvent): void => void types.push(type);
    const outcome = await clientOf(server, { tools }).send('Add', { signal: stop.signal, onEvent });
    expect(outcome).toMatchObject({ status: 'aborted', error: { code: 508 }, iterations: 1 });
    expect(types).toEqual(['run-start', 'step-start', 'call-start', 'call-end', 'run-end']);
    expect(server.histories).toHaveLength(1);
    expect(await clientOf(server).resume(outcome.conversationId)).toMatchObject({ status: 'completed' });
    expect(resultsIn(server)[1]).toBe('3');
  });

  test('an abort is handled before the run, during the model request and during a retry delay', async () => {
    const before = AbortSignal.abort();
    await using server = await AssistantServer.start([() => new Promise(() => {})]);
    expect(await clientOf(server).send('Add', { signal: before })).toMatchObject({
      status: 'aborted',
      iterations: 0,
    });
    const during = new AbortController();
    const onEvent = ({ type }: SatelliteEvent): void => {
      if (type === 'step-start') setImmediate(() => during.abort());
    };
    expect(await clientOf(server).send('Add', { signal: during.signal, onEvent })).toMatchObject({
      status: 'aborted',
    });
    const waiting = new AbortController();
    const closed = clientOf({ url: 'http://127.0.0.1:1' });
    const onRetry = ({ type }: SatelliteEvent): void => (type === 'retry' ? waiting.abort() : undefined);
    const outcome = await closed.send('Add', { signal: waiting.signal, onEvent: onRetry });
    expect(outcome.status).toBe('aborted');
  });

  test.each([
    ['the provider fails', [new Error('down')], 'provider_failed'],
    ['the second request fails', [REQUEST, new Error('down')], 'provider_failed'],
  ] as const)(
    'if %s, the outcome contains the cause',
    async (_what, steps: readonly ScriptedStep[], code) => {
      await using server = await AssistantServer.start(steps);
      const outcome = await clientOf(server).send('Add');
      const error = outcome.status === 'failed' ? outcome.error : undefined;
      expect(ToolwrightError.is(error) && error.code).toBe(509);
      expect(error?.cause).toBeInstanceOf(AssistantError);
      expect(error?.cause).toMatchObject({ code });
    },
  );

  test('a blank text, an unknown conversation and a wrong token fail the run', async () => {
    await using server = await AssistantServer.start([], { token: 'secret' });
    const causeOf = async (work: ReturnType<SatelliteClient['send']>) => {
      const outcome = await work;
      return outcome.status === 'failed' ? outcome.error.cause : outcome;
    };
    const friend = clientOf(server, { token: 'secret' });
    expect(await causeOf(friend.send(' '))).toMatchObject({ code: 'invalid_request', status: 400 });
    expect(await causeOf(friend.resume('unknown'))).toMatchObject({
      code: 'conversation_not_found',
      status: 404,
    });
    expect(await causeOf(clientOf(server).send('Hi'))).toMatchObject({ code: 'unauthorized', status: 401 });
  });

  test.each([
    ['an HTML page', 200, 'text/html', '<html>'],
    ['null', 200, 'application/json', 'null'],
    ['a reply without a message', 200, 'application/json', '{"conversation_id":"c1","finish_reason":"stop"}'],
    [
      'a request without a name',
      200,
      'application/json',
      '{"conversation_id":"c1","finish_reason":"stop","message":{"content":""},"tool_request":{"arguments":{}}}',
    ],
    [
      'a request whose arguments are null',
      200,
      'application/json',
      '{"conversation_id":"c1","finish_reason":"stop","message":{"content":""},"tool_request":{"name":"add","arguments":null}}',
    ],
    [
      'a request whose arguments are an array',
      200,
      'application/json',
      '{"conversation_id":"c1","finish_reason":"stop","message":{"content":""},"tool_request":{"name":"add","arguments":[]}}',
    ],
    ['an event that is not a reply', 200, 'text/event-stream', 'event: response\ndata: {}\n\n'],
    ['a redirect', 302, 'text/html', ''],
    ['an unknown error', 418, 'application/json', '{"message":"teapot"}'],
  ])('%s is an invalid response', async (_what, status, type, body) => {
    await using server = await serve((_request, response) => {
      response.writeHead(status, { 'content-type': type, location: '/elsewhere' }).end(body);
    });
    const outcome = await clientOf(server).send('Hi');
    expect(outcome).toMatchObject({ status: 'failed', error: { cause: { code: 'invalid_response' } } });
  });

  test.each(['', ',"tool_request":null'])(
    'a minimal reply of another server is accepted: %j',
    async (request) => {
      await using server = await serve((_request, response) => {
        const reply = `{"conversation_id":"c1","finish_reason":"stop","message":{"content":"Hello."}${request}}`;
        response.writeHead(200, { 'content-type': 'application/json' }).end(reply);
      });
      expect(await clientOf(server).send('Hi')).toMatchObject({ status: 'completed', content: 'Hello.' });
    },
  );

  test('a listener or logger that throws changes nothing', async () => {
    const logged: string[] = [];
    const log = (message: string): void => {
      logged.push(message);
      throw new Error('the log is full');
    };
    const logger = { debug: log, info: log, warn: log, error: log };
    const throwing = (): void => {
      throw new Error('mine');
    };
    for (const onEvent of [throwing, async () => throwing()]) {
      await using server = await AssistantServer.start([REQUEST, DONE]);
      expect(await clientOf(server, { logger }).send('Add', { onEvent })).toMatchObject({
        status: 'completed',
      });
    }
    expect(logged.filter((message) => message === 'Satellite listener failed').length).toBeGreaterThan(12);
  });
});

describe('a lost request or reply', () => {
  /** Serves an assistant, but fails some requests before or after they reach it. */
  async function serveUnreliably(
    steps: readonly ScriptedStep[],
    failures: ('before' | 'after' | 503 | 429)[],
  ) {
    const provider = new ScriptedProvider(steps);
    const listener = toNodeHandler(createAssistantHandler({ provider, model: 'm' }));
    const server = await serve((request, response) => {
      const failure = failures.shift();
      if (failure === 'before') return void request.socket.destroy();
      if (typeof failure === 'number')
        return void response.writeHead(failure, { 'retry-after': '0' }).end('busy');
      if (failure === 'after') {
        // The reply was stored, and the connection breaks before it is sent.
        const write = response.write.bind(response);
        response.write = ((chunk: Uint8Array, ...rest: []) => {
          if (!Buffer.from(chunk).includes('event: response')) return write(chunk, ...rest);
          response.destroy();
          return false;
        }) as typeof response.write;
      }
      listener(request, response);
    });
    return { server, provider };
  }

  test.each([
    ['the connection', ['before', 'before']],
    ['the reply', ['after']],
    ['the reply to a result', [undefined, 'after']],
    ['first the request, then the reply', ['before', 'after', undefined]],
    ['the server behind a proxy', [503, 429]],
  ])(
    'if %s is lost, the request is sent again without repeating a turn or a tool',
    async (_what, failures) => {
      const run = jest.fn(({ a, b }: { a: number; b: number }) => a + b);
      const { server, provider } = await serveUnreliably([REQUEST, DONE], [...failures] as never);
      await using _server = server;
      const retries: SatelliteEvent[] = [];
      const outcome = await clientOf(server, { tools: new ToolRegistry().register(addTool(run)) }).send(
        'Add',
        {
          onEvent: (event) => void (event.type === 'retry' && retries.push(event)),
        },
      );
      expect([outcome.status, outcome.content, run.mock.calls.length]).toEqual(['completed', 'It is 3.', 1]);
      expect(retries).toHaveLength(failures.filter(Boolean).length);
      expect(provider.requests).toHaveLength(2);
    },
  );

  test('fails after maxRetries, and resume continues from there', async () => {
    const { server } = await serveUnreliably([REQUEST, DONE], [undefined, 'before', 'before'] as never);
    await using _server = server;
    const outcome = await clientOf(server, { maxRetries: 1 }).send('Add');
    expect(outcome).toMatchObject({
      status: 'failed',
      iterations: 1,
      error: { cause: { code: 'unreachable' } },
    });
    expect(await clientOf(server).resume(outcome.conversationId)).toMatchObject({ status: 'completed' });
  });

  test('an option that is undefined has its default', async () => {
    const { server } = await serveUnreliably([REQUEST, DONE], ['before']);
    await using _server = server;
    const options = { maxRetries: undefined, maxIterations: undefined, toolTimeoutMs: undefined };
    expect(await clientOf(server, options).send('Add')).toMatchObject({ status: 'completed' });
    const nobody = clientOf({ url: 'http://127.0.0.1:1' }, { maxRetries: 0 });
    expect(await nobody.send('Add')).toMatchObject({ status: 'failed', iterations: 0 });
  });

  test('a provider failure is not retried', async () => {
    await using server = await AssistantServer.start([new Error('down'), DONE]);
    expect((await clientOf(server).send('Hi')).status).toBe('failed');
    expect(server.histories).toHaveLength(1);
  });
});

describe('a restart of the satellite', () => {
  test('the pending request runs again with the same call id', async () => {
    const ids: string[] = [];
    const stop = new AbortController();
    const tools = new ToolRegistry().register(
      addTool(({ a, b }, { callId }) => {
        ids.push(callId);
        if (ids.length === 1) stop.abort();
        return a + b;
      }),
    );
    await using server = await AssistantServer.start([REQUEST, DONE]);
    await clientOf(server, { tools }).send('Add', { conversationId: 'c1', signal: stop.signal });
    const turnId = (await server.send('/v1/chat/c1')).headers.get('etag')?.slice(1, -1);
    expect(await clientOf(server, { tools }).resume('c1')).toMatchObject({
      status: 'completed',
      content: 'It is 3.',
    });
    expect(ids).toEqual([turnId, turnId]);
  });

  test('if two satellites run one pending request, the second result is refused', async () => {
    await using server = await AssistantServer.start([
      REQUEST,
      { content: requestText('add', { a: 5, b: 5 }) },
      DONE,
    ]);
    await server.say('c1', 'Add');
    const bothRun = Promise.withResolvers<void>();
    let running = 0;
    const meeting = addTool(async ({ a, b }) => {
      running += 1;
      if (running === 2) bothRun.resolve();
      await bothRun.promise;
      return a + b;
    });
    const tools = new ToolRegistry().register(meeting);
    const outcomes = await Promise.all([1, 2].map(() => clientOf(server, { tools }).resume('c1')));
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['completed', 'failed']);
    const failed = outcomes.find(({ status }) => status === 'failed');
    expect(failed).toMatchObject({ error: { cause: { code: 'conversation_changed' } } });
    expect(resultsIn(server)).toEqual(['Add', '3', '10']);
  });
});

describe('events of a server', () => {
  test('are parsed wherever their lines and characters are split', async () => {
    const bytes = new TextEncoder().encode(
      ': hello\r\nevent: a\r\ndata: "é😀\u2028"\r\n\r\nretry: 5\n\ndata:1\ndata: 2\n\nid: x\nevent:b\rdata\r\revent: lost\rdata: 3',
    );
    for (const size of [1, 2, 3, 7, bytes.length]) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
        bytes.slice(index * size, (index + 1) * size),
      );
      const events = await collect(readServerEvents(ReadableStream.from(chunks), { dropsCut: true }));
      expect(events.map(({ event, data, id }) => [event, data, id])).toEqual([
        ['a', '"é😀\u2028"', undefined],
        ['', '1\n2', undefined],
        ['b', '', 'x'],
      ]);
    }
  });
});

describe('invalid options of SatelliteClient', () => {
  test.each([
    [{}, 'url is missing'],
    [{ url: 'assistant' }, "url is 'assistant'"],
    [{ url: 'ftp://a' }, "url is 'ftp://a'"],
    [{ url: 'http://a?tenant=1' }, "url is 'http://a?tenant=1'"],
    [{ url: 'http://a/#here' }, "url is 'http://a/#here'"],
    [{ url: 'http://ada:secret@a' }, 'url contains a user or a password.'],
    [{ url: 'http://a', tools: [] }, 'tools: new ToolRegistry()'],
    [{ url: 'http://a', token: 'a\nb' }, 'that a header cannot have'],
    [{ url: 'http://a', maxIterations: 0 }, 'maxIterations'],
    [{ url: 'http://a', maxRetries: Number.NaN }, 'maxRetries'],
  ])('%j throws immediately', (options, problem) => {
    const create = () => new SatelliteClient({ tools: new ToolRegistry(), ...options } as never);
    expect(create).toThrow(InvalidOptionsError);
    expect(create).toThrow(problem);
  });
});
