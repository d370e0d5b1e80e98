import fc from 'fast-check';
import type { JsonSchema } from 'toolwright';

const KEYS = ['a', 'b', 'c', '~/'];
const key = fc.constantFrom(...KEYS);
const names = fc.uniqueArray(key, { maxLength: 2 });
const count = fc.integer({ min: 0, max: 3 });
const number = fc.constantFrom(-1, 0, 0.5, 1, 2, 3);
const pattern = fc.constantFrom('^a', 'b$', '^\\p{L}+$', '^[\\w-.]+\\-x$');
const type = fc.constantFrom('string', 'number', 'integer', 'boolean', 'null', 'array', 'object');

/** JSON values that such schemas can describe. */
export const anyValue = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    fc.constantFrom<unknown>('a', 'ab', 'b', '💙', 'a-x', '', '2024-01-31', null, true, false),
    fc.constantFrom<unknown>(-1, 0, 0.5, 1, 1.5, 2, 3, 1e21, Number.POSITIVE_INFINITY),
    fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    fc.array(tie('value'), { maxLength: 4 }),
  ),
})).value;

const limits = {
  minimum: number,
  maximum: number,
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  multipleOf: fc.constantFrom(0.5, 1, 2),
  minLength: count,
  maxLength: count,
  pattern,
  format: fc.constantFrom('date', 'email', 'int32', 'double', 'uuid', 'no-such-format', 'uri', 'url'),
  minItems: count,
  maxItems: count,
  uniqueItems: fc.boolean(),
  minProperties: count,
  maxProperties: count,
  required: names,
};

function record(keywords: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<JsonSchema> {
  const entries = Object.entries(keywords);
  // A few keywords each time: no value would match all of them together.
  return fc
    .uniqueArray(fc.integer({ min: 0, max: entries.length - 1 }), { minLength: 1, maxLength: 4 })
    .chain((chosen) =>
      fc.record(Object.fromEntries(chosen.flatMap((index) => [entries[index] ?? []]) as [])),
    );
}

const leaf = fc.oneof(
  { arbitrary: record({ ...limits, type }), weight: 3 },
  { arbitrary: fc.record({ type }), weight: 4 },
  fc.record({ type, nullable: fc.constant(true) }),
  fc.record({ type: fc.uniqueArray(type, { minLength: 1, maxLength: 3 }) }),
  fc.record({ const: anyValue }),
  fc.record({ enum: fc.array(anyValue, { minLength: 1, maxLength: 4 }) }),
  fc.constantFrom<JsonSchema>({ $ref: '#/$defs/one' }, { $ref: '#/$defs/other' }, {}),
  fc.constantFrom(true, false) as unknown as fc.Arbitrary<JsonSchema>,
);

/** Schemas with all keywords of a draft, except the unevaluated ones. */
export function anySchema(draft: '7' | '2020-12'): fc.Arbitrary<JsonSchema> {
  const schema = fc.memo((depth): fc.Arbitrary<JsonSchema> => {
    if (depth <= 1) return leaf;
    const part = schema(depth - 1);
    const several = fc.array(part, { minLength: 1, maxLength: 3 });
    const byName = fc.dictionary(key, part, { maxKeys: 3 });
    const holders = {
      not: part,
      allOf: several,
      anyOf: several,
      oneOf: several,
      if: part,
      ...Object.fromEntries(['then', 'else'].map((name) => [name, part])),
      propertyNames: part,
      additionalProperties: part,
      properties: byName,
      patternProperties: fc.dictionary(pattern, part, { maxKeys: 2 }),
      contains: part,
      items: part,
    };
    const later = {
      ...holders,
      prefixItems: several,
      minContains: count,
      maxContains: count,
      dependentRequired: fc.dictionary(key, names),
      dependentSchemas: byName,
    };
    const earlier = {
      ...holders,
      items: fc.oneof(part, several),
      additionalItems: part,
      dependencies: fc.dictionary(key, fc.oneof(part, names), { maxKeys: 2 }),
    };
    return fc.oneof(leaf, record({ ...limits, type, ...(draft === '7' ? earlier : later) }));
  });
  return schema(4);
}
