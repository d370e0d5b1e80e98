import fc from 'fast-check';
import type { JsonSchema } from 'toolwright';

/** A schema and a generator of values that fit it. */
interface Case {
  readonly schema: JsonSchema;
  readonly value: fc.Arbitrary<unknown>;
}

const KEYS = ['a', 'b', 'kind', 'value', 'key', 'entries', 'other_properties', 'item_1', 'variant'];
const text = fc.constantFrom('', 'a', 'ab', 'value', '__proto__');

const scalar = fc.constantFrom<Case>(
  { schema: { type: 'string' }, value: text },
  { schema: { type: 'string', maxLength: 9, description: 'A text' }, value: text },
  { schema: { type: 'integer', minimum: -2 }, value: fc.integer({ min: -2, max: 9 }) },
  { schema: { type: 'number' }, value: fc.constantFrom(0, 1.5, -3) },
  { schema: { type: 'boolean', default: true }, value: fc.boolean() },
  { schema: { type: 'null' }, value: fc.constant(null) },
  { schema: { type: ['string', 'null'] }, value: fc.option(text) },
  { schema: { type: ['string', 'null'], default: 'a' }, value: fc.option(text) },
  { schema: { enum: ['x', 1, null, { a: [1] }] }, value: fc.constantFrom('x', 1, null, { a: [1] }) },
  { schema: { const: 'x' }, value: fc.constant('x') },
);

const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 3 },
    fc.constantFrom<unknown>('a', 1, true, null),
    fc.dictionary(fc.constantFrom(...KEYS), tie('value'), { maxKeys: 3, noNullPrototype: true }),
    fc.array(tie('value'), { maxLength: 3 }),
  ),
})).value;

const anything: Case = { schema: {}, value: json };

const caseOf = fc.memo((depth): fc.Arbitrary<Case> => {
  if (depth <= 1) return fc.oneof({ arbitrary: scalar, weight: 8 }, fc.constant(anything));
  const part = caseOf(depth - 1);
  return fc.oneof(scalar, list(part), object(part), record(part), tuple(part), union(part), both(part), tree);
});

function list(part: fc.Arbitrary<Case>): fc.Arbitrary<Case> {
  return part.map(({ schema, value }) => ({
    schema: { type: 'array', items: schema, minItems: 0 },
    value: fc.array(value, { maxLength: 3 }),
  }));
}

/** Required and optional properties, with or without additional ones. */
function object(part: fc.Arbitrary<Case>): fc.Arbitrary<Case> {
  const fields = fc.dictionary(fc.constantFrom(...KEYS), fc.tuple(part, fc.boolean()), {
    maxKeys: 3,
    noNullPrototype: true,
  });
  return fc.tuple(fields, fc.option(part)).map(([byName, others]) => {
    const rows = Object.entries(byName);
    const schema: JsonSchema = {
      type: 'object',
      properties: Object.fromEntries(rows.map(([name, [field]]) => [name, field.schema])),
      required: rows.filter(([, [, isRequired]]) => isRequired).map(([name]) => name),
      additionalProperties: others === null ? false : others.schema,
    };
    const requiredKeys = rows.filter(([, [, isRequired]]) => isRequired).map(([name]) => name);
    const own = fc.record(Object.fromEntries(rows.map(([name, [field]]) => [name, field.value])), {
      requiredKeys,
      noNullPrototype: true,
    });
    if (others === null) return { schema, value: own };
    const free = fc.dictionary(fc.constantFrom('x', 'y', '__proto__'), others.value, {
      maxKeys: 2,
      noNullPrototype: true,
    });
    return { schema, value: fc.tuple(own, free).map(([one, other]) => ({ ...other, ...one })) };
  });
}

function record(part: fc.Arbitrary<Case>): fc.Arbitrary<Case> {
  return part.map(({ schema, value }) => ({
    schema: { type: 'object', additionalProperties: schema },
    value: fc.dictionary(fc.constantFrom(...KEYS), value, { maxKeys: 3, noNullPrototype: true }),
  }));
}

function tuple(part: fc.Arbitrary<Case>): fc.Arbitrary<Case> {
  return fc.tuple(part, part, fc.option(part), fc.nat(2)).map(([first, second, rest, minItems]) => {
    const prefixItems = [first.schema, second.schema];
    const schema: JsonSchema = {
      type: 'array',
      prefixItems,
      minItems,
      items: rest === null ? false : rest.schema,
    };
    const whole = fc.tuple(first.value, second.value);
    const short = [fc.constant([]), fc.tuple(first.value), whole].slice(minItems);
    if (rest === null) return { schema, value: fc.oneof(...short) };
    const long = fc
      .tuple(whole, fc.array(rest.value, { maxLength: 2 }))
      .map(([one, other]) => [...one, ...other]);
    return { schema, value: fc.oneof(...short, long) };
  });
}

function union(part: fc.Arbitrary<Case>): fc.Arbitrary<Case> {
  return fc.array(part, { minLength: 1, maxLength: 3 }).map((cases) => ({
    schema: { anyOf: cases.map(({ schema }) => schema) },
    value: fc.oneof(...cases.map(({ value }) => value)),
  }));
}

/** A schema with an own property and another in `allOf`. */
function both(part: fc.Arbitrary<Case>): fc.Arbitrary<Case> {
  return fc.tuple(part, part).map(([one, other]) => ({
    schema: {
      type: 'object',
      properties: { a: one.schema },
      allOf: [{ properties: { b: other.schema }, required: ['b'] }],
    },
    value: fc.record({ a: one.value, b: other.value }, { requiredKeys: ['b'], noNullPrototype: true }),
  }));
}

/** A recursive schema, with two kinds of recursion. */
const tree: fc.Arbitrary<Case> = fc.constant({
  schema: { $ref: '#/$defs/node' },
  value: fc.letrec<{ node: unknown }>((tie) => ({
    node: fc.record(
      {
        leaf: fc.option(text),
        next: fc.option(tie('node'), { maxDepth: 2, depthSize: 'small' }),
        all: fc.array(tie('node'), { maxLength: 1 }),
      },
      { requiredKeys: ['next'], noNullPrototype: true },
    ),
  })).node,
});

const DEFINITIONS = {
  node: {
    type: 'object',
    properties: {
      leaf: { type: ['string', 'null'] },
      next: { anyOf: [{ $ref: '#/$defs/node', description: 'The next one' }, { type: 'null' }] },
      all: { type: 'array', items: { $ref: '#/$defs/node' } },
    },
    required: ['next'],
    additionalProperties: false,
  },
};

/** A schema and values that fit it. */
export const schemaWithValues = caseOf(4).chain(({ schema, value }) => {
  const root: JsonSchema = { type: 'object', properties: { args: schema }, $defs: DEFINITIONS };
  const args = fc.record({ args: value }, { requiredKeys: [], noNullPrototype: true });
  return fc.array(args, { minLength: 5, maxLength: 5 }).map((values) => ({ schema: root, values }));
});
