import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type CallScope, TaskQueue, ToolRegistry } from 'toolwright';
import { runs } from '../../setup/runs.js';
import { listenedCalls } from './listened-calls.js';
import { plainTool } from './plain-tool.js';

/** Starts one task for each scope and returns the order in which the work started. */
async function orderOf(scopes: readonly CallScope[], maxRunning: number): Promise<readonly number[]> {
  const begun: number[] = [];
  const gate = Promise.withResolvers<void>();
  const tasks = new TaskQueue({ maxRunning });
  const tools = new ToolRegistry({ tasks }).register(
    plainTool(({ index }, context) =>
      context.background(async () => {
        begun.push(Number(index));
        await gate.promise;
      }),
    ),
  );
  for (const [index, scope] of scopes.entries())
    await tools.executeWithContext('work', { index }, scope, () => {});
  expect(begun).toHaveLength(Math.min(maxRunning, scopes.length));
  gate.resolve();
  await tasks.idle();
  expect(begun).toHaveLength(scopes.length);
  return begun;
}

describe('a queue of tasks', () => {
  test('runs all tasks at once without a limit', async () => {
    const scopes = Array.from({ length: 100 }, () => ({}));
    expect(await orderOf(scopes, Number.POSITIVE_INFINITY)).toEqual([...scopes.keys()]);
  });

  test('does not delay a conversation with one task behind one with 1,000 tasks', async () => {
    const scopes = [
      ...Array.from({ length: 1000 }, () => ({ conversationId: 'busy' })),
      { conversationId: 'quiet' },
    ];
    const order = await orderOf(scopes, 2);
    // Two tasks already run, and one more may be ahead.
    expect(order.indexOf(1000)).toBeLessThanOrEqual(3);
  });

  test.each([
    ['conversation id', { conversationId: 'a' }, { conversationId: 'b' }, true],
    ['channel and chat id', { channel: 'c', chatId: '1' }, { channel: 'c', chatId: '2' }, true],
    [
      'conversation id first',
      { conversationId: 'a', chatId: '1' },
      { conversationId: 'a', chatId: '2' },
      false,
    ],
    [
      'channel and chat id that contain the separator',
      { channel: 'c:1', chatId: '2' },
      { channel: 'c', chatId: '1:2' },
      true,
    ],
    ['nothing: calls without ids share a queue', {}, { data: {} }, false],
  ])('separates conversations by %s', async (_by, one, other, isApart) => {
    const order = await orderOf([one, one, one, one, other], 1);
    expect(order).toEqual(isApart ? [0, 1, 4, 2, 3] : [0, 1, 2, 3, 4]);
  });

  test('assigns slots to waiting conversations in rotation', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 4 }),
        async (names, maxRunning) => {
          const order = await orderOf(
            names.map((conversationId) => ({ conversationId })),
            maxRunning,
          );
          const waited = order.slice(maxRunning).map((index) => names[index]);
          const served = new Map<string | undefined, number>();
          for (const [at, name] of waited.entries()) {
            served.set(name, (served.get(name) ?? 0) + 1);
            for (const other of new Set(waited.slice(at + 1)))
              expect(served.get(name)).toBeLessThanOrEqual((served.get(other) ?? 0) + 1);
          }
          // Tasks of the same conversation run in order.
          for (const name of new Set(names)) {
            const own = order.filter((index) => names[index] === name);
            expect(own).toEqual([...own].sort((one, other) => one - other));
          }
        },
      ),
      { numRuns: runs(60) },
    );
  });

  test('frees the slot when the work is done, even before its call has returned', async () => {
    const gate = Promise.withResolvers<void>();
    const calls = listenedCalls(
      {
        slow: plainTool(async (_args, context) => {
          const acknowledged = context.background(() => 'done');
          await gate.promise;
          return acknowledged;
        }),
        mail: plainTool((_args, context) => context.background(() => gate.resolve())),
      },
      { maxRunning: 1 },
    );
    // The method of the first call waits for the work of the second.
    await Promise.all([calls.call('slow'), calls.call('mail')]);
    await calls.tasks.idle();
    expect(calls.heard).toHaveLength(2);
  });

  test('does not change the turn of a conversation that cancels a waiting task', async () => {
    const gate = Promise.withResolvers<void>();
    const begun: string[] = [];
    const names = ['now', 'a1', 'a2', 'a3', 'b1', 'b2', 'b3'];
    const calls = listenedCalls(
      Object.fromEntries(
        names.map((name) => [
          name,
          plainTool((_args, context) => {
            context.progress('heard of by nobody, as long as the work waits');
            const acknowledged = context.background(async () => {
              begun.push(name);
              await gate.promise;
            });
            if (name !== 'now') context.progress('nor now');
            return acknowledged;
          }),
        ]),
      ),
      { maxRunning: 1 },
    );
    for (const name of names) await calls.call(name, { conversationId: name[0] });
    expect(calls.events).toEqual(['task-start now']);
    calls.tasks.cancel(calls.taskOf('a1').id);
    gate.resolve();
    await calls.tasks.idle();
    expect(begun).toEqual(['now', 'a2', 'b1', 'a3', 'b2', 'b3']);
  });

  test('is idle when all completions are delivered, and immediately if it is empty', async () => {
    const work = Promise.withResolvers<void>();
    const calls = listenedCalls({
      mail: plainTool((_args, context) => context.background(() => work.promise)),
    });
    await calls.tasks.idle();
    await calls.call('mail');
    let isIdle = false;
    const idle = calls.tasks.idle().then(() => {
      isIdle = true;
    });
    await turn();
    expect(isIdle).toBe(false);
    work.resolve();
    await idle;
    expect(calls.heard).toHaveLength(1);
  });

  test('stops calling removed subscribers, and calls a listener that subscribed twice twice', async () => {
    const calls = listenedCalls({ mail: plainTool((_args, context) => context.background(() => 'x')) });
    const told: string[] = [];
    const listener = ({ type }: { readonly type: string }) => told.push(type);
    const ends = [calls.tasks.subscribe(listener), calls.tasks.subscribe(listener)];
    ends[0]?.();
    ends[0]?.();
    await calls.call('mail');
    await calls.tasks.idle();
    expect(told).toEqual(['task-start', 'task-end']);
    ends[1]?.();
    await calls.call('mail');
    await calls.tasks.idle();
    expect(told).toHaveLength(2);
  });

  test('ends thousands of waiting tasks together', async () => {
    const controller = new AbortController();
    const calls = listenedCalls(
      { mail: plainTool((_args, context) => context.background(() => new Promise(() => {}))) },
      { maxRunning: 1 },
    );
    await Promise.all(Array.from({ length: 2000 }, () => calls.call('mail', { signal: controller.signal })));
    controller.abort();
    await calls.tasks.idle();
    expect(calls.heard).toHaveLength(2000);
    expect(calls.events.filter((event) => event === 'task-start mail')).toHaveLength(1);
  });

  test.each([0, -1, 1.5, Number.NaN])('refuses maxRunning %d', (maxRunning) => {
    expect(() => new TaskQueue({ maxRunning })).toThrow('maxRunning');
  });
});

describe('the queue of a call', () => {
  const mail = () => plainTool((_args, context) => context.background(() => new Promise(() => {})));

  test('is that of the registry, shared with its views, unless one was given', async () => {
    const tools = new ToolRegistry().register(mail());
    await tools.view({ allow: ['*'] }).executeWithContext('work', {}, {}, () => {});
    expect(tools.tasks.tasks).toHaveLength(1);
    const tasks = new TaskQueue();
    expect(new ToolRegistry({ tasks }).tasks).toBe(tasks);
  });

  test('is the one that the call passes', async () => {
    const tasks = new TaskQueue();
    const tools = new ToolRegistry().register(mail());
    await tools.invoke({ id: '1', name: 'work', arguments: {} }, {}, { tasks, onAsyncResult: () => {} });
    expect([tasks.tasks.length, tools.tasks.tasks.length]).toEqual([1, 0]);
  });
});
