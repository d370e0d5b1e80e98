import { type TSchema, Type } from '@sinclair/typebox';
import { agentTool, defineTool, Integer, registerFunction, ToolRegistry } from 'toolwright';
import { z } from 'zod';
import { written } from './case.js';
import type { SampledTool } from './sampled-tool.js';

type Options = Partial<Parameters<typeof defineTool>[0]>;

const text = { type: 'string' };
const number = { type: 'number' };
const integer = { type: 'integer' };
const list = (items: object, more: object = {}) => ({ type: 'array', items, ...more });
const object = (properties: object, required: readonly string[] = [], more: object = {}) => ({
  type: 'object',
  properties,
  ...(required.length > 0 ? { required } : {}),
  ...more,
});

const ADDRESS = object({ street: text, city: text, zip: { ...text, pattern: '^[0-9]{5}$' } }, [
  'street',
  'city',
  'zip',
]);
const TREE = { $ref: '#/$defs/node' };
const NODE = object({ value: integer, children: list(TREE) }, ['value']);

/** Name, JSON Schema, valid arguments, options. */
const SCHEMAS: readonly (readonly [string, object, readonly object[], Options?])[] = [
  [
    'search',
    object(
      {
        q: { ...text, minLength: 1 },
        limit: { ...integer, minimum: 1, maximum: 100, default: 10 },
        tags: list(text, { maxItems: 3, uniqueItems: true }),
        mode: { enum: ['fast', 'exact'] },
      },
      ['q'],
    ),
    [{ q: 'shoes', limit: 5, tags: ['a', 'b'], mode: 'fast' }, { q: 'lamp' }],
  ],
  [
    'order',
    object(
      {
        customer: text,
        items: list(object({ sku: text, count: { ...integer, minimum: 1 } }, ['sku', 'count']), {
          minItems: 1,
        }),
        address: ADDRESS,
        note: text,
        express: { type: 'boolean' },
      },
      ['customer', 'items', 'address'],
    ),
    [
      {
        customer: 'cus_1',
        items: [
          { sku: 'a', count: 1 },
          { sku: 'b', count: 2 },
        ],
        address: { street: 'Main 1', city: 'Oslo', zip: '12345' },
        express: true,
      },
    ],
  ],
  [
    'draw',
    object(
      {
        shape: {
          anyOf: [
            object({ kind: { const: 'circle' }, radius: { ...number, exclusiveMinimum: 0 } }, [
              'kind',
              'radius',
            ]),
            object({ kind: { const: 'rect' }, width: number, height: number }, ['kind', 'width', 'height']),
          ],
        },
      },
      ['shape'],
    ),
    [{ shape: { kind: 'circle', radius: 2 } }, { shape: { kind: 'rect', width: 1, height: 2.5 } }],
  ],
  [
    'choose',
    object({ value: { oneOf: [integer, { ...text, maxLength: 5 }, { type: 'boolean' }, list(number)] } }, [
      'value',
    ]),
    [{ value: 7 }, { value: 'seven' }, { value: true }, { value: [1, 2] }],
  ],
  [
    'scores',
    object(
      {
        scores: { type: 'object', additionalProperties: number },
        labels: { type: 'object', patternProperties: { '^l_': text }, additionalProperties: false },
      },
      ['scores'],
    ),
    [{ scores: { ann: 1, bob: 2.5 }, labels: { l_a: 'A' } }, { scores: {} }],
  ],
  ['closed', object({ a: text, b: integer }, ['a'], { additionalProperties: false }), [{ a: 'x', b: 1 }]],
  [
    'formats',
    object(
      {
        mail: { ...text, format: 'email' },
        day: { ...text, format: 'date' },
        at: { ...text, format: 'date-time' },
        site: { ...text, format: 'uri' },
        id: { ...text, format: 'uuid' },
      },
      ['mail', 'day'],
    ),
    [
      {
        mail: 'a@example.com',
        day: '2030-01-02',
        at: '2030-01-02T03:04:05Z',
        site: 'https://example.com/a',
        id: '123e4567-e89b-42d3-a456-426614174000',
      },
    ],
  ],
  [
    'numbers',
    object(
      {
        price: { ...number, exclusiveMinimum: 0, multipleOf: 0.01 },
        rate: { ...number, minimum: 0, maximum: 1 },
        big: integer,
        step: { ...integer, multipleOf: 5 },
      },
      ['price', 'rate'],
    ),
    [{ price: 9.99, rate: 0.5, big: 12345678901, step: 15 }],
  ],
  [
    'nullable',
    object({ name: { type: ['string', 'null'] }, age: { type: ['integer', 'null'] }, nick: text }, [
      'name',
      'age',
    ]),
    [
      { name: null, age: 3 },
      { name: 'Ann', age: null, nick: 'A' },
    ],
  ],
  [
    'tuple',
    object(
      {
        point: { type: 'array', prefixItems: [number, number], items: false, minItems: 2 },
        path: list(list(number, { minItems: 2, maxItems: 2 })),
        mix: list({}, { contains: { const: 'x' } }),
      },
      ['point'],
    ),
    [
      {
        point: [1, 2],
        path: [
          [0, 0],
          [1, 1],
        ],
        mix: ['x', 1],
      },
    ],
  ],
  [
    'tree',
    object({ root: TREE }, ['root'], { $defs: { node: NODE } }),
    [{ root: { value: 1, children: [{ value: 2, children: [] }, { value: 3 }] } }],
  ],
  [
    'conditional',
    object({ kind: { enum: ['card', 'cash'] }, number: text, cvc: text }, ['kind'], {
      if: { properties: { kind: { const: 'card' } } },
      // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
      then: { required: ['number'] },
      dependentRequired: { cvc: ['number'] },
    }),
    [{ kind: 'card', number: '4111', cvc: '1' }, { kind: 'cash' }],
  ],
  [
    'negated',
    object({ word: { ...text, not: { enum: ['no', 'never'] } }, count: { not: { type: 'string' } } }, [
      'word',
    ]),
    [{ word: 'yes', count: 3 }],
  ],
  [
    'exact',
    object({ n: integer, on: { type: 'boolean' }, tags: list(text) }, ['n']),
    [{ n: 1, on: true, tags: ['a'] }],
    { coerce: false },
  ],
  [
    'erase',
    object({ path: text, deep: { type: 'boolean' } }, ['path']),
    [{ path: 'notes/a', deep: true }],
    { annotations: { destructive: true } },
  ],
  [
    'unrepaired',
    object({ path: text, times: integer }, ['path']),
    [{ path: 'a', times: 2 }],
    { repair: false },
  ],
  [
    'literals',
    object({ level: { enum: [1, 2, 'high', null, true] }, version: { const: 2 }, flag: { const: false } }, [
      'level',
      'version',
    ]),
    [
      { level: 1, version: 2, flag: false },
      { level: 'high', version: 2 },
      { level: null, version: 2 },
    ],
  ],
  [
    'merged',
    { allOf: [object({ id: integer }, ['id']), object({ name: { ...text, maxLength: 4 } }, ['name'])] },
    [{ id: 1, name: 'ab' }],
  ],
  [
    'sizes',
    object(
      {
        bag: { type: 'object', minProperties: 1, maxProperties: 2 },
        names: list(text, { minItems: 1, maxItems: 2 }),
        code: { ...text, minLength: 2, maxLength: 4, pattern: '^[A-Z]+$' },
      },
      ['bag', 'names', 'code'],
    ),
    [{ bag: { a: 1 }, names: ['x'], code: 'ABC' }],
  ],
  ['anything', object({ value: {}, also: true }, ['value']), [{ value: { deep: [1, 'a', null] }, also: 1 }]],
  ['none', object({}), [{}, { a: 1 }]],
  ['open', { type: 'object', additionalProperties: true }, [{ a: 1, b: { c: 'd' } }]],
  [
    'defaults',
    object({
      a: { ...integer, default: 1 },
      b: object({ c: { ...text, default: 'x' } }, [], { default: {} }),
      d: list(text, { default: ['p'] }),
    }),
    [{}, { a: 2, b: { c: 'y' }, d: [] }],
  ],
  [
    'rows',
    object(
      {
        rows: list(
          object({ id: integer, name: text, tags: list(text), score: number }, [
            'id',
            'name',
            'tags',
            'score',
          ]),
        ),
      },
      ['rows'],
    ),
    [{ rows: [1, 2, 3].map((id) => ({ id, name: `n${id}`, tags: ['x'], score: id / 4 })) }],
  ],
  [
    'union_root',
    { anyOf: [object({ id: integer }, ['id']), object({ email: { ...text, format: 'email' } }, ['email'])] },
    [{ id: 1 }, { email: 'a@example.com' }, { input: { id: 2 } }],
  ],
  [
    'tagged',
    object(
      {
        events: list({
          oneOf: [
            object({ type: { const: 'click' }, x: integer, y: integer }, ['type', 'x', 'y']),
            object({ type: { const: 'key' }, key: text }, ['type', 'key']),
            object({ type: { const: 'wait' }, ms: integer }, ['type', 'ms']),
          ],
          discriminator: { propertyName: 'type' },
        }),
      },
      ['events'],
    ),
    [
      {
        events: [
          { type: 'click', x: 1, y: 2 },
          { type: 'key', key: 'a' },
          { type: 'wait', ms: 5 },
        ],
      },
    ],
  ],
];

const ZOD: readonly (readonly [string, z.ZodType, readonly object[]])[] = [
  [
    'zod_booking',
    z.object({
      from: z.iso.date(),
      to: z.iso.date().optional(),
      limit: z.int().min(1).default(10),
      who: z.enum(['me', 'us']),
    }),
    [{ from: '2030-01-01', to: '2030-02-01', limit: 2, who: 'me' }],
  ],
  [
    'zod_event',
    z.discriminatedUnion('type', [
      z.object({ type: z.literal('a'), n: z.number() }),
      z.object({ type: z.literal('b'), s: z.string().min(2) }),
    ]),
    [
      { type: 'a', n: 1 },
      { type: 'b', s: 'xy' },
    ],
  ],
  [
    'zod_record',
    z.object({
      map: z.record(z.string(), z.number()),
      pair: z.tuple([z.string(), z.number()]),
      maybe: z.string().nullable(),
    }),
    [{ map: { a: 1 }, pair: ['x', 2], maybe: null }],
  ],
  [
    'zod_changed',
    z.object({
      trimmed: z.string().trim().toLowerCase(),
      length: z.string().transform((word) => word.length),
    }),
    [{ trimmed: ' Ab ', length: 'four' }],
  ],
  [
    'zod_checked',
    z
      .strictObject({ password: z.string().min(8), again: z.string() })
      .refine(({ password, again }) => password === again, { error: 'they differ', path: ['again'] }),
    [{ password: 'longenough', again: 'longenough' }],
  ],
];

const TYPEBOX: readonly (readonly [string, TSchema, readonly object[]])[] = [
  [
    'box_city',
    Type.Object({
      city: Type.String(),
      unit: Type.Optional(Type.Union([Type.Literal('C'), Type.Literal('F')])),
      days: Type.Integer({ minimum: 1, maximum: 7, default: 1 }),
    }),
    [{ city: 'Oslo', unit: 'C', days: 3 }],
  ],
  [
    'box_matrix',
    Type.Object({
      rows: Type.Array(Type.Array(Type.Number())),
      names: Type.Record(Type.String(), Type.Boolean()),
    }),
    [{ rows: [[1, 2], [3]], names: { a: true } }],
  ],
];

function defined(name: string, parameters: object, options: Options = {}) {
  return defineTool({
    description: `Takes ${name}`,
    ...options,
    name,
    parameters: parameters as object & { type: 'object' },
    execute: (args: unknown) => written(args),
  });
}

/** Tools of functions: from JSON Schema, zod, TypeBox, agent tools, registered functions, and hand-written. */
export function definedTools(): SampledTool[] {
  return [
    ...SCHEMAS.map(([name, schema, right, options]) => ({
      name,
      right,
      tool: defined(name, schema, options),
    })),
    ...ZOD.map(([name, schema, right]) => ({ name, right, tool: defined(name, schema) })),
    ...TYPEBOX.map(([name, schema, right]) => ({ name, right, tool: defined(name, schema) })),
    ...functionTools(),
  ];
}

function functionTools(): SampledTool[] {
  const weather = agentTool({
    name: 'weather',
    label: 'Weather',
    description: 'Current weather of a city',
    parameters: Type.Object({ city: Type.String(), days: Type.Optional(Type.Integer()) }),
    execute: async (id, params) => ({
      content: [{ type: 'text', content: `${id}: ${written(params)}` }],
      details: params,
    }),
  });
  const registry = new ToolRegistry();
  const params = [
    ['a', Integer],
    ['b', Number],
    ['name', String],
    ['on', Boolean],
  ] as const;
  registerFunction(registry, 'sum', 'Adds two numbers', params, (a, b, name, on) =>
    written([a, b, name, on]),
  );
  const [sum] = registry.tools();
  const hand = {
    name: 'by_hand',
    description: 'Written by hand',
    parameters: object({ path: text, depth: integer }, ['path']),
    execute: (args: unknown) => written(args),
  };
  return [
    { name: 'weather', tool: weather, right: [{ city: 'Oslo', days: 2 }] },
    { name: 'sum', tool: sum as never, right: [{ a: 1, b: 2.5, name: 'x', on: false }] },
    { name: 'by_hand', tool: hand as never, right: [{ path: '/a', depth: 3 }] },
  ];
}
