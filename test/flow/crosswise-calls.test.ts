import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { type ContextualTool, ToolRegistry, ToolResult } from 'toolwright';
import { toolNamed } from './contract-tools.js';

type Body = (tools: ToolRegistry) => unknown;

/** Tools that keep the context of a call, so that the calls of each take turns. */
function sharedTools(bodies: Readonly<Record<string, Body>>): ToolRegistry {
  const tools = new ToolRegistry();
  for (const [name, body] of Object.entries(bodies)) {
    const tool: ContextualTool = { ...toolNamed(name, () => body(tools)), setContext: () => {} };
    tools.register(tool);
  }
  return tools;
}

/** Calls another tool once the others have begun too, and tells what came of it; after so many times, it is done. */
function calling(name: string, times = 1): Body {
  let left = times;
  return async (tools) => {
    if (left === 0) return 'done';
    left -= 1;
    await nextTurn();
    return `${name}: ${(await tools.execute(name)).forLLM}`;
  };
}

const inner = (name: string): string =>
  `The tool '${name}' was not run: a call of it is under way that waits for the tool which made this call.`;

describe('tools with setContext that call each other', () => {
  test('crosswise get an error instead of waiting for ever, and both calls end', async () => {
    const tools = sharedTools({ a: calling('b'), b: calling('a') });
    const [a, b] = await Promise.all([tools.execute('a'), tools.execute('b')]);
    // One of them is refused; the other one waits for that, and calls its tool then.
    const refused = [a, b].filter(({ forLLM }) => [`b: ${inner('b')}`, `a: ${inner('a')}`].includes(forLLM));
    const served = [a, b].filter(({ forLLM }) => ['b: done', 'a: done'].includes(forLLM));
    expect([refused.length, served.length]).toEqual([1, 1]);
    expect((await tools.execute('a')).isError).toBe(false);
  });

  test('say so as an error of their own', async () => {
    const errors: unknown[] = [];
    const noting = (name: string): Body => {
      let isFirst = true;
      return async (tools) => {
        if (!isFirst) return;
        isFirst = false;
        await nextTurn();
        const { error } = await tools.execute(name);
        if (error !== undefined) errors.push(error);
      };
    };
    const tools = sharedTools({ a: noting('b'), b: noting('a') });
    await Promise.all([tools.execute('a'), tools.execute('b')]);
    expect(errors).toMatchObject([{ name: 'ToolDeadlock', code: 524 }]);
  });

  test('in a ring of three, with others waiting in between, all end', async () => {
    const tools = sharedTools({ a: calling('b', 2), b: calling('c', 2), c: calling('a', 2) });
    const results = await Promise.all(['a', 'b', 'c', 'a', 'b', 'c'].map((name) => tools.execute(name)));
    expect(results.every((result) => result instanceof ToolResult)).toBe(true);
    expect(results.some(({ forLLM }) => forLLM.includes('was not run'))).toBe(true);
  });

  test('one within the other wait for nobody', async () => {
    const tools = sharedTools({ a: calling('b', 3), b: calling('a', 3) });
    expect((await tools.execute('a')).forLLM).toBe('b: a: b: a: b: a: done');
  });

  test('in one direction wait for their turn, however many they are', async () => {
    const tools = sharedTools({ a: calling('b', 9), b: () => wait(2).then(() => 'done') });
    const names = ['a', 'b', 'a', 'b', 'a', 'b'];
    const results = await Promise.all(names.map((name) => tools.execute(name)));
    expect(results.map(({ forLLM }) => forLLM)).toEqual(
      names.map((name) => (name === 'a' ? 'b: done' : 'done')),
    );
  });

  test('and do not wait for the answer are not a ring', async () => {
    const answers: Promise<ToolResult>[] = [];
    const sending =
      (name: string): Body =>
      (tools) => {
        answers.push(tools.execute(name));
        return 'sent';
      };
    const tools = sharedTools({ a: sending('b'), b: calling('a') });
    const results = await Promise.all([tools.execute('b'), tools.execute('a')]);
    expect(results.map(({ forLLM }) => forLLM)).toEqual(['a: sent', 'sent']);
    expect((await Promise.all(answers)).map(({ forLLM }) => forLLM)).toEqual(['done', 'done']);
  });
});
