import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import fc from 'fast-check';
import { type Draft, schemaFault } from '../../../src/checking/schema-fault.js';

/** Everything that a meta-schema has an opinion of; and a name that none knows. */
const KEYWORDS = [
  ...['type', 'enum', 'const', 'required', 'properties', 'patternProperties', 'additionalProperties'],
  ...['items', 'additionalItems', 'prefixItems', 'contains', 'minContains', 'maxContains', 'uniqueItems'],
  ...[
    'minItems',
    'maxItems',
    'minLength',
    'maxLength',
    'minProperties',
    'maxProperties',
    'pattern',
    'format',
  ],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'propertyNames'],
  ...['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', '$defs', 'definitions', 'dependencies'],
  ...['dependentSchemas', 'dependentRequired', 'unevaluatedItems', 'unevaluatedProperties'],
  ...['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly', '$comment'],
  ...['contentMediaType', 'contentEncoding', 'contentSchema', 'x-own'],
];

const plain = fc.oneof(
  fc.constantFrom<unknown>('string', 'object', 'strnig', '^a', '(', '', null, true, false),
  fc.constantFrom<unknown>(-1, 0, 0.5, 1, 3, ['a'], ['a', 'a'], [], ['string', 'null'], ['string', 'string']),
  fc.constantFrom<unknown>({}, { a: 1 }, { '(': {} }, [{}], [1], [true]),
);

/** What ajv's meta-schemas let pass and its compiler then refuses; in draft 7 also an `enum` that says a thing twice. */
const OTHERWISE: Readonly<Record<Draft, readonly string[]>> = {
  '7': ['pattern', 'patternProperties', 'enum'],
  '2020-12': ['pattern', 'patternProperties'],
};

/** Schemas, nearly all of which have something wrong somewhere. */
const schemasOf = (draft: Draft) =>
  fc.letrec<{ schema: unknown }>((tie) => ({
    schema: fc.dictionary(
      fc.constantFrom(...KEYWORDS.filter((keyword) => !OTHERWISE[draft].includes(keyword))),
      fc.oneof(
        { weight: 4, arbitrary: plain },
        { weight: 1, arbitrary: tie('schema') },
        { weight: 1, arbitrary: fc.array(tie('schema'), { maxLength: 2 }) },
        {
          weight: 1,
          arbitrary: fc.dictionary(fc.constantFrom('a', 'b', '('), tie('schema'), { maxKeys: 2 }),
        },
      ),
      { maxKeys: 3 },
    ),
  })).schema;

const OPTIONS = { strict: false, logger: false } as const;
const validators = {
  '7': formats.default(new Ajv(OPTIONS)),
  '2020-12': formats.default(new Ajv2020(OPTIONS)),
};

describe.each<Draft>(['7', '2020-12'])('by the meta-schema of %s', (draft) => {
  test('ajv says the same of every schema', () => {
    fc.assert(
      fc.property(schemasOf(draft), (given) => {
        const isRight = validators[draft].validateSchema(given as object);
        expect([given, schemaFault(given, draft) === undefined]).toEqual([given, isRight]);
      }),
      { numRuns: 3_000 },
    );
  });

  test('a fault is named by its place', () => {
    const at = (given: unknown) => schemaFault(given, draft);
    expect(at({ type: 'object', properties: { a: { type: 'strnig' } } })).toBe(
      'properties.a.type must be a type or a list of different types',
    );
    expect(at({ anyOf: [{}, { minLength: -1 }] })).toBe(
      'anyOf.1.minLength must be a whole number, 0 or more',
    );
    expect(at({ required: 'a' })).toBe('required must be a list of different names');
    expect(at('object')).toBe('it must be an object or a boolean');
  });
});
