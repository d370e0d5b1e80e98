import { AsyncLocalStorage } from 'node:async_hooks';
import { getEventListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import type { ToolContext, ToolDefinition } from 'toolwright';
import { callWork, type WorkOptions } from './call-work.js';
import { logbook } from './logbook.js';
import { plainTool } from './plain-tool.js';

function call(tool: ToolDefinition, more: WorkOptions = {}) {
  return callWork(tool, {}, more);
}

const never = () => new Promise(() => {});

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

describe('timeouts', () => {
  test('a tool that takes too long gets a timeout result, and its signal is aborted', async () => {
    let signal: AbortSignal | undefined;
    const tool = plainTool((_args, context) => {
      ({ signal } = context);
      return never();
    });
    const { result, record } = await call(tool, { toolTimeoutMs: 5 });
    expect(record.status).toBe('timed_out');
    expect(result).toMatchObject({
      forLLM:
        "The tool 'work' timed out after 5 ms. It had begun, and its effects are unknown: find out, or ask, before you call it again.",
      isError: true,
      error: { name: 'ToolTimedOut', code: 507 },
    });
    expect(signal?.aborted).toBe(true);
    expect(signal?.reason).toMatchObject({ name: 'TimeoutError' });
  });

  test.each([{ readOnly: true }, { idempotent: true }])(
    'the result of a tool that is safe to repeat reports only the timeout: %j',
    async (annotations) => {
      const { result } = await call(plainTool(never, { annotations }), { toolTimeoutMs: 5 });
      expect(result.forLLM).toBe("The tool 'work' timed out after 5 ms.");
    },
  );

  test('calls that start in the same turn end in the async context of their own caller', async () => {
    const user = new AsyncLocalStorage<string>();
    const users: unknown[] = [];
    const call = (name: string) => {
      const afterCall = () => void users.push([name, user.getStore()]);
      return user.run(name, () =>
        callWork(plainTool(never), {}, { toolTimeoutMs: 5, hooks: [{ afterCall }] }),
      );
    };
    await Promise.all(['ann', 'bob'].map(call));
    expect(users).toEqual([
      ['ann', 'ann'],
      ['bob', 'bob'],
    ]);
  });

  test('the signal is aborted even if the tool first reads it afterwards', async () => {
    let context: ToolContext | undefined;
    await call(
      plainTool((_args, given) => {
        context = given;
        return never();
      }),
      { toolTimeoutMs: 5 },
    );
    expect(context?.signal.aborted).toBe(true);
  });

  test('the limit of the tool overrides that of the run', async () => {
    const { result } = await call(plainTool(never, { timeoutMs: 5 }), { toolTimeoutMs: 60_000 });
    expect(result.forLLM).toBe(
      "The tool 'work' timed out after 5 ms. It had begun, and its effects are unknown: find out, or ask, before you call it again.",
    );
  });

  test.each([Number.POSITIVE_INFINITY, 2 ** 40])(
    'a limit of %d ms does not run out at once',
    async (timeoutMs) => {
      const slow = plainTool(() => new Promise((resolve) => setTimeout(() => resolve('done'), 10)), {
        timeoutMs,
      });
      expect((await call(slow)).result.forLLM).toBe('done');
    },
  );

  test('a late result, a late error and late progress are only logged', async () => {
    const { logger, lines } = logbook();
    const late = Promise.withResolvers<string>();
    const updates: unknown[] = [];
    const tool = plainTool(async (_args, context) => {
      const result = await late.promise;
      context.progress('late');
      return result;
    });
    const environment = {
      toolTimeoutMs: 5,
      logger,
      scope: { onUpdate: (update: unknown) => updates.push(update) },
    };
    const { result } = await call(tool, environment);
    const told = JSON.stringify(result);
    late.resolve('too late');
    await turn();
    expect(JSON.stringify(result)).toBe(told);
    expect(updates).toEqual([]);
    expect(lines.at(-1)).toMatchObject({
      level: 'warn',
      message: 'A tool ended after its call had ended',
      fields: { how: 'returned' },
    });
  });

  test('only a body that throws another error than the abort is logged', async () => {
    const late = async (end: (signal: AbortSignal) => void) => {
      const { logger, lines } = logbook();
      const stop = new AbortController();
      const go = Promise.withResolvers<void>();
      const tool = plainTool(async (_args, context) => {
        await go.promise;
        end(context.signal);
      });
      const answered = call(tool, { logger, scope: { signal: stop.signal } });
      stop.abort();
      expect((await answered).record.status).toBe('aborted');
      go.resolve();
      await turn();
      return lines.map(({ message }) => message);
    };
    const told = ['Tool started', 'Tool arguments', 'Tool call aborted'];
    expect(await late((signal) => signal.throwIfAborted())).toEqual(told);
    const broken = () => {
      throw new Error('broken');
    };
    expect(await late(broken)).toEqual([...told, 'A tool ended after its call had ended']);
  });

  test('an abort after the timeout does not end a call again', async () => {
    const { logger, lines } = logbook();
    const stop = new AbortController();
    const late = Promise.withResolvers<string>();
    const tool = plainTool(() => late.promise);
    await call(tool, { toolTimeoutMs: 5, logger, scope: { signal: stop.signal } });
    stop.abort();
    late.resolve('too late');
    await turn();
    expect(lines.flatMap(({ fields }) => fields?.how ?? [])).toEqual(['returned']);
  });

  test('a signal without addEventListener fails its call with InvalidOptions, and other calls continue', async () => {
    const broken = { aborted: false } as AbortSignal;
    const slow = () => new Promise((resolve) => setTimeout(() => resolve('done'), 10));
    const calls = [{ signal: broken }, {}].map((scope) =>
      call(plainTool(slow), { toolTimeoutMs: 60_000, scope }),
    );
    const [wrong, right] = await Promise.all(calls);
    expect(wrong?.result.error).toMatchObject({ name: 'InvalidOptions' });
    expect(right?.result.forLLM).toBe('done');
  });

  test('a generator is closed at its next value after the timeout', async () => {
    let isClosed = false;
    const next = Promise.withResolvers<void>();
    const tool = plainTool(async function* () {
      try {
        await next.promise;
        yield 'late';
        yield 'later';
      } finally {
        isClosed = true;
      }
    });
    const updates: unknown[] = [];
    const scope = { onUpdate: (update: unknown) => updates.push(update) };
    expect((await call(tool, { toolTimeoutMs: 5, scope })).record.status).toBe('timed_out');
    next.resolve();
    await turn();
    expect([isClosed, updates]).toEqual([true, []]);
  });
});

describe('aborts', () => {
  test('a call of an aborted run gets a result, and its tool does not run', async () => {
    const tool = plainTool(() => {
      throw new Error('must not run');
    });
    const { result, record } = await call(tool, { scope: { signal: AbortSignal.abort() } });
    expect(record.status).toBe('aborted');
    expect(result).toMatchObject({ isError: true, error: { name: 'RunAborted', code: 508 } });
  });

  test('a tool that ignores the signal does not delay the result', async () => {
    const controller = new AbortController();
    const answered = call(plainTool(never), { scope: { signal: controller.signal } });
    await turn();
    controller.abort();
    expect((await answered).record.status).toBe('aborted');
  });

  test('a tool that uses the signal may return its own result', async () => {
    const controller = new AbortController();
    const tool = plainTool(
      (_args, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('Download cancelled')));
        }),
      { observesSignal: true },
    );
    const answered = call(tool, { scope: { signal: controller.signal } });
    await turn();
    controller.abort();
    const { result, record } = await answered;
    expect(result.forLLM).toBe('Download cancelled');
    expect(record.status).toBe('aborted');
  });

  test('a tool that takes the signal and ignores it is ended as well', async () => {
    const controller = new AbortController();
    const answered = call(plainTool(never, { observesSignal: true }), {
      scope: { signal: controller.signal },
    });
    await turn();
    controller.abort();
    expect((await answered).result.error).toMatchObject({ name: 'RunAborted' });
  });

  test('calls leave no listeners on a long-lived signal', async () => {
    const { signal } = new AbortController();
    for (let index = 0; index < 20; index += 1)
      await call(
        plainTool(async () => 'x'),
        { scope: { signal } },
      );
    expect(getEventListeners(signal, 'abort').length).toBeLessThan(2);
    await turn();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('a listener that a tool adds to its signal does not add one to the signal of the run', async () => {
    const { signal } = new AbortController();
    const tool = plainTool((_args, context) => {
      context.signal.addEventListener('abort', () => context.callId);
      return Promise.resolve('x');
    });
    await call(tool, { scope: { signal } });
    await call(tool, { scope: { signal }, onAsyncResult: () => {} });
    await call(tool, { scope: { signal }, policy: () => true });
    await turn();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('listeners that tools add to their signals do not retain the calls', async () => {
    const { signal } = new AbortController();
    const contexts: WeakRef<object>[] = [];
    const tool = plainTool((_args, context) => {
      contexts.push(new WeakRef(context));
      context.signal.addEventListener('abort', () => context.callId);
      return Promise.resolve('x');
    });
    for (let index = 0; index < 20; index += 1) await call(tool, { scope: { signal } });
    await turn();
    collectGarbage();
    expect(contexts.filter((context) => context.deref() !== undefined).length).toBeLessThan(5);
  });

  test('the signal of the context follows that of the run also in background work', async () => {
    const controller = new AbortController();
    let signal: AbortSignal | undefined;
    const completion = Promise.withResolvers<void>();
    const tool = plainTool((_args, context) =>
      context.background(async () => {
        ({ signal } = context);
        await completion.promise;
      }),
    );
    const { status } = await call(tool, { scope: { signal: controller.signal }, onAsyncResult: () => {} });
    expect([status, signal?.aborted]).toEqual(['started', false]);
    controller.abort(new Error('enough'));
    expect(signal?.aborted).toBe(true);
    expect(signal?.reason).toMatchObject({ message: 'enough' });
    completion.resolve();
  });

  test('an abort ends the wait for a shared object', async () => {
    const first = Promise.withResolvers<string>();
    const told: string[] = [];
    const shared = {
      ...plainTool(() => first.promise),
      setContext: (_channel: string, chatId: string) => told.push(chatId),
    };
    const at = (chatId: string) => ({ channel: 'c', chatId });
    const controller = new AbortController();
    const [one, two, three] = [
      call(shared, { scope: at('1') }),
      call(shared, { scope: { ...at('2'), signal: controller.signal } }),
      call(shared, { scope: at('3') }),
    ];
    await turn();
    controller.abort();
    expect((await two).record.status).toBe('aborted');
    first.resolve('done');
    expect([(await one).result.forLLM, (await three).result.forLLM]).toEqual(['done', 'done']);
    expect(told).toEqual(['1', '3']);
  });
});
