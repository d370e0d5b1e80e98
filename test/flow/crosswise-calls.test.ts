import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { type ContextualTool, ToolRegistry, ToolResult } from 'toolwright';
import { toolNamed } from './contract-tools.js';

type Body = (tools: ToolRegistry) => unknown;

/** Tools with setContext, whose calls run one after the other. */
function sharedTools(bodies: Readonly<Record<string, Body>>): ToolRegistry {
  const tools = new ToolRegistry();
  for (const [name, body] of Object.entries(bodies)) {
    const tool: ContextualTool = { ...toolNamed(name, () => body(tools)), setContext: () => {} };
    tools.register(tool);
  }
  return tools;
}

/** Calls another tool after one tick and returns its result; `times` limits the calls. */
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
  `The tool '${name}' was not run: another call of it is waiting for the tool that made this call.`;

describe('tools with setContext that call each other', () => {
  test('end in an error instead of a deadlock when they call each other at the same time', async () => {
    const tools = sharedTools({ a: calling('b'), b: calling('a') });
    const [a, b] = await Promise.all([tools.execute('a'), tools.execute('b')]);
    // One call is refused; the other one waits for that, and then runs.
    const refused = [a, b].filter(({ forLLM }) => [`b: ${inner('b')}`, `a: ${inner('a')}`].includes(forLLM));
    const served = [a, b].filter(({ forLLM }) => ['b: done', 'a: done'].includes(forLLM));
    expect([refused.length, served.length]).toEqual([1, 1]);
    expect((await tools.execute('a')).isError).toBe(false);
  });

  test('report the deadlock with an error class of its own', async () => {
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

  test('all end if three tools call each other in a circle while other calls wait', async () => {
    const tools = sharedTools({ a: calling('b', 2), b: calling('c', 2), c: calling('a', 2) });
    const results = await Promise.all(['a', 'b', 'c', 'a', 'b', 'c'].map((name) => tools.execute(name)));
    expect(results.every((result) => result instanceof ToolResult)).toBe(true);
    expect(results.some(({ forLLM }) => forLLM.includes('was not run'))).toBe(true);
  });

  test('do not wait if the calls are nested', async () => {
    const tools = sharedTools({ a: calling('b', 3), b: calling('a', 3) });
    expect((await tools.execute('a')).forLLM).toBe('b: a: b: a: b: a: done');
  });

  test('wait for each other in any number if the calls go in one direction', async () => {
    const tools = sharedTools({ a: calling('b', 9), b: () => wait(2).then(() => 'done') });
    const names = ['a', 'b', 'a', 'b', 'a', 'b'];
    const results = await Promise.all(names.map((name) => tools.execute(name)));
    expect(results.map(({ forLLM }) => forLLM)).toEqual(
      names.map((name) => (name === 'a' ? 'b: done' : 'done')),
    );
  });

  test('run without an error if they do not await the result', async () => {
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
