import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import {
  asyncResult,
  discoverTools,
  Tool,
  ToolContext,
  type ToolDefinition,
  ToolRegistry,
  Toolset,
  toolResult,
} from 'toolwright';
import { listenedCalls } from './listened-calls.js';
import { plainTool } from './plain-tool.js';

@Toolset()
class Statements {
  @Tool({ description: 'Mail the statement of a year', background: true })
  async mail(year: number, signal: AbortSignal, context: ToolContext) {
    context.progress(`writing ${year}`);
    await turn();
    return { year, aborted: signal.aborted, id: context.taskId !== undefined };
  }
}

const background = (execute: Parameters<typeof plainTool>[0], more: Partial<ToolDefinition> = {}) =>
  plainTool(execute, { background: true, ...more });

describe('a method that runs entirely in the background', () => {
  test('is acknowledged at once and completes with what it returns', async () => {
    const [tool] = discoverTools({ toolsets: [Statements] });
    const tools = new ToolRegistry().register(...(tool ? [tool] : []));
    const completion = Promise.withResolvers<string>();
    const updates: unknown[] = [];
    const acknowledged = await tools.executeWithContext(
      'mail',
      { year: 2026 },
      { onUpdate: (update) => updates.push(update) },
      (_context, { forLLM }) => completion.resolve(forLLM),
    );
    expect([acknowledged, updates]).toEqual([asyncResult('Started; the result will follow.'), []]);
    expect(await completion.promise).toBe('{"year":2026,"aborted":false,"id":true}');
    expect(updates).toEqual(['writing 2026']);
    await tools.tasks.idle();
  });

  test('runs like any other method without a listener for completions', async () => {
    const tools = new ToolRegistry().register(background(() => 'done'));
    expect(await tools.execute('work', {})).toEqual(toolResult('done'));
    const [tool] = discoverTools({ toolsets: [Statements] });
    const result = await new ToolRegistry().register(...(tool ? [tool] : [])).execute('mail', { year: 1 });
    expect(result.forLLM).toBe('{"year":1,"aborted":false,"id":false}');
  });

  test('starts after its acknowledgement, so that a synchronous method does not delay it', async () => {
    const order: string[] = [];
    const calls = listenedCalls({ count: background(() => order.push('counted')) });
    await calls.call('count');
    order.push('acknowledged');
    await calls.tasks.idle();
    expect(order).toEqual(['acknowledged', 'counted']);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('no paper');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no paper'))],
  ])('that %s completes with its error', async (_how, execute) => {
    const calls = listenedCalls({ mail: background(execute) });
    expect((await calls.call('mail')).status).toBe('started');
    await calls.tasks.idle();
    expect(calls.heard).toMatchObject([{ forLLM: 'no paper', isError: true, error: { code: 501 } }]);
  });

  test('reports the values it yields and is closed when it is cancelled', async () => {
    const next = Promise.withResolvers<void>();
    let isClosed = false;
    const calls = listenedCalls({
      copy: background(async function* () {
        try {
          yield 'one';
          await next.promise;
          yield 'two';
          yield 'three';
        } finally {
          isClosed = true;
        }
      }),
    });
    const updates: unknown[] = [];
    const reported = Promise.withResolvers<void>();
    calls.tasks.subscribe((event) => {
      if (event.type !== 'task-progress') return;
      updates.push(event.update);
      reported.resolve();
    });
    await calls.call('copy');
    await reported.promise;
    calls.tasks.cancel(calls.taskOf('copy').id);
    next.resolve();
    await turn();
    expect([updates, isClosed]).toEqual([['one'], true]);
    expect(calls.heard).toMatchObject([{ error: { name: 'TaskCancelled' } }]);
  });

  test('that is cancelled before it begins never runs', async () => {
    let runs = 0;
    const calls = listenedCalls({
      mail: background(() => {
        runs += 1;
      }),
    });
    await calls.call('mail');
    calls.tasks.cancel(calls.taskOf('mail').id);
    await calls.tasks.idle();
    await turn();
    expect([runs, calls.heard.length]).toEqual([0, 1]);
  });

  test('runs nested context.background work as part of itself', async () => {
    const calls = listenedCalls({
      mail: background((_args, context) => context.background(async () => 'sent', 'never seen')),
    });
    await calls.call('mail');
    await calls.tasks.idle();
    expect(calls.heard).toEqual([toolResult('sent')]);
  });

  test('of a shared object waits for its turn in the background', async () => {
    const gate = Promise.withResolvers<void>();
    let chat = '';
    const shared = {
      ...background(async () => {
        const mine = chat;
        await gate.promise;
        return `${mine} ${chat}`;
      }),
      setContext: (_channel: string, chatId: string) => {
        chat = chatId;
      },
    };
    const calls = listenedCalls({ mail: shared });
    for (const chatId of ['1', '2', '3']) await calls.call('mail', { channel: 'c', chatId });
    await turn();
    await turn();
    const [, second] = calls.tasks.tasks;
    calls.tasks.cancel(second?.id ?? '');
    gate.resolve();
    await calls.tasks.idle();
    expect(calls.heard.map(({ forLLM }) => forLLM)).toEqual([
      "The work of the tool 'mail' was cancelled.",
      '1 1',
      '3 3',
    ]);
  });

  test('gets no callback: its return value completes the call', async () => {
    let callbacks = 0;
    const tool = {
      ...background(() => 'done'),
      setCallback: () => {
        callbacks += 1;
      },
    };
    const calls = listenedCalls({ build: tool });
    await calls.call('build');
    await calls.tasks.idle();
    expect([callbacks, calls.heard]).toEqual([0, [toolResult('done')]]);
  });

  test('is checked by policies and approvals before the acknowledgement', async () => {
    let runs = 0;
    const mail = background(() => {
      runs += 1;
    });
    const refused = listenedCalls({ mail }, { registry: { policy: () => false } });
    expect((await refused.call('mail')).record.status).toBe('refused');
    const waits = listenedCalls({ mail: background(mail.execute, { approval: true }) });
    expect((await waits.call('mail')).status).toBe('suspended');
    await turn();
    expect([runs, refused.events, waits.events]).toEqual([0, [], []]);
  });
});
