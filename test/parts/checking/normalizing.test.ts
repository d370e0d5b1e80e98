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

describe('ToolRegistry.invoke: unknown keys', () => {
  test('are removed at every depth, and reported', () => {
    expect(check({ id: 'a', evil: 1, limit: 1, item: { sku: 's', tags: [], worse: 2 } })).toEqual({
      ok: true,
      value: { id: 'a', limit: 1, item: { sku: 's', tags: [] } },
      removed: ['evil', 'item.worse'],
      coerced: [],
    });
  });

  test('are also removed if the schema forbids them', () => {
    const strict = createChecker({ ...schema, additionalProperties: false });
    expect(strict({ id: 'a', evil: 1 })).toMatchObject({ ok: true, removed: ['evil'] });
  });

  test.each([
    ['additionalProperties: true', { ...schema, additionalProperties: true }],
    ['no properties', { type: 'object' }],
    ['a schema for additional keys', { ...schema, additionalProperties: { type: 'integer' } }],
    ['patternProperties', { ...schema, patternProperties: { '^ev': {} } }],
  ])('are kept with %s', (_what, open) => {
    expect(createChecker(open)({ id: 'a', evil: 1 })).toMatchObject({
      ok: true,
      value: { evil: 1 },
      removed: [],
    });
  });

  test('are errors for a destructive tool, after the errors of the schema', () => {
    expect(toldFaults(schema, { evil: 1, limit: 'x', item: { worse: 2 } }, true)).toEqual([
      "Validation failed for tool 'search':",
      '  - id: is required',
      '  - limit: must be integer',
      '  - evil: is not a known property, and this tool accepts no others',
      '  - item.worse: is not a known property, and this tool accepts no others',
    ]);
  });

  test('of a destructive tool are reported once if the schema also forbids them', () => {
    expect(toldFaults({ ...schema, additionalProperties: false }, { id: 'a', evil: 1 }, true)).toEqual([
      "Validation failed for tool 'search':",
      '  - evil: is not a known property, and this tool accepts no others',
    ]);
  });

  test('of a destructive tool are also errors in an object that was sent as text', () => {
    expect(toldFaults(schema, { id: 'a', item: '{"sku":"s","worse":2}' }, true)).toEqual([
      "Validation failed for tool 'search':",
      '  - item.worse: is not a known property, and this tool accepts no others',
    ]);
  });

  test('include __proto__, constructor and toString', () => {
    const sent = JSON.parse('{"id":"a","__proto__":{"x":1},"constructor":1,"toString":2}') as JsonObject;
    const checked = check(sent);
    expect(checked).toMatchObject({ ok: true, removed: ['__proto__', 'constructor', 'toString'] });
    if (!checked.ok) throw new Error('unreachable');
    expect(Object.keys(checked.value)).toEqual(['id', 'limit']);
    expect(Object.getPrototypeOf(checked.value)).toBe(Object.prototype);
  });

  test('a required property toString that was not sent is missing', () => {
    const named = { type: 'object', properties: { toString: { type: 'string' } }, required: ['toString'] };
    expect(toldFaults(named, {})).toEqual([
      "Validation failed for tool 'search':",
      '  - toString: is required',
    ]);
    expect(createChecker(named)({ toString: 'x' })).toMatchObject({ ok: true, removed: [] });
  });

  test('a record has __proto__ as an own key', () => {
    const record = { type: 'object', additionalProperties: { type: 'integer' } };
    const checked = createChecker(record)(JSON.parse('{"__proto__":"1"}') as JsonObject);
    if (!checked.ok) throw new Error('unreachable');
    expect(Object.entries(checked.value)).toEqual([['__proto__', 1]]);
    expect(Object.getPrototypeOf(checked.value)).toBe(Object.prototype);
  });
});

describe('a key that any part of the schema mentions is kept', () => {
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
      'in additionalProperties of another schema',
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

  test('except if no part mentions it, also in a union with one branch', () => {
    const root = { type: 'object', properties: { at: { anyOf: [wide] } } };
    expect(createChecker(root)({ at: { id: 1, x: 2 } })).toMatchObject({
      ok: true,
      value: { at: { id: 1 } },
      removed: ['at.x'],
    });
  });

  test('except if the matching branch forbids it', () => {
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
      'that distinguish an item from another',
      { type: 'array', uniqueItems: true, items: wide },
      { at: [{ x: 1 }, { x: 2 }] },
    ],
    ['that minProperties requires', { ...wide, minProperties: 2 }, { at: { id: 1, x: 2 } }],
    ['of a constant', { ...wide, const: { id: 1, x: 2 } }, { at: { id: 1, x: 2 } }],
  ])('and so are keys %s', (_why, place, sent) => {
    const checked = createChecker({ type: 'object', properties: { at: place } })(sent);
    expect(checked).toEqual({ ok: true, value: sent, removed: [], coerced: [] });
  });
});

describe('null and defaults', () => {
  /** The arguments that the tool receives; the faults if they are rejected. */
  const received = (sent: JsonObject, of = check): unknown => {
    const checked = of(sent);
    return checked.ok ? checked.value : checked;
  };

  test('null for an optional property means that it is absent, and its default applies', () => {
    expect(received({ id: 'a', note: null, limit: null })).toStrictEqual({ id: 'a', limit: 10 });
  });

  test('null is kept if the schema allows it', () => {
    expect(received({ id: 'a', mood: null })).toStrictEqual({ id: 'a', mood: null, limit: 10 });
  });

  test('null for a required property is an error', () => {
    expect(toldFaults(schema, { id: null }).slice(1)).toEqual(['  - id: must be string']);
  });

  test('null for an optional enum means absent, and stays null in an enum that contains null', () => {
    const enums = {
      type: 'object',
      properties: { a: { enum: ['x'] }, b: { enum: ['x', null] }, c: { type: 'integer' } },
    };
    // The text makes the first check fail, so that null values are handled.
    expect(received({ a: null, b: null, c: '1' }, createChecker(enums))).toStrictEqual({ b: null, c: 1 });
  });

  test('defaults are used at every depth, but not in objects that were not sent', () => {
    expect(received({ id: 'a' })).toStrictEqual({ id: 'a', limit: 10 });
    expect(received({ id: 'a', item: {} })).toStrictEqual({ id: 'a', limit: 10, item: { tags: ['x'] } });
  });

  test('a default that is an object is copied each time', () => {
    const first = check({ id: 'a', item: {} });
    const second = check({ id: 'a', item: {} });
    if (!first.ok || !second.ok) throw new Error('unreachable');
    const tags = ({ value }: { value: JsonObject }) => (value.item as { tags: string[] }).tags;
    tags(first).push('y');
    expect(tags(second)).toEqual(['x']);
    expect(schema.properties?.item?.properties?.tags?.default).toEqual(['x']);
  });

  test('undefined means that the property is absent', () => {
    expect(received({ id: 'a', note: undefined })).toEqual({ id: 'a', limit: 10 });
  });
});

describe('any arguments', () => {
  test('accepted arguments are accepted again, without changes', () => {
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
