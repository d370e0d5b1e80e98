import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { type INestApplicationContext, Logger as NestLogger, UnauthorizedException } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  Conversation,
  Conversations,
  defineTool,
  type LLMProvider,
  type LogFields,
  type Logger,
  MemoryJobEngine,
  type Message,
  ProviderError,
  runJobs,
  runToolLoop,
  type ToolContext,
  ToolRegistry,
} from 'toolwright';
import { createAgent } from 'toolwright/agent';
import { type ChatHandlerOptions, createChatHandler } from 'toolwright/chat';
import { ToolwrightModule, ToolwrightService } from 'toolwright/nestjs';
import { OpenAIProvider } from 'toolwright/openai';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { chatOf, said } from '../parts/chat/chat-reader.js';
import { json, LoopbackServer } from '../parts/providers/loopback-server.js';

const USER: readonly Message[] = [{ role: 'user', content: 'Go' }];
const KEY = 'sk-proj-abcdefghijklmnopqrstuvwxyz123456';

/** A server that answers with these statuses in order, and repeats the last one. */
async function failingApi(...statuses: readonly number[]) {
  let asked = 0;
  const server = await LoopbackServer.start((response, request) => {
    const status = statuses[Math.min(asked, statuses.length - 1)] ?? 500;
    asked += 1;
    const message =
      status === 401
        ? `Incorrect API key provided: ${KEY}.`
        : `The server had an error; the request ID is req_${asked}a8c9${Date.now()}.`;
    json({ error: { message } }, status)(response, request);
  });
  const provider = new OpenAIProvider({ baseURL: server.baseURL, apiKey: KEY, maxRetries: 0 });
  return { server, config: { provider, model: 'gpt-5', providerRetries: 0 } };
}

/** Collects the entries of level `error`. */
function errorLog() {
  const errors: (readonly [message: string, fields?: LogFields])[] = [];
  const logger: Logger = {
    debug: () => {},
    info: () => {},
    warn: () => {},
    error: (message, fields) => errors.push(fields === undefined ? [message] : [message, fields]),
  };
  return { errors, logger };
}

/** Collects and hides what is written with console.error. */
function consoleErrors() {
  const spy = jest.spyOn(console, 'error').mockImplementation(() => {});
  return () => spy.mock.calls.map(([message, fields]) => [String(message), fields] as const);
}

function failing(error: () => unknown): LLMProvider {
  return { chat: () => Promise.reject(error()) };
}

afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

/** Prompts a chat and reads the response to its end. */
async function chatWith(options: Partial<ChatHandlerOptions>): Promise<string> {
  const store = new MemoryRunStore();
  const handler = createChatHandler({ store, authenticate: () => 'u1', ...options } as ChatHandlerOptions);
  const response = await chatOf(handler).post({ id: 'c1', messages: [said('Go')] });
  const text = await response.text();
  await handler.close();
  return text;
}

const REFUSED =
  /^Run failed: LLM call failed: 401 from http:\/\/127\.0\.0\.1:\d+\/v1: the key was refused \(Incorrect API key provided: \[redacted\].*\); check apiKey/;

describe('a provider failure', () => {
  test('is logged as an error by a chat, and not shown to the user', async () => {
    const { server, config } = await failingApi(401);
    await using _ = server;
    const { errors, logger } = errorLog();
    const shown = await chatWith({ ...config, logger });
    expect(shown).not.toContain('key was refused');
    expect(errors).toEqual([
      [expect.stringMatching(REFUSED), { runId: expect.any(String), conversationId: 'c1', model: 'gpt-5' }],
    ]);
    expect(JSON.stringify(errors)).not.toContain(KEY);
  });

  test('is written to the console by a chat without a logger', async () => {
    const { server, config } = await failingApi(500);
    await using _ = server;
    const written = consoleErrors();
    await chatWith(config);
    expect(written()).toEqual([
      [
        expect.stringMatching(/^toolwright: Run failed: LLM call failed: 500 from .*the server failed/),
        expect.objectContaining({ conversationId: 'c1' }),
      ],
    ]);
  });

  test('is logged by createAgent for runs, a conversation and conversations', async () => {
    const { server, config } = await failingApi(401);
    await using _ = server;
    const uses = [
      (agent: Awaited<ReturnType<typeof createAgent>>) => agent.run('Go'),
      (agent: Awaited<ReturnType<typeof createAgent>>) => agent.conversation().prompt('Go'),
      async (agent: Awaited<ReturnType<typeof createAgent>>) => {
        const conversations = await agent.conversations();
        await conversations.prompt('c1', 'Go');
        await conversations.idle('c1');
      },
    ];
    for (const use of uses) {
      const { errors, logger } = errorLog();
      await using agent = await createAgent({ ...config, logger });
      await use(agent);
      expect(errors).toEqual([[expect.stringMatching(REFUSED), expect.any(Object)]]);
    }
  });

  test('is logged by Nest or the logger of the module, and not written to the console', async () => {
    const { server, config } = await failingApi(401);
    await using _ = server;
    const written = consoleErrors();
    const nest: string[] = [];
    const keep = (entry: unknown) => nest.push(String(Reflect.get(Object(entry), 'message')));
    const none = () => {};
    const nestLogger = { log: none, warn: none, debug: none, verbose: none, error: keep };
    const use = async (module: INestApplicationContext) => {
      const service = module.get(ToolwrightService);
      expect((await service.run(USER as never)).status).toBe('failed');
      await service.conversations.prompt('c1', 'Go');
      await service.conversations.idle('c1');
      await module.close();
    };
    const moduleOf = (more: object) =>
      Test.createTestingModule({
        imports: [ToolwrightModule.forRoot({ ...config, store: new MemoryRunStore(), ...more })],
      })
        .setLogger(nestLogger)
        .compile();
    await use(await moduleOf({}));
    NestLogger.overrideLogger(['log', 'error', 'warn', 'debug', 'verbose', 'fatal']);
    expect(nest.length).toBeGreaterThan(0);
    for (const message of nest) expect(message).toMatch(REFUSED);
    const { errors, logger } = errorLog();
    await use(await moduleOf({ logger }));
    expect(errors).toEqual([[expect.stringMatching(REFUSED), expect.any(Object)]]);
    expect(written()).toEqual([]);
  });

  test('of a plain run is written to the console, or logged by the registry if it has a logger', async () => {
    const provider = new OpenAIProvider({ baseURL: 'http://127.0.0.1:1/v1', apiKey: KEY, maxRetries: 0 });
    const config = { provider, model: 'm', providerRetries: 0 };
    const written = consoleErrors();
    const { errors, logger } = errorLog();
    await runToolLoop({ ...config, tools: new ToolRegistry({ logger }) }, USER);
    expect(written()).toEqual([]);
    await runToolLoop(config, USER);
    for (const [message] of [...errors, ...written()]) expect(message).toMatch(/Run failed: .*cannot reach/);
    expect([errors.length, written().length]).toEqual([1, 1]);
  });

  test('is logged once per cause and minute, even if the request id differs', async () => {
    const { server, config } = await failingApi(500, 500, 500, 401, 500);
    await using _ = server;
    jest.useFakeTimers({
      doNotFake: ['nextTick', 'setImmediate', 'setTimeout', 'setInterval', 'queueMicrotask', 'performance'],
    });
    const { errors, logger } = errorLog();
    for (let run = 0; run < 5; run += 1) await runToolLoop({ ...config, logger }, USER);
    expect(errors.map(([message]) => message)).toEqual([
      expect.stringMatching(/500 from .*req_1a8c9/),
      expect.stringMatching(REFUSED),
    ]);
    jest.setSystemTime(Date.now() + 59_000);
    await runToolLoop({ ...config, logger }, USER);
    expect(errors).toHaveLength(2);
    jest.setSystemTime(Date.now() + 1_000);
    await runToolLoop({ ...config, logger }, USER);
    expect(errors.slice(2)).toEqual([
      [expect.stringMatching(/500 from .*req_7a8c9/), expect.objectContaining({ repeats: 4 })],
    ]);
  });

  test('is logged once for all runs that their store cannot save', async () => {
    class FullStore extends MemoryRunStore {
      override begin(): never {
        throw new Error('database or disk is full');
      }
    }
    const { errors, logger } = errorLog();
    const config = {
      provider: failing(() => 'unused'),
      model: 'm',
      checkpoint: 'step',
      leaseMs: 500,
    } as const;
    const failed = ['a', 'b', 'order-c', 'c.1'].map((runId) =>
      runToolLoop({ ...config, runId, store: new FullStore(), logger }, USER),
    );
    await Promise.allSettled(failed);
    expect(errors).toEqual([
      [
        expect.stringMatching(/^Run 'a' could not be saved; .*: database or disk is full$/),
        expect.anything(),
      ],
    ]);
  });

  test('with always new messages is logged each time, with limited memory', async () => {
    const { errors, logger } = errorLog();
    const ways = Array.from({ length: 300 }, (_, way) => `${'x'.repeat(way % 20)}${'y'.repeat(way / 20)}`);
    for (const way of [...ways, ways[0], ways[299]])
      await runToolLoop({ provider: failing(() => new Error(`broke: ${way}!`)), model: 'm', logger }, USER);
    expect(errors).toHaveLength(301);
  });

  test('is logged without secrets and without the request', async () => {
    const { errors, logger } = errorLog();
    const thrown = () =>
      Object.assign(
        new Error(`Authorization: Bearer ${KEY} is wrong, see https://u:hunter2@api.example/?api_key=abc123`),
        {
          requestBodyValues: { messages: [{ content: 'Ada Lovelace' }] },
          headers: { authorization: `Bearer ${KEY}` },
        },
      );
    await runToolLoop({ provider: failing(thrown), model: 'm', logger }, USER);
    const [[message, fields] = ['']] = errors;
    expect(message).toContain('Authorization: Bearer [redacted]');
    expect(fields?.error).toMatchObject({ stack: expect.stringContaining('failure-logs.test') });
    const all = inspect([message, fields], { depth: 9, showHidden: true, maxStringLength: null });
    for (const secret of [KEY, 'hunter2', 'abc123', 'Ada Lovelace']) expect(all).not.toContain(secret);
  });
});

describe('not a failure', () => {
  test('a run that is aborted or reaches its limit is not logged', async () => {
    const written = consoleErrors();
    const { errors, logger } = errorLog();
    const abort = new AbortController();
    const provider: LLMProvider = {
      chat: () => {
        abort.abort();
        return Promise.reject(new Error('cut'));
      },
    };
    const aborted = await runToolLoop({ provider, model: 'm', logger, signal: abort.signal }, USER);
    const limited = await runToolLoop({ provider, model: 'm', logger, maxIterations: 0 }, USER);
    expect([aborted.status, limited.status, errors, written()]).toEqual(['aborted', 'limit', [], []]);
  });

  test('a request that succeeds after a retry is not logged', async () => {
    const { errors, logger } = errorLog();
    let tries = 0;
    const provider: LLMProvider = {
      chat: async () => {
        tries += 1;
        if (tries === 1) throw new ProviderError('busy', { retryable: true, retryAfterMs: 0 });
        return { content: 'Hi', toolCalls: [], finishReason: 'stop' };
      },
    };
    expect((await runToolLoop({ provider, model: 'm', logger }, USER)).status).toBe('completed');
    expect(errors).toEqual([]);
  });
});

describe('a turn that fails without a reply', () => {
  const provider = failing(() => new Error('never asked'));

  test.each<[string, object, RegExp]>([
    [
      'because its config is wrong',
      { config: () => ({ provider, modle: 'm' }) },
      /^Turn failed: .*modle is not an option/,
    ],
    [
      'because its config function rejects',
      { config: () => Promise.reject(new Error('no row')), leaseMs: 50 },
      /^Turn failed: The turn was not run: `config` of Conversations failed/,
    ],
  ])('%s is logged as an error', async (_, options, message) => {
    const { errors, logger } = errorLog();
    const conversations = new Conversations({ store: new MemoryRunStore(), logger, ...options } as never);
    await conversations.prompt('c1', 'Go');
    await conversations.idle('c1');
    await conversations.close();
    expect(errors).toEqual([
      [expect.stringMatching(message), expect.objectContaining({ conversationId: 'c1' })],
    ]);
  });

  test('because code of the application throws is logged with the stack', async () => {
    const { errors, logger } = errorLog();
    const prepareStep = (): never => {
      throw new TypeError('no such column');
    };
    const config = { provider, model: 'm', prepareStep };
    const conversations = new Conversations({ store: new MemoryRunStore(), logger, config, pollMs: 50 });
    await conversations.prompt('c1', 'Go');
    await conversations.idle('c1');
    await conversations.close();
    expect(errors[0]).toEqual([
      expect.stringContaining('no such column'),
      expect.objectContaining({
        error: expect.objectContaining({ stack: expect.stringContaining('failure-logs') }),
      }),
    ]);
    const alone = errorLog();
    const conversation = new Conversation({ ...config, logger: alone.logger });
    expect(await conversation.prompt('Go')).toMatchObject({ status: 'failed' });
    expect(alone.errors[0]?.[0]).toContain('no such column');
  });
});

describe('an exception in application code', () => {
  const broken = (): never => {
    throw new Error('no such column');
  };
  const tool = { name: 'work', description: 'Works', execute: () => 'done' };
  /** One call of a tool in a run without a logger. */
  const callOnce = (tools: readonly object[], config: object = {}) =>
    runToolLoop(
      {
        provider: new ScriptedProvider([{ toolCalls: [{ name: 'work', arguments: {} }] }, { content: 'ok' }]),
        model: 'm',
        tools: tools.map((options) => defineTool(options as never)),
        ...config,
      },
      USER,
    );

  test.each<[string, RegExp, () => Promise<unknown>]>([
    ['a policy', /A policy threw; the call was refused/, () => callOnce([tool], { policy: broken })],
    [
      'a hook of calls',
      /The hook 'acl' failed in beforeCall/,
      () => callOnce([tool], { hooks: [{ name: 'acl', beforeCall: broken }] }),
    ],
    [
      '`approval.when`',
      /The approval function of a tool failed; the call needs an approval/,
      () => callOnce([{ ...tool, approval: { when: broken } }]),
    ],
    [
      'a listener for async results',
      /A listener for async results threw/,
      async () => {
        await callOnce(
          [{ ...tool, execute: (_: object, context: ToolContext) => context.background(() => 1) }],
          { onAsyncResult: broken },
        );
        await pause(20);
      },
    ],
    [
      '`authenticate` of a chat',
      /A chat request was not authenticated/,
      () => chatWith({ provider: new ScriptedProvider([]), model: 'm', authenticate: broken }),
    ],
  ])('is written to the console: %s', async (_what, message, act) => {
    const written = consoleErrors();
    await act();
    expect(written()).toEqual([
      [
        expect.stringMatching(new RegExp(`^toolwright: ${message.source}.*: no such column`)),
        expect.objectContaining({
          error: expect.objectContaining({ stack: expect.stringContaining('failure-logs') }),
        }),
      ],
    ]);
  });

  test('is logged with the call, once per cause and minute', async () => {
    const { errors, logger } = errorLog();
    for (let run = 0; run < 3; run += 1) await callOnce([tool], { policy: broken, logger });
    const mine = errors.filter(([message]) => message.startsWith('A policy threw'));
    expect(mine).toEqual([
      [expect.any(String), expect.objectContaining({ tool: 'work', callId: expect.any(String) })],
    ]);
  });

  test('is not logged if it refuses a client, as an HttpException below 500', async () => {
    const written = consoleErrors();
    const authenticate = () => {
      throw new UnauthorizedException('no token');
    };
    await chatWith({ provider: new ScriptedProvider([]), model: 'm', authenticate });
    expect(written()).toEqual([]);
  });

  test('is logged even if the error object throws on every access', async () => {
    const written = consoleErrors();
    const policy = () => {
      throw new Proxy(new Error('x'), { get: broken, has: broken, getPrototypeOf: broken });
    };
    const result = await callOnce([tool], { policy });
    expect(result.status).toBe('completed');
    expect(written()).toEqual([[expect.stringMatching(/^toolwright: A policy threw/), expect.any(Object)]]);
  });
});

describe('failed background work', () => {
  const background = { name: 'work', description: 'Works', background: true };
  const failsLater = defineTool({
    ...background,
    execute: () => {
      throw new Error('no such column');
    },
  });
  const provider = () =>
    new ScriptedProvider([{ toolCalls: [{ name: 'work', arguments: {} }] }, { content: 'ok' }]);

  /** Resolves when the background work has ended. */
  const heard = async (start: (onAsyncResult: () => void) => Promise<unknown>) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    await start(resolve);
    await promise;
  };

  test('is written to the console, both in this process and as a job', async () => {
    const written = consoleErrors();
    await heard((onAsyncResult) =>
      runToolLoop({ provider: provider(), model: 'm', tools: [failsLater], onAsyncResult }, USER),
    );
    expect(written()).toEqual([
      [
        expect.stringMatching(/^toolwright: Async tool failed: .*no such column/),
        expect.objectContaining({ tool: 'work' }),
      ],
    ]);
    const [engine, store] = [new MemoryJobEngine(), new MemoryRunStore()];
    let jobs: Awaited<ReturnType<typeof runJobs>> | undefined;
    await heard(async (onAsyncResult) => {
      jobs = await runJobs({ engine, store, tools: [failsLater], onAsyncResult });
      await runToolLoop({ provider: provider(), model: 'm', tools: [failsLater], engine, store }, USER);
    });
    await jobs?.close();
    await engine.close();
    expect(written()[1]).toEqual([
      expect.stringMatching(/^toolwright: A job failed: .*no such column/),
      expect.objectContaining({ tool: 'work', jobId: expect.any(String) }),
    ]);
  });

  test('is not logged if the work was aborted', async () => {
    const written = consoleErrors();
    const abort = new AbortController();
    const endless = defineTool({
      ...background,
      execute: (_: object, { signal }: ToolContext) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason));
        }),
    });
    await runToolLoop(
      { provider: provider(), model: 'm', tools: [endless], signal: abort.signal, onAsyncResult: () => {} },
      USER,
    );
    abort.abort();
    await pause(20);
    expect(written()).toEqual([]);
  });
});
