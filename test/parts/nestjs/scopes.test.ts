import { afterEach, expect, test } from '@jest/globals';
import { type CanActivate, Controller, Get, Inject, Injectable, Scope, UseGuards } from '@nestjs/common';
import { type ContextId, ContextIdFactory, type ContextIdStrategy, REQUEST } from '@nestjs/core';
import { ClsModule, ClsService } from 'nestjs-cls';
import { Tool, ToolContext } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { boot } from './boot.js';

interface Asking {
  readonly user: string;
  readonly tenant?: string;
  readonly plan?: string;
}

let made = 0;

@Injectable({ scope: Scope.REQUEST })
class CurrentUser {
  readonly number: number;

  constructor(@Inject(REQUEST) readonly request: Asking | undefined) {
    made += 1;
    this.number = made;
  }
}

/** Request-scoped, because its dependency is. */
@Injectable()
class MineTools {
  constructor(private readonly user: CurrentUser) {}

  @Tool('Who am I?')
  whoAmI() {
    return this.user.request?.user;
  }

  @Tool('Which instance is this?')
  which() {
    return this.user.number;
  }

  @Tool('Which plan?')
  plan() {
    return this.user.request?.plan;
  }
}

afterEach(() => {
  made = 0;
});

test('a toolset with a request-scoped dependency gets the request of its call', async () => {
  const { tools, toolwright } = await boot({ providers: [MineTools, CurrentUser] });
  expect(made).toBe(0);
  const users = Array.from({ length: 200 }, (_, index) => `user-${index}`);
  const answers = await Promise.all(
    users.map((user) => tools.executeWithContext('who_am_i', {}, toolwright.scopeOf({ user }))),
  );
  expect(answers.map(({ forLLM }) => forLLM)).toEqual(users);
});

test('a request-scoped controller is created once for the calls of a request', async () => {
  @Controller()
  class MineController {
    constructor(private readonly user: CurrentUser) {}

    @Get()
    @Tool('Which controller is this?')
    which() {
      return `${this.user.request?.user} ${this.user.number}`;
    }
  }
  const { tools, toolwright } = await boot({ controllers: [MineController], providers: [CurrentUser] });
  const which = async (scope: object) => (await tools.executeWithContext('which', {}, scope)).forLLM;
  const ada = toolwright.scopeOf({ user: 'ada' });
  expect([await which(ada), await which(ada)]).toEqual(['ada 1', 'ada 1']);
  expect(await which(toolwright.scopeOf({ user: 'bob' }))).toBe('bob 2');
});

test('calls of one request share its instances; calls without a request have their own', async () => {
  const { tools, toolwright } = await boot({ providers: [MineTools, CurrentUser] });
  const scope = toolwright.scopeOf({ user: 'ada' });
  const shared = await Promise.all(
    Array.from({ length: 5 }, () => tools.executeWithContext('which', {}, scope)),
  );
  expect(new Set(shared.map(({ forLLM }) => forLLM))).toEqual(new Set(['1']));
  expect((await tools.execute('which')).forLLM).toBe('2');
  expect((await tools.execute('which')).forLLM).toBe('3');
  expect((await tools.execute('who_am_i')).forLLM).toBe('ok');
});

test('a frozen request has its own instances, too, and gets the payload of the strategy', async () => {
  const ask = async (users: readonly string[]) => {
    const { tools, toolwright } = await boot({ providers: [MineTools, CurrentUser] });
    const answers: string[] = [];
    for (const user of users) {
      const scope = toolwright.scopeOf(Object.freeze({ user }));
      for (const name of ['which', 'who_am_i', 'plan', 'which'])
        answers.push((await tools.executeWithContext(name, {}, scope)).forLLM);
    }
    return answers;
  };
  expect(await ask(['ada', 'bob'])).toEqual(['1', 'ada', 'ok', '1', '2', 'bob', 'ok', '2']);
  ContextIdFactory.apply({
    attach: (contextId: ContextId) => ({ resolve: () => contextId, payload: { plan: 'basic' } }),
  });
  try {
    expect(await ask(['eve'])).toEqual(['3', 'eve', 'basic', '3']);
  } finally {
    Reflect.set(ContextIdFactory, 'strategy', undefined);
  }
});

test('a run gets the request and the data of its options', async () => {
  @Injectable()
  class DataTools {
    @Tool('Read the data')
    data(context: ToolContext) {
      return context.data;
    }
  }
  const provider = new ScriptedProvider([
    {
      content: '',
      toolCalls: [
        { id: 'a', name: 'who_am_i', arguments: {} },
        { id: 'b', name: 'data', arguments: {} },
      ],
    },
    { content: 'done' },
  ]);
  const { toolwright } = await boot({
    options: { provider, model: 'm', data: ({ user }: Asking) => ({ userId: user, role: 'guest' }) },
    providers: [MineTools, CurrentUser, DataTools],
  });
  const run = await toolwright.run([{ role: 'user', content: 'hi' }], {
    request: { user: 'ada' },
    data: { role: 'admin' },
  });
  expect(run.status).toBe('completed');
  expect(run.toolCalls.map(({ result }) => result.forLLM)).toEqual([
    'ada',
    JSON.stringify({ userId: 'ada', role: 'admin' }),
  ]);
});

test('a default toolset has one instance, and a transient toolset a new instance for each call', async () => {
  for (const [scope, expected] of [
    [Scope.DEFAULT, ['1', '2', '3']],
    [Scope.TRANSIENT, ['1', '1', '1']],
    [Scope.REQUEST, ['1', '1', '1']],
  ] as const) {
    @Injectable({ scope })
    class Counter {
      #count = 0;

      @Tool('Count')
      count() {
        this.#count += 1;
        return this.#count;
      }
    }
    const { tools } = await boot({ providers: [Counter] });
    const counted = [];
    for (let call = 0; call < 3; call += 1) counted.push((await tools.execute('count')).forLLM);
    expect(counted).toEqual(expected);
  }
});

test('a transient toolset is created for each call of one request, and gets the request', async () => {
  @Injectable({ scope: Scope.TRANSIENT })
  class Fresh {
    #count = 0;

    constructor(private readonly user: CurrentUser) {}

    @Tool('Count')
    count() {
      this.#count += 1;
      return `${this.user.request?.user} ${this.#count}`;
    }
  }
  const { tools, toolwright } = await boot({ providers: [Fresh, CurrentUser] });
  const scope = toolwright.scopeOf({ user: 'ada' });
  const calls = await Promise.all([1, 2].map(() => tools.executeWithContext('count', {}, scope)));
  expect(calls.map(({ forLLM }) => forLLM)).toEqual(['ada 1', 'ada 1']);
});

test('a durable provider is created once per tenant', async () => {
  const tenants = new Map<string, ContextId>();
  const strategy: ContextIdStrategy<Asking> = {
    attach(contextId, { tenant = 'none' }) {
      const known = tenants.get(tenant) ?? ContextIdFactory.create();
      tenants.set(tenant, known);
      return {
        resolve: ({ isTreeDurable }) => (isTreeDurable ? known : contextId),
        payload: { tenant, plan: 'basic' },
      };
    },
  };
  ContextIdFactory.apply(strategy);
  try {
    let pools = 0;
    @Injectable({ scope: Scope.REQUEST, durable: true })
    class TenantTools {
      readonly #pool: number;

      constructor(@Inject(REQUEST) private readonly payload: { readonly tenant: string }) {
        pools += 1;
        this.#pool = pools;
      }

      @Tool('Which tenant?')
      tenant() {
        return `${this.payload.tenant} ${this.#pool}`;
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class PlainTools {
      constructor(@Inject(REQUEST) private readonly request: Asking) {}

      @Tool('Which plan?')
      plan() {
        return `${this.request.user} ${this.request.plan}`;
      }
    }
    const { tools, toolwright } = await boot({ providers: [TenantTools, PlainTools] });
    const asking = toolwright.scopeOf({ user: 'ada', tenant: 'acme' });
    expect((await tools.executeWithContext('plan', {}, asking)).forLLM).toBe('ada basic');
    const ask = async (tenant: string) =>
      (await tools.executeWithContext('tenant', {}, toolwright.scopeOf({ user: 'x', tenant }))).forLLM;
    expect([await ask('acme'), await ask('acme'), await ask('zeta'), await ask('acme')]).toEqual([
      'acme 1',
      'acme 1',
      'zeta 2',
      'acme 1',
    ]);
  } finally {
    Reflect.set(ContextIdFactory, 'strategy', undefined);
  }
});

test('the nestjs-cls context is available in tools, even if the stream is read elsewhere', async () => {
  @Injectable()
  class ClsTools {
    constructor(private readonly cls: ClsService) {}

    @Tool('Who am I?')
    async me() {
      await Promise.resolve();
      return this.cls.get('user');
    }
  }
  const script = () =>
    new ScriptedProvider([
      { content: '', toolCalls: [{ id: 'a', name: 'me', arguments: {} }] },
      { content: 'done' },
    ]);
  const { toolwright, module, tools } = await boot({
    options: { provider: script(), model: 'm' },
    imports: [ClsModule.forRoot({ global: true })],
    providers: [ClsTools],
  });
  const cls = module.get(ClsService);
  const within = <Value>(user: string, work: () => Value): Value => cls.runWith({ user } as never, work);
  expect((await within('ada', () => tools.execute('me'))).forLLM).toBe('ada');
  const messages = [{ role: 'user', content: 'hi' }] as const;
  const stream = within('bob', () => toolwright.stream(messages));
  const results = [];
  for await (const event of stream) if (event.type === 'call-end') results.push(event.result.forLLM);
  expect(results).toEqual(['bob']);
  expect((await stream.result).status).toBe('completed');
  const other = within('eve', () => toolwright.stream(messages, { config: { provider: script() } }));
  expect((await other.result).toolCalls[0]?.result.forLLM).toBe('eve');
});

test('a request-scoped provider that cannot be created fails only its own call', async () => {
  @Injectable({ scope: Scope.REQUEST })
  class Broken {
    constructor(@Inject(REQUEST) request: Asking | undefined) {
      if (request?.user !== 'ada') throw new Error('secret detail');
    }

    @Tool('Work')
    work() {
      return 'worked';
    }
  }
  const { tools, toolwright } = await boot({ providers: [Broken] });
  const as = (user: string) => tools.executeWithContext('work', {}, toolwright.scopeOf({ user }));
  const refused = await as('bob');
  expect(refused).toMatchObject({
    isError: true,
    forLLM: expect.stringMatching(/^The tool 'work' was refused: Internal error \(ref \w+\)$/),
  });
  expect((await as('ada')).forLLM).toBe('worked');
});

test('context.resolve returns providers of every module', async () => {
  @Injectable()
  class Resolving {
    @Tool('Resolve')
    resolve(context: ToolContext) {
      return context.resolve(Clock).now();
    }
  }
  @Injectable()
  class Clock {
    now() {
      return 'noon';
    }
  }
  const { tools, toolwright } = await boot({ providers: [Resolving, Clock, MineTools, CurrentUser] });
  expect((await tools.execute('resolve')).forLLM).toBe('noon');
  const scope = toolwright.scopeOf({ user: 'ada' });
  expect((await tools.executeWithContext('resolve', {}, scope)).forLLM).toBe('noon');
  const foreign = { container: { resolve: () => ({ now: () => 'midnight' }) as never } };
  expect((await tools.executeWithContext('resolve', {}, foreign)).forLLM).toBe('midnight');
  const promising = { container: { resolve: () => Promise.reject(new Error('not here')) as never } };
  expect((await tools.executeWithContext('who_am_i', {}, promising)).forLLM).toBe('ok');
});

test('a request-scoped guard on a default toolset gets the request', async () => {
  @Injectable({ scope: Scope.REQUEST })
  class OnlyAda implements CanActivate {
    constructor(@Inject(REQUEST) private readonly request: Asking) {}

    canActivate(): boolean {
      return this.request.user === 'ada';
    }
  }
  @Injectable()
  class Tools {
    @Tool('Open')
    @UseGuards(OnlyAda)
    open() {
      return 'open';
    }
  }
  const { tools, toolwright } = await boot({ providers: [Tools] });
  const as = (user: string) => tools.executeWithContext('open', {}, toolwright.scopeOf({ user }));
  expect((await as('ada')).forLLM).toBe('open');
  expect((await as('bob')).error).toMatchObject({ name: 'ToolRefused' });
});
