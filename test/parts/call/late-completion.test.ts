import { describe, expect, test } from '@jest/globals';
import { type AsyncCallback, type AsyncTool, asyncResult, ToolRegistry, toolResult } from 'toolwright';
import { logbook } from './logbook.js';
import { plainTool } from './plain-tool.js';

const turn = () => new Promise(setImmediate);

/** A tool that stores its last callback and calls it on demand. */
function keeping(execute: () => unknown) {
  let callback: AsyncCallback | undefined;
  const tool: AsyncTool = {
    ...plainTool(execute),
    setCallback: (given) => {
      callback = given;
    },
  };
  return { tool, complete: (text: string) => callback?.(undefined, toolResult(text)) };
}

describe('a completion of a call that was not started', () => {
  test('is ignored if the call was aborted before', async () => {
    const { logger, lines } = logbook();
    const { tool, complete } = keeping(() => asyncResult('started'));
    const tools = new ToolRegistry({ logger }).register(tool);
    const completions: unknown[] = [];
    const controller = new AbortController();
    const setCallback = tool.setCallback;
    tool.setCallback = (given) => {
      setCallback(given);
      controller.abort();
    };
    const aborted = await tools.executeWithContext('work', {}, { signal: controller.signal }, (_c, result) =>
      completions.push(result),
    );
    expect(aborted.error).toMatchObject({ name: 'RunAborted' });
    await turn();
    // The next call has no listener, so the tool still holds the callback of the previous call.
    expect((await tools.execute('work', {})).forLLM).toBe('started');
    complete('meant for the second call');
    await turn();
    expect(completions).toEqual([]);
    expect(lines.at(-1)?.message).toBe('A completion came for a call that has ended; it is ignored');
  });

  test('is ignored if the call timed out', async () => {
    const { tool, complete } = keeping(() => new Promise(() => {}));
    const completions: unknown[] = [];
    const tools = new ToolRegistry({ toolTimeoutMs: 5 }).register(tool);
    const result = await tools.executeWithContext('work', {}, {}, (_c, done) => completions.push(done));
    complete('late');
    await turn();
    expect(result.error).toMatchObject({ name: 'ToolTimedOut' });
    expect(completions).toEqual([]);
  });

  test('is ignored if the tool returned its result', async () => {
    const { tool, complete } = keeping(() => {
      complete('early');
      return 'the result';
    });
    const completions: unknown[] = [];
    const tools = new ToolRegistry().register(tool);
    const result = await tools.executeWithContext('work', {}, {}, (_c, done) => completions.push(done));
    await turn();
    await turn();
    expect([result.forLLM, completions]).toEqual(['the result', []]);
  });

  test('is delivered for background work even if the tool threw after starting it', async () => {
    const completed = Promise.withResolvers<string>();
    const tools = new ToolRegistry().register(
      plainTool((_args, context) => {
        void context.background(async () => 'finished all the same');
        throw new Error('crashed');
      }),
    );
    const result = await tools.executeWithContext('work', {}, {}, (_c, done) =>
      completed.resolve(done.forLLM),
    );
    expect(result.forLLM).toBe('crashed');
    expect(await completed.promise).toBe('finished all the same');
  });
});
