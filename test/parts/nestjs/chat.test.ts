import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  All,
  type CanActivate,
  Controller,
  type ExecutionContext,
  ForbiddenException,
  type INestApplication,
  Inject,
  Injectable,
  Post,
  Req,
  Res,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { Conversations, InvalidOptionsError, type LLMProvider, Tool, ToolContext } from 'toolwright';
import { ToolwrightModule, type ToolwrightModuleOptions, ToolwrightService } from 'toolwright/nestjs';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { AgUiUser } from '../chat/ag-ui-reader.js';
import { readMessage, said } from '../chat/chat-reader.js';
import { hangingModel } from '../chat/hanging-model.js';
import { type BootOptions, boot } from './boot.js';

interface Asking {
  readonly headers: Readonly<Record<string, string>>;
  user?: string;
}

/** A guard of the application: refuses requests without a user, and the user Eve. */
@Injectable()
class NamedOnly implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Asking | undefined>();
    if (request?.headers !== undefined) request.user ??= request.headers['x-user'];
    if (request?.user === 'eve') throw new ForbiddenException('not you');
    return request?.user !== undefined;
  }
}

@Injectable()
class Shop {
  @Tool({ description: 'Place an order', approval: true })
  place(context: ToolContext): string {
    return `placed for ${JSON.stringify(context.data)}`;
  }
}

@Controller('own')
class OwnController {
  constructor(@Inject(ToolwrightService) private readonly toolwright: ToolwrightService) {}

  @Post()
  chat(@Req() request: object) {
    return this.toolwright.chat(request);
  }

  @All(':id/stream')
  stream(@Req() request: object) {
    return this.toolwright.chat(request);
  }

  @Post('agent')
  agent(@Req() request: object) {
    return this.toolwright.chat(request, { protocol: 'ag-ui' });
  }

  @Post('written')
  async written(@Req() request: object, @Res() response: object): Promise<void> {
    await this.toolwright.chat(request, { response });
  }
}

const applications: INestApplication[] = [];

afterEach(async () => {
  for (const application of applications.splice(0)) await application.close();
});

const place = () => [{ toolCalls: [{ name: 'place', arguments: {} }] }, { content: 'Done.' }];

/** Serves the shop over HTTP on loopback. */
async function open(
  options: Partial<ToolwrightModuleOptions> = {},
  more: Partial<BootOptions> = {},
): Promise<string> {
  const { module } = await boot({
    options: {
      provider: new ScriptedProvider(place()),
      model: 'm',
      store: new MemoryRunStore(),
      owner: ({ user }: Asking) => (user === undefined ? undefined : { user }),
      scopeOf: ({ user }: { readonly user: string }) => ({
        request: { user },
        data: { userId: user } as never,
      }),
      ...options,
    },
    providers: [Shop, { provide: APP_GUARD, useClass: NamedOnly }],
    controllers: [OwnController],
    ...more,
  });
  const application = module.createNestApplication({ logger: false });
  applications.push(application);
  await application.listen(0, '127.0.0.1');
  return `http://127.0.0.1:${(application.getHttpServer().address() as AddressInfo).port}`;
}

const ask = (url: string, body: object | undefined, user?: string): Promise<Response> =>
  fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json', ...(user === undefined ? {} : { 'x-user': user }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

/** A whole conversation with an approval, over a route. */
async function converse(url: string): Promise<unknown> {
  const sent = await ask(url, { id: 'c1', messages: [said('Order', 'm1')] }, 'ada');
  expect(sent.status).toBe(200);
  expect(sent.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
  const { message, violations } = await readMessage(sent);
  expect(violations).toEqual([]);
  const parts = message?.parts.map((part) =>
    'approval' in part
      ? { ...part, state: 'approval-responded', approval: { ...part.approval, approved: true } }
      : part,
  );
  const answered = { ...message, parts } as never;
  expect((await ask(url, { id: 'c1', messages: [answered] }, 'bob')).status).toBe(403);
  const done = await readMessage(await ask(url, { id: 'c1', messages: [answered] }, 'ada'), answered);
  expect(done.violations).toEqual([]);
  return done.message?.parts;
}

const ORDERED = [
  { type: 'step-start' },
  { type: 'tool-place', state: 'output-available', output: 'placed for {"userId":"ada"}' },
  { type: 'step-start' },
  { type: 'text', text: 'Done.' },
];

describe('ToolwrightService.chat', () => {
  test('answers on a route behind the guards of the application, for the owner of the request', async () => {
    const url = await open();
    expect(await converse(`${url}/own`)).toMatchObject(ORDERED);
    expect((await ask(`${url}/own`, { id: 'c2', messages: [said('Hi')] })).status).toBe(403);
    expect((await ask(`${url}/own`, { id: 'c2', messages: [said('Hi')] }, 'eve')).status).toBe(403);
    expect((await ask(`${url}/own/c1/stream`, undefined, 'ada')).status).toBe(204);
    expect((await ask(`${url}/own/c1/stream`, undefined, 'bob')).status).toBe(403);
  });

  test('writes to a given response', async () => {
    expect(await converse(`${await open()}/own/written`)).toMatchObject(ORDERED);
  });

  test('uses the given protocol', async () => {
    const url = await open();
    const user = new AgUiUser(
      { fetch: async (request) => ask(`${url}/own/agent`, (await request.json()) as object, 'ada') },
      { thread: 'c1' },
    );
    await user.say('Order');
    await user.run({
      resume: [
        { interruptId: user.interrupts[0]?.id as string, status: 'resolved', payload: { approved: true } },
      ],
    });
    expect(user.violations).toEqual([]);
    expect(user.agent.messages.at(-1)).toMatchObject({ content: 'Done.' });
  });

  test('aborts the turn with `abortOnLeave` when its reader disconnects', async () => {
    const aborted = Promise.withResolvers<void>();
    const provider: LLMProvider = {
      chat: () => Promise.reject(new Error('only streams')),
      async *stream({ signal }) {
        yield { type: 'text-delta', text: 'Let me' };
        await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
      },
    };
    const url = await open({ provider, chat: { abortOnLeave: true } });
    const leaving = new AbortController();
    const response = await fetch(`${url}/own`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { 'content-type': 'application/json', 'x-user': 'ada' },
      body: JSON.stringify({ id: 'c1', messages: [said('Hi')] }),
    });
    const reader = response.body?.getReader();
    for (let text = ''; !text.includes('Let me'); )
      text += new TextDecoder().decode((await reader?.read())?.value);
    leaving.abort();
    await reader?.closed.catch(() => aborted.resolve());
    await aborted.promise;
    const toolwright = applications.at(-1)?.get(ToolwrightService);
    expect(await toolwright?.conversations.idle('c1')).toMatchObject({ status: 'idle', turns: 1 });
  });

  test('rejects without `owner`, because the chat would belong to nobody', async () => {
    const { toolwright } = await boot({ options: { store: new MemoryRunStore() } });
    await expect(toolwright.chat({ method: 'GET', headers: {}, url: '/' })).rejects.toThrow('owner');
  });
});

describe('ToolwrightModule.forChat', () => {
  test.each([
    ['takes turns', undefined],
    ['only serves chats', false],
  ])(
    'a shutdown of an application that %s ends the response of a turn that takes too long',
    async (_what, worker) => {
      const { provider, begun } = hangingModel();
      const store = new MemoryRunStore();
      const other = new Conversations({
        store,
        config: { provider, model: 'm' },
        takesTurns: worker === false,
      });
      const url = await open(
        { provider, store, worker, shutdownTimeoutMs: 20 },
        { imports: [ToolwrightModule.forChat()] },
      );
      const response = await ask(`${url}/chat`, { id: 'c1', messages: [said('Hi', 'm1')] }, 'ada');
      const text = response.text();
      await begun;
      await applications.pop()?.close();
      expect(await text).toContain('"start"');
      expect(await store.conversations.read('c1')).toMatchObject({ turns: 1, turn: { runId: 'c1.1' } });
      await other.close({ timeoutMs: 20 });
    },
  );

  test('serves a route behind the guards of the application and its own guards', async () => {
    const guarded: string[] = [];
    const own: CanActivate = {
      canActivate: (context) =>
        guarded.push(context.switchToHttp().getRequest<{ method: string }>().method) > 0,
    };
    const url = await open(
      { chat: { heartbeatMs: 1000 } },
      {
        imports: [ToolwrightModule.forChat({ path: 'api/chat', guards: [own] }), ToolwrightModule.forChat()],
      },
    );
    expect(await converse(`${url}/api/chat`)).toMatchObject(ORDERED);
    expect(guarded).toEqual(['POST', 'POST', 'POST']);
    const kept = await ask(`${url}/chat/c1/messages`, undefined, 'ada');
    expect(((await kept.json()) as readonly { readonly id: string }[]).map(({ id }) => id)).toEqual([
      'm1',
      'turn-1',
    ]);
    expect((await ask(`${url}/chat/c1/messages`, undefined)).status).toBe(403);
  });

  test('answers a body that is nested too deep with 400', async () => {
    const url = await open({}, { imports: [ToolwrightModule.forChat()] });
    const deep = '['.repeat(40_000) + ']'.repeat(40_000);
    const message = JSON.stringify({ ...said('Hi', 'm1'), metadata: 'DEEP' }).replace('"DEEP"', deep);
    const refused = await fetch(`${url}/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-user': 'ada' },
      body: `{"id":"c1","messages":[${message}]}`,
    });
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining('nested deeper than 500 levels'),
    ]);
  });

  test('reports all missing options of its chats at start, and needs no model without a worker', async () => {
    const start = (options: ToolwrightModuleOptions, chat = {}) =>
      boot({ options, imports: [ToolwrightModule.forChat(chat)] });
    const faults = (options: ToolwrightModuleOptions, chat = {}) =>
      start(options, chat).then(
        () => [],
        (error: InvalidOptionsError) => error.faults.map(({ option }) => option),
      );
    expect(await faults({})).toEqual(['owner', 'store', 'provider', 'model']);
    const owner = () => ({ user: 'ada' });
    const provider = new ScriptedProvider(place());
    const store = new MemoryRunStore();
    expect(await faults({ store, provider, model: 'm' })).toEqual(['owner']);
    expect(await faults({ owner, provider, model: 'm' })).toEqual(['store']);
    const { jobs } = new MemoryRunStore();
    expect(await faults({ owner, provider, model: 'm', store: { jobs } as never })).toEqual(['store']);
    expect(await faults({ owner, store, provider })).toEqual(['model']);
    const mayAnswer = () => true;
    expect(await faults({ owner, store, provider, model: 'm' }, { mayAnswer })).toEqual(['mayAnswer']);
    await expect(start({})).rejects.toThrow(InvalidOptionsError);
    await start({ owner, store, worker: false });
  });

  test('reports a missing `forRoot`', async () => {
    const alone = Test.createTestingModule({ imports: [ToolwrightModule.forChat()] }).setLogger(
      false as never,
    );
    await expect(alone.compile()).rejects.toThrow(
      'ToolwrightModule.forChat: the application has no ToolwrightModule.forRoot',
    );
  });

  test('refuses unknown options', () => {
    expect(() => ToolwrightModule.forChat({ paht: 'x' } as never)).toThrow('path');
    expect(() => ToolwrightModule.forChat({ guards: undefined as never })).toThrow('guards is undefined');
  });
});
