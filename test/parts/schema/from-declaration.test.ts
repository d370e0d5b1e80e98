import { describe, expect, test } from '@jest/globals';
import { Integer, type ParamOptions } from 'toolwright';
import { z } from 'zod';
import { fromParameter } from '../../../src/tools/schema/from-declaration.js';
import { writeParameters } from '../../../src/tools/schema/write-schema.js';

enum Color {
  Red = 'red',
  Blue = 'blue',
}

enum Level {
  Low = 1,
  High = 10,
}

enum Mixed {
  No = 0,
  Yes = 'YES',
}

/** The schema of one parameter called `it`. */
function schemaOf(facts: Parameters<typeof fromParameter>[0]): unknown {
  const described = fromParameter(facts);
  if (!described.ok) return described.problem;
  const { type, nullable, keywords, required = true } = described;
  const written = writeParameters({ properties: [{ name: 'it', type, nullable, keywords, required }] });
  return written.ok ? written.schema.properties?.it : written.faults;
}

describe('types from metadata', () => {
  test.each<[string, unknown, object]>([
    ['String', String, { type: 'string' }],
    ['Number', Number, { type: 'number' }],
    ['Boolean', Boolean, { type: 'boolean' }],
    ['Integer', Integer, { type: 'integer' }],
    ['Date', Date, { type: 'string', format: 'date-time' }],
    ['URL', URL, { type: 'string', format: 'uri' }],
    ['Uint8Array', Uint8Array, { type: 'string', contentEncoding: 'base64' }],
    ['Buffer', Buffer, { type: 'string', contentEncoding: 'base64' }],
    ['BigInt', BigInt, { type: 'string', pattern: '^-?[0-9]+$' }],
    ['an enum object, which swc emits', Color, { type: 'string', enum: ['red', 'blue'] }],
  ])('%s', (_, designType, schema) => {
    expect(schemaOf({ designType })).toEqual(schema);
  });

  const anyType = ['type: () => X', 'items: () => X', 'enum:', 'schema:'];

  test.each<[unknown, readonly string[], (readonly string[])?]>([
    [Object, ['interface', 'union', 'import type']],
    [undefined, ['esbuild, tsx', 'import each other', '@Context()']],
    [Array, ['does not contain the types']],
    [Set, ['does not contain the types'], ['items: () => X']],
    [Map, ['does not contain the types'], ['additionalProperties: () => X']],
    [Function, ['import type', 'function']],
    [Promise, ['promise']],
    [Symbol, ['symbols']],
  ])('%p is a fault with fitting causes and a fix', (designType, causes, ways = anyType) => {
    const described = fromParameter({ designType });
    expect(described).toMatchObject({ ok: false, problem: expect.stringMatching(/^its type is unknown/) });
    if (described.ok) throw new Error('described');
    for (const cause of causes) expect(described.causes?.join('\n')).toContain(cause);
    for (const way of ways) expect(described.fix).toContain(way);
  });
});

describe('literal defaults', () => {
  test.each<[unknown, object]>([
    [10, { type: 'number', default: 10 }],
    ['x', { type: 'string', default: 'x' }],
    [false, { type: 'boolean', default: false }],
    [['a'], { type: 'array', items: { type: 'string' }, default: ['a'] }],
  ])('%p is the default, and gives the type if there is no metadata', (value, schema) => {
    expect(schemaOf({ designType: Object, defaultValue: { value } })).toEqual(schema);
    expect(schemaOf({ defaultValue: { value } })).toEqual(schema);
    expect(fromParameter({ defaultValue: { value } })).toMatchObject({ required: false });
  });

  test('a declared type wins over the type of the literal', () => {
    expect(schemaOf({ designType: String, defaultValue: { value: null } })).toEqual({
      type: ['string', 'null'],
      default: null,
    });
  });

  test.each([[[]], [[1, 'a']], [{}], [undefined]])('%p gives no type', (value) => {
    expect(fromParameter({ designType: Object, defaultValue: { value } }).ok).toBe(false);
  });
});

describe('@Param options', () => {
  test.each<[string, ParamOptions, unknown, object]>([
    ['type as a token', { type: Integer }, Object, { type: 'integer' }],
    ['type behind a function', { type: () => Integer }, Number, { type: 'integer' }],
    [
      'type as an array of one type',
      { type: () => [String] as const },
      Array,
      { type: 'array', items: { type: 'string' } },
    ],
    [
      'type of the items of an array',
      { type: () => Number },
      Array,
      { type: 'array', items: { type: 'number' } },
    ],
    [
      'items',
      { items: () => Date },
      Array,
      { type: 'array', items: { type: 'string', format: 'date-time' } },
    ],
    [
      'items as a schema',
      { items: { type: 'string', minLength: 1 } },
      Array,
      { type: 'array', items: { type: 'string', minLength: 1 } },
    ],
    [
      'items as zod',
      { items: z.string().max(3) as never },
      Array,
      { type: 'array', items: { type: 'string', maxLength: 3 } },
    ],
    ['an enum list', { enum: ['a', 'b'] }, String, { type: 'string', enum: ['a', 'b'] }],
    [
      'a numeric enum without its reverse mapping',
      { enum: Level },
      Number,
      { type: 'number', enum: [1, 10] },
    ],
    ['a heterogeneous enum', { enum: Mixed }, Object, { enum: [0, 'YES'] }],
    [
      'an enum of items',
      { enum: Color },
      Array,
      { type: 'array', items: { type: 'string', enum: ['red', 'blue'] } },
    ],
    [
      'a nullable enum',
      { enum: Color, nullable: true },
      String,
      { type: ['string', 'null'], enum: ['red', 'blue', null] },
    ],
    ['a nullable scalar', { nullable: true }, Number, { type: ['number', 'null'] }],
    [
      'a nullable constant',
      { const: 'x', nullable: true },
      String,
      { type: ['string', 'null'], enum: ['x', null] },
    ],
    ['a constant alone', { const: 5 }, Object, { type: 'number', const: 5 }],
    [
      'a record of anything',
      { additionalProperties: true },
      Object,
      { type: 'object', additionalProperties: true },
    ],
    [
      'a record of numbers',
      { additionalProperties: Number },
      Object,
      { type: 'object', additionalProperties: { type: 'number' } },
    ],
    [
      'a record by schema',
      { additionalProperties: { type: 'string' } },
      Object,
      { type: 'object', additionalProperties: { type: 'string' } },
    ],
    ['an explicit Object', { type: () => Object }, Object, { type: 'object' }],
    [
      'a nullable schema without one type',
      { schema: { anyOf: [{ type: 'string' }, { type: 'number' }] }, nullable: true },
      Object,
      { anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'null' }] },
    ],
    ['type as a name', { type: 'integer' as never }, Object, { type: 'integer' }],
  ])('%s', (_, options, designType, schema) => {
    expect(schemaOf({ options, designType })).toEqual(schema);
  });

  test('keywords have a fixed order: type, description, constraints as written, default', () => {
    const options: ParamOptions = {
      default: 3,
      maximum: 9,
      minimum: 1,
      description: 'How many',
      required: true,
    };
    expect(JSON.stringify(schemaOf({ options, designType: Number }))).toBe(
      '{"type":"number","description":"How many","maximum":9,"minimum":1,"default":3}',
    );
    expect(fromParameter({ options, designType: Number })).toMatchObject({ required: true });
  });

  test('defaults are converted to JSON', () => {
    const designType = Date;
    expect(schemaOf({ designType, options: { default: new Date(0) } })).toEqual({
      type: 'string',
      format: 'date-time',
      default: '1970-01-01T00:00:00.000Z',
    });
    expect(
      schemaOf({ options: { default: new Uint8Array([104, 105]) }, designType: Uint8Array }),
    ).toMatchObject({
      default: 'aGk=',
    });
    expect(schemaOf({ designType: String, options: { default: () => 'x' } })).toEqual({ type: 'string' });
    expect(schemaOf({ designType: URL, options: { default: new URL('http://a.de') } })).toMatchObject({
      default: 'http://a.de/',
    });
  });

  test('an explicit schema overrides the metadata of the compiler', () => {
    const options: ParamOptions = { schema: { type: 'string', format: 'ipv4' } };
    expect(schemaOf({ options, designType: Boolean })).toEqual({ type: 'string', format: 'ipv4' });
  });

  test('an explicit schema that cannot be read is a fault', () => {
    const schema = { '~standard': { version: 1, vendor: 'v', validate: () => ({ value: 1 }) } } as const;
    expect(fromParameter({ options: { schema } })).toMatchObject({
      ok: false,
      problem: expect.stringMatching(/^its schema is a Standard Schema/),
    });
  });

  test.each<[string, () => never]>([
    ['gives undefined', (() => undefined) as never],
    [
      'throws, because the class is not initialised yet',
      (() => {
        throw new ReferenceError('X before initialization');
      }) as never,
    ],
  ])('a reference that %s is a fault that mentions import cycles', (_, type) => {
    const described = fromParameter({ options: { type } });
    expect(described).toMatchObject({ ok: false, problem: expect.stringMatching(/^its type reference/) });
    expect(described.ok || described.causes?.join()).toContain('import each other');
  });
});
