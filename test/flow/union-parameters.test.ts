import { describe, expect, test } from '@jest/globals';
import {
  agentTool,
  defineTool,
  discoverTools,
  type JsonSchema,
  runToolLoop,
  Tool,
  ToolDeclarationError,
  ToolRegistry,
  Toolset,
  toolToSchema,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { z } from 'zod';

const Shape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('circle'), r: z.number().default(1) }),
  z.object({ kind: z.literal('square'), side: z.number().refine((side) => side < 100, 'must be small') }),
]);

const area = defineTool({
  name: 'area',
  description: 'The area of a shape',
  parameters: Shape,
  execute: (shape) => (shape.kind === 'circle' ? `circle ${shape.r}` : `square ${shape.side}`),
});

describe('defineTool with a union as parameters', () => {
  const tools = new ToolRegistry().register(area);

  test('offers an object with one property that contains the union', () => {
    const { parameters } = toolToSchema(area).function;
    expect(parameters).toMatchObject({ type: 'object', required: ['input'] });
    expect(Object.keys(parameters)).toEqual(['type', 'properties', 'required']);
    expect(Object.keys(parameters.properties?.input ?? {})).toContain('oneOf');
    expect(toolToSchema(area).function.parameters).toBe(parameters);
  });

  test('passes the arguments without that property, in whatever form they are sent', async () => {
    expect((await tools.execute('area', { input: { kind: 'circle', r: 2 } })).forLLM).toBe('circle 2');
    expect((await tools.execute('area', { kind: 'circle', r: 2 })).forLLM).toBe('circle 2');
    expect((await tools.execute('area', { input: { kind: 'circle' } })).forLLM).toBe('circle 1');
    expect(
      (await tools.execute('area', '{"input": "{\\"kind\\": \\"square\\", \\"side\\": 3}"}')).forLLM,
    ).toBe('square 3');
  });

  test('reports faults with the path that was sent', async () => {
    const told = async (args: unknown) => (await tools.execute('area', args)).forLLM;
    expect(await told({ input: { kind: 'circle', r: 'wide' } })).toContain('- input.r: must be number');
    expect(await told({ kind: 'circle', r: 'wide' })).toContain('- r: must be number');
    expect(await told({ input: { kind: 'square', side: 200 } })).toContain('- input.side: must be small');
    expect(await told({ input: 7 })).toContain('- input: must be object');
  });

  test('records the arguments as passed to the tool', async () => {
    const provider = new ScriptedProvider([
      {
        content: '',
        toolCalls: [{ id: 'c1', name: 'area', arguments: { input: { kind: 'square', side: 3 } } }],
      },
      { content: 'nine' },
    ]);
    const run = await runToolLoop({ provider, model: 'm', tools }, [{ role: 'user', content: 'Area?' }]);
    expect(run.toolCalls[0]).toMatchObject({ arguments: { kind: 'square', side: 3 }, status: 'success' });
  });
});

test.each<[string, JsonSchema]>([
  ['anyOf', { anyOf: [{ type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }] }],
  ['oneOf', { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] }],
  ['allOf', { allOf: [{ type: 'object', properties: { a: { type: 'string' } } }, { required: ['a'] }] }],
  [
    '$ref',
    {
      $ref: '#/$defs/in',
      $defs: { in: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] } },
    },
  ],
])(
  'ToolRegistry offers a hand-written tool with %s at the root as an object',
  async (_keyword, parameters) => {
    const tool = { name: 't', description: 'd', parameters, execute: (args: object) => JSON.stringify(args) };
    const tools = new ToolRegistry().register(tool);
    const [definition] = tools.toProviderDefs();
    const offered = definition?.function.parameters ?? {};
    expect(offered.type).toBe('object');
    for (const keyword of ['anyOf', 'oneOf', 'allOf', '$ref', 'not', 'enum'])
      expect(offered).not.toHaveProperty(keyword);
    expect(tools.get('t')?.parameters).toBe(parameters);
    expect((await tools.execute('t', { input: { a: 'x' } })).forLLM).toBe('{"a":"x"}');
    expect(await tools.execute('t', { input: {} })).toMatchObject({ isError: true });
  },
);

test('defineTool keeps the meaning of a recursive union with a property named input', async () => {
  const parameters: JsonSchema = {
    anyOf: [
      { type: 'object', properties: { input: { $ref: '#' } }, required: ['input'] },
      {
        type: 'object',
        properties: { n: { type: 'integer' } },
        required: ['n'],
        additionalProperties: false,
      },
    ],
  };
  const tool = defineTool({
    name: 't',
    description: 'd',
    parameters,
    execute: (args) => JSON.stringify(args),
  });
  const tools = new ToolRegistry().register(tool);
  const args = { input: { input: { n: 1 } } };
  expect((await tools.execute('t', args)).forLLM).toBe(JSON.stringify(args));
  expect((await tools.execute('t', { input_2: args })).forLLM).toBe(JSON.stringify(args));
  expect((await tools.execute('t', { input_2: { input: { n: 'x' } } })).isError).toBe(true);
});

test('agentTool and @Tool accept unions too', async () => {
  @Toolset()
  class Shapes {
    @Tool({ description: 'The area', parameters: Shape })
    measure(shape: z.infer<typeof Shape>) {
      return shape.kind;
    }
  }
  const agent = agentTool({
    name: 'agent',
    label: 'Area',
    description: 'The area',
    parameters: Shape,
    execute: async (_id, shape) => ({ content: [{ type: 'text', content: shape.kind }], details: {} }),
  });
  const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Shapes] }), agent);
  expect((await tools.execute('measure', { input: { kind: 'circle' } })).forLLM).toBe('circle');
  expect((await tools.execute('agent', { input: { kind: 'circle' } })).forLLM).toBe('circle');
});

test('defineTool refuses a union with a member that is not an object', () => {
  const parameters = z.union([z.object({ a: z.string() }), z.string()]);
  expect(() => defineTool({ name: 't', description: 'd', parameters, execute: () => 'x' })).toThrow(
    ToolDeclarationError,
  );
});
