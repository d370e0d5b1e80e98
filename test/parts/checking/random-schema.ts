import fc from 'fast-check';
import type { JsonSchema } from 'toolwright';

const KEYS = ['kind', 'a', 'b'];

const leaf = fc.constantFrom<JsonSchema>(
  { type: 'integer' },
  { type: 'string' },
  { type: 'null' },
  { const: 'x' },
  { enum: ['x', 1, null] },
  { $ref: '#/$defs/one' },
  { $ref: '#/$defs/other' },
  {},
);

/** Schemas with specially validated keywords: unions with and without tags, references, unique items, unevaluated keywords. */
export const schemaOf = fc.memo((depth): fc.Arbitrary<JsonSchema> => {
  if (depth <= 1) return leaf;
  const items = fc.record({ type: fc.constant('array'), items: schemaOf(), uniqueItems: fc.boolean() });
  return fc.oneof(leaf, objectOf(), unionOf(), items);
});

export const objectOf = fc.memo((depth): fc.Arbitrary<JsonSchema> => {
  const part = depth <= 1 ? leaf : schemaOf(depth - 1);
  return fc.record(
    {
      type: fc.constant('object'),
      properties: fc.dictionary(fc.constantFrom(...KEYS), part, { maxKeys: 2 }),
      dependentRequired: fc.constant({ a: ['c'] }),
      dependentSchemas: fc.record({ b: fc.constant({ properties: { d: {} } }) }),
      patternProperties: fc.constant({ '^p': {} }),
      minProperties: fc.constant(2),
      required: fc.uniqueArray(fc.constantFrom(...KEYS), { maxLength: 2 }),
      allOf: fc.tuple(part),
      if: part,
      else: leaf,
      unevaluatedProperties: fc.boolean(),
      additionalProperties: fc.boolean(),
    },
    { requiredKeys: ['properties'] },
  );
});

export const unionOf = fc.memo((depth): fc.Arbitrary<JsonSchema> => {
  const branch = fc.tuple(objectOf(depth - 1), fc.constantFrom(undefined, 'x', 'y', 1), fc.boolean());
  return fc
    .record({
      keyword: fc.constantFrom('anyOf', 'oneOf'),
      branches: fc.array(branch, { minLength: 1, maxLength: 3 }),
      isNullable: fc.boolean(),
    })
    .map(({ keyword, branches, isNullable }) => {
      const tags = branches.map(([schema, tag, isRequired]) => tagged(schema, tag, isRequired));
      return { [keyword]: isNullable ? [...tags, { type: 'null' }] : tags };
    });
});

function tagged(branch: JsonSchema, tag: unknown, isRequired: boolean): JsonSchema {
  if (tag === undefined) return branch;
  const { properties, required = [] } = branch;
  return {
    ...branch,
    properties: { kind: { const: tag }, ...properties },
    ...(isRequired ? { required: [...new Set(['kind', ...required])] } : {}),
  };
}

/** Values that sometimes match such schemas. */
export const randomValue = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    fc.constantFrom<unknown>('x', 'y', 1, null),
    fc.dictionary(fc.constantFrom(...KEYS, 'c'), tie('value')),
    fc.array(tie('value'), { maxLength: 3 }),
  ),
})).value;

/** A reference directly to itself would never end. */
export function wrapped(schema: JsonSchema): JsonSchema {
  return { type: 'object', properties: { a: schema } };
}
