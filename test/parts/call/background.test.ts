import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { asyncResult, type ToolContext, ToolRegistry, toolResult } from 'toolwright';
import { listenedCalls } from './listened-calls.js';
import { plainTool } from './plain-tool.js';

/** A tool that does this work in the background. */
const working = (work: (context: ToolContext) => unknown, more: object = {}) =>
  plainTool((_args, context) => context.background(() => work(context), 'Started'), more);

const never = () => new Promise(() => {});

describe('work in the background', () => {
  test('has an id in its task, its call record and its context', async () => {
    let context: ToolContext | undefined;
    const calls = listenedCalls({
      mail: plainTool((_args, given) => {
        context = given;
        expect(given.taskId).toBeUndefined();
        return given.background(never);
      }),
    });
    const { record, status } = await calls.call('mail', { conversationId: 'v1' });
    expect(status).toBe('started');
    expect(calls.tasks.tasks).toEqual([
      { id: record.taskId, callId: 'call_mail', tool: 'mail', conversationId: 'v1', status: 'running' },
    ]);
    expect(record.taskId).toMatch(/^task_[0-9a-f-]{36}$/);
    expect(context?.taskId).toBe(record.taskId);
    expect(JSON.parse(JSON.stringify(calls.tasks.tasks))).toEqual(calls.tasks.tasks);
  });

  test('calls that started nothing have no task id', async () => {
    const calls = listenedCalls({ plain: plainTool((_args, { taskId }) => String(taskId)) });
    const { record } = await calls.call('plain');
    expect([record.taskId, record.result.forLLM]).toEqual([undefined, 'undefined']);
    expect(calls.events).toEqual([]);
  });

  test('validates its completion against the output schema', async () => {
    const output = { type: 'object', properties: { sent: { type: 'integer' } }, required: ['sent'] };
    const calls = listenedCalls({
      good: working(() => ({ sent: 3 }), { output }),
      bad: working(() => ({ sent: 'three' }), { output }),
    });
    await calls.call('good');
    await calls.call('bad');
    await calls.tasks.idle();
    expect(calls.heard).toMatchObject([
      { forLLM: '{"sent":3}', isError: false },
      { isError: true, error: { name: 'InvalidResult' } },
    ]);
  });

  test('cuts its completion at maxResultChars', async () => {
    const calls = listenedCalls(
      { long: working(() => 'x'.repeat(1000)) },
      { registry: { maxResultChars: 10 } },
    );
    await calls.call('long');
    await calls.tasks.idle();
    expect(calls.heard[0]?.forLLM).toBe('xxxxxxxxxx\n[990 more characters were cut off]');
  });

  test('a completion is never marked as an acknowledgement', async () => {
    const calls = listenedCalls({ odd: working(() => asyncResult('done at last')) });
    await calls.call('odd');
    await calls.tasks.idle();
    expect(calls.heard).toEqual([toolResult('done at last')]);
  });

  test('reports a result that can be read only once as an error instead of losing the completion', async () => {
    let reads = 0;
    const value = {
      get sent() {
        reads += 1;
        if (reads > 1) throw new Error('gone');
        return 3;
      },
    };
    const calls = listenedCalls({
      odd: working(() => value, { output: { type: 'object', properties: { sent: {} } } }),
    });
    await calls.call('odd');
    await calls.tasks.idle();
    expect(calls.heard).toHaveLength(1);
  });

  test('a generator reports what it yields and completes with what it returns', async () => {
    const updates: unknown[] = [];
    const calls = listenedCalls({
      copy: working(async function* () {
        yield 'half';
        return 'copied';
      }),
    });
    await calls.call('copy', { onUpdate: (update) => updates.push(update) });
    await calls.tasks.idle();
    expect([updates, calls.heard]).toEqual([['half'], [toolResult('copied')]]);
    expect(calls.events).toEqual(['task-start copy', 'task-progress copy', 'task-end copy']);
  });

  test('reports progress to the queue and the scope only until it has ended', async () => {
    const work = Promise.withResolvers<string>();
    const updates: unknown[] = [];
    let context: ToolContext | undefined;
    const calls = listenedCalls({
      mail: working((given) => {
        context = given;
        return work.promise;
      }),
    });
    const tasked: unknown[] = [];
    calls.tasks.subscribe((event) => event.type === 'task-progress' && tasked.push(event.update));
    await calls.call('mail', { onUpdate: (update) => updates.push(update) });
    context?.progress('one');
    work.resolve('done');
    await calls.tasks.idle();
    context?.progress('late');
    expect([tasked, updates]).toEqual([['one'], ['one']]);
    expect(calls.events).toEqual(['task-start mail', 'task-progress mail', 'task-end mail']);
    // The work succeeded, so its signal is not aborted.
    expect(context?.signal.aborted).toBe(false);
  });

  test('disposes its container at completion, not at the acknowledgement', async () => {
    const disposed: string[] = [];
    const work = Promise.withResolvers<string>();
    const container = {
      resolve: () => 'service' as never,
      createScope: () => ({
        resolve: () => 'service' as never,
        dispose: () => {
          disposed.push('disposed');
        },
      }),
    };
    const calls = listenedCalls({
      mail: working(
        async (context) => {
          context.resolve('service');
          await work.promise;
          return disposed.length;
        },
        { container },
      ),
    });
    await calls.call('mail');
    await turn();
    expect(disposed).toEqual([]);
    work.resolve('done');
    await calls.tasks.idle();
    await turn();
    expect([calls.heard[0]?.forLLM, disposed]).toEqual(['0', ['disposed']]);
  });

  test('can compute a value that the acknowledgement contains', async () => {
    const calls = listenedCalls({
      build: plainTool(async (_args, context) => {
        const job = Promise.withResolvers<number>();
        void context.background(async () => {
          job.resolve(await Promise.resolve(7));
          return 'built';
        });
        return `Job ${await job.promise} runs`;
      }),
    });
    const { status, result } = await calls.call('build');
    expect([status, result]).toEqual(['started', asyncResult('Job 7 runs')]);
    await calls.tasks.idle();
    expect(calls.heard).toEqual([toolResult('built')]);
  });
});

describe('nested and repeated', () => {
  test('background inside background work is part of it, also while the method still runs', async () => {
    const calls = listenedCalls({
      mail: plainTool(async (_args, context) => {
        const done = Promise.withResolvers<void>();
        void context.background(async () => {
          await turn();
          const { forLLM, async } = await context.background(async () => 'inner', 'never seen');
          done.resolve();
          return { forLLM: `${forLLM} ${async}` };
        });
        await done.promise;
        return 'Started';
      }),
    });
    expect((await calls.call('mail')).status).toBe('started');
    await calls.tasks.idle();
    expect(calls.heard).toEqual([toolResult('inner false')]);
    expect(calls.events).toEqual(['task-start mail', 'task-end mail']);
  });

  test('a second background task of a call is an error, and the first one completes', async () => {
    const calls = listenedCalls({
      mail: plainTool((_args, context) => {
        void context.background(async () => 'one');
        return context.background(async () => 'two');
      }),
    });
    const { status, result, record } = await calls.call('mail');
    expect([status, result.error]).toMatchObject(['settled', { name: 'ToolExecutionFailed' }]);
    expect(result.forLLM).toContain('context.background(() => Promise.all([one(), two()]))');
    expect(record.taskId).toBe(calls.taskOf('mail').id);
    await calls.tasks.idle();
    expect(calls.heard).toEqual([toolResult('one')]);
  });

  test('a call that has returned cannot start background work', async () => {
    let context: ToolContext | undefined;
    const calls = listenedCalls({
      mail: plainTool((_args, given) => {
        context = given;
        return 'answered';
      }),
    });
    await calls.call('mail');
    expect(() => context?.background(() => 'late')).toThrow('has ended already');
    expect(calls.events).toEqual([]);
  });

  test('a question in background work fails the work, not the call', async () => {
    const calls = listenedCalls({
      at_once: working((context) => context.ask({ message: 'Sure?' })),
      later: working(async (context) => {
        await turn();
        await turn();
        return context.ask({ message: 'Sure?' });
      }),
    });
    for (const name of ['at_once', 'later']) expect((await calls.call(name)).status).toBe('started');
    await calls.tasks.idle();
    const refused = { isError: true, error: { name: 'NotExecutableHere', code: 511 } };
    expect(calls.heard).toMatchObject([refused, refused]);
  });

  test('a method that asks a question first starts its work only after the answer', async () => {
    let starts = 0;
    const calls = listenedCalls({
      mail: plainTool(async (_args, context) => {
        const answer = context.ask({ message: 'Sure?' });
        answer.catch(() => {});
        const acknowledged = context.background(() => {
          starts += 1;
        });
        await answer;
        return acknowledged;
      }),
    });
    const { status } = await calls.call('mail');
    expect([status, starts, calls.events]).toEqual(['suspended', 0, []]);
  });
});

describe('the async context', () => {
  const user = new AsyncLocalStorage<string>();

  test('of a call is used for its queued work and for the listener', async () => {
    const told: (string | undefined)[] = [];
    const seen: (string | undefined)[] = [];
    const first = Promise.withResolvers<void>();
    const calls = listenedCalls(
      {
        slow: working(() => first.promise),
        mail: working(() => seen.push(user.getStore())),
        stuck: working(never),
      },
      { maxRunning: 1, onCompletion: () => told.push(user.getStore()) },
    );
    await user.run('ann', () => calls.call('slow'));
    await user.run('bob', () => calls.call('mail'));
    await user.run('eve', async () => first.resolve());
    await calls.tasks.idle();
    expect([seen, told]).toEqual([['bob'], ['ann', 'bob']]);
    await user.run('ann', () => calls.call('stuck'));
    await turn();
    user.run('eve', () => calls.tasks.cancel(calls.taskOf('stuck').id));
    expect(told.at(-1)).toBe('ann');
  });
});

describe('without a listener', () => {
  test('the work is awaited under the time limit of the call', async () => {
    const tools = new ToolRegistry().register(working(never, { timeoutMs: 5 }));
    expect((await tools.execute('work', {})).error).toMatchObject({ name: 'ToolTimedOut' });
  });

  test('the work is awaited until the call is aborted', async () => {
    const controller = new AbortController();
    const tools = new ToolRegistry().register(working(never));
    const result = tools.executeWithContext('work', {}, { signal: controller.signal });
    await turn();
    controller.abort();
    expect((await result).error).toMatchObject({ name: 'RunAborted' });
  });

  test('a generator reports its values and returns its result', async () => {
    const updates: unknown[] = [];
    const tools = new ToolRegistry().register(
      working(async function* () {
        yield 'half';
        return 'copied';
      }),
    );
    const result = await tools.executeWithContext('work', {}, { onUpdate: (update) => updates.push(update) });
    expect([result, updates]).toEqual([toolResult('copied'), ['half']]);
    expect(tools.tasks.tasks).toEqual([]);
  });
});

describe('a listener', () => {
  test('that throws does not affect calls, neither for completions nor for the queue', async () => {
    const calls = listenedCalls(
      { mail: working(() => 'done'), next: working(() => 'too') },
      {
        maxRunning: 1,
        onCompletion: () => {
          throw new Error('deaf');
        },
      },
    );
    calls.tasks.subscribe(() => {
      throw new Error('deaf');
    });
    calls.tasks.subscribe((async () => {
      throw new Error('deaf');
    }) as () => void);
    await calls.call('mail');
    await calls.call('next');
    await calls.tasks.idle();
    await turn();
    expect(calls.heard.map(({ forLLM }) => forLLM)).toEqual(['done', 'too']);
    expect(calls.logged()).toContain('A listener for tasks threw: deaf');
    expect(calls.logged()).toContain('A listener for async results threw: deaf');
  });
});
