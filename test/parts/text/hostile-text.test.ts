import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ToolCallParser } from 'toolwright';
import { leastGrowth } from '../../setup/least-growth.js';
import { isLong, runs } from '../../setup/runs.js';
import { modelText, NAMES } from './model-texts.js';
import { streamedCalls } from './streamed-calls.js';

const LONG = isLong ? 200_000 : 100_000;
const MOST = 40;
const NOISE_MS = 4;

/** Calls without their ids, which depend on the text before. */
function callTexts(text: string, tools: readonly string[] | undefined): readonly string[] {
  const { toolCalls } = new ToolCallParser({ tools }).parse(text);
  return toolCalls.map((call) => JSON.stringify([call.name, call.arguments]));
}

describe('ToolCallParser and withTextTools with random text', () => {
  test('calls in the first part of a text are also calls in the whole text', () => {
    fc.assert(
      fc.property(modelText, fc.nat(), fc.boolean(), (text, length, isNamed) => {
        const tools = isNamed ? NAMES : undefined;
        const end = length % (text.length + 1);
        // Whether these formats are calls or examples depends on the text that follows, like the end of reasoning.
        fc.pre(!/\[\s*[\w.]+\(|>>>|^\s*[\w.]+\s*\n/.test(text));
        fc.pre(!/<\/think>|\[\/THINK\]/.test(text.slice(Math.max(0, end - '</think>'.length))));
        const part = callTexts(text.slice(0, end), tools);
        expect(callTexts(text, tools).slice(0, part.length)).toEqual(part);
      }),
      { numRuns: runs(300) },
    );
  });

  test('chunks of any size give the same result as the whole text', async () => {
    await fc.assert(
      fc.asyncProperty(modelText, fc.constantFrom(1, 2, 3, 7), async (text, size) => {
        expect(await streamedCalls(text, NAMES, size)).toEqual(await streamedCalls(text, NAMES));
      }),
      { numRuns: runs(300) },
    );
  });

  test('only the given names are ever called', () => {
    fc.assert(
      fc.property(modelText, (text) => {
        for (const { name } of new ToolCallParser({ tools: ['add'] }).parse(text).toolCalls)
          expect(name).toBe('add');
      }),
    );
  });

  test('ids are unique', () => {
    fc.assert(
      fc.property(modelText, (text) => {
        const ids = new ToolCallParser().parse(text).toolCalls.map(({ id }) => id);
        expect(new Set(ids).size).toBe(ids.length);
      }),
    );
  });
});

describe('ToolCallParser and withTextTools with text designed to be slow', () => {
  const hostile = [
    '{',
    '[',
    '[{',
    '{"a":',
    '{"a":[',
    '{"',
    '{"a":"',
    '{"a":"\\',
    '{"a":{},',
    '[{},',
    '[ ',
    '`',
    '```json\n{"a":',
    '<tool_call>',
    '<tool_call>{',
    '<tool_call>{a:"',
    '<tool_call>{/*',
    '<tool_call>{a:[',
    '<tool_call>{a:\'<tool_call>{b:"',
    '<tool_call>add<arg_key>',
    '<function=add><parameter=a>',
    '<function=add><parameter=a>1</parameter>',
    '[TOOL_CALLS]add',
    '[TOOL_CALLS] [{',
    '[add(a=[',
    '[add(a=1,',
    '[add(a=[add(a=',
    '[add(a=1) ',
    '>>>add\n{"a":',
    '>>>',
    'add\n{',
    '"[add(a=1)',
    'to=functions.add<|channel|>',
    '<think>',
    '</think>',
    '<think></think>',
    '<function=add><parameter=a></think><function=',
    '<function=add><parameter=a></function>x',
    '<invoke name="add"><parameter name="a">',
    '<|DSML|tool_calls>',
    '<｜tool_calls_begin｜>function',
    '<|tool_call>call:add{a:<|"|>',
    '<|tool_call>call:add{a:[',
    '<|tools_prefix|>[{"add":{',
    '<function_calls>add(a=1',
    '<tool_call>add<tool_sep>',
    'Here is my thought process:',
    '<|channel|>analysis<|message|>',
    ' ',
    '<',
  ];

  /** Fails if ten times the text takes far more than ten times as long; quadratic time would be a hundred times. */
  async function expectLinear(unit: string, length: number, read: (text: string) => unknown): Promise<void> {
    const textOf = (size: number) => unit.repeat(Math.ceil(size / unit.length));
    const [short, long] = [textOf(length / 10), textOf(length)];
    const growth = await leastGrowth({
      small: () => read(short),
      large: () => read(long),
      most: MOST,
      noiseMs: NOISE_MS,
    });
    expect(growth).toBeLessThan(MOST);
  }

  test.each(hostile)('a long text of %j is parsed in linear time', async (unit) => {
    const parser = new ToolCallParser({ tools: NAMES });
    for (const end of ['', '</arg_key></parameter>*/\'"}]!'])
      await expectLinear(unit, LONG, (text) => expect(parser.parse(text + end).toolCalls).toEqual([]));
  });

  test.each(hostile)('a long text of %j is parsed in linear time in small chunks', async (unit) => {
    await expectLinear(unit, LONG / 8, async (text) =>
      expect((await streamedCalls(text, NAMES, 7)).calls).toEqual([]),
    );
  });

  test('a very long call and a deeply nested one are found', async () => {
    const text = JSON.stringify({ name: 'add', arguments: { text: '{"\\<'.repeat(LONG / 5) } });
    expect((await streamedCalls(text, NAMES, 7)).calls).toHaveLength(1);
    const nested = `{"name":"add","arguments":{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}}`;
    expect(new ToolCallParser().parse(nested).toolCalls).toHaveLength(1);
  });
});
