import { getEventListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import {
  type AsyncCallback,
  asyncResult,
  type ToolContext,
  type ToolDefinition,
  toolResult,
} from 'toolwright';
import { interruptedResult } from '../../../src/run/call/result-text.js';
import { listenedCalls } from './listened-calls.js';
import { plainTool } from './plain-tool.js';

/** Work that settles when the test says so, with the contexts it received. */
function held(more: Partial<ToolDefinition> = {}) {
  const work = Promise.withResolvers<unknown>();
  const contexts: ToolContext[] = [];
  const tool = plainTool(
    (_args, context) =>
      context.background(() => {
        contexts.push(context);
        return work.promise;
      }),
    more,
  );
  return { tool, work, contexts };
}

/** A tool whose callback the test calls itself. */
function calledBack(more: Partial<ToolDefinition> = {}) {
  let callback: AsyncCallback = () => {};
  const tool = {
    ...plainTool(() => asyncResult('started'), more),
    setCallback: (given: AsyncCallback) => {
      callback = given;
    },
  };
  return { tool, callBack: (text: string) => callback(undefined, toolResult(text)) };
}

const IGNORED = 'A completion came for a call that was already completed or aborted; it is ignored';

describe('a time limit of background work', () => {
  test('is that of the tool: the work completes as timed out and its signal is aborted', async () => {
    const { tool, work, contexts } = held({ timeoutMs: 5 });
    const calls = listenedCalls({ mail: tool });
    expect((await calls.call('mail')).status).toBe('started');
    await calls.tasks.idle();
    expect(calls.heard).toMatchObject([
      {
        forLLM:
          "The tool 'mail' timed out after 5 ms. It had begun, and its effects are unknown: find out, or ask, before you call it again.",
        error: { name: 'ToolTimedOut', code: 507 },
      },
    ]);
    expect(contexts[0]?.signal.reason).toMatchObject({ name: 'TimeoutError' });
    work.resolve('late');
    await turn();
    expect([calls.heard.length, calls.logged().at(-1)]).toEqual([1, IGNORED]);
  });

  test('is not that of the run: the work may take longer', async () => {
    const { tool, work } = held();
    const slow = plainTool(() => new Promise(() => {}));
    const calls = listenedCalls({ mail: tool, slow }, { toolTimeoutMs: 5 });
    await calls.call('mail');
    expect((await calls.call('slow')).record.status).toBe('timed_out');
    work.resolve('done');
    await calls.tasks.idle();
    expect(calls.heard).toEqual([toolResult('done')]);
  });

  test('starts when the work starts, not while it waits', async () => {
    const [first, second] = [held({ timeoutMs: 400 }), held({ timeoutMs: 5 })];
    const calls = listenedCalls({ first: first.tool, second: second.tool }, { maxRunning: 1 });
    await calls.call('first');
    await calls.call('second');
    expect(calls.listed()).toEqual(['first running', 'second waiting']);
    await calls.tasks.idle();
    // A task frees its slot when it has a result, even if the work never settles.
    expect(calls.events).toEqual([
      'task-start first',
      'task-end first',
      'task-start second',
      'task-end second',
    ]);
    expect(second.contexts).toHaveLength(1);
    expect(calls.heard.map(({ forLLM }) => forLLM)).toEqual([
      "The tool 'first' timed out after 400 ms. It had begun, and its effects are unknown: find out, or ask, before you call it again.",
      "The tool 'second' timed out after 5 ms. It had begun, and its effects are unknown: find out, or ask, before you call it again.",
    ]);
  });

  test('also limits how long a callback is awaited', async () => {
    const { tool, callBack } = calledBack({ timeoutMs: 5 });
    const calls = listenedCalls({ build: tool });
    const { record } = await calls.call('build');
    expect(record.taskId).toBe(calls.taskOf('build').id);
    await calls.tasks.idle();
    expect(calls.heard).toMatchObject([{ error: { name: 'ToolTimedOut' } }]);
    callBack('late');
    expect([calls.heard.length, calls.logged().at(-1)]).toEqual([1, IGNORED]);
  });

  test.each([Number.POSITIVE_INFINITY, undefined])('of %s never times out', async (timeoutMs) => {
    const { tool, work } = held(timeoutMs === undefined ? {} : { timeoutMs });
    const calls = listenedCalls({ mail: tool });
    await calls.call('mail');
    await turn();
    await turn();
    work.resolve('done');
    await calls.tasks.idle();
    expect(calls.heard).toEqual([toolResult('done')]);
  });

  test('that ends the method also ends the background work, and the call has only one result', async () => {
    const contexts: ToolContext[] = [];
    const calls = listenedCalls({
      mail: plainTool(
        (_args, context) => {
          void context.background(() => {
            contexts.push(context);
            return new Promise(() => {});
          });
          return new Promise(() => {});
        },
        { timeoutMs: 5 },
      ),
    });
    const { status, record } = await calls.call('mail');
    expect([status, record.status, record.taskId]).toEqual(['settled', 'timed_out', undefined]);
    await turn();
    expect([calls.heard, calls.listed()]).toEqual([[], []]);
    expect(calls.events).toEqual(['task-start mail', 'task-end mail']);
    expect(contexts[0]?.signal.aborted).toBe(true);
  });
});

describe('a cancelled task', () => {
  test('completes immediately with the reason, and its signal is aborted', async () => {
    const { tool, work, contexts } = held();
    const calls = listenedCalls({ mail: tool });
    const { record } = await calls.call('mail');
    await turn();
    expect(calls.tasks.cancel(record.taskId ?? '', 'the user changed her mind')).toBe(true);
    expect(calls.heard).toMatchObject([
      {
        forLLM: "The work of the tool 'mail' was cancelled: the user changed her mind",
        isError: true,
        error: { name: 'TaskCancelled', code: 519 },
      },
    ]);
    expect(contexts[0]?.signal.reason).toBe(calls.heard[0]?.error);
    expect(calls.tasks.cancel(record.taskId ?? '')).toBe(false);
    work.reject(new Error('late'));
    await turn();
    expect([calls.heard.length, calls.logged().at(-1)]).toEqual([1, IGNORED]);
  });

  test('does not start if it was still waiting', async () => {
    const [first, second] = [held(), held()];
    const calls = listenedCalls({ first: first.tool, second: second.tool }, { maxRunning: 1 });
    await calls.call('first');
    await calls.call('second');
    calls.tasks.cancel(calls.taskOf('second').id);
    await turn();
    expect(calls.heard.map(({ forLLM }) => forLLM)).toEqual(["The work of the tool 'second' was cancelled."]);
    first.work.resolve('done');
    await calls.tasks.idle();
    expect(second.contexts).toEqual([]);
    expect(calls.events).toEqual(['task-start first', 'task-end second', 'task-end first']);
  });

  test('completes after its acknowledgement even if it was cancelled before', async () => {
    const order: string[] = [];
    const { tool, contexts } = held();
    const calls = listenedCalls({ mail: tool }, { onCompletion: () => order.push('completed') });
    const cancelled: boolean[] = [];
    calls.tasks.subscribe(({ type, task }) => {
      if (type === 'task-start') cancelled.push(calls.tasks.cancel(task.id), calls.tasks.cancel(task.id));
    });
    expect((await calls.call('mail')).status).toBe('started');
    order.push('acknowledged');
    expect(calls.listed()).toEqual(['mail running']);
    await calls.tasks.idle();
    expect([order, cancelled]).toEqual([
      ['acknowledged', 'completed'],
      [true, false],
    ]);
    expect(contexts).toEqual([]);
  });

  test('of a tool with a callback completes, and later calls of the callback are ignored', async () => {
    const { tool, callBack } = calledBack();
    const calls = listenedCalls({ build: tool });
    await calls.call('build');
    await turn();
    calls.tasks.cancel(calls.taskOf('build').id, 'enough');
    callBack('late');
    callBack('later');
    expect(calls.heard).toMatchObject([{ error: { name: 'TaskCancelled' } }]);
    expect(calls.logged().filter((message) => message === IGNORED)).toHaveLength(2);
  });

  test('ignores what its tool returns after the abort signal', async () => {
    const calls = listenedCalls({
      mail: plainTool((_args, context) =>
        context.background(
          () =>
            new Promise((resolve) => {
              context.signal.addEventListener('abort', () => resolve('stopped by myself'));
            }),
        ),
      ),
    });
    await calls.call('mail');
    await turn();
    calls.tasks.cancel(calls.taskOf('mail').id);
    await turn();
    expect(calls.heard).toMatchObject([{ error: { name: 'TaskCancelled' } }]);
  });

  test('cancel returns false for an unknown id', () => {
    expect(listenedCalls({}).tasks.cancel('task_1')).toBe(false);
  });
});

describe('an abort of the run', () => {
  test('completes running, waiting and callback tasks and starts nothing', async () => {
    const [first, second, third] = [held(), held(), held()];
    const { tool: build } = calledBack();
    const calls = listenedCalls(
      { first: first.tool, second: second.tool, third: third.tool, build },
      { maxRunning: 1 },
    );
    const controller = new AbortController();
    for (const name of ['first', 'second', 'third', 'build'])
      await calls.call(name, { signal: controller.signal });
    await turn();
    controller.abort(new Error('enough'));
    expect(calls.heard.map(({ error }) => (error as Error).name)).toEqual(
      Array.from({ length: 4 }, () => 'RunAborted'),
    );
    expect(first.contexts[0]?.signal.reason).toMatchObject({ message: 'enough' });
    expect([second.contexts, third.contexts, calls.listed()]).toEqual([[], [], []]);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  test('that arrives during the acknowledgement is delivered as the completion of a started call', async () => {
    const controller = new AbortController();
    let begun = 0;
    const calls = listenedCalls({
      mail: plainTool((_args, context) => {
        controller.abort();
        return context.background(() => {
          begun += 1;
        });
      }),
    });
    const { status } = await calls.call('mail', { signal: controller.signal });
    await calls.tasks.idle();
    expect([status, begun]).toEqual(['started', 0]);
    expect(calls.heard).toMatchObject([{ error: { name: 'RunAborted' } }]);
  });

  test('completes work that was queued after the abort', async () => {
    const controller = new AbortController();
    const { tool, work } = held();
    const late = plainTool((_args, context) => {
      controller.abort();
      return context.background(() => 'begun');
    });
    const calls = listenedCalls({ first: tool, late }, { maxRunning: 1 });
    await calls.call('first');
    await calls.call('late', { signal: controller.signal });
    await turn();
    expect(calls.heard).toMatchObject([{ error: { name: 'RunAborted' } }]);
    work.resolve('done');
    await calls.tasks.idle();
    expect(calls.heard[1]).toEqual(toolResult('done'));
  });

  test('before the acknowledgement is the result of the call, and its work has no other result', async () => {
    const controller = new AbortController();
    const calls = listenedCalls({
      mail: plainTool((_args, context) => {
        void context.background(() => new Promise(() => {}));
        return new Promise(() => {});
      }),
    });
    const answered = calls.call('mail', { signal: controller.signal });
    await turn();
    controller.abort();
    expect((await answered).record).toMatchObject({ status: 'aborted' });
    await turn();
    expect([calls.heard, calls.listed()]).toEqual([[], []]);
    expect(calls.events).toEqual(['task-start mail', 'task-end mail']);
  });

  test('finished work leaves no listeners on a long-lived signal', async () => {
    const { signal } = new AbortController();
    const calls = listenedCalls({
      mail: plainTool((_args, context) => context.background(async () => 'x')),
      build: calledBack({ timeoutMs: 1 }).tool,
    });
    for (let index = 0; index < 10; index += 1) {
      await calls.call('mail', { signal });
      await calls.call('build', { signal });
    }
    await calls.tasks.idle();
    expect(calls.heard).toHaveLength(20);
    await new Promise(setImmediate);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('a callback', () => {
  test('that is called before the acknowledgement completes the call after it', async () => {
    const order: string[] = [];
    let callback: AsyncCallback = () => {};
    const tool = {
      ...plainTool(() => {
        callback(undefined, toolResult('built'));
        return asyncResult('started');
      }),
      setCallback: (given: AsyncCallback) => {
        callback = given;
      },
    };
    const calls = listenedCalls({ build: tool }, { onCompletion: () => order.push('completed') });
    const { status, record } = await calls.call('build');
    order.push('acknowledged');
    expect([status, record.taskId]).toEqual(['started', calls.taskOf('build').id]);
    await calls.tasks.idle();
    expect([order, calls.heard]).toEqual([['acknowledged', 'completed'], [toolResult('built')]]);
    expect(calls.events).toEqual(['task-start build', 'task-end build']);
  });

  test('does not occupy a slot while it is awaited', async () => {
    const [one, other] = [calledBack(), held()];
    const calls = listenedCalls({ build: one.tool, mail: other.tool }, { maxRunning: 1 });
    await calls.call('build');
    await calls.call('mail');
    expect(calls.listed()).toEqual(['build running', 'mail running']);
    one.callBack('built');
    other.work.resolve('sent');
    await calls.tasks.idle();
    expect(calls.heard).toEqual([toolResult('built'), toolResult('sent')]);
  });
});

test('work that was lost in a restart completes with TaskInterrupted', () => {
  expect(interruptedResult('mail')).toMatchObject({
    forLLM: expect.stringContaining("The work of the tool 'mail' was interrupted"),
    isError: true,
    error: { name: 'TaskInterrupted', code: 520 },
  });
});
