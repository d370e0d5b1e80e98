import { describe, expect, test } from '@jest/globals';
import { RetryToolCall, type ToolContext, ToolRegistry } from 'toolwright';
import { answers, numberTool, runScript } from '../loop/run-script.js';

const HINT = 'There are two customers called Kim; give the id.';
const picky = numberTool('find', {
  execute: async ({ n }: { n: number }) => {
    if (n < 0) throw new RetryToolCall(HINT);
    return n;
  },
});
const find = (n: number) => ({ toolCalls: [{ name: 'find', arguments: { n } }] });

describe('a tool that asks to be called again', () => {
  test('passes its hint to the model unchanged, and the call counts as rejected', async () => {
    const { run } = await runScript([find(-1), find(1), { content: 'done' }], { tools: [picky] });
    expect(run.status).toBe('completed');
    expect(answers(run)).toEqual([HINT, '1']);
    expect(run.toolCalls.map(({ status, attempts }) => [status, attempts])).toEqual([
      ['rejected', 1],
      ['success', 2],
    ]);
    expect(run.toolCalls[0]?.arguments).toEqual({ n: -1 });
  });

  test('shares its retries with rejected arguments, and the run ends when they are used up', async () => {
    const bad = { toolCalls: [{ name: 'find', arguments: { n: 'x' } }] };
    const { run } = await runScript([find(-1), bad, find(-2), { content: 'done' }], { tools: [picky] });
    expect(run).toMatchObject({
      status: 'failed',
      iterations: 3,
      error: { name: 'ToolRetriesExhausted', code: 503 },
    });
    expect(answers(run)).toHaveLength(3);
    expect(answers(run)[2]).toBe(HINT);
  });

  test('can set its own retries, which override those of the run', async () => {
    const { run } = await runScript([find(-1), find(-2), { content: 'done' }], {
      tools: [{ ...picky, retries: 5 }],
      maxRetries: 0,
    });
    expect(run.status).toBe('completed');
    const none = await runScript([find(-1), { content: 'done' }], { tools: [{ ...picky, retries: 0 }] });
    expect(none.run).toMatchObject({ status: 'failed', error: { code: 503 } });
  });

  test('receives the number of the attempt', async () => {
    const attempts: number[] = [];
    const eager = numberTool('find', {
      execute: (_args: unknown, { attempt }: ToolContext) => {
        attempts.push(attempt);
        if (attempt < 3) throw new RetryToolCall('again');
        return 'ok';
      },
    });
    const { run } = await runScript([find(1), find(1), find(1), { content: 'done' }], { tools: [eager] });
    expect([run.status, attempts]).toEqual(['completed', [1, 2, 3]]);
  });

  test('outside of a run gives an error result with the hint and the coded error', async () => {
    const result = await new ToolRegistry().register(picky).execute('find', { n: -1 });
    expect(result).toMatchObject({ forLLM: HINT, isError: true, error: { name: 'InvalidArguments' } });
    expect((result.error as Error).cause).toBeInstanceOf(RetryToolCall);
  });

  test.each(['', '  \n'])('without a hint (%j) reports that there was none', async (hint) => {
    const shy = numberTool('find', {
      execute: () => {
        throw new RetryToolCall(hint);
      },
    });
    expect((await new ToolRegistry().register(shy).execute('find', { n: 1 })).forLLM).toBe(
      "The tool 'find' cannot use this call and gave no reason. Call it again with other arguments.",
    );
  });

  test('is not masked by describeError, because its hint is meant for the model', async () => {
    const tools = new ToolRegistry({ describeError: () => 'something went wrong' }).register(picky);
    expect((await tools.execute('find', { n: -1 })).forLLM).toBe(HINT);
  });

  test('is recognized from another copy of the package, but not by its name only', async () => {
    const foreign = Object.defineProperty(new Error(HINT), Symbol.for('toolwright.RetryToolCall'), {
      value: true,
    });
    const lookalike = Object.assign(new Error(HINT), { name: 'RetryToolCall' });
    const thrower = (thrown: unknown) => numberTool('find', { execute: () => Promise.reject(thrown) });
    const status = async (thrown: unknown) =>
      (await runScript([find(1), {}], { tools: [thrower(thrown)] })).run.toolCalls[0]?.status;
    expect([await status(foreign), await status(lookalike)]).toEqual(['rejected', 'error']);
  });

  test('a thrown value whose getters throw is a plain error, and releases a shared tool', async () => {
    const trap = new Proxy(
      {},
      {
        has: () => {
          throw new Error('no');
        },
      },
    );
    const shared = { ...numberTool('find', { execute: () => Promise.reject(trap) }), setContext: () => {} };
    const tools = new ToolRegistry().register(shared);
    const scope = { channel: 'c', chatId: '1' };
    const results = [1, 2].map((n) => tools.executeWithContext('find', { n }, scope));
    expect((await Promise.all(results)).map(({ error }) => (error as Error).name)).toEqual([
      'ToolExecutionFailed',
      'ToolExecutionFailed',
    ]);
  });
});
