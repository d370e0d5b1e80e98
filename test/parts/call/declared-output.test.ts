import { describe, expect, test } from '@jest/globals';
import { Type } from '@sinclair/typebox';
import {
  type AsyncCallback,
  type AsyncTool,
  asyncResult,
  defineTool,
  type SchemaSource,
  type ToolContext,
  ToolRegistry,
  ToolResult,
  toolResult,
} from 'toolwright';
import { z } from 'zod';
import { answers, runScript } from '../loop/run-script.js';

const weather = {
  type: 'object',
  properties: { city: { type: 'string' }, degrees: { type: 'number' } },
  required: ['city', 'degrees'],
} as const;

/** A tool called `work` with an output schema. */
function tool(output: SchemaSource, execute: (args: unknown, context: ToolContext) => unknown) {
  return defineTool({ name: 'work', description: 'Works', output, execute });
}

/** The result of a tool that returns this value. */
async function returning(value: unknown, output: SchemaSource = weather): Promise<ToolResult> {
  return new ToolRegistry().register(tool(output, () => value)).execute('work', {});
}

const good = { city: 'Paris', degrees: 22 };
const bad = { city: 'Paris', degrees: 'warm' };
const BROKEN =
  "The tool ran, but its result does not fit the output that 'work' declares:\n  - degrees: must be number";

describe('a declared output', () => {
  test.each([
    ['JSON Schema', weather],
    ['zod', z.object({ city: z.string(), degrees: z.number() })],
    ['TypeBox', Type.Object({ city: Type.String(), degrees: Type.Number() })],
  ] as readonly (readonly [string, SchemaSource])[])('of %s is checked', async (_source, output) => {
    expect(await returning(good, output)).toMatchObject({ forLLM: JSON.stringify(good), isError: false });
    expect(await returning(bad, output)).toMatchObject({
      forLLM: BROKEN,
      isError: true,
      error: { name: 'InvalidResult', code: 513 },
    });
  });

  test('reports every fault with its path', async () => {
    const list = { type: 'array', items: weather } as const;
    expect((await returning([good, {}, bad], list)).forLLM).toBe(
      [
        "The tool ran, but its result does not fit the output that 'work' declares:",
        '  - 1.city: is required',
        '  - 1.degrees: is required',
        '  - 2.degrees: must be number',
      ].join('\n'),
    );
  });

  test('that does not match is an error of the tool: no retries are used, and the run continues', async () => {
    const call = { toolCalls: [{ name: 'work' }] };
    const { run } = await runScript([call, { content: 'done' }], {
      tools: [tool(weather, async () => bad)],
      maxRetries: 0,
    });
    expect(run.status).toBe('completed');
    expect(run.toolCalls[0]?.status).toBe('error');
    expect(answers(run)).toEqual([BROKEN]);
  });

  test('is validated as JSON: dates are strings, and undefined is absent', async () => {
    const at = new Date('2024-01-15T15:30:00Z');
    const output = {
      type: 'object',
      properties: { at: { type: 'string', format: 'date-time' } },
      additionalProperties: false,
    } as const;
    expect((await returning({ at, note: undefined }, output)).forLLM).toBe(
      '{"at":"2024-01-15T15:30:00.000Z"}',
    );
    expect((await returning({ at: 'soon' }, output)).isError).toBe(true);
  });

  test('of text, numbers or null is validated as well', async () => {
    expect(await returning('x', { type: 'string' })).toMatchObject({ forLLM: 'x', isError: false });
    expect(await returning('5', { type: 'integer' })).toMatchObject({ isError: true });
    expect(await returning(5, { type: 'integer' })).toMatchObject({ forLLM: '5', isError: false });
    expect(await returning(null, { type: 'null' })).toMatchObject({ isError: false });
    expect(await returning(undefined)).toMatchObject({ isError: true });
  });

  test('writes a bigint as text and fails for a circular value', async () => {
    expect((await returning({ city: 'Paris', degrees: 22n })).forLLM).toBe(BROKEN);
    const circle: Record<string, unknown> = { ...good };
    circle.self = circle;
    expect(await returning(circle)).toMatchObject({ isError: true });
    const worded = new ToolResult({ forLLM: 'Warm', details: circle });
    expect((await returning(worded)).forLLM).toBe(
      "The tool ran, but its result does not fit the output that 'work' declares:\n  - cannot be written as JSON",
    );
  });

  test('of a ToolResult is validated against its details', async () => {
    for (const word of [
      (details: unknown) => new ToolResult({ forLLM: 'It is warm', details }),
      (details: unknown) => ({ forLLM: 'It is warm', details }),
      (details: unknown) => ({ content: [{ type: 'text', content: 'It is warm' }], details }),
    ]) {
      expect(await returning(word(good))).toMatchObject({
        forLLM: 'It is warm',
        details: good,
        isError: false,
      });
      expect((await returning(word(bad))).forLLM).toBe(BROKEN);
    }
  });

  test('of a ToolResult without details is validated against its text, plain or as JSON', async () => {
    expect(await returning(toolResult(JSON.stringify(good)))).toMatchObject({ isError: false });
    expect((await returning(toolResult(JSON.stringify(bad)))).forLLM).toBe(BROKEN);
    expect((await returning(toolResult('It is warm'))).isError).toBe(true);
    expect(await returning(toolResult('5'), { type: 'string' })).toMatchObject({ forLLM: '5' });
  });

  test('with a property called details is validated as plain data', async () => {
    const output = { type: 'object', properties: { details: { type: 'string' } }, required: ['details'] };
    expect(await returning({ details: 'x' }, output)).toMatchObject({ forLLM: '{"details":"x"}' });
    expect((await returning({ details: 7 }, output)).isError).toBe(true);
  });

  test('does not apply to an error result', async () => {
    expect(await returning(new Error('no weather today'))).toMatchObject({
      forLLM: 'no weather today',
      error: { name: 'ToolExecutionFailed' },
    });
  });

  test('that is not a schema is refused by defineTool', () => {
    expect(() => tool({ type: 'nonsense' }, () => good)).toThrow("`type` of its `output` is 'nonsense'");
  });
});

describe('a declared output of background work', () => {
  const working = (value: unknown) =>
    new ToolRegistry().register(tool(weather, (_args, context) => context.background(async () => value)));

  /** The acknowledgement and the completions. */
  async function started(tools: ToolRegistry) {
    const completed = Promise.withResolvers<ToolResult>();
    const now = await tools.executeWithContext('work', {}, {}, (_context, result) =>
      completed.resolve(result),
    );
    return { now, later: await completed.promise };
  }

  test('that is awaited is validated like a returned value', async () => {
    expect(await working(good).execute('work', {})).toMatchObject({
      forLLM: JSON.stringify(good),
      isError: false,
    });
    expect((await working(bad).execute('work', {})).forLLM).toBe(BROKEN);
  });

  test('applies to its completion and not to its acknowledgement', async () => {
    const fine = await started(working(good));
    expect(fine.now).toMatchObject({ async: true, isError: false });
    expect(fine.later).toMatchObject({ forLLM: JSON.stringify(good), isError: false });
    const broken = await started(working(bad));
    expect(broken.now).toMatchObject({ async: true, isError: false });
    expect(broken.later).toMatchObject({ forLLM: BROKEN, isError: true, error: { code: 513 } });
  });

  test('applies to the completion of a callback tool, whose length is limited as well', async () => {
    let callback: AsyncCallback | undefined;
    const report: AsyncTool = {
      ...tool({ type: 'string', minLength: 5 }, () => {
        setImmediate(() => callback?.(undefined, toolResult('x'.repeat(12))));
        return asyncResult('started');
      }),
      setCallback: (given) => {
        callback = given;
      },
    };
    const tools = new ToolRegistry({ maxResultChars: 10 }).register(report);
    const { later } = await started(tools);
    expect(later.forLLM).toBe(`${'x'.repeat(10)}\n[2 more characters were cut off]`);
  });
});
