import { describe, expect, test } from '@jest/globals';
import type { JsonSchema } from 'toolwright';
import { createChecker, sharedChecker } from '../../../src/tools/checking/checker.js';
import { interpretSchema } from '../../../src/tools/checking/interpreter/interpret-schema.js';

const fits = (schema: JsonSchema, value: unknown) => interpretSchema(schema).check(value) === undefined;

describe('schemas', () => {
  test('2020-12 is the default draft: prefixItems is a tuple', () => {
    const schema = { type: 'array', prefixItems: [{ type: 'integer' }, { type: 'string' }] };
    expect(fits(schema, [1, 'a'])).toBe(true);
    expect(fits(schema, ['a', 1])).toBe(false);
  });

  test.each([
    [
      'by its $schema',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        definitions: { a: { type: 'integer' } },
        $ref: '#/definitions/a',
      },
      1,
      'a',
    ],
    ['by its tuples', { type: 'array', items: [{ type: 'integer' }], additionalItems: false }, [1], [1, 2]],
    [
      'in a nested schema',
      { type: 'object', properties: { a: { type: 'array', items: [{ type: 'integer' }] } } },
      { a: [1] },
      { a: ['x'] },
    ],
  ])('draft 7 is recognized %s', (_how, schema, good, bad) => {
    expect(fits(schema as JsonSchema, good)).toBe(true);
    expect(fits(schema as JsonSchema, bad)).toBe(false);
  });

  test.each(['https://json-schema.org/draft/2019-09/schema', 'http://json-schema.org/draft-06/schema#'])(
    'a schema with $schema %s is read as the nearest supported draft',
    ($schema) => {
      expect(fits({ $schema, type: 'integer' }, 1)).toBe(true);
      expect(fits({ $schema, type: 'integer' }, 'x')).toBe(false);
    },
  );

  test.each([
    ['date', '2024-02-29', '2024-02-30'],
    ['date-time', '2024-01-15T10:30:00-05:00', '2024-01-15'],
    ['email', 'a@example.com', 'a@'],
    ['uuid', '123e4567-e89b-12d3-a456-426614174000', '123e4567'],
    ['uri', 'https://example.com/x', '/x'],
    ['ipv4', '127.0.0.1', '127.0.0.256'],
  ])('the format %s is validated', (format, good, bad) => {
    expect(fits({ type: 'string', format }, good)).toBe(true);
    expect(fits({ type: 'string', format }, bad)).toBe(false);
  });

  test('unknown formats and keywords are ignored', () => {
    expect(fits({ type: 'string', format: 'isbn', 'x-order': 3 }, 'x')).toBe(true);
  });

  test('a pattern that is invalid with the u flag still works', () => {
    expect(fits({ type: 'string', pattern: '^[\\w-.]+\\-x$' }, 'a-x')).toBe(true);
  });

  test('two schemas may have the same $id, and their references are resolved separately', () => {
    const schema = (type: string): JsonSchema => ({
      $id: 'https://example.com/input',
      $defs: { v: { type } },
      $ref: '#/$defs/v',
    });
    expect([fits(schema('string'), 'x'), fits(schema('integer'), 'x')]).toEqual([true, false]);
  });

  test('a reference may contain a # in a name', () => {
    const schema = { $defs: { C: { type: 'string' }, 'C#': { type: 'integer' } }, $ref: '#/$defs/C#' };
    expect([fits(schema, 1), fits(schema, 'x')]).toEqual([true, false]);
  });

  test('two schemas may have the same $anchor', () => {
    const schema = (type: string): JsonSchema => ({ $defs: { v: { $anchor: 'v', type } }, $ref: '#v' });
    expect([fits(schema('string'), 'x'), fits(schema('integer'), 'x')]).toEqual([true, false]);
  });

  test.each<JsonSchema>([
    {},
    { type: 'object' },
    { type: 'array' },
    { anyOf: [{ type: 'string' }, {}] },
    { enum: [1, 2] },
  ])('a number that JSON does not have is refused, even if %j accepts anything', (a) => {
    const check = createChecker({ type: 'object', properties: { a } });
    for (const sent of [Number.POSITIVE_INFINITY, { x: Number.NaN }, [[Number.NEGATIVE_INFINITY]]])
      expect(check({ a: sent }).ok).toBe(false);
  });

  test('a number that JSON does not have is reported with its path', () => {
    const check = createChecker({ type: 'object', properties: { a: {}, b: {} } });
    expect(check({ a: Number.POSITIVE_INFINITY, b: [1, { x: Number.NaN }] })).toMatchObject({
      faults: [
        { path: 'a', message: 'is too large for a number' },
        { path: 'b.1.x', message: 'must be a number' },
      ],
    });
  });

  test('an invalid schema is refused', () => {
    expect(() => sharedChecker({ type: 'strnig' })).toThrow(/schema is invalid/);
    expect(() => sharedChecker({ $ref: '#/$defs/missing' })).toThrow(/missing/);
  });

  test('equal schemas share one checker, unless one of them refuses unknown keys', () => {
    const schema = () => ({ type: 'object', properties: { a: { type: 'string' } } });
    expect(sharedChecker(schema())).toBe(sharedChecker(schema()));
    expect(sharedChecker(schema(), { refuseExtra: true })).not.toBe(sharedChecker(schema()));
  });

  test('inherited properties do not count as sent', () => {
    expect(fits({ type: 'object', required: ['toString'] }, {})).toBe(false);
    expect(fits({ type: 'object', properties: { constructor: { type: 'string' } } }, {})).toBe(true);
  });
});
