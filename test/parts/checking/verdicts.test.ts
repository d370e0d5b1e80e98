import { expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { defineTool, type JsonObject, type JsonSchema, ToolRegistry } from 'toolwright';
import { createChecker } from '../../../src/tools/checking/checker.js';
import { runs } from '../../setup/runs.js';
import { objectOf, randomValue, schemaOf, unionOf, wrapped } from './random-schema.js';

/** One instance for all tests, since each compiles the meta-schema. Optimizing would take longer than it saves. */
const ajv = new Ajv2020({ strict: false, logger: false, code: { optimize: false } });

test('ToolRegistry.execute without coercion accepts exactly what ajv accepts', async () => {
  const property = fc.asyncProperty(
    schemaOf(2),
    schemaOf(2),
    unionOf(3),
    fc.array(randomValue, { minLength: 10, maxLength: 10 }),
    async (one, other, root, values) => {
      const parameters = {
        type: 'object',
        properties: { value: root },
        $defs: { one: wrapped(one), other: wrapped(other) },
      };
      // ajv treats properties that only a failed `if` has evaluated as evaluated.
      fc.pre(!/"if".*"unevaluated|"unevaluated.*"if"/s.test(JSON.stringify(parameters)));
      const validate = ajv.compile(parameters);
      const tools = new ToolRegistry({ coerce: false }).register(
        defineTool({ name: 'call', description: 'x', parameters, execute: () => 'ran' }),
      );
      for (const each of values) {
        const { isError } = await tools.execute('call', { value: each });
        expect(!isError).toBe(validate({ value: each }));
      }
    },
  );
  await fc.assert(property, { numRuns: runs(25) });
});

test('ToolRegistry.execute passes valid arguments on, and passed arguments are always valid', async () => {
  const property = fc.asyncProperty(
    schemaOf(2),
    objectOf(3),
    fc.array(randomValue, { minLength: 10, maxLength: 10 }),
    async (one, root, values) => {
      const parameters = {
        type: 'object',
        properties: { value: root },
        required: ['value'],
        $defs: { one: wrapped(one), other: wrapped(one) },
      };
      // ajv treats properties that only a failed `if` has evaluated as evaluated.
      fc.pre(!/"if".*"unevaluated|"unevaluated.*"if"/s.test(JSON.stringify(parameters)));
      const validate = ajv.compile(parameters);
      let delivered: unknown;
      const execute = (args: object): void => {
        delivered = args;
      };
      const tools = new ToolRegistry().register(
        defineTool({ name: 'call', description: 'x', parameters, execute }),
      );
      for (const each of values) {
        delivered = undefined;
        await tools.execute('call', { value: each });
        if (delivered !== undefined) expect([delivered, validate(delivered)]).toEqual([delivered, true]);
        if (validate({ value: each })) expect(delivered).toBeDefined();
      }
    },
  );
  await fc.assert(property, { numRuns: runs(25) });
});

/** Cases in which generated code once accepted invalid values. */
const LET_THROUGH: readonly (readonly [what: string, schema: JsonSchema, value: unknown])[] = [
  [
    'an array that is shorter than its tuple and lacks the item of contains',
    { prefixItems: [{ type: 'string' }, {}], contains: { type: 'number' } },
    ['a'],
  ],
  [
    'duplicate items of an array that is shorter than its tuple',
    { prefixItems: [{}, {}, {}], uniqueItems: true },
    ['a', 'a'],
  ],
  [
    'an empty array after one that satisfies contains',
    { items: { contains: { type: 'number' } } },
    [[1], []],
  ],
  [
    'properties that only a failed condition has evaluated',
    {
      if: { properties: { a: { const: 1 } } },
      ...Object.fromEntries([['then', {}]]),
      unevaluatedProperties: false,
    },
    { a: 2 },
  ],
];

test.each(LET_THROUGH)('ToolRegistry.execute refuses %s, in the first call and later', async (...row) => {
  const [, schema, value] = row;
  const parameters = { type: 'object', properties: { value: schema } };
  const tools = new ToolRegistry({ coerce: false }).register(
    defineTool({ name: 'call', description: 'x', parameters, execute: () => 'ran' }),
  );
  const refused = async (): Promise<boolean> => (await tools.execute('call', { value })).isError;
  for (let call = 0; call < 1_200; call += 1) if (!(await refused())) throw new Error(`let through: ${call}`);
});

test('ToolRegistry.execute returns the same messages in the first call and after a thousand', async () => {
  const parameters: JsonSchema = {
    type: 'object',
    properties: {
      kind: { enum: ['x', { y: 1 }] },
      list: {
        type: 'array',
        items: { oneOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] },
        uniqueItems: true,
      },
    },
    required: ['kind'],
    $defs: { node: { type: 'object', properties: { of: { $ref: '#/$defs/node' }, n: { minimum: 1 } } } },
  };
  const tools = new ToolRegistry().register(
    defineTool({ name: 'call', description: 'x', parameters, execute: (args) => args }),
  );
  // An object whose `toString` is not a function broke the comparison in generated code.
  const all = [
    { kind: 'x' },
    {},
    { kind: { toString: {} }, list: [null, null] },
    { kind: 'x', list: [{ of: { n: 0 } }] },
  ];
  const answers = () =>
    Promise.all(all.map((args) => tools.execute('call', args).then(({ forLLM }) => forLLM)));
  const first = await answers();
  for (let call = 0; call < 1_200; call += 1) await answers();
  expect(await answers()).toEqual(first);
});

test('the fast path gives the same result as the thorough check', () => {
  const property = fc.property(
    fc.oneof(schemaOf(2), schemaOf(3)),
    fc.oneof(objectOf(3), unionOf(3)),
    fc.array(randomValue, { minLength: 20, maxLength: 20 }),
    (one, root, values) => {
      const schema: JsonSchema = {
        ...(root as JsonSchema),
        properties: {
          ...(root as JsonSchema).properties,
          value: root,
          filled: { type: 'integer', default: 1 },
        },
        $defs: { one: wrapped(one), other: wrapped(one) },
      };
      const check = createChecker(schema);
      // Allows any object, but forces the thorough check.
      const thorough = createChecker({ ...schema, unevaluatedItems: true });
      for (const each of values) {
        const args = (
          each !== null && typeof each === 'object' && !Array.isArray(each)
            ? { value: each, ...each }
            : { value: each }
        ) as JsonObject;
        const accepted = check.accept(args);
        if (accepted === undefined) continue;
        expect([schema, args, { ok: true, value: accepted, removed: [], coerced: [] }]).toEqual([
          schema,
          args,
          thorough(args),
        ]);
      }
    },
  );
  fc.assert(property, { numRuns: runs(200) });
});
