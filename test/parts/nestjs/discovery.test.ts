import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Inject,
  Injectable,
  Module,
  type ModuleMetadata,
  Scope,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { IsString } from 'class-validator';
import { map } from 'rxjs';
import {
  defineTool,
  Param,
  Prompt,
  TaskQueue,
  Tool,
  ToolContext,
  ToolDeclarationError,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { describeClass } from 'toolwright/decorators';
import { ToolwrightModule, ToolwrightService, toolCallOf } from 'toolwright/nestjs';
import { ScriptedProvider } from 'toolwright/testing';
import { boot } from './boot.js';

@Injectable()
class Orders {
  count(): number {
    return 3;
  }
}

@Injectable()
class ShopTools {
  constructor(private readonly orders: Orders) {}

  @Tool('Count the orders')
  countOrders() {
    return this.orders.count();
  }
}

@Controller()
class StatusController {
  @Tool('Say how it is')
  status() {
    return 'fine';
  }
}

class No {
  canActivate(): boolean {
    return false;
  }
}

test('every provider and controller with tools is found, in the order of the modules', async () => {
  @Module({ providers: [Orders, ShopTools] })
  class ShopModule {}
  const { tools } = await boot({ imports: [ShopModule], controllers: [StatusController] });
  expect(tools.list()).toEqual(['count_orders', 'status']);
  expect((await tools.execute('count_orders')).forLLM).toBe('3');
  expect((await tools.execute('status')).forLLM).toBe('fine');
});

test('tools can be called before the application is initialized', async () => {
  const module = await Test.createTestingModule({
    imports: [ToolwrightModule.forRoot()],
    providers: [Orders, ShopTools],
  }).compile();
  expect((await module.get(ToolRegistry).execute('count_orders')).forLLM).toBe('3');
});

test('the prefix of a toolset applies and its scope does not, because Nest creates the instance', async () => {
  @Injectable()
  @Toolset({ prefix: 'mail', scope: 'transient' })
  class MailTools {
    #sent = 0;

    constructor(private readonly orders: Orders) {}

    @Tool('Send')
    send() {
      this.#sent += 1;
      return this.orders.count() + this.#sent;
    }
  }
  const { tools } = await boot({ providers: [Orders, MailTools] });
  expect(tools.list()).toEqual(['mail_send']);
  expect((await tools.execute('mail_send')).forLLM).toBe('4');
  expect((await tools.execute('mail_send')).forLLM).toBe('5');
});

test('tools are found in every kind of provider, and through proxies', async () => {
  const calls: string[] = [];
  const watched = (tools: ShopTools): ShopTools =>
    new Proxy(tools, {
      get(target, key, receiver) {
        const value: unknown = Reflect.get(target, key, receiver);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          calls.push(String(key));
          return Reflect.apply(value, target, args);
        };
      },
    });
  for (const provider of [
    { provide: 'SHOP', useClass: ShopTools },
    { provide: 'SHOP', useFactory: (orders: Orders) => new ShopTools(orders), inject: [Orders] },
    { provide: 'SHOP', useFactory: async (orders: Orders) => new ShopTools(orders), inject: [Orders] },
    { provide: 'SHOP', useValue: new ShopTools(new Orders()) },
    { provide: ShopTools, useFactory: (orders: Orders) => watched(new ShopTools(orders)), inject: [Orders] },
    { provide: ShopTools, useValue: watched(new ShopTools(new Orders())) },
    { provide: ShopTools, useValue: { countOrders: () => 3 } },
    { provide: ShopTools, useFactory: () => ({ countOrders: () => 3 }) },
    {
      provide: ShopTools,
      useFactory: (orders: Orders) => new ShopTools(orders),
      inject: [Orders],
      scope: Scope.REQUEST,
    },
  ]) {
    const { tools } = await boot({ providers: [Orders, provider] });
    expect(tools.list()).toEqual(['count_orders']);
    expect((await tools.execute('count_orders')).forLLM).toBe('3');
  }
  expect(calls).toEqual(['countOrders', 'countOrders']);
});

test('an alias registers no tool twice', async () => {
  const { tools } = await boot({
    providers: [Orders, ShopTools, { provide: 'ALIAS', useExisting: ShopTools }],
  });
  expect(tools.list()).toEqual(['count_orders']);
});

test('guards run if a factory or a value provides the tools', async () => {
  @Injectable()
  class Dependent {
    constructor(readonly orders: Orders) {}

    canActivate(context: ExecutionContext): boolean {
      return this.orders.count() === 3 && toolCallOf(context)?.context.data.role === 'admin';
    }
  }
  @Injectable()
  class Guarded {
    @Tool('One')
    @UseGuards(No)
    one() {}

    @Tool('Two')
    @UseGuards(Dependent)
    two() {}
  }
  for (const provider of [
    Guarded,
    { provide: 'TOOLS', useFactory: () => new Guarded() },
    { provide: 'TOOLS', useValue: new Guarded() },
    { provide: 'TOOLS', useClass: Guarded },
    { provide: Guarded, useFactory: () => new Proxy(new Guarded(), {}) },
    { provide: Guarded, useFactory: () => new Guarded(), scope: Scope.REQUEST },
  ]) {
    const { tools } = await boot({ providers: [Orders, provider] });
    expect((await tools.execute('one')).error).toMatchObject({ name: 'ToolRefused' });
    expect((await tools.execute('two')).error).toMatchObject({ name: 'ToolRefused' });
    expect((await tools.executeWithContext('two', {}, { data: { role: 'admin' } })).forLLM).toBe('ok');
  }
});

test('errors of all providers are thrown together when the application is created', async () => {
  @Injectable()
  class First {
    @Tool('Untyped')
    untyped(options: { a: string }) {
      return options;
    }
  }
  @Injectable()
  class Second {
    @Tool({ name: 'not a name', description: 'Bad' })
    bad(@Param({ type: () => String }) x: unknown) {
      return x;
    }

    @Tool({ name: 'given', description: 'Twice' })
    twice() {}
  }
  const given = defineTool({ name: 'given', description: 'Given', execute: () => 1 });
  const error = await boot({
    options: { tools: [given, {} as never] },
    providers: [First, Second],
  }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ToolDeclarationError);
  const faults = (error as ToolDeclarationError).faults.map(({ where }) => where);
  expect(faults).toEqual(
    expect.arrayContaining(['First.untyped', 'Second.bad', 'Second.twice (in RootTestModule)']),
  );
  expect(faults.length).toBeGreaterThanOrEqual(4);

  @Module({ imports: [ToolwrightModule.forRoot()], providers: [First] })
  class AppModule {}
  await expect(NestFactory.create(AppModule, { logger: false, abortOnError: false })).rejects.toThrow(
    ToolDeclarationError,
  );
});

test('a class that two modules provide is an error that names both modules', async () => {
  @Module({ providers: [Orders, ShopTools] })
  class OneModule {}
  @Module({ providers: [Orders, ShopTools] })
  class OtherModule {}
  await expect(boot({ imports: [OneModule, OtherModule] })).rejects.toThrow(
    'ShopTools.countOrders (in OtherModule): its name "count_orders" is also the name of ShopTools.countOrders (in OneModule).',
  );
});

test('two prompts with the same name are an error that shows how to name a prompt', async () => {
  @Injectable()
  class Letters {
    @Prompt({ name: 'letter', description: 'A letter' }) one() {}
    @Prompt({ name: 'letter', description: 'A letter' }) two() {}
  }
  await expect(boot({ providers: [Letters] })).rejects.toThrow(
    /Letters\.two .*its name "letter" is also the name of Letters\.one[^@]*@Prompt\(\{ name \}\) on one of them/,
  );
});

test('parameters that only HTTP can fill are an error', async () => {
  const { Headers, Req } = await import('@nestjs/common');
  @Controller()
  class Bad {
    @Tool('Read')
    read(@Headers('authorization') header: string) {
      return header;
    }
  }
  await expect(boot({ controllers: [Bad] })).rejects.toThrow(
    'Bad.read, parameter #0: its decorator reads something that a tool call does not have.',
  );
  @Controller()
  class Good {
    @Tool('Read')
    read(@Req() request: { readonly user: string }) {
      return request.user;
    }
  }
  const { tools, toolwright } = await boot({ controllers: [Good] });
  const scope = toolwright.scopeOf({ user: 'ada' });
  expect((await tools.executeWithContext('read', {}, scope)).forLLM).toBe('ada');
});

test('forFeature registers classes with their dependencies, and tools without a class', async () => {
  @Module({ providers: [Orders], exports: [Orders] })
  class OrdersModule {}
  const ping = defineTool({ name: 'ping', description: 'Ping', execute: () => 'pong' });
  const made = defineTool({ name: 'made', description: 'Made', execute: () => 'made' });
  const { tools } = await boot({
    imports: [
      ToolwrightModule.forFeature([ShopTools, ping], { imports: [OrdersModule] }),
      ToolwrightModule.forFeature([StatusController, () => made]),
    ],
  });
  expect([...tools.list()].sort()).toEqual(['count_orders', 'made', 'ping', 'status']);
  for (const [name, text] of [
    ['count_orders', '3'],
    ['ping', 'pong'],
    ['made', 'made'],
  ] as const)
    expect((await tools.execute(name)).forLLM).toBe(text);
});

test('options can come from other providers in each way that Nest supports', async () => {
  @Injectable()
  class Config {
    readonly greeting = defineTool({ name: 'greet', description: 'Greet', execute: () => 'hello' });

    createToolwrightOptions() {
      return { tools: [this.greeting] };
    }
  }
  @Module({ providers: [Config], exports: [Config] })
  class ConfigModule {}
  for (const root of [
    ToolwrightModule.forRootAsync({
      imports: [ConfigModule],
      inject: [Config],
      useFactory: async (config: Config) => config.createToolwrightOptions(),
    }),
    ToolwrightModule.forRootAsync({ useClass: Config }),
    ToolwrightModule.forRootAsync({ imports: [ConfigModule], useExisting: Config }),
  ]) {
    const module = await Test.createTestingModule({ imports: [root] }).compile();
    expect((await module.get(ToolRegistry).execute('greet')).forLLM).toBe('hello');
  }
  expect(() => ToolwrightModule.forRootAsync({})).toThrow(
    'it needs exactly one of useFactory, useClass and useExisting',
  );
});

test('the registry and the service can be injected in every module', async () => {
  @Injectable()
  class Consumer {
    constructor(
      readonly tools: ToolRegistry,
      @Inject(ToolwrightService) readonly toolwright: ToolwrightService,
    ) {}
  }
  @Module({ providers: [Consumer], exports: [Consumer] })
  class ConsumerModule {}
  const { module, tools, toolwright } = await boot({ imports: [ConsumerModule] });
  const consumer = module.get(Consumer);
  expect(consumer.tools).toBe(tools);
  expect(consumer.toolwright).toBe(toolwright);
  await expect(toolwright.run([])).rejects.toThrow('the run has no provider or no model');
  const config = { provider: new ScriptedProvider([]), model: 'm' };
  const resumed = toolwright.resumeStored('run', [], { config });
  await expect(resumed).rejects.toThrow('there is no store from which a run could be resumed');
});

test('test doubles replace providers, guards and interceptors', async () => {
  @Injectable()
  class Guard {
    canActivate(): boolean {
      return false;
    }
  }
  @Injectable()
  class Brackets {
    intercept(_context: unknown, next: CallHandler) {
      return next.handle().pipe(map((value) => `[${value}]`));
    }
  }
  @Injectable()
  @UseGuards(Guard)
  @UseInterceptors(Brackets)
  class Guarded {
    constructor(private readonly orders: Orders) {}

    @Tool('Count')
    count() {
      return this.orders.count();
    }
  }
  const providers = [Orders, Guarded];
  const real = await boot({ providers });
  expect((await real.tools.execute('count')).isError).toBe(true);
  const open = await boot({
    providers,
    override: (builder) =>
      builder
        .overrideGuard(Guard)
        .useValue({ canActivate: () => true })
        .overrideProvider(Orders)
        .useValue({ count: () => 42 })
        .overrideInterceptor(Brackets)
        .useValue({ intercept: (_context: unknown, next: CallHandler) => next.handle() }),
  });
  expect((await open.tools.execute('count')).forLLM).toBe('42');
  const stubbed = await boot({
    providers,
    override: (builder) =>
      builder
        .overrideGuard(Guard)
        .useValue({ canActivate: () => true })
        .overrideProvider(Guarded)
        .useValue({ count: () => 7 }),
  });
  expect((await stubbed.tools.execute('count')).forLLM).toBe('[7]');
  const guarded = await boot({
    providers,
    override: (builder) => builder.overrideProvider(Guarded).useValue({ count: () => 7 }),
  });
  expect((await guarded.tools.execute('count')).isError).toBe(true);
  const empty = await boot({
    options: { exposeErrors: true },
    providers,
    override: (builder) =>
      builder
        .overrideGuard(Guard)
        .useValue({ canActivate: () => true })
        .overrideProvider(Guarded)
        .useValue({}),
  });
  expect((await empty.tools.execute('count')).forLLM).toBe("The provider of Guarded has no method 'count'.");
});

test('the order of the tools does not depend on how long options and factories take', async () => {
  class Made {
    @Tool('Made')
    made() {}
  }
  class Declared {
    @Tool('Declared')
    declared() {}
  }
  const ticks = async (count: number): Promise<void> => {
    for (let tick = 0; tick < count; tick += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  for (const [options, factory] of [
    [0, 0],
    [10, 0],
    [0, 10],
  ] as const) {
    const module = await Test.createTestingModule({
      imports: [ToolwrightModule.forRootAsync({ useFactory: () => ticks(options).then(() => ({})) })],
      providers: [{ provide: 'MADE', useFactory: () => ticks(factory).then(() => new Made()) }, Declared],
    }).compile();
    await module.init();
    expect(module.get(ToolRegistry).list()).toEqual(['declared', 'made']);
  }
});

test('errors in tools of a factory are thrown when the application is initialized', async () => {
  class Bad {
    @Tool('Untyped')
    untyped(options: { a: string }) {
      return options;
    }
  }
  const module = await Test.createTestingModule({
    imports: [ToolwrightModule.forRoot()],
    providers: [{ provide: 'BAD', useFactory: () => new Bad() }],
  }).compile();
  await expect(module.init()).rejects.toThrow(ToolDeclarationError);
});

test('a second forRoot is an error, but the same module may be imported twice', async () => {
  const shared = ToolwrightModule.forRoot();
  @Module({ imports: [shared] })
  class FeatureModule {}
  const compile = (imports: NonNullable<ModuleMetadata['imports']>) =>
    Test.createTestingModule({ imports, providers: [Orders, ShopTools] }).compile();
  const module = await compile([shared, FeatureModule]);
  expect(module.get(ToolRegistry).list()).toEqual(['count_orders']);
  await expect(compile([shared, ToolwrightModule.forRoot({ model: 'm' })])).rejects.toThrow(
    'ToolwrightModule.forRoot: it is imported more than once',
  );
});

test('generated descriptions that do not match are warnings, or errors with strict', async () => {
  class Described {
    @Tool('Described')
    described(@Param() id: string) {
      return id;
    }
  }
  class Disagreeing {
    @IsString()
    count!: number;
  }
  class Taking {
    @Tool('Take')
    take(dto: Disagreeing) {
      return dto;
    }
  }
  describeClass(Described, { tools: { gone: { parameters: [] } } });
  describeClass(Disagreeing, { properties: { count: { schema: { type: 'number' } } } });
  const warnings: string[] = [];
  const none = () => {};
  const logger = { debug: none, info: none, error: none, warn: (message: string) => warnings.push(message) };
  await boot({ options: { logger }, providers: [Described, Taking] });
  expect(warnings.filter((warning) => !warning.includes('no module provides'))).toEqual([
    expect.stringContaining('Described.gone'),
    expect.stringContaining('Disagreeing.count: its type is number'),
  ]);
  await expect(boot({ options: { logger, strict: true }, providers: [Described] })).rejects.toThrow(
    'Described.gone',
  );
});

test('started work can be listed and cancelled with the injected queue', async () => {
  @Injectable()
  class Desk {
    constructor(readonly tasks: TaskQueue) {}
  }
  @Injectable()
  class Slow {
    @Tool({ description: 'Slow', background: true })
    slow(context: ToolContext) {
      return once(context.signal, 'abort');
    }
  }
  const { module, tools } = await boot({ providers: [Desk, Slow] });
  const { tasks } = module.get(Desk);
  const completed = new Promise<string>((resolve) => {
    void tools.executeWithContext('slow', {}, {}, (_context, { forLLM }) => resolve(forLLM));
  });
  while (tasks.tasks.length === 0) await new Promise((resolve) => setImmediate(resolve));
  for (const { id } of tasks.tasks) tasks.cancel(id, 'enough');
  expect(await completed).toContain('enough');
});
