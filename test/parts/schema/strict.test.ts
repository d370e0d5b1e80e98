import { describe, expect, test } from '@jest/globals';
import { type JsonSchema, type StrictForm, strictSchema } from 'toolwright';
import { leastGrowth } from '../../setup/least-growth.js';

function strictly(schema: JsonSchema): StrictForm {
  const strict = strictSchema(schema);
  if (!strict.isStrict) throw new Error(strict.reasons.join('; '));
  return strict;
}

/** The strict form of one required property. */
function strictValue(value: JsonSchema, $defs?: Readonly<Record<string, JsonSchema>>): StrictForm {
  return strictly({
    type: 'object',
    properties: { value },
    required: ['value'],
    ...($defs ? { $defs } : {}),
  });
}

function schemaOf(value: JsonSchema): JsonSchema | undefined {
  return strictValue(value).schema.properties?.value;
}

function closed(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}

const TEXT = { type: 'string' };
const pairsOf = (value: JsonSchema, key: JsonSchema = TEXT): JsonSchema => ({
  type: 'array',
  items: closed({ key, value }),
});

describe('strictSchema makes all properties required', () => {
  test('and optional ones nullable, where null restores to a missing property', () => {
    const strict = strictly({
      type: 'object',
      properties: {
        city: TEXT,
        limit: { type: 'integer', default: 10 },
        tags: { type: 'array', items: TEXT },
      },
      required: ['city'],
    });
    expect(strict.schema).toEqual(
      closed({
        city: TEXT,
        limit: { description: 'Default: 10.', type: ['integer', 'null'] },
        tags: { anyOf: [{ type: 'array', items: TEXT }, { type: 'null' }] },
      }),
    );
    expect(strict.restore({ city: 'Bern', limit: null, tags: null })).toEqual({ city: 'Bern' });
    expect(strict.forward({ city: 'Bern', tags: ['a'] })).toEqual({ city: 'Bern', limit: null, tags: ['a'] });
  });

  test('and distinguishes null from a missing property if null is a value', () => {
    const strict = strictly({ type: 'object', properties: { note: { type: ['string', 'null'] } } });
    for (const args of [{}, { note: null }, { note: 'x' }])
      expect(strict.restore(strict.forward(args))).toEqual(args);
    expect(strict.forward({})).toEqual({ note: null });
    expect(strict.forward({ note: null })).toEqual({ note: { value: null } });
    expect(strict.edits).toContainEqual({ at: 'note', kind: 'optional-null' });
    // A model without strict mode may send the value without the wrapper.
    expect(strict.restore({ note: 'x' })).toEqual({ note: 'x' });
  });

  test('and does not change null if it is the default', () => {
    const note = { anyOf: [TEXT, { type: 'null' }], default: null };
    const strict = strictly({ type: 'object', properties: { note } });
    expect(strict.schema).toEqual(
      closed({ note: { description: 'Default: null.', type: ['string', 'null'] } }),
    );
    expect(strict.forward({})).toEqual({ note: null });
    expect(strict.restore({ note: null })).toEqual({ note: null });
  });
});

describe('strictSchema converts', () => {
  test.each<[string, JsonSchema, JsonSchema]>([
    ['oneOf to anyOf', { oneOf: [TEXT, { type: 'number' }] }, { anyOf: [TEXT, { type: 'number' }] }],
    ['several types to anyOf', { type: ['string', 'number'] }, { anyOf: [TEXT, { type: 'number' }] }],
    ['a constant to an enum of one', { const: 'x' }, { type: 'string', enum: ['x'] }],
    [
      'constants without a type to typed ones',
      { enum: ['x', null] },
      { type: ['string', 'null'], enum: ['x', null] },
    ],
    ['object constants', { enum: [{ a: 1 }] }, closed({ a: { type: 'number', enum: [1] } })],
    [
      'records to pairs',
      { type: 'object', additionalProperties: { type: 'number' } },
      pairsOf({ type: 'number' }),
    ],
    [
      'key patterns to the pattern of a key',
      { type: 'object', patternProperties: { '^x-': TEXT }, additionalProperties: false },
      pairsOf(TEXT, { type: 'string', pattern: '^x-' }),
    ],
    [
      'additional properties to pairs',
      { type: 'object', properties: { a: TEXT }, required: ['a'], additionalProperties: TEXT },
      closed({ a: TEXT, other_properties: { description: 'Properties beside these.', ...pairsOf(TEXT) } }),
    ],
    [
      'tuples to objects',
      { type: 'array', prefixItems: [TEXT, { type: 'number' }], minItems: 1, items: false },
      closed({ item_1: TEXT, item_2: { type: ['number', 'null'] } }),
    ],
    [
      'tuples of draft 7 to objects',
      { type: 'array', items: [TEXT], minItems: 1, additionalItems: false },
      closed({ item_1: TEXT }),
    ],
    [
      'allOf to one schema',
      {
        allOf: [
          { properties: { a: TEXT }, required: ['a'] },
          { type: 'object', properties: { a: { maxLength: 3 } } },
        ],
      },
      closed({ a: { type: 'string', description: 'At most 3 characters.' } }),
    ],
    ['implied types to explicit ones', { pattern: '^a' }, { type: 'string', pattern: '^a' }],
    [
      'nullable of OpenAPI to the type null',
      { type: 'string', nullable: true },
      { type: ['string', 'null'] },
    ],
    [
      'titles to descriptions if there is no other',
      { type: 'string', title: 'City' },
      { description: 'City', type: 'string' },
    ],
  ])('%s', (_, schema, expected) => {
    expect(schemaOf(schema)).toEqual(expected);
  });

  test.each<[string, JsonSchema, string]>([
    ['lengths', { type: 'string', minLength: 2 }, 'At least 2 characters.'],
    ['formats', { type: 'string', format: 'uri' }, 'Format: uri.'],
    ['look-arounds', { type: 'string', pattern: '^(?!a)' }, 'Matches the pattern ^(?!a).'],
    ['uniqueItems', { type: 'array', items: TEXT, uniqueItems: true }, 'No two items are equal.'],
    ['not', { type: 'string', not: { const: 'x' } }, 'Must not fit {"const":"x"}.'],
    [
      'dependentRequired',
      { type: 'object', properties: {}, dependentRequired: { a: ['b'] } },
      'With "a" also "b".',
    ],
    [
      'unions that only validate',
      { type: 'object', properties: { a: TEXT }, anyOf: [{ required: ['a'] }, { maxProperties: 0 }] },
      'Fits at least one of [{"required":["a"]},{"maxProperties":0}].',
    ],
  ])('%s to text in the description, still validated at call time', (_, schema, description) => {
    const { schema: strict, report } = strictValue(schema);
    expect(strict.properties?.value?.description).toBe(description);
    expect(report.checked.map(({ places }) => places)).toEqual([['value']]);
  });

  test('recursion to definitions, and moves keywords next to a reference around it', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/node', description: 'The next' } } };
    expect(strictValue({ $ref: '#/$defs/node' }, { node }).schema).toEqual({
      ...closed({ value: { $ref: '#/$defs/node' } }),
      $defs: {
        node: closed({
          next: { description: 'The next', anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] },
        }),
      },
    });
  });

  test('an unrestricted value to a definition in which objects are lists of entries', () => {
    const strict = strictValue({});
    const args = { value: { a: [{ ['__proto__']: null }, []] } };
    const pair = (key: string, value: unknown) => ({ entries: [{ key, value }] });
    expect(strict.forward(args)).toEqual({ value: pair('a', [pair('__proto__', null), []]) });
    expect(strict.restore(strict.forward(args))).toEqual(args);
  });

  test('a union as root to a property', () => {
    const cat = {
      type: 'object',
      properties: { kind: { const: 'cat' }, age: { type: 'integer' } },
      required: ['kind'],
    };
    const dog = { type: 'object', properties: { kind: { const: 'dog' } }, required: ['kind'] };
    const strict = strictly({ type: 'object', oneOf: [cat, dog] });
    expect(strict.schema.type).toBe('object');
    expect(strict.restore({ input: { kind: 'cat', age: null } })).toEqual({ kind: 'cat' });
    expect(strict.forward({ kind: 'dog' })).toEqual({ input: { kind: 'dog' } });
    expect(strict.restore({ kind: 'cat' })).toEqual({ kind: 'cat' });
  });

  test('a root without properties to one that allows none', () => {
    expect(strictly({ type: 'object' }).schema).toEqual(closed({}));
  });
});

describe('strictSchema distinguishes the branches of a union', () => {
  const of = (
    properties: Readonly<Record<string, JsonSchema>>,
    required: readonly string[] = [],
  ): JsonSchema => ({
    type: 'object',
    properties,
    required,
    additionalProperties: false,
  });

  test('by their keys or constants, which come first', () => {
    const strict = strictValue({
      anyOf: [
        of({ a: TEXT, kind: { const: 'x' } }, ['kind']),
        of({ a: { type: 'null' }, kind: { const: 'y' } }, ['kind']),
      ],
    });
    const branches = strict.schema.properties?.value?.anyOf ?? [];
    expect(branches.map(({ properties = {} }) => Object.keys(properties))).toEqual([
      ['kind', 'a'],
      ['kind', 'a'],
    ]);
    expect(strict.restore({ value: { kind: 'x', a: null } })).toEqual({ value: { kind: 'x' } });
    expect(strict.restore({ value: { kind: 'y', a: { value: null } } })).toEqual({
      value: { kind: 'y', a: null },
    });
  });

  test('by tags if they have no other difference', () => {
    const strict = strictValue({ anyOf: [of({ a: TEXT }), of({ a: { type: ['string', 'null'] } }, ['a'])] });
    expect(strict.edits).toContainEqual({ at: 'value', kind: 'tagged' });
    for (const value of [{}, { a: null }, { a: 'x' }])
      expect(strict.restore(strict.forward({ value }))).toEqual({ value });
    expect(strict.forward({ value: {} })).toEqual({ value: { variant: 'object_1', value: { a: null } } });
  });
});

describe('StrictForm.restore does not change', () => {
  const RECORD = { type: 'object', additionalProperties: { type: 'object', properties: { a: TEXT } } };
  test.each<[string, JsonSchema, unknown]>([
    ['an object instead of pairs', RECORD, { x: { a: 'y' } }],
    [
      'pairs with the same key',
      RECORD,
      [
        { key: 'x', value: {} },
        { key: 'x', value: {} },
      ],
    ],
    ['pairs with an additional property', RECORD, [{ key: 'x', value: {}, more: 1 }]],
    ['an array instead of an object of items', { prefixItems: [TEXT], type: 'array' }, ['a']],
    ['items with a gap', { prefixItems: [TEXT, TEXT], type: 'array' }, { item_1: null, item_2: 'b' }],
    ['another type', RECORD, 'text'],
    ['null for a required value', TEXT, null],
  ])('%s', (_, schema, value) => {
    expect(strictValue(schema).restore({ value, unknown: [1] })).toEqual({ value, unknown: [1] });
  });

  test('arguments that are not an object or are nested too deeply', () => {
    const list = { $ref: '#/$defs/list' };
    const strict = strictValue(list, {
      list: { type: 'array', items: { anyOf: [list, { type: 'object', properties: { a: TEXT } }] } },
    });
    for (const args of [undefined, null, 'text', [1]]) expect(strict.restore(args)).toEqual(args);
    let deep: unknown = [];
    for (let level = 0; level < 100_000; level += 1) deep = [deep];
    const args = { value: deep };
    expect(Object.is(strict.restore(args), args)).toBe(true);
    expect(Object.is(strict.forward(args), args)).toBe(true);
  });
});

test('StrictForm.restore and forward take linear time', async () => {
  const tree = { type: 'object', additionalProperties: { $ref: '#/$defs/tree' } };
  const union = { anyOf: [{ type: 'object', properties: { a: TEXT } }, { $ref: '#/$defs/tree' }] };
  const strict = strictValue(
    { $ref: '#/$defs/tree' },
    { tree: { ...tree, additionalProperties: { anyOf: [union] } } },
  );
  /** Nested pairs with duplicate keys, which cannot be restored. */
  const broken = (levels: number): unknown => {
    let value: unknown = [];
    for (let level = 0; level < levels; level += 1)
      value = [
        { key: 'x', value },
        { key: 'x', value: null },
      ];
    return { value };
  };
  const whole = (levels: number): unknown => {
    let value: unknown = {};
    for (let level = 0; level < levels; level += 1) value = { x: value };
    return { value };
  };
  const times = (work: () => unknown) => () => {
    for (let time = 0; time < 50; time += 1) work();
  };
  for (const [way, args] of [
    [strict.restore, broken],
    [strict.forward, whole],
  ] as const) {
    const [small, large] = [args(100), args(800)];
    const growth = await leastGrowth({
      small: times(() => way(small)),
      large: times(() => way(large)),
      most: 24,
      noiseMs: 2,
    });
    expect(growth).toBeLessThan(24);
  }
});

test('strictSchema returns the same frozen form for a schema, and restored arguments share no objects', () => {
  const schema = { type: 'object', properties: { value: { enum: [{ a: [1] }] } } };
  const strict = strictly(schema);
  expect(strictSchema(schema)).toBe(strict);
  expect(Object.isFrozen(strict.schema.properties?.value)).toBe(true);
  const args = { value: { a: { item_1: 1 } }, other: { x: 1 } };
  const restored = strict.restore(args) as typeof args;
  expect(restored).toEqual({ value: { a: [1] }, other: { x: 1 } });
  expect(restored.other).not.toBe(args.other);
});

test.each<[string, JsonSchema, string]>([
  [
    'references without a target',
    { $ref: '#/$defs/none' },
    'the reference #/$defs/none leads nowhere within the schema',
  ],
  ['references to themselves', { $ref: '#/properties/value' }, 'a reference leads to itself'],
  ['dynamic references', { $dynamicRef: '#x' }, '$dynamicRef depends on where the schema is used'],
  [
    'too many constants',
    { enum: Array.from({ length: 1_001 }, (_, at) => at) },
    'it has 1001 constants, of at most 1000',
  ],
  ['schemas that no value fits', { type: 'string', enum: [1] }, 'no arguments fit it'],
])('strictSchema refuses %s with a reason', (_, value, reason) => {
  const schema = { type: 'object', properties: { value }, required: ['value'] };
  expect(strictSchema(schema)).toEqual({ isStrict: false, reasons: [reason] });
});

test('strictSchema refuses schemas with more than ten levels', () => {
  let deep: JsonSchema = TEXT;
  for (let level = 0; level < 11; level += 1)
    deep = { type: 'object', properties: { deep }, required: ['deep'] };
  const reasons = ['it has 11 levels of objects and lists, of at most 10'];
  expect(strictSchema(deep)).toEqual({ isStrict: false, reasons });
  for (let level = 0; level < 50_000; level += 1) deep = { type: 'array', items: deep };
  expect(strictSchema({ type: 'object', properties: { deep } }).isStrict).toBe(false);
});

test('StrictForm.report lists rewritten parts and keywords that only the validation checks, with their places', () => {
  const strict = strictly({
    type: 'object',
    properties: { a: { type: 'string', minLength: 1 }, b: { type: 'string', minLength: 1 } },
    required: ['b'],
  });
  expect(strict.report).toEqual({
    rewritten: [{ what: 'null leaves it out', places: ['a'] }],
    checked: [{ what: 'minLength', places: ['a', 'b'] }],
  });
});
