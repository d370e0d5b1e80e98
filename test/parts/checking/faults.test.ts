import { describe, expect, test } from '@jest/globals';
import type { JsonSchema } from 'toolwright';
import { createChecker, toldFaults } from './reported-faults.js';

const FIRST = "Validation failed for tool 'search':";

const order: JsonSchema = {
  type: 'object',
  properties: {
    city: { type: 'string', minLength: 2 },
    kind: { enum: ['new', 'used', 3] },
    items: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        properties: { sku: { type: 'string' }, count: { type: 'integer', minimum: 1 } },
        required: ['sku', 'count'],
      },
    },
    address: { type: 'object', properties: { zip: { type: 'string' } }, required: ['zip'] },
  },
  required: ['address', 'items', 'city'],
};

describe('ToolRegistry.invoke reports validation errors:', () => {
  test('one error is one line below the name of the tool', () => {
    const schema = { type: 'object', properties: { query: { type: 'string' } } };
    expect(toldFaults(schema, { query: 7 })).toEqual([FIRST, '  - query: must be string']);
  });

  test('all errors are reported in the order of the schema, with nested paths', () => {
    const sent = { items: [{ sku: 7 }, { sku: 'a', count: 0 }], kind: 'old', address: {} };
    expect(toldFaults(order, sent)).toEqual([
      FIRST,
      '  - city: is required',
      '  - kind: must be one of: "new", "used", 3',
      '  - items.0.sku: must be string',
      '  - items.0.count: is required',
      '  - items.1.count: must be >= 1',
      '  - address.zip: is required',
    ]);
  });

  test('the order is that of the schema, not of the arguments', () => {
    const sent = { address: 1, items: 2, kind: 4, city: {} };
    const paths = toldFaults(order, sent).slice(1);
    expect(paths.map((line) => line.slice(4, line.indexOf(':')))).toEqual([
      'city',
      'kind',
      'items',
      'address',
    ]);
  });

  test('several errors of one value are separate lines', () => {
    const schema = {
      type: 'object',
      properties: { code: { type: 'string', minLength: 3, pattern: '^[0-9]+$' } },
    };
    expect(toldFaults(schema, { code: 'x' })).toEqual([
      FIRST,
      '  - code: must have at least 3 characters',
      '  - code: must match pattern "^[0-9]+$"',
    ]);
  });

  test('a constant and a list of types are named', () => {
    const schema = {
      type: 'object',
      properties: { a: { const: 'x' }, b: { type: ['string', 'null'] } },
      required: ['b'],
    };
    expect(toldFaults(schema, { a: 'y', b: 1 })).toEqual([
      FIRST,
      '  - a: must be "x"',
      '  - b: must be string or null',
    ]);
  });

  test('keys with slashes, tildes and line breaks do not split an error into several lines', () => {
    const schema = { type: 'object', additionalProperties: { type: 'string' } };
    expect(toldFaults(schema, { 'a/b~c': 1 })).toEqual([FIRST, '  - a/b~c: must be string']);
    expect(toldFaults(schema, { 'a\n  - b': 1 })).toEqual([FIRST, '  - a - b: must be string']);
  });

  test('an error of the arguments as a whole has no path', () => {
    const schema = { type: 'object', minProperties: 1 };
    expect(toldFaults(schema, {})).toEqual([FIRST, '  - must have at least 1 property']);
  });

  test('a single value in place of an array is not reported as element 0', () => {
    const schema = {
      type: 'object',
      properties: {
        ids: { type: 'array', items: { type: 'integer' } },
        lines: {
          type: 'array',
          items: { type: 'object', properties: { sku: { type: 'string' } }, required: ['sku'] },
        },
      },
    };
    expect(toldFaults(schema, { ids: 'abc' })).toEqual([FIRST, '  - ids: must be array']);
    expect(toldFaults(schema, { ids: [1, 'abc'] })).toEqual([FIRST, '  - ids.1: must be integer']);
    expect(toldFaults(schema, { lines: {} })).toEqual([
      FIRST,
      '  - lines: must be array',
      '  - lines.0.sku: is required',
    ]);
  });

  test('the arguments are never changed', () => {
    const sent = { items: { sku: '1', count: '2', extra: true }, city: null, address: '{"zip":"1"}' };
    const before = structuredClone(sent);
    createChecker(order)(sent);
    expect(sent).toEqual(before);
  });
});
