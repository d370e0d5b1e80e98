import { describe, expect, test } from '@jest/globals';
import { discoverTools, type ToolDefinition, ToolRegistry, type ToolRegistryOptions } from 'toolwright';
import { Tool, Toolset } from 'toolwright/decorators';
import { numberTool } from '../loop/run-script.js';

/** Calls a tool that takes `{ n: integer }` with these arguments and returns the record. */
async function send(raw: unknown, tool: Partial<ToolDefinition> = {}, options: ToolRegistryOptions = {}) {
  const tools = new ToolRegistry(options).register(numberTool('a', tool));
  return (await tools.invoke({ id: 'c1', name: 'a', arguments: raw })).record;
}

describe('repaired types', () => {
  test('are recorded like repairs', async () => {
    expect(await send({ n: '5' })).toMatchObject({
      status: 'success',
      arguments: { n: 5 },
      rawArguments: { n: '5' },
      repairs: ['coerced n'],
    });
  });

  test('can be disabled for a registry, even if another registry repairs for an equal tool', async () => {
    expect((await send({ n: '5' })).status).toBe('success');
    const record = await send({ n: '5' }, {}, { coerce: false });
    expect(record.status).toBe('rejected');
    expect(record.result.forLLM).toContain('  - n: must be integer');
    expect((await send({ n: '5' })).status).toBe('success');
  });

  test('can be disabled for a tool, or enabled for a tool of a registry that disables them', async () => {
    expect((await send({ n: '5' }, { coerce: false })).status).toBe('rejected');
    expect((await send({ n: '5' }, { coerce: true }, { coerce: false })).status).toBe('success');
  });

  test('if disabled, defaults are still applied and extra keys removed', async () => {
    const parameters = { type: 'object', properties: { n: { type: 'integer', default: 7 } } } as const;
    expect(await send({ extra: 1 }, { parameters }, { coerce: false })).toMatchObject({
      arguments: { n: 7 },
      removed: ['extra'],
      status: 'success',
    });
  });

  test('work for decorated tools and for views of a registry', async () => {
    @Toolset()
    class Numbers {
      @Tool({ description: 'Doubles', coerce: false })
      double(n: number) {
        return n * 2;
      }

      @Tool('Halves')
      halve(n: number) {
        return n / 2;
      }
    }
    const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Numbers] }));
    expect((await tools.execute('double', { n: '5' })).isError).toBe(true);
    expect((await tools.execute('halve', { n: '5' })).forLLM).toBe('2.5');
    const strict = new ToolRegistry({ coerce: false }).merge(tools).view({ allow: ['halve'] });
    expect((await strict.execute('halve', { n: '5' })).isError).toBe(true);
  });
});

describe('repaired JSON', () => {
  const broken = '{"n": 5,}';
  const REFUSED = 'the arguments are not a valid JSON object, and this tool accepts no repaired arguments';

  test('runs by default, and the repair is recorded', async () => {
    expect(await send(broken)).toMatchObject({
      status: 'success',
      arguments: { n: 5 },
      rawArguments: broken,
      repairs: ['repaired the JSON'],
    });
  });

  test.each([
    ['with repair: false', { repair: false }],
    ['that destroys', { annotations: { destructive: true } }],
  ])('is refused by a tool %s, and its body never runs', async (_what, more) => {
    let runs = 0;
    const tool = { ...more, execute: () => ++runs };
    for (const raw of [broken, '```json\n{"n": 5}\n```', '"{\\"n\\":5}"', "{'n': 5}"]) {
      const record = await send(raw, tool);
      expect(record.status).toBe('rejected');
      expect(record.result.forLLM).toContain(`Validation failed for tool 'a':\n  - ${REFUSED}`);
    }
    expect(runs).toBe(0);
    expect((await send('{"n": 5}', tool)).status).toBe('success');
  });

  test('is accepted by a destructive tool that enables it', async () => {
    const tool = { annotations: { destructive: true }, repair: true };
    expect((await send(broken, tool)).status).toBe('success');
  });

  test('is validated like any other', async () => {
    expect((await send('{"n": "many",}')).status).toBe('rejected');
    expect((await send('{"m": 5,}')).result.forLLM).toContain('  - n: is required');
  });

  test('is never completed if it was cut off inside a value', async () => {
    for (const raw of ['{"n": 5', '{"n": "5', '{"n":'])
      expect((await send(raw, { repair: true })).status).toBe('rejected');
  });
});

test('a null that was treated as absent is recorded like a repair', async () => {
  const properties = { id: { type: 'string' }, limit: { type: 'integer' } };
  const record = await send(
    { id: 'a', limit: null },
    { parameters: { type: 'object', properties, required: ['id'] } },
  );
  expect(record).toMatchObject({
    arguments: { id: 'a' },
    repairs: ['dropped null limit'],
    status: 'success',
  });
});
