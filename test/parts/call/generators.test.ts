import { describe, expect, test } from '@jest/globals';
import { discoverTools, registerFunction, ToolRegistry } from 'toolwright';
import { Tool, Toolset } from 'toolwright/decorators';
import { plainTool } from './plain-tool.js';

@Toolset()
class Reports {
  @Tool('Reports on its way')
  async *report() {
    yield 'half';
    return 'done';
  }
}

describe('a generator without a context parameter', () => {
  test('reports its progress, as a method and as a function', async () => {
    const updates: unknown[] = [];
    const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Reports] }));
    registerFunction(tools, 'count', 'Counts', [], async function* () {
      yield 1;
      return 2;
    });
    const scope = { onUpdate: (update: unknown, of: unknown) => updates.push([update, of]) };
    expect((await tools.executeWithContext('report', {}, { ...scope, callId: 'a' })).forLLM).toBe('done');
    expect((await tools.executeWithContext('count', {}, { ...scope, callId: 'b' })).forLLM).toBe('2');
    expect(updates).toEqual([
      ['half', { callId: 'a', tool: 'report' }],
      [1, { callId: 'b', tool: 'count' }],
    ]);
  });

  test('is closed at its next value after its call has timed out', async () => {
    const closed = Promise.withResolvers<number>();
    let steps = 0;
    const tools = new ToolRegistry({ toolTimeoutMs: 5 });
    registerFunction(tools, 'endless', 'Never ends', [], async function* () {
      try {
        for (;;) {
          await new Promise((resolve) => setTimeout(resolve, 1));
          steps += 1;
          yield steps;
        }
      } finally {
        closed.resolve(steps);
      }
    });
    expect((await tools.execute('endless', {})).error).toMatchObject({ name: 'ToolTimedOut' });
    expect(await closed.promise).toBe(steps);
  });
});

test('a returned object whose getters throw is an error of the tool, and releases a shared tool', async () => {
  const trap = new Proxy(
    {},
    {
      has: () => {
        throw new Error('no');
      },
    },
  );
  const tools = new ToolRegistry().register({ ...plainTool(() => trap), setContext: () => {} } as never);
  const scope = { channel: 'c', chatId: '1' };
  const results = [1, 2].map(() => tools.executeWithContext('work', {}, scope));
  const told = expect.stringMatching(/^The tool ran, but .*: no$/);
  expect((await Promise.all(results)).map(({ forLLM }) => forLLM)).toEqual([told, told]);
});
