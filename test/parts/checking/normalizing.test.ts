import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { JsonObject, JsonSchema } from 'toolwright';
import { createChecker, toldFaults } from './reported-faults.js';

const schema: JsonSchema = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    limit: { type: 'integer', default: 10 },
    note: { type: 'string' },
    mood: { type: ['string', 'null'] },
    item: {
      type: 'object',
      properties: { sku: { type: 'string' }, tags: { type: 'array', default: ['x'] } },
    },
  },
  required: ['id'],
};
const check = createChecker(schema);

describe('ToolRegistry.invoke: extra keys', () => {
  test('are removed at every depth, and named', () => {
    expect(check({ id: 'a', evil: 1, limit: 1, item: { sku: 's', tags: [], worse: 2 } })).toEqual({
      ok: true,
      value: { id: 'a', limit: 1, item: { sku: 's', tags: [] } },
      removed: ['evil', 'item.worse'],
      coerced: [],
    });
  });

  test('are removed also where the schema forbids them', () => {
    const strict = createChecker({ ...schema, additionalProperties: false });
    expect(strict({ id: 'a', evil: 1 })).toMatchObject({ ok: true, removed: ['evil'] });
  });

  test.each([
    ['additionalProperties: true', { ...schema, additionalProperties: true }],
    ['no properties', { type: 'object' }],
    ['a schema for other keys', { ...schema, additionalProperties: { type: 'integer' } }],
    ['patternProperties', { ...schema, patternProperties: { '^ev': {} } }],
  ])('stay with %s', (_what, open) => {
    expect(createChecker(open)({ id: 'a', evil: 1 })).toMatchObject({
      ok: true,
      value: { evil: 1 },
      removed: [],
    });
  });

  test('are faults of a destructive tool, after those of the schema', () => {
    expect(toldFaults(schema, { evil: 1, limit: 'x', item: { worse: 2 } }, true)).toEqual([
      "Validation failed for tool 'search':",
      '  - id: is required',
      '  - limit: must be integer',
      '  - evil: is not a known property, and this tool takes no others',
      '  - item.worse: is not a known property, and this tool takes no others',
    ]);
  });

  test('of a destructive tool are told once where the schema forbids them too', () => {
    expect(toldFaults({ ...schema, additionalProperties: false }, { id: 'a', evil: 1 }, true)).toEqual([
      "Validation failed for tool 'search':",
      '  - evil: is not a known property, and this tool takes no others',
    ]);
  });

  test('of a destructive tool cannot hide in an object that was sent as text', () => {
    expect(toldFaults(schema, { id: 'a', item: '{"sku":"s","worse":2}' }, true)).toEqual([
      "Validation failed for tool 'search':",
      '  - item.worse: is not a known property, and this tool takes no others',
    ]);
  });

  test('__proto__, constructor and toString are keys like others', () => {
    const sent = JSON.parse('{"id":"a","__proto__":{"x":1},"constructor":1,"toString":2}') as JsonObject;
    const checked = check(sent);
    expect(checked).toMatchObject({ ok: true, removed: ['__proto__', 'constructor', 'toString'] });
    if (!checked.ok) throw new Error('unreachable');
    expect(Object.keys(checked.value)).toEqual(['id', 'limit']);
    expect(Object.getPrototypeOf(checked.value)).toBe(Object.prototype);
  });

  test('a required toString that was not sent is missing', () => {
    const named = { type: 'object', properties: { toString: { type: 'string' } }, required: ['toString'] };
    expect(toldFaults(named, {})).toEqual([
      "Validation failed for tool 'search':",
      '  - toString: is required',
    ]);
    expect(createChecker(named)({ toString: 'x' })).toMatchObject({ ok: true, removed: [] });
  });

  test('a record keeps __proto__ as an own key', () => {
    const record = { type: 'object', additionalProperties: { type: 'integer' } };
    const checked = createChecker(record)(JSON.parse('{"__proto__":"1"}') as JsonObject);
    if (!checked.ok) throw new Error('unreachable');
    expect(Object.entries(checked.value)).toEqual([['__proto__', 1]]);
    expect(Object.getPrototypeOf(checked.value)).toBe(Object.prototype);
  });
});

describe('a key that some part of the schema speaks of stays', () => {
  const branches: JsonSchema[] = [
    { type: 'object', properties: { kind: { const: 'a' }, one: {} }, required: ['kind'] },
    { type: 'object', properties: { kind: { const: 'b' }, two: {} }, required: ['kind'] },
  ];
  const wide = { type: 'object', properties: { id: {} } };
  test.each<[string, JsonSchema, JsonObject]>([
    ['in another branch', { anyOf: branches }, { kind: 'a', one: 1, two: 2 }],
    ['beside a reference', { $ref: '#/$defs/wide', properties: { beside: {} } }, { id: 1, beside: 2 }],
    ['in dependentRequired', { ...wide, dependentRequired: { id: ['more'] } }, { id: 1, more: 2 }],
    [
      'in dependentSchemas',
      { ...wide, dependentSchemas: { id: { properties: { more: {} } } } },
      { id: 1, more: 2 },
    ],
    [
      'among others of another schema',
      {
        properties: {},
        additionalProperties: wide,
        allOf: [{ additionalProperties: { properties: { more: {} } } }],
      },
      { any: { id: 1, more: 2 } },
    ],
    ['only in required', { ...wide, required: ['more'] }, { more: 2 }],
    ['beside a union', { properties: { own: {} }, anyOf: branches }, { kind: 'a', own: 1 }],
    [
      'in a pattern of a branch',
      { anyOf: [{ ...wide, allOf: [{ patternProperties: { '^x': {} } }] }] },
      { x1: 1 },
    ],
  ])('%s', (_where, place, sent) => {
    const root = { type: 'object', properties: { at: place }, $defs: { wide } };
    expect(createChecker(root)({ at: sent, extra: 1 })).toMatchObject({
      ok: true,
      value: { at: sent },
      removed: ['extra'],
    });
  });

  test('unless no part does, also in a union of one', () => {
    const root = { type: 'object', properties: { at: { anyOf: [wide] } } };
    expect(createChecker(root)({ at: { id: 1, x: 2 } })).toMatchObject({
      ok: true,
      value: { at: { id: 1 } },
      removed: ['at.x'],
    });
  });

  test('unless the branch that was meant refuses it', () => {
    const closed = branches.map((branch) => ({ ...branch, additionalProperties: false }));
    const root = { type: 'object', properties: { at: { anyOf: closed } } };
    expect(createChecker(root)({ at: { kind: 'a', two: 2 } })).toMatchObject({
      ok: true,
      value: { at: { kind: 'a' } },
      removed: ['at.two'],
    });
  });

  test.each<[string, JsonSchema, JsonObject]>([
    [
      'that make it different from another item',
      { type: 'array', uniqueItems: true, items: wide },
      { at: [{ x: 1 }, { x: 2 }] },
    ],
    ['that make it large enough', { ...wide, minProperties: 2 }, { at: { id: 1, x: 2 } }],
    ['of a constant', { ...wide, const: { id: 1, x: 2 } }, { at: { id: 1, x: 2 } }],
  ])('as do keys %s', (_why, place, sent) => {
    const checked = createChecker({ type: 'object', properties: { at: place } })(sent);
    expect(checked).toEqual({ ok: true, value: sent, removed: [], coerced: [] });
  });
});

describe('null and defaults', () => {
  test('null for an optional property means absent, and its default applies', () => {
    expect(check({ id: 'a', note: null, limit: null })).toMatchObject({
      ok: true,
      value: { id: 'a', limit: 10 },
    });
  });

  test('null stays where it is a value of its own', () => {
    expect(check({ id: 'a', mood: null })).toMatchObject({ ok: true, value: { mood: null } });
  });

  test('null for a required property is a fault', () => {
    expect(toldFaults(schema, { id: null }).slice(1)).toEqual(['  - id: must be string']);
  });

  test('null for an optional enum is absent, and for an enum with null it is null', () => {
    const enums = {
      type: 'object',
      properties: { a: { enum: ['x'] }, b: { enum: ['x', null] }, c: { type: 'integer' } },
    };
    // The text makes the plain check fail, so that null is looked at at all.
    expect(createChecker(enums)({ a: null, b: null, c: '1' })).toMatchObject({ value: { b: null, c: 1 } });
  });

  test('defaults are filled in at every depth, but never into what was not sent', () => {
    expect(check({ id: 'a' })).toMatchObject({ value: { id: 'a', limit: 10 } });
    expect(check({ id: 'a', item: {} })).toMatchObject({ value: { item: { tags: ['x'] } } });
  });

  test('a default that is an object is a new one each time', () => {
    const first = check({ id: 'a', item: {} });
    const second = check({ id: 'a', item: {} });
    if (!first.ok || !second.ok) throw new Error('unreachable');
    const tags = ({ value }: { value: JsonObject }) => (value.item as { tags: string[] }).tags;
    tags(first).push('y');
    expect(tags(second)).toEqual(['x']);
    expect(schema.properties?.item?.properties?.tags?.default).toEqual(['x']);
  });

  test('undefined, which JSON does not know, is absent', () => {
    expect(check({ id: 'a', note: undefined })).toMatchObject({ ok: true, value: { id: 'a', limit: 10 } });
  });
});

describe('any arguments', () => {
  test('whatever is accepted is accepted again, unchanged', () => {
    fc.assert(
      fc.property(
        fc.record(
          {
            id: fc.jsonValue(),
            limit: fc.oneof(fc.integer(), fc.string(), fc.constant(null)),
            item: fc.jsonValue(),
            extra: fc.jsonValue(),
          },
          { requiredKeys: [] },
        ),
        (args) => {
          const before = structuredClone(args);
          const first = check(args as JsonObject);
          expect(args).toEqual(before);
          if (!first.ok) {
            expect(first.faults.length).toBeGreaterThan(0);
            return;
          }
          expect(check(first.value)).toMatchObject({ ok: true, removed: [], coerced: [] });
          expect(check(first.value)).toHaveProperty('value', first.value);
        },
      ),
    );
  });
});
