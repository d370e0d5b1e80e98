import { once } from 'node:events';
import { afterEach, expect, test } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Inject,
  Injectable,
  type ModuleMetadata,
  type NestInterceptor,
  Scope,
  Sse,
  UseInterceptors,
} from '@nestjs/common';
import { type ContextId, ContextIdFactory, NestFactory, REQUEST } from '@nestjs/core';
import { ClsModule, ClsService } from 'nestjs-cls';
import { filter, finalize, from, map, switchMap, timer } from 'rxjs';
import { TaskQueue, Tool, ToolContext, ToolRegistry } from 'toolwright';
import { ToolwrightModule, type ToolwrightModuleOptions, ToolwrightService } from 'toolwright/nestjs';
import { ScriptedProvider } from 'toolwright/testing';
import { disableTimeouts } from '../../setup/loopback.js';
import { boot } from './boot.js';

interface Asking {
  readonly headers: { readonly user: string };
}

let made = 0;

@Injectable({ scope: Scope.REQUEST })
class Caller {
  readonly number: number;

  constructor(@Inject(REQUEST) private readonly request: Asking) {
    made += 1;
    this.number = made;
  }

  get user(): string {
    return this.request.headers.user;
  }
}

@Injectable()
class CallerTools {
  constructor(private readonly caller: Caller) {}

  @Tool('Who?')
  who() {
    return `${this.caller.user} ${this.caller.number}`;
  }

  @Tool({ description: 'Later', background: true })
  async later() {
    return this.caller.user;
  }

  @Tool({ description: 'Ask', approval: true })
  approved() {
    return this.caller.user;
  }
}

const open = new Set<INestApplication>();

afterEach(async () => {
  await Promise.all([...open].map((app) => app.close()));
  open.clear();
});

/** Starts an application, and returns a function that requests one of its routes as a user. */
async function listen(options: ToolwrightModuleOptions, metadata: ModuleMetadata) {
  class AppModule {}
  const root = { module: AppModule, ...metadata, imports: [ToolwrightModule.forRoot(options)] };
  const app = await NestFactory.create(root, { logger: false, abortOnError: false });
  open.add(app);
  disableTimeouts(app.getHttpServer());
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const get = async (path: string, user: string): Promise<string> => {
    const response = await fetch(`${url}${path}`, { headers: { user } });
    return response.text();
  };
  return { app, get };
}

test('calls of a handler belong to its request, and share its request-scoped instances', async () => {
  @Controller('shared')
  class SharedController {
    constructor(
      private readonly caller: Caller,
      private readonly tools: ToolRegistry,
    ) {}

    @Get()
    async shared() {
      const first = await this.tools.execute('who');
      const second = await this.tools.execute('who');
      return [`${this.caller.user} ${this.caller.number}`, first.forLLM, second.forLLM];
    }
  }
  @Controller('static')
  class StaticController {
    constructor(private readonly tools: ToolRegistry) {}

    @Get()
    async who() {
      return (await this.tools.execute('who')).forLLM;
    }
  }
  const { get } = await listen(
    {},
    { controllers: [SharedController, StaticController], providers: [Caller, CallerTools] },
  );
  const users = Array.from({ length: 10 }, (_, index) => `user-${index}`);
  for (const answer of await Promise.all(users.map((user) => get('/shared', user))))
    expect(new Set(JSON.parse(answer)).size).toBe(1);
  const alone = await Promise.all(users.map((user) => get('/static', user)));
  expect(alone.map((answer) => answer.split(' ')[0])).toEqual(users);
});

test('calls belong to their request even if an interceptor or the handler starts late', async () => {
  class Late implements NestInterceptor {
    intercept(_context: ExecutionContext, next: CallHandler) {
      return timer(0).pipe(switchMap(() => next.handle()));
    }
  }
  @Controller()
  class LateController {
    constructor(
      private readonly tools: ToolRegistry,
      private readonly toolwright: ToolwrightService,
    ) {}

    @Get('intercepted')
    @UseInterceptors(Late)
    intercepted() {
      return this.call();
    }

    @Get('observed')
    observed() {
      return timer(0).pipe(switchMap(() => this.call()));
    }

    @Sse('events')
    events() {
      const provider = new ScriptedProvider([
        { content: '', toolCalls: [{ id: 'a', name: 'who', arguments: {} }] },
        { content: 'done' },
      ]);
      return from(this.toolwright.stream([], { config: { provider, model: 'm' } })).pipe(
        filter((event) => event.type === 'call-end'),
        map(({ result }) => ({ data: result.forLLM })),
      );
    }

    private async call() {
      return (await this.tools.execute('who')).forLLM;
    }
  }
  const { get } = await listen({}, { controllers: [LateController], providers: [Caller, CallerTools] });
  for (const path of ['/intercepted', '/observed', '/events'])
    for (const user of ['ada', 'bob']) expect(await get(path, user)).toMatch(new RegExp(`\\b${user} \\d+`));
});

test('a client that closes its server-sent events aborts the run', async () => {
  const aborted = Promise.withResolvers<string>();
  @Controller()
  class EventsController {
    constructor(private readonly toolwright: ToolwrightService) {}

    @Tool('Wait')
    async wait(context: ToolContext) {
      await once(context.signal, 'abort');
      aborted.resolve(String(context.signal.reason));
    }

    @Sse('events')
    events() {
      const left = new AbortController();
      return from(this.toolwright.stream([], { signal: left.signal })).pipe(
        map(({ type }) => ({ data: type })),
        finalize(() => left.abort('the client has left')),
      );
    }
  }
  const provider = new ScriptedProvider([
    { content: '', toolCalls: [{ id: 'a', name: 'wait', arguments: {} }] },
  ]);
  const { app } = await listen({ provider, model: 'm' }, { controllers: [EventsController] });
  const leaving = new AbortController();
  const response = await fetch(`${await app.getUrl()}/events`, { signal: leaving.signal });
  let said = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    said += decoder.decode(chunk);
    if (said.includes('call-start')) break;
  }
  leaving.abort();
  expect(await aborted.promise).toBe('the client has left');
});

test('background work keeps the request that started it, even if it waited for other work', async () => {
  const completed: string[] = [];
  @Controller()
  class StartController {
    constructor(private readonly tools: ToolRegistry) {}

    @Get()
    async start() {
      const heard = (_context: unknown, { forLLM }: { readonly forLLM: string }) => completed.push(forLLM);
      return (await this.tools.executeWithContext('later', {}, {}, heard)).forLLM;
    }
  }
  const tasks = new TaskQueue({ maxRunning: 1 });
  const { get } = await listen(
    { tasks },
    { controllers: [StartController], providers: [Caller, CallerTools] },
  );
  const users = ['ada', 'bob', 'eve'];
  expect(new Set(await Promise.all(users.map((user) => get('/', user))))).toEqual(
    new Set(['Started; the result will follow.']),
  );
  await tasks.idle();
  expect(completed.toSorted()).toEqual(users);
});

test('a nestjs-cls context reaches background work that waited for other work', async () => {
  @Injectable()
  class ClsTools {
    constructor(private readonly cls: ClsService) {}

    @Tool({ description: 'Later', background: true })
    async later() {
      return this.cls.get('user');
    }
  }
  const tasks = new TaskQueue({ maxRunning: 1 });
  const { tools, module } = await boot({
    options: { tasks },
    imports: [ClsModule.forRoot({ global: true })],
    providers: [ClsTools],
  });
  const cls = module.get(ClsService);
  const completed: string[] = [];
  for (const user of ['ada', 'bob', 'eve']) {
    await cls.runWith({ user } as never, () =>
      tools.executeWithContext('later', {}, {}, (_context, { forLLM }) =>
        completed.push(`${user}: ${forLLM}`),
      ),
    );
  }
  await tasks.idle();
  expect(completed).toEqual(['ada: ada', 'bob: bob', 'eve: eve']);
});

test('a resumed run belongs to the request that resumes it', async () => {
  const script = () =>
    new ScriptedProvider([
      { content: '', toolCalls: [{ id: 'a', name: 'approved', arguments: {} }] },
      { content: 'done' },
    ]);
  const { toolwright } = await boot({ options: { model: 'm' }, providers: [Caller, CallerTools] });
  const as = (user: string, provider: ScriptedProvider) => ({
    request: { headers: { user } },
    config: { provider },
  });
  const suspend = async (provider: ScriptedProvider) => {
    const { state, pending = [] } = await toolwright.run([], as('ada', provider));
    return { state, answers: pending.map(({ id }) => ({ id, approved: true })) };
  };
  const provider = script();
  const first = await suspend(provider);
  const resumed = await toolwright.resume(first.state, first.answers, as('bob', provider));
  expect(resumed.toolCalls.map(({ result }) => result.forLLM)).toEqual(['bob']);

  const streaming = script();
  const second = await suspend(streaming);
  const stream = toolwright.streamResumed(second.state, second.answers, as('eve', streaming));
  const seen: string[] = [];
  for await (const event of stream) if (event.type === 'call-end') seen.push(event.result.forLLM);
  expect(seen).toEqual(['eve']);
  expect((await stream.result).status).toBe('completed');
});

test('a durable provider gets the payload of its tenant, and never the request of one user', async () => {
  const tenant = ContextIdFactory.create();
  ContextIdFactory.apply({
    attach: (contextId: ContextId) => ({
      resolve: ({ isTreeDurable }) => (isTreeDurable ? tenant : contextId),
      payload: { tenant: 'acme' },
    }),
  });
  try {
    @Injectable({ scope: Scope.REQUEST, durable: true })
    class Pool {
      constructor(@Inject(REQUEST) private readonly payload: object) {}

      @Tool('Keys of the payload')
      payloadKeys() {
        return Object.keys(this.payload);
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class Mixed {
      constructor(
        @Inject(REQUEST) private readonly request: Asking,
        private readonly pool: Pool,
      ) {}

      @Tool('Both')
      both() {
        return [this.request.headers.user, ...this.pool.payloadKeys()];
      }
    }
    for (const order of [
      ['payload_keys', 'both'],
      ['both', 'payload_keys'],
    ]) {
      const { tools, toolwright } = await boot({ providers: [Pool, Mixed] });
      for (const user of ['ada', 'bob']) {
        const scope = toolwright.scopeOf({ headers: { user } });
        for (const name of order) {
          const { forLLM } = await tools.executeWithContext(name, {}, scope);
          expect(JSON.parse(forLLM)).toEqual(name === 'both' ? [user, 'tenant'] : ['tenant']);
        }
      }
    }
  } finally {
    Reflect.set(ContextIdFactory, 'strategy', undefined);
  }
});

test('context.resolve cannot return request-scoped and transient providers', async () => {
  @Injectable({ scope: Scope.TRANSIENT })
  class Fresh {}
  @Injectable()
  class Resolving {
    @Tool('Resolve')
    resolve(token: 'caller' | 'fresh', context: ToolContext) {
      return context.resolve<object>(token === 'caller' ? Caller : Fresh);
    }
  }
  const { tools, toolwright } = await boot({ providers: [Resolving, Caller, Fresh] });
  const scope = toolwright.scopeOf({ headers: { user: 'ada' } });
  for (const token of ['caller', 'fresh'])
    expect((await tools.executeWithContext('resolve', { token }, scope)).isError).toBe(true);
});

test('the service can be injected in a request-scoped provider', async () => {
  @Injectable({ scope: Scope.REQUEST })
  class Assistant {
    constructor(readonly toolwright: ToolwrightService) {}
  }
  const { module, toolwright } = await boot({ providers: [Assistant] });
  expect((await module.resolve(Assistant)).toolwright).toBe(toolwright);
});
