import 'reflect-metadata';
import { describe, expect, jest, test } from '@jest/globals';
import {
  agentTool,
  defineTool,
  discoverTools,
  registerFunction,
  runToolLoop,
  Tool,
  ToolDeclarationError,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { ScriptedProvider, toolHarness } from 'toolwright/testing';
import { inject, injectable, singleton } from 'tsyringe';
import { z } from 'zod';
import { runNode } from '../processes/run-node.js';
import { ROOT } from '../structure/repository.js';

@Toolset()
class ShopTools {
  @Tool('x')
  ping() {
    return 'pong';
  }
}
const ping = defineTool({ name: 'ping', description: 'x', execute: () => 'pong' });
const hello = [{ role: 'user' as const, content: 'hi' }];

/** The message of the thrown error. */
function told(mistake: () => unknown): string {
  try {
    mistake();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
}

describe('a wrong argument is reported with the right one', () => {
  test.each<[string, () => unknown, string]>([
    ['a list to register', () => new ToolRegistry().register([ping] as never), 'register(...tools)'],
    [
      'an instance to register',
      () => new ToolRegistry().register(new ShopTools() as never),
      'discoverTools({ toolsets: [ShopTools] })',
    ],
    [
      'a toolset class to register',
      () => new ToolRegistry().register(ShopTools as never),
      'register(...discoverTools({ toolsets: [ShopTools] }))',
    ],
    [
      'another class to register',
      () => new ToolRegistry().register(class Plain {} as never),
      'register(new Plain()), or @Tool before its methods',
    ],
    ['a promise to register', () => new ToolRegistry().register(Promise.resolve(ping) as never), 'await'],
    [
      'a definition to register',
      () => new ToolRegistry().register(new ToolRegistry().register(ping).toProviderDefs()[0] as never),
      'the tool itself',
    ],
    ['a list to discover', () => discoverTools([ShopTools] as never), 'it expects options, not a list'],
    [
      'an instance to discover',
      () => discoverTools({ toolsets: [new ShopTools()] as never }),
      'an instance of ShopTools is not a class',
    ],
    [
      'undefined to discover',
      () => discoverTools({ toolsets: [undefined] as never }),
      'undefined is not a class',
    ],
    [
      'a view with an undefined list',
      () => new ToolRegistry().view({ allow: undefined }),
      'allow is undefined',
    ],
    [
      'a function’s parameters as an object',
      () => registerFunction(new ToolRegistry(), 'f', 'x', {} as never, () => 1),
      "[['a', Integer]",
    ],
    [
      'an agent tool without a body',
      () => agentTool({ name: 'a', label: 'A', description: 'x', parameters: {} } as never),
      'it has no `execute`',
    ],
    [
      'arguments that are not an object',
      () => defineTool({ name: 'a', description: 'x', parameters: z.string() as never, execute: () => 1 }),
      'do not describe an object',
    ],
    [
      'arguments in a shorthand',
      () => defineTool({ name: 'a', description: 'x', parameters: { a: 'string' }, execute: () => 1 }),
      'do not describe an object',
    ],
    [
      'a timeout that is not a number',
      () => new ToolRegistry({ toolTimeoutMs: Number.NaN }),
      'toolTimeoutMs is NaN',
    ],
    [
      'standard decorators',
      () => (Tool('x') as (...args: unknown[]) => void)(() => {}, { kind: 'method' }),
      'experimentalDecorators',
    ],
    [
      'standard decorators of a build tool that emits no metadata',
      () => (Tool('x') as (...args: unknown[]) => void)(() => {}, { kind: 'method' }),
      'npx toolwright generate',
    ],
  ])('%s', (_what, mistake, hint) => {
    expect(told(mistake)).toContain(hint);
  });

  test.each<[string, object, string]>([
    ['no provider', { provider: undefined }, 'provider is missing'],
    ['options in place of a queue', { tasks: { maxRunning: 2 } }, 'tasks is { maxRunning: 2 }'],
    ['tools as an object', { tools: { ping } }, 'tools: a ToolRegistry, or [tool, …]'],
    ['an iteration limit that is not a number', { maxIterations: Number.NaN }, 'maxIterations is NaN'],
    ['a fractional number of retries', { maxRetries: 0.5 }, 'maxRetries is 0.5'],
    ['a timeout of zero', { toolTimeoutMs: 0 }, 'toolTimeoutMs is 0'],
    ['a negative concurrency', { maxConcurrency: -1 }, 'maxConcurrency is -1'],
    ['a concurrency of zero', { maxConcurrency: 0 }, 'maxConcurrency is 0'],
    ['a lease without checkpoints', { leaseMs: 5000 }, "checkpoint: 'step'; or no leaseMs"],
  ])('a run with %s', async (_what, wrong, hint) => {
    const config = {
      provider: new ScriptedProvider([{ content: 'x' }]),
      model: 'm',
      tools: [ping],
      ...wrong,
    };
    await expect(runToolLoop(config as never, hello)).rejects.toThrow(hint);
  });

  test('a run with messages that are not an array', async () => {
    const config = { provider: new ScriptedProvider([]), model: 'm' };
    await expect(runToolLoop(config, undefined as never)).rejects.toThrow('messages is not an array');
    await expect(runToolLoop(config, 'hi' as never)).rejects.toThrow('messages is not an array');
  });
});

test('a call without a timeout times out after two minutes', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
  try {
    const stuck = defineTool({ name: 'stuck', description: 'x', execute: () => new Promise(() => {}) });
    const provider = new ScriptedProvider([{ toolCalls: [{ name: 'stuck' }] }, { content: 'done' }]);
    let isOver = false;
    const run = runToolLoop({ provider, model: 'm', tools: [stuck] }, hello).finally(() => {
      isOver = true;
    });
    while (jest.getTimerCount() === 0) await new Promise(setImmediate);
    await jest.advanceTimersByTimeAsync(119_999);
    expect(isOver).toBe(false);
    await jest.advanceTimersByTimeAsync(1);
    expect((await run).toolCalls).toMatchObject([{ status: 'timed_out', result: { error: { code: 507 } } }]);
  } finally {
    jest.useRealTimers();
  }
});

test('the timeout of the registry applies in the loop, and that of the run wins', async () => {
  const never = defineTool({ name: 'never', description: 'x', execute: () => new Promise(() => {}) });
  const call = { toolCalls: [{ id: 'c', name: 'never', arguments: {} }] };
  const tools = new ToolRegistry({ toolTimeoutMs: 15 }).register(never);
  const run = (more = {}) =>
    runToolLoop(
      { provider: new ScriptedProvider([call, { content: 'done' }]), model: 'm', tools, ...more },
      hello,
    );
  expect((await run()).toolCalls[0]?.result.forLLM).toContain('timed out after 15 ms');
  expect((await run({ toolTimeoutMs: 10 })).toolCalls[0]?.result.forLLM).toContain('timed out after 10 ms');
});

test('argument values are never in the log of a rejected call', async () => {
  const lines: string[] = [];
  const write = (message: string, fields?: object) => lines.push(`${message} ${JSON.stringify(fields)}`);
  const logger = { debug: write, info: write, warn: write, error: write };
  const login = defineTool({
    name: 'login',
    description: 'x',
    parameters: z.object({ password: z.string(), age: z.number() }),
    execute: () => 'in',
  });
  const result = await new ToolRegistry({ logger })
    .register(login)
    .execute('login', { password: 'hunter2', age: 'x' });
  expect(result.forLLM).toContain('hunter2');
  expect(lines.join('\n')).toContain('age: must be number');
  expect(lines.join('\n')).not.toContain('hunter2');
});

test('overrides of a harness work for a toolset that was discovered before', async () => {
  @singleton()
  class Orders {
    find() {
      return 'real';
    }
  }
  @Toolset()
  class Tools {
    constructor(private readonly orders: Orders) {}
    @Tool('x')
    find() {
      return this.orders.find();
    }
  }
  const real = new ToolRegistry().register(...discoverTools({ toolsets: [Tools] }));
  const harness = toolHarness(Tools, { overrides: [[Orders, { find: () => 'fake' }]] });
  expect((await harness.execute('find')).forLLM).toBe('fake');
  expect((await real.execute('find')).forLLM).toBe('real');
});

test('@inject on every parameter is enough without metadata', async () => {
  @injectable()
  class Service {
    readonly name = 'service';
  }
  class Tools {
    constructor(readonly service: Service) {}
    tell() {
      return this.service.name;
    }
  }
  inject(Service)(Tools, undefined, 0);
  Reflect.decorate(
    [Tool('x')],
    Tools.prototype,
    'tell',
    Object.getOwnPropertyDescriptor(Tools.prototype, 'tell'),
  );
  const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Tools] }));
  expect((await tools.execute('tell')).forLLM).toBe('service');
});

test('plain text instead of arguments is reported as plain text', async () => {
  const { forLLM } = await new ToolRegistry().register(ping).execute('ping', 'hello');
  expect(forLLM).toContain('the arguments must be a JSON object, not plain text');
});

test('all faults of one call are one error with faults as data', () => {
  try {
    new ToolRegistry().register({ name: 'a b' } as never, { description: 'x' } as never);
  } catch (error) {
    const { faults, code, message } = error as ToolDeclarationError;
    expect([faults.length > 3, code, message.split('\n')[0]]).toEqual([
      true,
      502,
      `${faults.length} mistakes in tool declarations:`,
    ]);
    return;
  }
  throw new Error('nothing was thrown');
});

test('a zod date is rejected with a schema that can be sent and becomes a Date', async () => {
  const define = (at: z.ZodType<Date>) =>
    defineTool({
      name: 'plan',
      description: 'Plans',
      parameters: z.object({ at }),
      execute: ({ at: day }) => day.getUTCFullYear(),
    });
  expect(() => define(z.date())).toThrow(
    /by zod at `properties\.at`: .*\n {3}Write instead: z\.iso\.datetime\(\)\.transform/,
  );
  const tools = new ToolRegistry().register(
    define(z.iso.datetime().transform((text) => new Date(text)) as never),
  );
  expect((await tools.execute('plan', { at: '2030-01-02T03:04:05Z' })).forLLM).toBe('2030');
});

test('an uncaught declaration error is printed once, below the line that throws it', () => {
  const code = "import { discoverTools } from 'toolwright'; discoverTools({ toolsets: [class Empty {}] });";
  const { exitCode, stderr } = runNode(['--input-type=module', '-e', code], { folder: ROOT });
  const [, line] = stderr.split('\n');
  expect([exitCode, line]).toEqual([1, 'throw new ToolDeclarationError(faults)}']);
  expect(stderr.match(/it has no @Tool method/g)).toHaveLength(1);
});

test('faults with the same causes and the same fix print them once', () => {
  class Untyped {
    first(a: string) {
      return a;
    }
    second(a: string) {
      return a;
    }
  }
  for (const name of ['first', 'second'] as const)
    Tool(name)(Untyped.prototype, name, Object.getOwnPropertyDescriptor(Untyped.prototype, name)!);
  expect(() => discoverTools({ toolsets: [Untyped] })).toThrow(
    /1\. Untyped\.first.*\n {3}Possible causes:[\s\S]*2\. Untyped\.second, parameter a \(#0\): .* Causes and fix: see above\.\n\n`npx/,
  );
});

test.each([
  ['nothing', undefined, 'defineTool needs an object, not undefined'],
  ['null', null, 'defineTool needs an object, not null'],
  ['no name', {}, 'it has no name'],
  ['a name that is a number', { name: 7, description: 'Seven' }, 'it has no name'],
])('defineTool rejects %s with a declaration error', (_, options, problem) => {
  const define = () => defineTool(options as never);
  expect(define).toThrow(ToolDeclarationError);
  expect(define).toThrow(problem);
});
