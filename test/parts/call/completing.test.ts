import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import {
  type AsyncCallback,
  asyncResult,
  type ToolDefinition,
  type ToolResult,
  toolResult,
} from 'toolwright';
import { callWork, type WorkOptions } from './call-work.js';
import { logbook } from './logbook.js';
import { plainTool } from './plain-tool.js';

function call(tool: ToolDefinition, more: WorkOptions = {}) {
  return callWork(tool, {}, more);
}

/** A listener that stores the completions. */
function ears(): { readonly heard: ToolResult[]; readonly onAsyncResult: AsyncCallback } {
  const heard: ToolResult[] = [];
  return { heard, onAsyncResult: (_context, result) => heard.push(result) };
}

/** A tool whose callback the test calls itself. */
function callbackTool(): ToolDefinition & { callback: AsyncCallback | undefined } {
  const tool = {
    ...plainTool(() => asyncResult('started')),
    callback: undefined as AsyncCallback | undefined,
    setCallback(callback: AsyncCallback) {
      tool.callback = callback;
    },
  };
  return tool;
}

describe('background work with a listener', () => {
  test('is acknowledged immediately and completed once later', async () => {
    const { logger, lines } = logbook();
    const { heard, onAsyncResult } = ears();
    const work = Promise.withResolvers<string>();
    const tool = plainTool((_args, context) => context.background(() => work.promise, 'I will report back'));
    const { status, result, record } = await call(tool, { onAsyncResult, logger });
    expect([status, record.status]).toEqual(['started', 'started']);
    expect(result).toEqual(asyncResult('I will report back'));
    await turn();
    expect(heard).toEqual([]);
    work.resolve('done');
    await turn();
    expect(heard).toEqual([toolResult('done')]);
    expect(lines.filter(({ level }) => level === 'info').map(({ message }) => message)).toEqual([
      'Tool started',
      'Tool started async work',
      'Async tool completed',
    ]);
  });

  test('completes after the acknowledgement even if it ends immediately', async () => {
    const order: string[] = [];
    const tool = plainTool((_args, context) => context.background(() => 'done'));
    await call(tool, { onAsyncResult: () => order.push('completed') });
    order.push('acknowledged');
    await turn();
    expect(order).toEqual(['acknowledged', 'completed']);
  });

  test('completes with an error masked by describeError if it throws', async () => {
    const { heard, onAsyncResult } = ears();
    const tool = plainTool((_args, context) =>
      context.background(async () => {
        throw new Error('hunter2');
      }),
    );
    await call(tool, { onAsyncResult, describeError: () => 'it failed' });
    await turn();
    expect(heard).toMatchObject([{ forLLM: 'it failed', isError: true, error: { code: 501 } }]);
  });

  test('marks a custom acknowledgement as an acknowledgement', async () => {
    const { heard, onAsyncResult } = ears();
    const tool = plainTool((_args, context) => {
      void context.background(() => 'done');
      return 'Give me a minute';
    });
    const { status, result } = await call(tool, { onAsyncResult });
    expect(status).toBe('started');
    expect(result).toMatchObject({ forLLM: 'Give me a minute', async: true });
    await turn();
    expect(heard).toEqual([toolResult('done')]);
  });

  test('completes immediately if it is aborted after the acknowledgement', async () => {
    const { heard, onAsyncResult } = ears();
    const controller = new AbortController();
    const work = Promise.withResolvers<string>();
    const tool = plainTool((_args, context) => context.background(() => work.promise));
    await call(tool, { onAsyncResult, scope: { signal: controller.signal } });
    await turn();
    controller.abort();
    expect(heard).toMatchObject([{ isError: true, error: { name: 'RunAborted' } }]);
    work.resolve('done');
    await turn();
    expect(heard).toHaveLength(1);
  });

  test('ignores and logs a second completion', async () => {
    const { logger, lines } = logbook();
    const { heard, onAsyncResult } = ears();
    const tool = callbackTool();
    expect((await call(tool, { onAsyncResult, logger })).status).toBe('started');
    tool.callback?.(undefined, toolResult('first'));
    tool.callback?.(undefined, toolResult('second'));
    await turn();
    tool.callback?.(undefined, toolResult('third'));
    await turn();
    expect(heard).toEqual([toolResult('first')]);
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        message: 'A completion came for a call that was already completed or aborted; it is ignored',
      }),
    );
  });

  test('logs a listener that throws or rejects, without other effects', async () => {
    for (const onAsyncResult of [
      () => {
        throw new Error('deaf');
      },
      async () => {
        throw new Error('deaf');
      },
    ]) {
      const { logger, lines } = logbook();
      await call(
        plainTool((_args, context) => context.background(() => 'done')),
        { onAsyncResult, logger },
      );
      await turn();
      await turn();
      expect(lines.at(-1)).toMatchObject({
        level: 'error',
        message: 'A listener for async results threw: deaf',
        fields: { error: { message: 'deaf' } },
      });
    }
  });
});

describe('without a listener', () => {
  test('background work is awaited and its result is returned', async () => {
    const tool = plainTool((_args, context) => context.background(async () => ({ sent: 3 }), 'Started'));
    const { status, result } = await call(tool);
    expect([status, result.forLLM, result.async]).toEqual(['settled', '{"sent":3}', false]);
  });

  test('an error of the work is the error of the call', async () => {
    const tool = plainTool((_args, context) =>
      context.background(() => Promise.reject(new Error('no paper'))),
    );
    expect((await call(tool)).result).toMatchObject({ forLLM: 'no paper', isError: true });
  });

  test('a tool with a callback gets no callback, and its own result is returned', async () => {
    const tool = callbackTool();
    const { status, result } = await call(tool);
    expect([status, tool.callback]).toEqual(['settled', undefined]);
    expect(result).toEqual(asyncResult('started'));
  });
});

describe('a shared object with a callback', () => {
  test('is free for the next call when its body has returned, and each call has its own callback', async () => {
    const { heard, onAsyncResult } = ears();
    const tool = callbackTool();
    await call(tool, { onAsyncResult });
    const first = tool.callback;
    await call(tool, { onAsyncResult });
    expect(tool.callback).not.toBe(first);
    await turn();
    tool.callback?.(undefined, toolResult('two'));
    first?.(undefined, toolResult('one'));
    await turn();
    expect(heard).toEqual([toolResult('two'), toolResult('one')]);
  });

  test('is released after an error, an invalid result or a failing setContext', async () => {
    const ways = ['crash', 'odd', 'setContext', 'fine'];
    let way = '';
    const shared = {
      ...plainTool(() => {
        if (way === 'crash') throw new Error('crash');
        return way === 'odd'
          ? {
              get forLLM() {
                throw new Error('odd');
              },
            }
          : way;
      }),
      setContext: () => {
        way = ways.shift() ?? '';
        if (way === 'setContext') throw new Error('setContext');
      },
    };
    const scope = { channel: 'c', chatId: '1' };
    const results = [];
    for (let index = 0; index < 4; index += 1) results.push((await call(shared, { scope })).result.forLLM);
    expect(results).toEqual([
      'crash',
      expect.stringMatching(/^The tool ran, but .*: odd$/),
      'setContext',
      'fine',
    ]);
  });
});
