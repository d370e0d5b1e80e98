import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { type ToolContext, ToolRegistry } from 'toolwright';
import { answers, runScript } from '../loop/run-script.js';
import { plainTool } from './plain-tool.js';

type Body = (args: Record<string, unknown>, context: ToolContext) => unknown;

/** The result of a body, and the progress it reported. */
async function play(execute: Body) {
  const updates: unknown[] = [];
  const tools = new ToolRegistry().register(plainTool(execute));
  const result = await tools.executeWithContext('work', {}, { onUpdate: (update) => updates.push(update) });
  return { result, updates };
}

describe('thenables', () => {
  const thenable = (then: PromiseLike<unknown>['then']) => ({ then });

  test('are awaited like promises', async () => {
    const { result } = await play(() => thenable((resolve) => Promise.resolve('later').then(resolve)));
    expect(result).toMatchObject({ forLLM: 'later', isError: false });
  });

  test('that reject or whose then throws are errors', async () => {
    const rejecting = thenable((_resolve, reject) => Promise.reject(new Error('no')).catch(reject) as never);
    const throwing = thenable(() => {
      throw new Error('no then');
    });
    expect((await play(() => rejecting)).result).toMatchObject({ forLLM: 'no', isError: true });
    expect((await play(() => throwing)).result).toMatchObject({ forLLM: 'no then', isError: true });
  });

  test('that resolve twice count once', async () => {
    const twice = thenable((resolve) => {
      resolve?.('first');
      resolve?.('second');
      throw new Error('third');
    });
    expect((await play(() => twice)).result.forLLM).toBe('first');
  });

  test('that never settle time out', async () => {
    const tools = new ToolRegistry({ toolTimeoutMs: 5 }).register(
      plainTool(() => thenable(() => undefined as never)),
    );
    expect((await tools.execute('work')).error).toMatchObject({ name: 'ToolTimedOut' });
  });

  test('a then that is not a function is plain data', async () => {
    // biome-ignore lint/suspicious/noThenProperty: thenables are what is tested
    expect((await play(() => ({ then: 'and now' }))).result.forLLM).toBe('{"then":"and now"}');
  });
});

describe('async iterables', () => {
  test('report each value as progress and return the result', async () => {
    const { result, updates } = await play(async function* () {
      yield 1;
      await wait(1);
      yield { half: true };
      return { done: true };
    });
    expect(updates).toEqual([1, { half: true }]);
    expect(result.forLLM).toBe('{"done":true}');
  });

  test('that return nothing succeed', async () => {
    const { result, updates } = await play(async function* () {
      yield 'only this';
    });
    expect([result.forLLM, updates]).toEqual(['ok', ['only this']]);
  });

  test('that throw midway are an error after the reported progress', async () => {
    const { result, updates } = await play(async function* () {
      yield 'half';
      throw new Error('disk full');
    });
    expect([result.forLLM, result.isError, updates]).toEqual(['disk full', true, ['half']]);
  });

  test('without return or throw methods are read too', async () => {
    const { result, updates } = await play(() => {
      let count = 0;
      return {
        [Symbol.asyncIterator]: () => ({
          next: async () => (++count > 2 ? { value: 'end', done: true } : { value: count, done: false }),
        }),
      };
    });
    expect([result.forLLM, updates]).toEqual(['end', [1, 2]]);
  });

  test('whose iterator cannot be created are an error', async () => {
    const { result } = await play(() => ({
      [Symbol.asyncIterator]: () => {
        throw new Error('no iterator');
      },
    }));
    expect(result).toMatchObject({ forLLM: 'no iterator', isError: true });
  });

  test('a synchronous iterable is plain data', async () => {
    expect((await play(() => [1, 2])).result.forLLM).toBe('[1,2]');
  });

  test('that never continue time out, and the run continues', async () => {
    const stuck = plainTool(
      async function* () {
        yield 'begun';
        await new Promise(() => {});
      },
      { timeoutMs: 5 },
    );
    const { run } = await runScript([{ toolCalls: [{ name: 'work' }] }, { content: 'done' }], {
      tools: [stuck],
    });
    expect(run.status).toBe('completed');
    expect(answers(run)).toEqual([
      "The tool 'work' timed out after 5 ms. It had begun, and its effects are unknown: find out, or ask, before you call it again.",
    ]);
  });
});

describe('promises that never settle', () => {
  test('do not delay the results of other calls in the same message', async () => {
    const tools = [
      plainTool(() => new Promise(() => {}), { name: 'never', timeoutMs: 5 }),
      plainTool(() => 'quick', { name: 'quick' }),
    ];
    const calls = ['never', 'quick', 'never'].map((name) => ({ name }));
    const { run } = await runScript([{ toolCalls: calls }, { content: 'done' }], { tools });
    expect(run.toolCalls.map(({ status }) => status)).toEqual(['timed_out', 'success', 'timed_out']);
    expect(run.status).toBe('completed');
  });
});

describe('1,000 interleaved calls', () => {
  test('with policies, progress, timeouts and errors each get their own result', async () => {
    const turn = () => new Promise(setImmediate);
    const seen = new Map<string, unknown[]>();
    const work = plainTool(async (args, context) => {
      context.progress(`${context.callId} begins`);
      for (let index = 0; index < Number(args.turns); index += 1) await turn();
      if (context.signal.aborted) return 'aborted';
      context.progress(`${context.callId} ends`);
      if (args.fails) throw new Error(`failed ${context.callId} ${context.data.user}`);
      return `${context.chatId} ${context.callId} ${context.data.user} ${args.number}`;
    });
    const tools = new ToolRegistry({
      toolTimeoutMs: 60_000,
      policy: async ({ arguments: { number }, context }) => {
        await turn();
        return number === context.data.user && number !== 13;
      },
    }).register(work);
    const numbers = Array.from({ length: 1000 }, (_, index) => index);
    const results = await Promise.all(
      numbers.map((number) => {
        const callId = `call${number}`;
        const onUpdate = (update: unknown, { callId: of }: { readonly callId: string }) =>
          seen.set(callId, [...(seen.get(callId) ?? []), update, of]);
        const args = { number, turns: number % 7, fails: number % 10 === 3 };
        const scope = { channel: 'c', chatId: `chat${number}`, callId, data: { user: number }, onUpdate };
        return tools.executeWithContext('work', args, scope);
      }),
    );
    expect(results.map(({ forLLM }) => forLLM)).toEqual(
      numbers.map((number) => {
        if (number === 13) return "The tool 'work' was refused: it is not allowed";
        if (number % 10 === 3) return `failed call${number} ${number}`;
        return `chat${number} call${number} ${number} ${number}`;
      }),
    );
    expect(seen.size).toBe(999);
    for (const [callId, heard] of seen)
      expect(heard).toEqual([`${callId} begins`, callId, `${callId} ends`, callId]);
  });
});
