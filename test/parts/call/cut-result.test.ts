import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { errorResult, ToolRegistry, ToolResult, toolResult, userResult } from 'toolwright';
import { answers, runScript } from '../loop/run-script.js';
import { plainTool } from './plain-tool.js';

const LONG = 'abcdefghij'.repeat(10);
const mark = (missing: number) => `\n[${missing} more characters were cut off]`;
const cutAt10 = `abcdefghij${mark(90)}`;

/** The result that the model receives if a tool returns this one. */
function cutResult(result: ToolResult, maxResultChars: number): Promise<ToolResult> {
  return new ToolRegistry({ maxResultChars }).register(plainTool(() => result)).execute('work');
}

describe('maxResultChars: a long result', () => {
  test('is cut with a mark that contains the number of missing characters, and is complete in details', async () => {
    expect(await cutResult(toolResult(LONG), 10)).toMatchObject({ forLLM: cutAt10, details: { full: LONG } });
  });

  test('that is exactly as long as the limit is not changed', async () => {
    const result = toolResult(LONG);
    expect(await cutResult(result, 100)).toBe(result);
    expect(await cutResult(result, Number.POSITIVE_INFINITY)).toBe(result);
  });

  test('has its own details, the full text and all other fields after the cut', async () => {
    const result = new ToolResult({ forLLM: LONG, forUser: 'for you', silent: true, details: { rows: 3 } });
    const error = new Error('x');
    expect(await cutResult(result.withError(error), 10)).toMatchObject({
      forUser: 'for you',
      silent: true,
      error,
      details: { full: LONG, details: { rows: 3 } },
    });
  });

  test('is never cut inside a character, and the mark has the right count', async () => {
    expect((await cutResult(toolResult('ab😀cd'), 3)).forLLM).toBe(`ab${mark(4)}`);
    expect((await cutResult(toolResult('ab😀cd'), 4)).forLLM).toBe(`ab😀${mark(2)}`);
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'grapheme', minLength: 1 }),
        fc.integer({ min: 1, max: 30 }),
        async (text, limit) => {
          const result = await cutResult(toolResult(text), limit);
          expect(result.forLLM.isWellFormed()).toBe(true);
          if (text.length <= limit) return expect(result.forLLM).toBe(text);
          const [, kept = '', missing] = /^([\s\S]*)\n\[(\d+) more characters were cut off\]$/.exec(
            result.forLLM,
          )!;
          expect(text.startsWith(kept)).toBe(true);
          expect(kept.length + Number(missing)).toBe(text.length);
          expect(kept.length).toBeLessThanOrEqual(limit);
          expect((result.details as { full: string }).full).toBe(text);
        },
      ),
    );
  });

  test('with parts has its text cut and its images unchanged', async () => {
    const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const;
    const content = [
      { type: 'text', content: LONG } as const,
      image,
      { type: 'text', content: LONG } as const,
    ];
    const result = await cutResult(new ToolResult({ forLLM: `${LONG}\n${LONG}`, content }), 10);
    const text = `abcdefghij${mark(191)}`;
    expect(result).toMatchObject({ forLLM: text, content: [{ type: 'text', content: text }, image] });
  });
});

describe('maxResultChars', () => {
  const talkative = plainTool(() => LONG);
  const script = [{ toolCalls: [{ name: 'work' }] }, {}];

  test('of the registry applies to every way of calling', async () => {
    const tools = new ToolRegistry({ maxResultChars: 10 }).register(talkative);
    expect((await tools.execute('work')).forLLM).toBe(cutAt10);
    expect((await tools.call({ name: 'work' })).content).toBe(cutAt10);
    expect((await tools.executeWithContext('work', {})).forLLM).toBe(cutAt10);
    expect((await tools.view({ allow: ['work'] }).execute('work')).forLLM).toBe(cutAt10);
  });

  test('of the run overrides that of the registry, and that of the tool overrides both', async () => {
    const tools = new ToolRegistry({ maxResultChars: 50 }).register(talkative);
    const { run } = await runScript(script, { tools, maxResultChars: 10 });
    expect(answers(run)).toEqual([cutAt10]);
    const own = new ToolRegistry({ maxResultChars: 1 }).register({ ...talkative, maxResultChars: 10 });
    expect(answers((await runScript(script, { tools: own, maxResultChars: 2 })).run)).toEqual([cutAt10]);
    const unlimited = new ToolRegistry().register(talkative);
    expect(answers((await runScript(script, { tools: unlimited })).run)).toEqual([LONG]);
  });

  test('cuts the text for the model and not the text for the user', async () => {
    const tools = new ToolRegistry({ maxResultChars: 10 }).register(plainTool(() => userResult(LONG)));
    expect(await tools.execute('work')).toMatchObject({ forLLM: cutAt10, forUser: LONG });
  });

  test.each([
    ['thrown', () => Promise.reject(new Error(LONG))],
    ['returned as an Error', () => new Error(LONG)],
    ['returned as a result', () => errorResult(LONG)],
  ])('cuts an error that is %s as well', async (_how, execute) => {
    const tools = new ToolRegistry({ maxResultChars: 10 }).register(plainTool(execute));
    expect(await tools.execute('work')).toMatchObject({
      forLLM: cutAt10,
      isError: true,
      details: { full: LONG },
    });
  });

  test('is applied after the declared output is validated', async () => {
    const output = { type: 'string', minLength: 100, maxLength: 100 } as const;
    const tools = new ToolRegistry({ maxResultChars: 10 }).register({ ...talkative, output });
    expect(await tools.execute('work')).toMatchObject({ forLLM: cutAt10, isError: false });
  });
});
