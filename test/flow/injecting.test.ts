import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import {
  asyncResult,
  compensateRun,
  discoverTools,
  type Effect,
  runToolLoop,
  Tool,
  ToolContext,
  ToolRegistry,
  type ToolResult,
  Toolset,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider, toolHarness } from 'toolwright/testing';
import { Permissions } from 'toolwright/toolbox/permissions';
import { container, inject, injectable, Lifecycle, scoped, singleton } from 'tsyringe';

const closed: string[] = [];

@singleton()
class Pool {
  static created = 0;
  constructor() {
    Pool.created += 1;
  }
  dispose() {
    closed.push('pool');
  }
}

@scoped(Lifecycle.ContainerScoped)
class Session {
  static created = 0;
  readonly id: number;
  constructor(readonly pool: Pool) {
    Session.created += 1;
    this.id = Session.created;
  }
  dispose() {
    closed.push(`session ${this.id}`);
  }
}

@injectable()
class Repository {
  constructor(readonly session: Session) {}
}

@Toolset({ scope: 'scoped' })
class ScopedTools {
  constructor(
    private readonly repository: Repository,
    private readonly session: Session,
  ) {}

  @Tool('x')
  async whichSession(context: ToolContext) {
    await new Promise((resolve) => setImmediate(resolve));
    const same = this.repository.session === this.session && context.resolve(Session) === this.session;
    return `${this.session.id} ${same}`;
  }

  @Tool('x')
  report(context: ToolContext) {
    return context.background(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return `session ${this.session.id}, closed: ${closed.includes(`session ${this.session.id}`)}`;
    }, 'on it');
  }
}

const discover = (...toolsets: (new (...args: never[]) => object)[]) =>
  new ToolRegistry().register(...discoverTools({ toolsets: toolsets as never }));

describe('a scoped toolset', () => {
  test('gets a new instance and new scoped dependencies for each call, and disposes them', async () => {
    const tools = discover(ScopedTools);
    const results = await Promise.all([1, 2, 3].map(() => tools.execute('which_session')));
    const ids = results.map(({ forLLM }) => forLLM.split(' ')[0]);
    expect(new Set(ids).size).toBe(3);
    expect(results.every(({ forLLM }) => forLLM.endsWith('true'))).toBe(true);
    expect(ids.every((id) => closed.includes(`session ${id}`))).toBe(true);
    expect([Pool.created, closed.includes('pool')]).toEqual([1, false]);
  });

  test('keeps its scope open until background work has completed', async () => {
    const tools = discover(ScopedTools);
    const completed = new Promise<ToolResult>((resolve) => {
      void tools
        .executeWithContext('report', {}, {}, (_context, result) => resolve(result))
        .then((acknowledged) => expect([acknowledged.forLLM, acknowledged.async]).toEqual(['on it', true]));
    });
    const { forLLM } = await completed;
    expect(forLLM).toMatch(/^session \d+, closed: false$/);
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toContain(/session \d+/.exec(forLLM)?.[0]);
  });

  test('resolves from the container of the call if there is one, and does not dispose it', async () => {
    const request = container.createChildContainer();
    const mine = request.resolve(Session);
    const { forLLM } = await discover(ScopedTools).executeWithContext(
      'which_session',
      {},
      { container: request },
    );
    expect(forLLM).toBe(`${mine.id} true`);
    expect(closed).not.toContain(`session ${mine.id}`);
  });
});

test('a transient toolset is created for each call, a singleton once', async () => {
  @Toolset({ scope: 'transient' })
  class Counting {
    #calls = 0;
    @Tool('x')
    count() {
      this.#calls += 1;
      return this.#calls;
    }
  }
  @Toolset()
  class Lasting extends Counting {
    @Tool('x')
    lasting() {
      return this.count();
    }
  }
  const transient = discover(Counting);
  expect([(await transient.execute('count')).forLLM, (await transient.execute('count')).forLLM]).toEqual([
    '1',
    '1',
  ]);
  const lasting = discover(Lasting);
  expect([(await lasting.execute('lasting')).forLLM, (await lasting.execute('lasting')).forLLM]).toEqual([
    '1',
    '2',
  ]);
});

test('an instance that is registered in the container is used', async () => {
  @Toolset()
  class Clock {
    constructor(readonly now: string) {}
    @Tool('x')
    tell() {
      return this.now;
    }
  }
  const child = container.createChildContainer();
  child.registerInstance(Clock, new Clock('noon'));
  const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Clock], container: child }));
  expect((await tools.execute('tell')).forLLM).toBe('noon');
});

test('a constructor that throws is reported as a declaration fault', () => {
  @Toolset()
  class Broken {
    constructor() {
      throw new Error('no database at localhost');
    }
    @Tool('x')
    ping() {}
  }
  expect(() => discoverTools({ toolsets: [Broken] })).toThrow(
    /Broken: it could not be created: .*no database at localhost/,
  );
});

test.each([
  ['singleton', [1, 1, 1]],
  ['scoped', [1, 1, 2]],
  ['transient', [1, 2, 3]],
] as const)('the companions of a %s toolset get instances as its method does', async (scope, instances) => {
  const log: unknown[] = [];
  let made = 0;
  @Toolset({ scope })
  class Bank {
    readonly number = ++made;
    @Tool({ description: 'Pay', touches: 'accounts', compensate: 'refund' })
    pay() {
      log.push(['pay', this.number]);
      return 'paid';
    }
    accounts() {
      log.push(['touches', this.number]);
      return [];
    }
    refund({ result }: Effect & { readonly result: ToolResult }) {
      log.push(['refund', this.number, result.forLLM]);
    }
  }
  const tools = discover(Bank);
  const store = new MemoryRunStore();
  const provider = new ScriptedProvider([
    { toolCalls: [{ name: 'pay', arguments: {} }] },
    { content: 'Done' },
  ]);
  const { policy } = new Permissions();
  const config = { provider, model: 'm', tools, store, checkpoint: 'step', policy } as const;
  const { runId = '' } = await runToolLoop(config, [{ role: 'user', content: 'Pay' }]);
  expect(await compensateRun(store, runId, { tools })).toMatchObject([{ status: 'compensated' }]);
  const [touching, paying, refunding] = instances;
  expect(log).toEqual([
    ['touches', touching],
    ['pay', paying],
    ['refund', refunding, 'paid'],
  ]);
});

test('any container with resolve and createScope can be used', async () => {
  @Toolset({ scope: 'scoped' })
  class Tools {
    constructor(readonly tag: string) {}
    @Tool('x')
    tag_() {
      return this.tag;
    }
  }
  let disposed = 0;
  const resolver = {
    resolve: () => new Tools('root') as never,
    createScope: () => ({
      resolve: () => new Tools('call') as never,
      dispose: () => {
        disposed += 1;
      },
    }),
  };
  const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Tools], container: resolver }));
  expect([(await tools.execute('tag_')).forLLM, disposed]).toEqual(['call', 1]);
});

test('context.resolve throws a clear error if there is no container', async () => {
  const tools = new ToolRegistry().register({
    name: 'ask',
    description: 'x',
    parameters: { type: 'object', properties: {} },
    execute: (_args, context: ToolContext) => context.resolve(Pool),
  });
  expect((await tools.execute('ask')).forLLM).toContain('has no container');
});

describe('toolHarness', () => {
  @singleton()
  class Orders {
    find(id: string) {
      return `real ${id}`;
    }
  }
  @injectable()
  class Service {
    constructor(
      readonly orders: Orders,
      @inject('greeting') readonly greeting: string,
    ) {}
  }
  @Toolset()
  class ShopTools {
    constructor(private readonly service: Service) {}
    @Tool('x')
    find(id: string, context: ToolContext) {
      return `${this.service.greeting} ${context.data.userId}: ${this.service.orders.find(id)}`;
    }
  }

  test('calls one toolset with overrides and data, through the whole pipeline', async () => {
    const harness = toolHarness(ShopTools, {
      overrides: [
        [Orders, { find: (id: string) => `fake ${id}` }],
        { provide: 'greeting', useValue: 'Hello' },
      ],
      data: { userId: 'u1' },
    });
    expect((await harness.execute('find', { id: '7' })).forLLM).toBe('Hello u1: fake 7');
    expect((await harness.execute('find', {})).forLLM).toBe(
      "Validation failed for tool 'find':\n  - id: is required",
    );
    expect((await harness.execute('find', { id: '7' }, { data: { userId: 'u2' } })).forLLM).toBe(
      'Hello u2: fake 7',
    );
  });

  test('throws the same faults as discovery', () => {
    expect(() => toolHarness(ShopTools)).toThrow(
      /there is no provider for parameter #1 \('greeting'\) of Service\(Orders, \?\)/,
    );
  });
});

test('an asynchronous result is returned unchanged if there is no listener', async () => {
  @Toolset()
  class Tools {
    @Tool('x')
    start() {
      return asyncResult('started');
    }
  }
  expect(await discover(Tools).execute('start')).toMatchObject({ forLLM: 'started', async: true });
});
