import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type AsyncCallback,
  type AsyncTool,
  asyncResult,
  type ContextualTool,
  defineTool,
  runToolLoop,
  TaskQueue,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  ToolRegistry,
  ToolResult,
  toolResult,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';

const parameters = { type: 'object', additionalProperties: true };
const base = { name: 'work', description: 'Works', parameters };

/** Stores the context of its current call. */
class Contextual implements ContextualTool {
  readonly name: string;
  readonly description = 'Says whom it works for';
  readonly parameters = parameters;
  readonly #body: (self: Contextual, args: Record<string, unknown>) => unknown;
  where = '';

  constructor(body: (self: Contextual, args: Record<string, unknown>) => unknown, name = 'work') {
    this.#body = body;
    this.name = name;
  }

  setContext(channel: string, chatId: string): void {
    this.where = `${channel}/${chatId}`;
  }

  execute(args: Record<string, unknown>): unknown {
    return this.#body(this, args);
  }
}

describe('a tool with setContext', () => {
  test('calls itself without deadlock, and its context is restored after each inner call', async () => {
    const tools = new ToolRegistry();
    const tool = new Contextual(async (self, { depth, chat }) => {
      const before = self.where;
      const inner =
        Number(depth) === 0
          ? []
          : await Promise.all(
              ['a', 'b'].map((next) =>
                tools.executeWithContext(
                  'work',
                  { depth: Number(depth) - 1, chat: `${chat}${next}` },
                  { channel: 'c', chatId: `${chat}${next}` },
                ),
              ),
            );
      await nextTurn();
      return { was: before, is: self.where, inner: inner.map(({ forLLM }) => JSON.parse(forLLM)) };
    });
    tools.register(tool);
    const call = (chat: string) =>
      tools.executeWithContext('work', { depth: 2, chat }, { channel: 'c', chatId: chat });
    const results = await Promise.all(['x', 'y', 'z'].map(call));
    const expected = (chat: string, depth: number): unknown => ({
      was: `c/${chat}`,
      is: `c/${chat}`,
      inner: depth === 0 ? [] : ['a', 'b'].map((next) => expected(`${chat}${next}`, depth - 1)),
    });
    expect(results.map(({ forLLM }) => JSON.parse(forLLM))).toEqual(
      ['x', 'y', 'z'].map((chat) => expected(chat, 2)),
    );
  });

  test('calls itself through another tool without deadlock', async () => {
    const tools = new ToolRegistry();
    tools.register(
      new Contextual(async (self, { last }) => {
        if (last) return self.where;
        const { forLLM } = await tools.executeWithContext('other', {}, { channel: 'c', chatId: '2' });
        return `${self.where} ${forLLM}`;
      }),
      new Contextual(async (self) => {
        const scope = { channel: 'c', chatId: '3' };
        const { forLLM } = await tools.executeWithContext('work', { last: true }, scope);
        return `${self.where} ${forLLM}`;
      }, 'other'),
    );
    const results = await Promise.all(
      [1, 2].map(() => tools.executeWithContext('work', {}, { channel: 'c', chatId: '1' })),
    );
    expect(results.map(({ forLLM }) => forLLM)).toEqual(['c/1 c/2 c/3', 'c/1 c/2 c/3']);
  });

  test('blocks other calls until an inner call that it does not await has ended', async () => {
    const tools = new ToolRegistry();
    const seen: string[] = [];
    tools.register(
      new Contextual(async (self, { inner }) => {
        if (!inner) void tools.executeWithContext('work', { inner: true }, { channel: 'c', chatId: 'in' });
        else await wait(5);
        seen.push(self.where);
        return 'done';
      }),
    );
    const call = (chatId: string) => tools.executeWithContext('work', {}, { channel: 'c', chatId });
    await Promise.all([call('1'), call('2')]);
    await wait(20);
    expect(seen.filter((where) => where === 'c/in')).toHaveLength(2);
    expect(seen.filter((where) => where === 'c/2')).toHaveLength(1);
  });

  test('queues a call that it starts after its own call has ended', async () => {
    const tools = new ToolRegistry();
    const [over, late] = [Promise.withResolvers<void>(), Promise.withResolvers<ToolResult>()];
    let running = 0;
    let most = 0;
    tools.register(
      new Contextual(async (self, { starts }) => {
        if (starts) {
          const callLater = () =>
            tools.executeWithContext('work', {}, { channel: 'c', chatId: 'late' }).then(late.resolve);
          void over.promise.then(callLater);
          return 'started';
        }
        running += 1;
        most = Math.max(most, running);
        over.resolve();
        await wait(20);
        running -= 1;
        return self.where;
      }),
    );
    await tools.executeWithContext('work', { starts: true }, { channel: 'c', chatId: 'first' });
    const other = await tools.executeWithContext('work', {}, { channel: 'c', chatId: 'other' });
    expect([other.forLLM, (await late.promise).forLLM, most]).toEqual(['c/other', 'c/late', 1]);
  });
});

/** Stores its callback in a field, as such tools do. */
class Callback implements AsyncTool {
  readonly name = 'work';
  readonly description = 'Works on';
  readonly parameters = parameters;
  readonly #body: (self: Callback, args: Record<string, unknown>, context: ToolContext) => unknown;
  callback: AsyncCallback = () => {};
  running = 0;
  most = 0;

  constructor(body: (self: Callback, args: Record<string, unknown>, context: ToolContext) => unknown) {
    this.#body = body;
  }

  setCallback(callback: AsyncCallback): void {
    this.callback = callback;
  }

  async execute(args: Record<string, unknown>, context: ToolContext): Promise<unknown> {
    this.running += 1;
    this.most = Math.max(this.most, this.running);
    try {
      return await this.#body(this, args, context);
    } finally {
      this.running -= 1;
    }
  }
}

describe('a tool with setCallback', () => {
  /** Starts the calls 0 to count - 1 and returns the completions of each. */
  async function complete(tool: Callback, count = 5) {
    const tasks = new TaskQueue();
    const tools = new ToolRegistry({ tasks }).register(tool);
    const heard = new Map<string, string[]>();
    const acknowledged = await Promise.all(
      Array.from({ length: count }, (_, n) =>
        tools.executeWithContext('work', { n }, { callId: `c${n}` }, (context, { forLLM }) => {
          const id = context?.callId ?? '';
          heard.set(id, [...(heard.get(id) ?? []), forLLM]);
        }),
      ),
    );
    await tasks.idle();
    return { acknowledged, heard: Object.fromEntries(heard), most: tool.most };
  }
  const each = (count = 5) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`c${n}`, [`done ${n}`]]));

  test('is acknowledged without waiting for the completions of earlier calls', async () => {
    const callbacks: (() => void)[] = [];
    const tool = new Callback((self, { n }) => {
      const { callback } = self;
      callbacks.push(() => callback(undefined, toolResult(`done ${n}`)));
      return asyncResult(`started ${n}`);
    });
    const tools = new ToolRegistry().register(tool);
    const provider = new ScriptedProvider([
      { toolCalls: [0, 1, 2].map((n) => ({ name: 'work', arguments: { n } })) },
      { content: 'done' },
    ]);
    const completed: string[] = [];
    const run = await runToolLoop(
      { provider, model: 'm', tools, onAsyncResult: (_context, { forLLM }) => completed.push(forLLM) },
      [{ role: 'user', content: 'go' }],
    );
    expect(run.status).toBe('completed');
    expect(run.toolCalls.map(({ result }) => result.forLLM)).toEqual(['started 0', 'started 1', 'started 2']);
    await wait(5);
    expect(completed).toEqual([]);
    for (const callback of callbacks.reverse()) callback();
    await wait(5);
    expect(completed).toEqual(['done 2', 'done 1', 'done 0']);
  });

  test('completes its own call if it calls the callback of that call, from anywhere', async () => {
    const waiting: (() => void)[] = [];
    const tool = new Callback(async (self, { n }) => {
      await nextTurn();
      const { callback } = self;
      waiting.push(() => callback(undefined, toolResult(`done ${n}`)));
      if (waiting.length === 5) setTimeout(() => waiting.reverse().map((call) => call()), 2);
      return asyncResult('started');
    });
    const { heard, most } = await complete(tool);
    expect(heard).toEqual(each());
    expect(most).toBe(1);
  });

  test('completes its own call if it reads the callback field when the work ends', async () => {
    const tool = new Callback(async (self, { n }) => {
      setTimeout(() => self.callback(undefined, toolResult(`done ${n}`)), 10 - Number(n));
      return asyncResult('started');
    });
    expect((await complete(tool)).heard).toEqual(each());
  });

  test('completes its own call if it passes the context of that call', async () => {
    const waiting: (() => void)[] = [];
    const tool = new Callback(async (self, { n }, context) => {
      waiting.push(() => self.callback(context, toolResult(`done ${n}`)));
      return asyncResult('started');
    });
    setTimeout(() => waiting.reverse().map((call) => call()), 10);
    expect((await complete(tool)).heard).toEqual(each());
  });

  test('completes later calls from a worker that the first call started', async () => {
    let inWorker: (<Value>(work: () => Value) => Value) | undefined;
    const tool = new Callback((self, { n }) => {
      inWorker ??= AsyncLocalStorage.snapshot();
      inWorker(() => setTimeout(() => self.callback(undefined, toolResult(`done ${n}`)), 2));
      return asyncResult('started');
    });
    for (let times = 0; times < 3; times += 1) expect((await complete(tool, 1)).heard).toEqual(each(1));
  });

  test('does not block later calls if it never calls its callback', async () => {
    const tool = new Callback(() => asyncResult('started'));
    const tools = new ToolRegistry().register(tool);
    for (let times = 0; times < 3; times += 1)
      expect(await tools.executeWithContext('work', {}, {}, () => {})).toMatchObject({ async: true });
  });

  test('has the callback of the outer call again after an inner call', async () => {
    const tools = new ToolRegistry();
    const heard: string[] = [];
    const listener: AsyncCallback = (context, { forLLM }) => heard.push(`${context?.callId} ${forLLM}`);
    const tool = new Callback(async (self, { inner }) => {
      if (!inner) await tools.executeWithContext('work', { inner: true }, { callId: 'inner' }, listener);
      self.callback(undefined, toolResult(inner ? 'in' : 'out'));
      return asyncResult('started');
    });
    tools.register(tool);
    await tools.executeWithContext('work', {}, { callId: 'outer' }, listener);
    await wait(5);
    expect(heard.sort()).toEqual(['inner in', 'outer out']);
  });
});

describe('a tool that is a class instance', () => {
  class Slow implements Tool {
    readonly name = 'work';
    readonly description = 'Works';
    readonly parameters = parameters;
    readonly #limit = 5;
    get timeoutMs() {
      return this.#limit;
    }
    async execute(_args: unknown, context: ToolContext) {
      await context.once('first', () => new Promise<never>(() => {})).catch(() => {});
      return 'never';
    }
  }
  class Asking extends Slow {
    override async execute(_args: unknown, context: ToolContext): Promise<string> {
      void context.once('first', () => new Promise<never>(() => {}));
      return context.ask({ message: 'Sure?', schema: { type: 'string' } }) as Promise<string>;
    }
  }

  test.each([new Slow(), new Asking()])(
    'times out after the timeoutMs that its getter returns',
    async (tool) => {
      const tools = new ToolRegistry().register(tool);
      const { record } = await tools.invoke({ id: 'c1', name: 'work', arguments: {} });
      expect(record.status).toBe('timed_out');
    },
  );

  test('keeps its getters when passed to defineTool', async () => {
    class Options {
      readonly name = 'work';
      readonly description = 'Works';
      readonly parameters = parameters;
      get timeoutMs() {
        return 5;
      }
      get annotations() {
        return { readOnly: true };
      }
      execute() {
        return new Promise(() => {});
      }
    }
    const made = defineTool(new Options());
    expect(made).toMatchObject({ timeoutMs: 5, annotations: { readOnly: true } });
    expect((await new ToolRegistry().register(made).execute('work')).error).toMatchObject({
      name: 'ToolTimedOut',
    });
  });
});

describe('defineTool', () => {
  test.each<[string, unknown]>([
    ['by name', (_args: unknown, context: ToolContext) => context.callId],
    ['with a default', (_args: unknown, context: ToolContext = undefined as never) => context.callId],
    ['in a rest parameter', (...all: { callId: string }[]) => all[1]?.callId],
    [
      'only through `arguments`',
      function (this: unknown) {
        // biome-ignore lint/complexity/noArguments: what is tested
        return arguments[1].callId;
      },
    ],
    [
      'after another default',
      ({ a = [1, 2] }: { a?: unknown }, context: ToolContext = null as never) => [a, context.callId][1],
    ],
  ])('passes the context to a body that declares it %s', async (_how, execute) => {
    const tool = defineTool({ ...base, execute: execute as never });
    const { forLLM } = await new ToolRegistry()
      .register(tool)
      .executeWithContext('work', {}, { callId: 'c7' });
    expect(forLLM).toBe('c7');
  });
});

describe('ToolRegistry.invoke', () => {
  const scope = { data: { userId: 'secret-user' }, channel: 'c', chatId: '1' };

  /** All objects and functions reachable from a value. */
  function reachable(value: unknown, seen = new Set<unknown>()): Set<unknown> {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value))
      return seen;
    seen.add(value);
    for (const key of Reflect.ownKeys(value)) reachable(Reflect.get(value, key), seen);
    const prototype: object | null = Object.getPrototypeOf(value);
    const isKnown =
      prototype === null ||
      [Object.prototype, Array.prototype, ToolResult.prototype].includes(prototype as never);
    if (!isKnown && !(value instanceof Error) && typeof value !== 'function') seen.add(prototype);
    return seen;
  }

  test.each<[string, Partial<ToolDefinition>, object]>([
    ['settled', { execute: () => ({ a: 1 }) }, {}],
    ['settled', { execute: async () => 'x' }, {}],
    ['started', { background: true, execute: () => 'x' }, { onAsyncResult: () => {} }],
    ['suspended', { approval: true, execute: () => 'x' }, {}],
  ])('returns plain data if the call is %s', async (status, more, options) => {
    let runs = 0;
    const tools = new ToolRegistry().register({
      ...base,
      ...more,
      execute: () => {
        runs += 1;
        return more.execute?.({}, undefined as never);
      },
    });
    const invocation = await tools.invoke({ id: 'c1', name: 'work', arguments: { q: 1 } }, scope, options);
    expect(invocation.status).toBe(status);
    const ran = runs;
    expect(Object.getPrototypeOf(invocation)).toBe(Object.prototype);
    expect(Object.keys(invocation).sort()).toEqual(
      status === 'suspended' ? ['record', 'result', 'status', 'suspension'] : ['record', 'result', 'status'],
    );
    expect(JSON.stringify(invocation)).not.toContain('secret-user');
    for (const part of reachable(invocation)) {
      expect(part).not.toBe(scope);
      expect(part).not.toBe(scope.data);
      expect(typeof part).not.toBe('function');
    }
    await nextTurn();
    expect(runs - ran).toBeLessThanOrEqual(status === 'started' ? 1 : 0);
  });

  test('records the arguments as sent, even if the tool changes them', async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (generated) => {
        const sent = JSON.parse(JSON.stringify(generated));
        const args = JSON.parse(JSON.stringify(generated));
        let seen: unknown;
        const tools = new ToolRegistry().register({
          ...base,
          execute: (own: Record<string, unknown>, context: ToolContext) => {
            ruin(own);
            seen = context.rawArguments;
            return 'x';
          },
        });
        const { record } = await tools.invoke({ id: 'c1', name: 'work', arguments: args });
        expect(record.rawArguments).toEqual(sent);
        expect(seen).toEqual(sent);
      }),
      {
        numRuns: 50,
        endOnFailure: true,
        examples: [[JSON.parse('{"__proto__":{"a":[1]},"toString":{"b":{}}}')]],
      },
    );
  });

  function ruin(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    for (const key of Object.keys(value)) {
      ruin((value as Record<string, unknown>)[key]);
      delete (value as Record<string, unknown>)[key];
    }
    Object.assign(value, { ruined: true });
  }

  test('records the arguments as sent in a run too', async () => {
    const tool = defineTool({
      ...base,
      execute: (args: { list?: unknown[] }) => {
        args.list?.push('mine');
        return 'x';
      },
    });
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'work', arguments: { list: [1] } }] },
      { content: 'done' },
    ]);
    const run = await runToolLoop({ provider, model: 'm', tools: [tool] }, [{ role: 'user', content: 'go' }]);
    expect(run.toolCalls[0]?.rawArguments).toEqual({ list: [1] });
  });
});

describe('approvals and policies', () => {
  const answers: unknown[] = [
    ...[undefined, null, 0, '', Number.NaN, 'no', 'false', 1, {}, [], true, Symbol('no'), new Boolean(false)],
    ...[
      { approved: false },
      Promise.resolve(undefined),
      Promise.resolve('false'),
      Promise.reject(new Error('x')),
    ],
  ];
  for (const answer of answers) if (answer instanceof Promise) answer.catch(() => {});

  async function statusOf(approval: unknown): Promise<string> {
    const tools = new ToolRegistry().register({ ...base, approval: approval as never, execute: () => 'x' });
    return (await tools.invoke({ id: 'c1', name: 'work', arguments: {} })).status;
  }

  test.each(answers.map((answer) => [answer]))(
    'an approval function that returns %p requires an approval',
    async (answer) => {
      expect(await statusOf(() => answer)).toBe('suspended');
    },
  );

  test('an approval function that returns false, or a promise of it, requires none', async () => {
    expect(await statusOf(() => false)).toBe('settled');
    expect(await statusOf(async () => false)).toBe('settled');
  });

  test.each([
    [
      'a policy',
      { policy: () => new Promise<never>(() => {}) },
      {},
      'settled',
      'the policy could not decide',
    ],
    [
      'an approval function',
      {},
      { approval: () => new Promise<never>(() => {}) },
      'suspended',
      'waits for an answer',
    ],
  ])('%s that hangs is limited by the timeout of the call', async (_who, options, more, status, told) => {
    for (const limits of [
      [{ toolTimeoutMs: 5 }, {}],
      [{}, { timeoutMs: 5 }],
    ]) {
      const tools = new ToolRegistry({ ...options, ...limits[0] });
      tools.register({ ...base, ...more, ...limits[1], execute: () => 'x' });
      const invocation = await tools.invoke({ id: 'c1', name: 'work', arguments: {} });
      expect(invocation.status).toBe(status);
      expect(invocation.result.forLLM).toContain(told);
    }
  });
});

/** Values that throw when they are inspected. */
function hostileThings(): unknown[] {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const { proxy: callable, revoke: revokeCallable } = Proxy.revocable(() => {}, {});
  revokeCallable();
  const boom = (): never => {
    throw new Error('boom');
  };
  const traps = new Proxy(new Error('x'), {
    get: boom,
    has: boom,
    getPrototypeOf: boom,
    ownKeys: boom,
    getOwnPropertyDescriptor: boom,
  });
  return [
    ...[proxy, callable, traps, undefined, null, Symbol('x'), 1n, Number.NaN, '', Object.create(null)],
    Object.defineProperty(new Error('x'), 'message', { get: boom }),
    Object.defineProperty(new Error('x'), 'name', { get: boom }),
    Object.defineProperty(new Error('x'), 'stack', { get: boom }),
    Object.defineProperty(new Error('x'), 'cause', { get: boom }),
    { toString: boom, message: 5 },
    { [Symbol.toPrimitive]: boom },
    new Error('x', { cause: proxy }),
    new AggregateError([proxy]),
  ];
}

describe('any value', () => {
  const throwing = (value: unknown) => () => {
    throw value;
  };
  const logger = {
    debug: () => {},
    info: () => {},
    warn: String,
    error: (...told: unknown[]) => JSON.stringify(told),
  };
  const things = hostileThings().map((_, index) => [index] as const);

  test.each(things)('thrown by a tool gives an error result (%i)', async (index) => {
    const value = hostileThings()[index];
    for (const execute of [
      throwing(value),
      async () => throwing(value)(),
      () => ({ a: Promise.reject(value) }),
    ]) {
      const result = await new ToolRegistry({ logger }).register({ ...base, execute }).execute('work');
      expect(result).toMatchObject({ isError: true });
      expect(typeof result.forLLM).toBe('string');
      expect(result.forLLM).not.toBe('');
    }
  });

  test.each(things)('thrown by background work completes it with an error (%i)', async (index) => {
    const value = hostileThings()[index];
    const bodies: Partial<ToolDefinition>[] = [
      { execute: (_args, context) => context.background(throwing(value)) },
      { execute: (_args, context) => context.background(async () => throwing(value)()) },
      { execute: throwing(value), background: true },
      { execute: async () => throwing(value)(), background: true },
    ];
    for (const body of bodies) {
      const completed = Promise.withResolvers<ToolResult>();
      const tools = new ToolRegistry({ logger }).register({ ...base, ...body } as ToolDefinition);
      const now = await tools.executeWithContext('work', {}, {}, (_context, result) =>
        completed.resolve(result),
      );
      expect(now).toMatchObject({ async: true });
      expect(await completed.promise).toMatchObject({ isError: true, async: false });
    }
  });

  test.each(things)('passed to a callback completes its call (%i)', async (index) => {
    const value = hostileThings()[index];
    const completed = Promise.withResolvers<ToolResult>();
    const tool = new Callback((self) => {
      setImmediate(() => self.callback(undefined, value as ToolResult));
      return asyncResult('started');
    });
    const tools = new ToolRegistry({ logger }).register(tool);
    await tools.executeWithContext('work', {}, {}, (_context, result) => completed.resolve(result));
    expect(typeof (await completed.promise).forLLM).toBe('string');
  });

  test.each(things)(
    'thrown by a policy, an approval function, once or describeError ends the call (%i)',
    async (index) => {
      const value = hostileThings()[index];
      const call = (options: object, more: object = {}) =>
        new ToolRegistry({ logger, ...options })
          .register({ ...base, execute: () => 'x', ...more })
          .invoke({ id: 'c1', name: 'work', arguments: {} });
      expect((await call({ policy: throwing(value) })).record.status).toBe('refused');
      expect((await call({ policy: async () => throwing(value)() })).record.status).toBe('refused');
      expect((await call({}, { approval: throwing(value) })).status).toBe('suspended');
      const once = { execute: (_args: unknown, context: ToolContext) => context.once('a', throwing(value)) };
      expect((await call({}, once)).record.status).toBe('error');
      const described = await call(
        { describeError: throwing(value) },
        { execute: throwing(new Error('hunter2')) },
      );
      expect(described.result.forLLM).toBe("The tool 'work' failed.");
    },
  );
});

describe('an unwrapped agent tool', () => {
  const greeting = () => ({
    name: 'greet',
    label: 'Greeting',
    description: 'Greets somebody',
    parameters: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const,
    execute: async (
      toolCallId: string,
      params: { name?: unknown },
      signal?: AbortSignal,
      onUpdate?: (update: never) => void,
    ) => ({
      content: [
        {
          type: 'text' as const,
          content: `${toolCallId} ${params.name} ${signal instanceof AbortSignal} ${typeof onUpdate}`,
        },
      ],
      details: { ms: 1 },
    }),
  });
  class Greeting {
    readonly name = 'greet';
    readonly label = 'Greeting';
    readonly description = 'Greets somebody';
    readonly #word = 'Hello';
    get parameters() {
      return greeting().parameters;
    }
    async execute(_toolCallId: string, { name }: { name?: unknown }) {
      return { content: [{ type: 'text' as const, content: `${this.#word} ${name}` }], details: {} };
    }
  }

  test.each([
    ['an object', greeting()],
    ['a function that returns it', greeting],
  ])('registered as %s gets its own kind of arguments', async (_how, tool) => {
    const tools = new ToolRegistry().register(tool as never);
    const call = { id: 'call_7', name: 'greet', arguments: { name: 'Ann' } };
    const { result } = await tools.invoke(call);
    expect(result).toMatchObject({ forLLM: 'call_7 Ann true function', details: { ms: 1 } });
    expect(tools.get('greet')?.annotations?.title).toBe('Greeting');
  });

  test('that is a class instance keeps its getters', async () => {
    const tools = new ToolRegistry().register(new Greeting() as never);
    expect((await tools.execute('greet', { name: 'Ann' })).forLLM).toBe('Hello Ann');
    expect((await tools.execute('greet', {})).forLLM).toContain('name: is required');
  });

  test('passed to a run gets its own kind of arguments', async () => {
    const provider = new ScriptedProvider([
      { toolCalls: [{ id: 'call_1', name: 'greet', arguments: { name: 'Ann' } }] },
      { content: 'done' },
    ]);
    const run = await runToolLoop({ provider, model: 'm', tools: [greeting() as never] }, [
      { role: 'user', content: 'go' },
    ]);
    expect(run.toolCalls[0]?.result.forLLM).toBe('call_1 Ann true function');
  });

  test('with mistakes is refused with all of them', () => {
    const wrong = { ...greeting(), name: 'not a name', timeoutMs: 'soon' as never };
    expect(() => new ToolRegistry().register(wrong as never)).toThrow(/not a name[\s\S]*timeoutMs/);
  });

  test('is distinguished from a standard tool that has a label', async () => {
    const contract = {
      ...base,
      label: 'Mine',
      execute: (args: Record<string, unknown>) => JSON.stringify(args),
    };
    const shared = {
      ...base,
      name: 'shared',
      label: 'Mine',
      setContext: () => {},
      execute: (args: Record<string, unknown>, _context: ToolContext) => JSON.stringify(args),
    };
    const tools = new ToolRegistry().register(contract, shared);
    expect((await tools.execute('work', { a: 1 })).forLLM).toBe('{"a":1}');
    expect((await tools.execute('shared', { a: 1 })).forLLM).toBe('{"a":1}');
  });
});
