import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type JsonSchema, strictSchema } from 'toolwright';
import { interpretSchema } from '../../../src/tools/checking/interpreter/interpret-schema.js';
import { KEYWORDS } from '../../../src/tools/schema/keywords.js';
import { runs } from '../../setup/runs.js';
import { anySchema, anyValue } from '../checking/any-schema.js';
import { outsideSubset } from './strict-subset.js';
import { schemaWithValues } from './strict-values.js';

/** The property names also occur in the values, so that some values match. */
function rootOf(schema: JsonSchema, [one, other]: readonly [JsonSchema, JsonSchema]): JsonSchema {
  const part = (name: string, below: JsonSchema): JsonSchema => ({
    type: 'object',
    properties: { a: below, [name]: { $ref: '#/$defs/one' } },
  });
  return {
    type: 'object',
    properties: { value: schema },
    required: ['value'],
    $defs: { one: part('b', one), other: part('c', other) },
  };
}

test('strictSchema converts a value to one that fits the strict schema, and restores it', () => {
  const property = fc.property(schemaWithValues, ({ schema, values }) => {
    const strict = strictSchema(schema);
    if (!strict.isStrict) return;
    const strictly = interpretSchema(strict.schema);
    for (const value of values) {
      const forward = strict.forward(value);
      expect(strict.restore(forward)).toEqual(value);
      // A schema that would be too large is narrowed, and values outside of it do not fit.
      if (strict.edits.some(({ kind }) => kind === 'narrowed')) continue;
      expect({ value, forward, faults: strictly.check(forward) ?? [] }).toEqual({
        value,
        forward,
        faults: [],
      });
    }
  });
  fc.assert(property, { numRuns: runs(300) });
});

test('strictSchema writes only the documented subset', () => {
  const part = anySchema('2020-12');
  const property = fc.property(part, part, part, (schema, one, other) => {
    for (const root of [schema, rootOf(schema, [one, other])]) {
      const strict = strictSchema(Object(root) as JsonSchema);
      if (strict.isStrict) expect(outsideSubset(strict.schema)).toEqual([]);
      else expect(strict.reasons).not.toEqual([]);
    }
  });
  fc.assert(property, { numRuns: runs(500) });
});

test('strictSchema does not throw for invalid schemas, and writes only the documented subset', () => {
  const odd = fc.constantFrom<unknown>(null, 0, 1.5, 'a', true, false, [], {}, [null], { a: null }, [[]], {
    a: 1,
  });
  const schema = fc.dictionary(fc.constantFrom(...KEYWORDS.keys()), odd, { maxKeys: 6 });
  const property = fc.property(schema, (part) => {
    for (const root of [part, { type: 'object', properties: { part } }]) {
      const strict = strictSchema(root as JsonSchema);
      if (strict.isStrict) expect(outsideSubset(strict.schema)).toEqual([]);
    }
  });
  fc.assert(property, { numRuns: runs(500) });
});

test('strictSchema restores every value that fits a schema of any keywords', () => {
  const part = anySchema('2020-12');
  const values = fc.array(anyValue, { minLength: 8, maxLength: 8 });
  const property = fc.property(part, part, part, values, (schema, one, other, sent) => {
    const root = rootOf(schema, [one, other]);
    const strict = strictSchema(root);
    // If a type is only implied, values of other types also fit the schema.
    if (!strict.isStrict || strict.edits.some(({ kind }) => kind === 'type')) return;
    const ordinary = interpretSchema(root);
    for (const value of sent) {
      const args = { value };
      // JSON has no Infinity, and a schema may have an infinite reference.
      fc.pre(JSON.stringify(args) !== undefined && !JSON.stringify(root).includes('Infinity'));
      const json: unknown = JSON.parse(JSON.stringify(args));
      if (!ordinary.test(json)) continue;
      expect(strict.restore(strict.forward(json))).toEqual(json);
    }
  });
  fc.assert(property, { numRuns: runs(300) });
});

test('restore and forward neither throw for any value nor change it', () => {
  const part = anySchema('2020-12');
  const property = fc.property(part, part, anyValue, (schema, one, value) => {
    const strict = strictSchema(rootOf(schema, [one, {}]));
    if (!strict.isStrict) return;
    for (const args of [value, { value }, [value], undefined]) {
      const before = structuredClone(args);
      const restored = strict.restore(args);
      strict.forward(args);
      expect(args).toEqual(before);
      if (typeof restored === 'object' && restored !== null) expect(restored).not.toBe(args);
    }
  });
  fc.assert(property, { numRuns: runs(300) });
});
