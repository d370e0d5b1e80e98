import { describe, expect, test } from '@jest/globals';
import { Type } from '@sinclair/typebox';
import {
  agentTool,
  defineTool,
  discoverTools,
  type JsonSchema,
  Param,
  Tool,
  ToolDeclarationError,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { z } from 'zod';

const missing = undefined as never;
const execute = () => 'ran';
const NOT_LOADED = 'the schema comes from a file that imports this one and is not loaded yet';

function faultsOf(declare: () => unknown) {
  try {
    declare();
  } catch (error) {
    if (error instanceof ToolDeclarationError) return error.faults;
    throw error;
  }
  return [];
}

function withParameters(parameters: JsonSchema) {
  return () => defineTool({ name: 't', description: 'd', parameters, execute });
}

const property = (a: JsonSchema): JsonSchema => ({ type: 'object', properties: { a } });

const UNLOADED: readonly (readonly [path: string, schema: JsonSchema])[] = [
  ['properties', { type: 'object', properties: missing }],
  ['properties.order', { type: 'object', properties: { order: missing }, required: ['order'] }],
  ['properties.a.items', property({ type: 'array', items: missing })],
  ['properties.a.prefixItems.1', property({ type: 'array', prefixItems: [{}, missing] })],
  ['properties.a.anyOf', property({ anyOf: missing })],
  ['properties.a.anyOf.0', property({ anyOf: [missing] })],
  ['properties.a.enum', property({ enum: missing })],
  ['properties.a.const', property({ const: missing })],
  ['additionalProperties', { type: 'object', additionalProperties: missing }],
  ['$defs.Order', { ...property({}), $defs: { Order: missing } }],
];

describe.each<[string, (schema: JsonSchema) => unknown, string]>([
  ['defineTool', (parameters) => withParameters(parameters)(), 'parameters'],
  [
    'the output of defineTool',
    (output) => defineTool({ name: 't', description: 'd', output, execute }),
    'output',
  ],
  [
    'agentTool',
    (parameters) =>
      agentTool({
        name: 't',
        label: 'T',
        description: 'd',
        parameters,
        execute: async () => ({ content: [], details: {} }),
      }),
    'parameters',
  ],
  [
    'register',
    (parameters) => new ToolRegistry().register({ name: 't', description: 'd', parameters, execute }),
    'parameters',
  ],
  [
    '@Tool',
    (parameters) => {
      @Toolset()
      class Tools {
        @Tool({ description: 'Does it', parameters }) run() {}
      }
      return discoverTools({ toolsets: [Tools] });
    },
    'parameters',
  ],
])('%s refuses a schema that is not yet loaded', (_, declare, what) => {
  test.each(UNLOADED)('at %s', (path, schema) => {
    expect(faultsOf(() => declare(schema))).toMatchObject([
      {
        problem: `its \`${what}\` is undefined at \`${path}\``,
        causes: expect.arrayContaining([NOT_LOADED]),
      },
    ]);
  });
});

test('discoverTools refuses a schema of @Param with a part that is not yet loaded', () => {
  @Toolset()
  class Tools {
    @Tool({ description: 'Does it' })
    run(@Param({ name: 'order', schema: { type: 'array', items: missing } }) order: unknown) {
      return order;
    }
  }
  expect(faultsOf(() => discoverTools({ toolsets: [Tools] }))).toMatchObject([
    { problem: 'its schema is undefined at `items`', causes: expect.arrayContaining([NOT_LOADED]) },
  ]);
});

test('defineTool reports all parts that are not yet loaded together', () => {
  const schema = { type: 'object', properties: { a: missing, b: missing } };
  expect(faultsOf(withParameters(schema))).toMatchObject([
    { problem: 'its `parameters` is undefined at `properties.a` and `properties.b`' },
  ]);
});

test('defineTool accepts undefined for annotations and bounds in a schema', () => {
  const described = { type: 'number', description: undefined, title: undefined, minimum: undefined };
  expect(faultsOf(withParameters(property(described)))).toEqual([]);
  expect(faultsOf(withParameters(Type.Object({ a: Type.Optional(Type.Array(Type.String())) })))).toEqual([]);
});

test('defineTool accepts undefined inside of data in a schema', () => {
  expect(
    faultsOf(withParameters(property({ default: { items: undefined }, 'x-note': { anyOf: undefined } }))),
  ).toEqual([]);
});

test('defineTool reports a part that is not yet loaded as the cause of an error in zod', () => {
  expect(
    faultsOf(() => defineTool({ name: 't', parameters: z.object({ a: missing }), execute })),
  ).toMatchObject([
    {
      problem: expect.stringContaining('cannot be written as JSON Schema by zod'),
      causes: expect.arrayContaining([NOT_LOADED]),
    },
  ]);
});

test('defineTool refuses `execute: undefined` instead of making a client tool', () => {
  const declare = () => defineTool({ name: 't', description: 'd', execute: undefined });
  expect(faultsOf(declare)).toMatchObject([
    {
      problem: 'its `execute` is undefined',
      causes: expect.arrayContaining([expect.stringContaining('is not loaded yet')]),
      fix: expect.stringContaining('no `execute` if the client executes it'),
    },
  ]);
  expect(defineTool({ name: 't', description: 'd' }).execution).toBe('client');
});
