import { describe, expect, test } from '@jest/globals';
import {
  agentTool,
  defineTool,
  discoverTools,
  type JsonSchema,
  Param,
  runToolLoop,
  Tool,
  ToolDeclarationError,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { z } from 'zod';

function faultsOf(declare: () => unknown): readonly string[] {
  try {
    declare();
  } catch (error) {
    if (error instanceof ToolDeclarationError)
      return error.faults.map(({ where, parameter, problem }) =>
        [where, parameter, problem].filter((one) => one !== undefined).join(', '),
      );
    throw error;
  }
  return [];
}

const execute = () => 'ran';

async function runWith(tools: readonly object[], provider = new ScriptedProvider([{ content: 'Hi' }])) {
  return runToolLoop({ provider, model: 'm', tools: tools as never }, [{ role: 'user', content: 'Go' }]);
}

const property = (a: unknown): JsonSchema => ({ type: 'object', properties: { a: a as JsonSchema } });

const MALFORMED: readonly (readonly [schema: unknown, problem: string])[] = [
  [property({ type: 'strng' }), "`properties.a.type` of its `parameters` is 'strng'"],
  [property({ type: 'string', pattern: '(' }), "`properties.a.pattern` of its `parameters` is '('"],
  [{ type: 'object', required: {} }, '`required` of its `parameters` is {}'],
  [
    property({ $ref: '#/$defs/gone' }),
    "`properties.a.$ref` of its `parameters` is '#/$defs/gone', which leads nowhere",
  ],
  [
    { ...property({ $ref: '#/$defs/a' }), $defs: { a: { $ref: '#/$defs/a' } } },
    "`$defs.a.$ref` of its `parameters` is '#/$defs/a', which leads back to itself",
  ],
  [
    property({ type: 'array', items: { $ref: '#/properties/a/items' } }),
    "`properties.a.items.$ref` of its `parameters` is '#/properties/a/items', which leads back to itself",
  ],
  [
    property({ type: 'number', minimum: 5, maximum: 3 }),
    '`properties.a.minimum` of its `parameters` is 5, above its `maximum` of 3: no value fits',
  ],
  [{ $async: true, ...property({}) }, '`$async` of its `parameters` is true'],
  [property({ $async: true }), '`properties.a.$async` of its `parameters` is true'],
  [property({ enum: [] }), '`properties.a.enum` of its `parameters` is []'],
  [property('string'), "`properties.a` of its `parameters` is 'string'"],
];

describe.each<[string, (parameters: JsonSchema) => unknown]>([
  ['defineTool("t")', (parameters) => defineTool({ name: 't', description: 'd', parameters, execute })],
  [
    'agentTool("t")',
    (parameters) =>
      agentTool({
        name: 't',
        label: 'T',
        description: 'd',
        parameters,
        execute: async () => ({ content: [{ type: 'text', content: 'x' }], details: {} }),
      }),
  ],
  [
    'register("t")',
    (parameters) => new ToolRegistry().register({ name: 't', description: 'd', parameters, execute }),
  ],
])('%s rejects parameters', (where, declare) => {
  test.each(MALFORMED)('%j', (schema, problem) => {
    expect(faultsOf(() => declare(schema as JsonSchema))).toEqual([`${where}, ${problem}`]);
  });

  test('with all faults at once', () => {
    const parameters = {
      type: 'object',
      properties: { a: { type: 'strng' }, b: { minLength: -1 } },
      required: 'a',
    };
    expect(faultsOf(() => declare(parameters as unknown as JsonSchema))).toHaveLength(3);
  });

  test('with a long circle of references', () => {
    const $defs: Record<string, JsonSchema> = {};
    for (let index = 0; index < 40; index += 1) $defs[`d${index}`] = { $ref: `#/$defs/d${(index + 1) % 40}` };
    const faults = faultsOf(() => declare({ ...property({ $ref: '#/$defs/d0' }), $defs }));
    expect(faults).toHaveLength(40);
    expect(faults.join()).toContain('which leads back to itself');
  });

  test.each([
    { type: 'array', items: { type: 'string' } },
    { type: 'string' },
    { type: ['object', 'null'] },
    { anyOf: [{ type: 'object' }, { type: 'null' }] },
  ])('that are not an object schema: %j', (parameters) => {
    const told = [`${where}, its \`parameters\` do not describe an object`];
    expect(faultsOf(() => declare(parameters))).toEqual(told);
  });

  test('that are an array', () => {
    expect(faultsOf(() => declare([] as unknown as JsonSchema))).toHaveLength(1);
  });
});

test.each([
  ['register', (tool: object) => new ToolRegistry().register(tool as never)],
  ['the tools of a run', (tool: object) => runWith([tool])],
])('%s: a library schema without defineTool is rejected, with a hint', async (_, give) => {
  const parameters = z.object({ a: z.number() });
  const given = async () => give({ name: 't', description: 'd', parameters, execute });
  await expect(given()).rejects.toMatchObject({
    name: 'InvalidToolSignature',
    faults: [
      {
        problem: 'its `parameters` are a schema of zod, which only defineTool writes as JSON Schema',
        fix: expect.stringContaining('register(defineTool({'),
      },
    ],
  });
});

test('runToolLoop rejects the faults that register rejects, and makes no request', async () => {
  const model = new ScriptedProvider([{ content: 'Hi' }]);
  const wrong = { name: 't', description: 'd', parameters: { type: 'array' }, execute };
  await expect(runWith([wrong], model)).rejects.toMatchObject({
    faults: [{ problem: 'its `parameters` do not describe an object' }],
  });
  expect(model.requests).toEqual([]);
});

test('ToolRegistry.register reports the faults of all tools, and registers none of them', () => {
  const tools = new ToolRegistry();
  const bad = (name: string) => ({
    name,
    description: 'd',
    parameters: property({ type: 'strng' }),
    execute,
  });
  const good = { name: 'good', description: 'd', parameters: property({ type: 'string' }), execute };
  expect(faultsOf(() => tools.register(bad('a'), good, bad('b')))).toHaveLength(2);
  expect(tools.list()).toEqual([]);
});

test('register rejects a malformed output, and a factory of a malformed tool', () => {
  const tool = { name: 't', description: 'd', parameters: {}, output: { type: 'strng' }, execute };
  const told = ['register("t"), `type` of its `output` is \'strng\''];
  expect(faultsOf(() => new ToolRegistry().register(tool))).toEqual(told);
  expect(faultsOf(() => new ToolRegistry().register(() => tool))).toEqual(told);
});

test('discoverTools reports malformed schemas of @Tool and @Param with class, method and parameter', () => {
  @Toolset()
  class Shop {
    @Tool({
      description: 'd',
      parameters: property({ type: 'strng' }),
      output: { required: {} } as unknown as JsonSchema,
    })
    explicit(_args: object) {}

    @Tool('Finds')
    find(
      @Param({ description: 'a', pattern: '(' }) name: string,
      @Param({ description: 'b', minimum: 5, maximum: 3 }) limit: number,
      @Param({ description: 'c', schema: { type: 'strng' } }) filter: object,
      @Param({ description: 'd', maximum: 3 }) page = 7,
    ) {
      return [name, limit, filter, page];
    }
  }
  expect(faultsOf(() => discoverTools({ toolsets: [Shop] }))).toEqual([
    'Shop.explicit, `required` of its `output` is {}',
    "Shop.explicit, `properties.a.type` of its `parameters` is 'strng'",
    "Shop.find, name, its `pattern` is '('",
    "Shop.find, filter, its `type` is 'strng'",
  ]);
});

test('discoverTools reports contradicting bounds and invalid defaults', () => {
  @Toolset()
  class Shop {
    @Tool('Finds')
    find(
      @Param({ description: 'b', minimum: 5, maximum: 3 }) limit: number,
      @Param({ description: 'd', maximum: 3 }) page = 7,
      @Param({ schema: { type: 'string' }, default: 1 }) style: string,
    ) {
      return [limit, page, style];
    }
  }
  expect(faultsOf(() => discoverTools({ toolsets: [Shop] }))).toEqual([
    'Shop.find, limit, its `minimum` is 5, above its `maximum` of 3: no value fits',
    'Shop.find, page, its `default` is 7, which its own schema does not accept',
    'Shop.find, style, its `default` is 1, which its own schema does not accept',
  ]);
});

test('defineTool leaves defaults to the schema library', async () => {
  const tool = defineTool({
    name: 't',
    description: 'd',
    parameters: z.object({ n: z.string().transform(Number).default(5) }),
    execute: ({ n }) => n + 1,
  });
  expect((await new ToolRegistry().register(tool).execute('t', {})).forLLM).toBe('6');
});

describe.each([undefined, null])(
  '`parameters: %s`, as from a module that is not loaded yet, are rejected by',
  (parameters) => {
    const schema = parameters as unknown as JsonSchema;

    test('defineTool', () => {
      const declare = () => defineTool({ name: 't', description: 'd', parameters: schema, execute });
      expect(faultsOf(declare)).toEqual([`defineTool("t"), its \`parameters\` are ${parameters}`]);
      expect(declare).toThrow(/a file that imports this one and is not loaded yet/);
      expect(defineTool({ name: 't', description: 'd', execute }).parameters).toMatchObject({
        type: 'object',
      });
    });

    test('agentTool', () => {
      const content = [{ type: 'text' as const, content: 'x' }];
      const rest = {
        name: 't',
        label: 'T',
        description: 'd',
        execute: async () => ({ content, details: {} }),
      };
      expect(faultsOf(() => agentTool({ ...rest, parameters: schema }))).toEqual([
        `agentTool("t"), its \`parameters\` are ${parameters}`,
      ]);
    });

    test('@Tool', () => {
      @Toolset()
      class Tools {
        @Tool({ description: 'Does it', parameters: schema }) run() {}
      }
      expect(faultsOf(() => discoverTools({ toolsets: [Tools] }))).toEqual([
        `Tools.run, its \`parameters\` are ${parameters}`,
      ]);
    });
  },
);
