import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { IsSurrogatePair, Matches } from 'class-validator';
import fc from 'fast-check';
import { Args, defineTool, discoverTools, type JsonSchema, Tool, ToolRegistry, Toolset } from 'toolwright';
import { z } from 'zod';
import { runs } from '../setup/runs.js';

/** Whether a tool with these parameters accepts the arguments. Throws if it cannot be called. */
async function takes(parameters: JsonSchema, args: Readonly<Record<string, unknown>>): Promise<boolean> {
  const tools = new ToolRegistry({ coerce: false });
  tools.register(defineTool({ name: 't', description: 'Takes', parameters, execute: () => 'taken' }));
  const { isError, forLLM } = await tools.execute('t', args);
  if (isError && !forLLM.startsWith('Validation failed')) throw new Error(forLLM);
  return !isError;
}

type Row = readonly [what: string, schema: JsonSchema, good: object, bad: object];

const ROWS: readonly Row[] = [
  [
    '$ref: "#"',
    object({ name: { type: 'string' }, next: { $ref: '#' } }),
    { next: { name: 'a' } },
    { next: { name: 1 } },
  ],
  [
    '$ref: "#" in a list',
    object({ many: { type: 'array', items: { $ref: '#' } } }),
    { many: [{ many: [] }] },
    { many: [{ many: 1 }] },
  ],
  [
    'a URN as $id, with references to it',
    {
      $id: 'urn:example:tree',
      ...object({ left: { $ref: 'urn:example:tree#/$defs/leaf' } }),
      $defs: { leaf: { type: 'integer' } },
    },
    { left: 1 },
    { left: 'a' },
  ],
  [
    'a UUID as $id, with a reference to itself',
    {
      $id: 'urn:uuid:deadbeef-1234-00ff-ff00-4321feebdaed',
      ...object({ n: { type: 'integer' }, next: { $ref: '#' } }),
    },
    { next: { n: 1 } },
    { next: { n: 'a' } },
  ],
  [
    'a reference to the $id of a part',
    { ...object({ a: { $ref: 'item.json' } }), $defs: { item: { $id: 'item.json', type: 'integer' } } },
    { a: 1 },
    { a: 'x' },
  ],
  [
    'an anchor',
    { ...object({ a: { $ref: '#item' } }), $defs: { item: { $anchor: 'item', type: 'integer' } } },
    { a: 1 },
    { a: 'x' },
  ],
  [
    '$dynamicRef',
    {
      $id: 'https://example.org/tree',
      $dynamicAnchor: 'node',
      ...object({ n: { type: 'integer' }, next: { $dynamicRef: '#node' } }),
    },
    { next: { n: 1 } },
    { next: { n: 'a' } },
  ],
  [
    '$recursiveRef of 2019-09',
    {
      $schema: 'https://json-schema.org/draft/2019-09/schema',
      $recursiveAnchor: true,
      ...object({ n: { type: 'integer' }, next: { $recursiveRef: '#' } }),
    },
    { next: { n: 1 } },
    { next: { n: 'a' } },
  ],
  [
    'a property with the schema true',
    { type: 'object', properties: { x: true } } as unknown as JsonSchema,
    { x: { y: 1 } },
    [],
  ],
  [
    'a property with the schema false',
    { type: 'object', properties: { x: false, y: true } } as unknown as JsonSchema,
    { y: 1 },
    { x: 1 },
  ],
  [
    'a pattern that needs the u flag',
    object({ x: { type: 'string', pattern: '^[\\u{1F600}-\\u{1F64F}]+$' } }),
    { x: '😀' },
    { x: 'a' },
  ],
  [
    'a pattern with a Unicode property',
    object({ x: { type: 'string', pattern: '^\\p{L}+$' } }),
    { x: 'é' },
    { x: '1' },
  ],
  [
    'a pattern that is invalid with the u flag',
    object({ x: { type: 'string', pattern: '^[\\w-.]+\\-x$' } }),
    { x: 'a-x' },
    { x: 'a' },
  ],
  [
    'a default that looks like a tuple',
    object({ x: { default: { items: [] }, prefixItems: [{ type: 'string' }] } }),
    { x: ['a'] },
    { x: [1] },
  ],
  [
    'an enum and an example that look like tuples',
    object({
      x: {
        enum: [{ items: [{}] }, ['a'], [1]],
        examples: [{ items: [] }],
        prefixItems: [{ type: 'string' }],
      },
    }),
    { x: ['a'] },
    { x: [1] },
  ],
  [
    'a property named items with a list as default',
    object({ items: { type: 'array', default: [], prefixItems: [{ type: 'string' }] } }),
    { items: ['a'] },
    { items: [1] },
  ],
  [
    'properties named like keywords',
    object({ $ref: { type: 'string' }, $id: { type: 'string' }, enum: { type: 'integer' } }),
    { $ref: '#/x', $id: 'a', enum: 1 },
    { enum: 'a' },
  ],
  ['the keyword id of draft 4', { id: 'mine', ...object({ a: { type: 'integer' } }) }, { a: 1 }, { a: 'x' }],
  [
    'unevaluatedProperties',
    { ...object({ a: { type: 'integer' } }), unevaluatedProperties: false },
    { a: 1 },
    { b: 1 },
  ],
];

function object(properties: NonNullable<JsonSchema['properties']>): JsonSchema {
  return { type: 'object', properties };
}

describe('a tool is callable if its schema has', () => {
  test.each(ROWS)('%s', async (_what, schema, good, bad) => {
    expect(await takes(schema, good as Record<string, unknown>)).toBe(true);
    if (!Array.isArray(bad)) expect(await takes(schema, bad as Record<string, unknown>)).toBe(false);
  });
});

test('defineTool accepts a recursive zod object', async () => {
  const Node = z.object({
    name: z.string(),
    get children() {
      return z.array(Node).optional();
    },
  });
  const tools = new ToolRegistry().register(
    defineTool({
      name: 'tree',
      description: 'A tree',
      parameters: Node,
      execute: ({ name, children }) => `${name} ${children?.length}`,
    }),
  );
  const result = await tools.execute('tree', { name: 'a', children: [{ name: 'b', children: [] }] });
  expect(result.forLLM).toBe('a 1');
  expect((await tools.execute('tree', { name: 'a', children: [{ name: 1 }] })).forLLM).toContain(
    'children.0.name: must be string',
  );
});

class Emoji {
  @IsSurrogatePair()
  face!: string;

  @Matches(/^[\u{1F600}-\u{1F64F}]+$/u)
  mood!: string;
}

@Toolset()
class EmojiTools {
  @Tool('Shows a face')
  show(@Args() emoji: Emoji): string {
    return emoji.mood;
  }
}

test('discoverTools creates callable tools of DTOs whose patterns need the u flag', async () => {
  const tools = new ToolRegistry().register(...discoverTools({ toolsets: [EmojiTools] }));
  expect(await tools.execute('show', { face: '😀', mood: '😀' })).toMatchObject({
    isError: false,
    forLLM: '😀',
  });
  expect(await tools.execute('show', { face: '😀', mood: 'glad' })).toMatchObject({ isError: true });
});

// Without `prefixItems`, `contains` and `unevaluated…`, which generated code sometimes validates wrongly.
describe('ToolRegistry validates like plain ajv', () => {
  const NAMES = ['a', 'b', 'c'];
  const leaf = fc.constantFrom<JsonSchema | boolean>(
    { type: 'string' },
    { type: 'integer' },
    { type: ['number', 'null'] },
    { const: 1 },
    { enum: [1, 'a', null] },
    { minLength: 2 },
    { pattern: '^\\p{L}$' },
    { minimum: 1, multipleOf: 0.5 },
    // One level deeper, so that no schema refers to itself endlessly.
    { properties: { a: { $ref: '#' } } },
    { additionalProperties: { $ref: '#/$defs/a' } },
    { items: { $ref: '#b' } },
    { properties: { b: { $ref: 'https://example.org/c' } } },
    true,
    false,
  );
  const { schema } = fc.letrec<{ schema: JsonSchema | boolean }>((tie) => {
    const one = tie('schema');
    const list = fc.array(one, { minLength: 1, maxLength: 2 });
    const map = fc.dictionary(fc.constantFrom(...NAMES), one, { maxKeys: 2, noNullPrototype: true });
    return {
      schema: fc.oneof(
        { maxDepth: 3, withCrossShrink: true },
        leaf,
        fc.record(
          {
            type: fc.constantFrom('object', 'array'),
            properties: map,
            required: fc.subarray(NAMES, { maxLength: 1 }),
            additionalProperties: one,
            patternProperties: fc.record({ '^[ab]$': one }),
            items: one,
            uniqueItems: fc.boolean(),
            anyOf: list,
            oneOf: list,
            allOf: list,
            not: one,
            if: one,
            // biome-ignore lint/suspicious/noThenProperty: it is a keyword
            then: one,
            else: one,
            dependentSchemas: map,
            dependentRequired: fc.record({ a: fc.constant(['b']) }),
            propertyNames: fc.constant({ maxLength: 1 }),
            minProperties: fc.nat(1),
            maxItems: fc.nat(2),
            examples: fc.constantFrom([{ items: [] }], [{ $ref: '#/nowhere' }]),
          },
          { requiredKeys: [] },
        ) as fc.Arbitrary<JsonSchema>,
      ),
    };
  });
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<unknown>(0, 1, 1.5, 'a', 'ab', null, true),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...NAMES, 'dd'), tie('value'), { maxKeys: 3, noNullPrototype: true }),
    ),
  })).value;

  test('with any schema', async () => {
    const definitions = fc.record({ a: schema, b: schema, c: leaf });
    const whole = fc.tuple(schema, definitions).map(
      ([given, { a, b, c }]): JsonSchema => ({
        ...(typeof given === 'boolean' ? {} : given),
        type: 'object',
        $defs: {
          a: a as JsonSchema,
          b: { $anchor: 'b', allOf: [b as JsonSchema] },
          c: { $id: 'https://example.org/c', allOf: [c as JsonSchema] },
        },
      }),
    );
    const args = fc.dictionary(fc.constantFrom(...NAMES), value, { maxKeys: 3, noNullPrototype: true });
    await fc.assert(
      fc.asyncProperty(whole, args, async (parameters, given) => {
        const expected = plainVerdict(parameters, given);
        fc.pre(expected !== undefined);
        expect([parameters, given, await takes(parameters, given)]).toEqual([parameters, given, expected]);
      }),
      { numRuns: runs(30), interruptAfterTimeLimit: runs(15_000) },
    );
  });

  /** `undefined` if ajv does not compile the schema, or if it refers to itself endlessly. */
  function plainVerdict(parameters: JsonSchema, given: object): boolean | undefined {
    try {
      // Optimizing code that is used once takes longer than it saves.
      const code = { optimize: false };
      const validator = new Ajv2020({ strict: false, logger: false, validateSchema: false, code });
      return validator.validate(parameters, given) as boolean;
    } catch {
      return undefined;
    }
  }

  test.each([
    ['7', Ajv, 'http://json-schema.org/draft-07/schema#'],
    ['2019-09', Ajv2019, 'https://json-schema.org/draft/2019-09/schema'],
  ])('with draft %s', async (_draft, Validator, $schema) => {
    const parameters: JsonSchema = {
      $schema,
      ...object({
        pair: { items: [{ type: 'integer' }], additionalItems: false },
        need: { dependencies: { a: ['b'], c: { required: ['d'] } } },
      }),
    };
    const validate = new Validator({ strict: false }).compile(parameters);
    for (const given of [
      { pair: [1] },
      { pair: [1, 2] },
      { pair: ['a'] },
      { need: { a: 1 } },
      { need: { c: 1, d: 1 } },
      {},
    ])
      expect([given, await takes(parameters, given)]).toEqual([given, validate(given)]);
  });
});

describe('a tool is callable if it has', () => {
  test.each([1_500, 5_000])('%i properties', async (count) => {
    const names = Array.from({ length: count }, (_, index) => `p${index}`);
    const parameters = object(Object.fromEntries(names.map((name) => [name, { type: 'integer' }])));
    expect(await takes(parameters, { p7: 1, [`p${count - 1}`]: 2 })).toBe(true);
    expect(await takes(parameters, { p7: 'x' })).toBe(false);
  });
});

describe('ToolRegistry refuses arguments', () => {
  const anything = { type: 'object', additionalProperties: true };
  const told = async (parameters: JsonSchema, args: unknown) => {
    const tool = defineTool({ name: 't', description: 'Takes', parameters, execute: () => 'ran' });
    return (await new ToolRegistry().register(tool).execute('t', args)).forLLM;
  };

  test.each<[string, JsonSchema]>([
    ['a number', object({ amount: { type: 'number' } })],
    ['anything', anything],
    ['any property', { type: 'object', properties: { amount: {} } }],
  ])('with 1e999 if the schema allows %s', async (_what, parameters) => {
    expect(await told(parameters, '{"amount": 1e999}')).toContain('- amount: is too large for a number');
    expect(await told(parameters, '{"amount": -1e999}')).toContain('- amount: is too large for a number');
    expect(await told(parameters, '{"amount": 1e99}')).toBe('ran');
  });

  test.each<[string, JsonSchema]>([
    ['anything', anything],
    ['nested objects', object({ a: { $ref: '#' } })],
    ['a string', object({ a: { type: 'string' } })],
  ])('nested 5,000 levels deep as invalid, if the schema allows %s', async (_what, parameters) => {
    const args = `${'{"a":'.repeat(5_000)}{}${'}'.repeat(5_000)}`;
    expect(await told(parameters, args)).toContain('- the arguments are nested too deep: at most 500 levels');
    expect(await told(parameters, JSON.parse(args))).toContain('nested too deep');
  });

  test('with duplicates in a long list with uniqueItems', async () => {
    const parameters = object({ list: { type: 'array', uniqueItems: true } });
    const list = Array.from({ length: 20_000 }, (_, index) => ({ index }));
    expect(await told(parameters, { list })).toBe('ran');
    expect(await told(parameters, { list: [...list, { index: 7 }] })).toContain(
      '- list: must not have duplicate items (items 7 and 20000 are identical)',
    );
  });
});
