import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import type { ToolDefinition } from 'toolwright';
import { callWork, type WorkOptions } from './call-work.js';
import { logbook } from './logbook.js';
import { plainTool } from './plain-tool.js';

function call(tool: ToolDefinition, more: WorkOptions = {}) {
  return callWork(tool, {}, more);
}

describe('the container of a call', () => {
  /** A tool whose container counts what is opened and disposed. */
  function scopedTool(execute: ToolDefinition['execute']) {
    const events: string[] = [];
    const resolve = <Instance>() => 'service' as Instance;
    const createScope = () => {
      events.push('opened');
      return { resolve, dispose: () => void events.push('disposed') };
    };
    return { events, tool: plainTool(execute, { container: { resolve, createScope } }) };
  }

  test('is opened once, on first use, and disposed when the call ends', async () => {
    const { events, tool } = scopedTool((_args, context) => {
      context.resolve('a');
      return context.resolve('b');
    });
    expect((await call(tool)).result.forLLM).toBe('service');
    expect(events).toEqual(['opened', 'disposed']);
  });

  test('is not opened for a tool that does not use it', async () => {
    const { events, tool } = scopedTool(() => 'x');
    await call(tool);
    expect(events).toEqual([]);
  });

  test('is disposed at completion, not at acknowledgement', async () => {
    const work = Promise.withResolvers<string>();
    const { events, tool } = scopedTool((_args, context) => {
      context.resolve('a');
      return context.background(() => work.promise);
    });
    await call(tool, { onAsyncResult: () => void events.push('completed') });
    expect(events).toEqual(['opened']);
    work.resolve('done');
    await turn();
    expect(events).toEqual(['opened', 'completed', 'disposed']);
  });

  test.each(['throws', 'rejects'])(
    'if its disposal %s, the error is logged and the result is unchanged',
    async (how) => {
      const { logger, lines } = logbook();
      const failure = new Error('stuck');
      const dispose = () => {
        if (how === 'throws') throw failure;
        return Promise.reject(failure);
      };
      const resolve = <Instance>() => 'x' as Instance;
      const tool = plainTool((_args, context) => context.resolve('a'), {
        container: { resolve, createScope: () => ({ resolve, dispose }) },
      });
      expect((await call(tool, { logger })).result.forLLM).toBe('x');
      expect(lines.at(-1)).toMatchObject({ level: 'error', fields: { error: { message: 'stuck' } } });
    },
  );

  test('of the scope wins and is not disposed; without any container the error suggests the option', async () => {
    const { events, tool } = scopedTool((_args, context) => context.resolve('a'));
    const container = { resolve: <Instance>() => 'from the request' as Instance };
    expect((await call(tool, { scope: { container } })).result.forLLM).toBe('from the request');
    expect(events).toEqual([]);
    const bare = plainTool((_args, context) => context.resolve('a'));
    expect((await call(bare)).result.forLLM).toContain('set one in the scope: { container }');
  });
});
