import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import fc from 'fast-check';
import { schemaFaults } from '../../../src/tools/checking/schema-faults.js';
import { draftOf } from '../../../src/tools/schema/keywords.js';
import { runs } from '../../setup/runs.js';

/** All keywords that a meta-schema checks, and an unknown one. */
const KEYWORDS = [
  ...['type', 'const', 'required', 'properties', 'patternProperties', 'additionalProperties'],
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
  '$ref',
  ...['contentMediaType', 'contentEncoding', 'contentSchema', 'x-own'],
];

const plain = fc.oneof(
  fc.constantFrom<unknown>('string', 'object', 'strnig', '^a', '(', '', null, true, false),
  fc.constantFrom<unknown>(-1, 0, 0.5, 1, 3, ['a'], ['a', 'a'], [], ['string', 'null'], ['string', 'string']),
  fc.constantFrom<unknown>('#/properties/a', '#/$defs/a', '#/properties', '#/nowhere'),
  fc.constantFrom<unknown>({}, { a: 1 }, [{}], [1], [true]),
);

const schema = fc.letrec<{ schema: Record<string, unknown> }>((tie) => ({
  schema: fc.dictionary(
    fc.constantFrom(...KEYWORDS),
    fc.oneof(
      { weight: 4, arbitrary: plain },
      { weight: 1, arbitrary: tie('schema') },
      { weight: 1, arbitrary: fc.array(tie('schema'), { maxLength: 2 }) },
      {
        weight: 1,
        arbitrary: fc.dictionary(fc.constantFrom('a', 'b'), tie('schema'), {
          maxKeys: 2,
          noNullPrototype: true,
        }),
      },
    ),
    { maxKeys: 3, noNullPrototype: true },
  ),
})).schema;

const NAMES = {
  '7': 'http://json-schema.org/draft-07/schema#',
  '2019-09': 'https://json-schema.org/draft/2019-09/schema',
  '2020-12': 'https://json-schema.org/draft/2020-12/schema',
};
const VALIDATORS = { '7': Ajv, '2019-09': Ajv2019, '2020-12': Ajv2020 };

/** Optimizing code that runs once takes longer than it saves. */
const OPTIONS = { strict: false, logger: false, code: { optimize: false } } as const;
const META = {
  '7': formats.default(new Ajv(OPTIONS)),
  '2019-09': formats.default(new Ajv2019(OPTIONS)),
  '2020-12': formats.default(new Ajv2020(OPTIONS)),
};

/** The reason why ajv does not compile a schema. */
function refusal(given: Record<string, unknown>): string | undefined {
  const draft = draftOf(given);
  const others = { ...given, $schema: NAMES[draft] };
  if (META[draft].validateSchema(others) !== true) return META[draft].errorsText();
  try {
    const validator = new VALIDATORS[draft]({ ...OPTIONS, validateSchema: false, meta: false });
    validator.compile(others);
    return undefined;
  } catch (error) {
    return String(error);
  }
}

describe.each(Object.keys(NAMES) as (keyof typeof NAMES)[])('schemas of draft %s', (draft) => {
  test('are refused if and only if ajv does not compile them', () => {
    fc.assert(
      fc.property(schema, (given) => {
        const said = { $schema: NAMES[draft], ...given };
        const ajv = refusal(said);
        expect([said, schemaFaults(said).length > 0, ajv]).toEqual([said, ajv !== undefined, ajv]);
      }),
      { numRuns: runs(700) },
    );
  });
});

test('all errors of a schema are reported with their paths', () => {
  const at = (given: unknown) => schemaFaults(given).map(({ path, problem }) => `${path} ${problem}`);
  expect(at({ type: 'object', properties: { a: { type: 'strnig' }, b: 7 }, required: 'a' })).toEqual([
    "required is 'a'",
    'properties.b is 7',
    "properties.a.type is 'strnig'",
  ]);
  expect(at({ anyOf: [{}, { minLength: -1 }] })).toEqual(['anyOf.1.minLength is -1']);
  expect(at({ nullable: true })).toEqual(['nullable has no `type` next to it']);
  expect(at({ type: 'string', nullable: true })).toEqual([]);
  expect(at({ else: { $ref: '#/nowhere' }, $defs: { unused: { $ref: '#/nowhere' } } })).toEqual([]);
  expect(at({ enum: [] })).toEqual(['enum is []']);
  expect(at({ patternProperties: { '(': {} } })).toEqual(["patternProperties.( is '('"]);
  expect(at('object')).toEqual([" is 'object'"]);
  expect(at([])).toEqual([' is []']);
});
