import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { JsonSchema } from 'toolwright';
import { interpretSchema } from '../../../src/tools/checking/interpreter/interpret-schema.js';
import { runs } from '../../setup/runs.js';
import { anySchema, anyValue } from './any-schema.js';

const wrap = (schema: JsonSchema): JsonSchema => ({ properties: { a: schema }, items: schema });

describe.each(['7', '2020-12'] as const)('an interpreted schema of draft %s', (draft) => {
  const schemas = fc.tuple(anySchema(draft), anySchema(draft), anySchema(draft));
  const values = fc.array(anyValue, { minLength: 20, maxLength: 20 });

  test('test, check and generated code give the same results', () => {
    const property = fc.property(schemas, values, ([root, one, other], each) => {
      const schema: JsonSchema = {
        ...(draft === '7' ? { $schema: 'http://json-schema.org/draft-07/schema#' } : {}),
        allOf: [root],
        $defs: { one: wrap(one), other: wrap(other) },
      };
      const { test, check, generate = () => test } = interpretSchema(schema);
      const generated = generate();
      const verdicts = each.map((value) => [check(value) === undefined, test(value), generated(value)]);
      // Once for all values: expect takes longer than validating a value.
      expect(verdicts).toEqual(verdicts.map(([fits]) => [fits, fits, fits]));
    });
    fc.assert(property, { numRuns: runs(300) });
  });
});

test('a schema that refers to itself twice does not double the work at each level', () => {
  const node = { $ref: '#/$defs/node' };
  const branches: JsonSchema[] = [
    { type: 'object', properties: { a: node }, required: ['a', 'missing'] },
    { type: 'object', properties: { a: node, b: { type: 'string' } } },
    { type: 'null' },
  ];
  const schema: JsonSchema = { ...node, $defs: { node: { anyOf: branches } } };
  const nested = (end: unknown): unknown => {
    let value = end;
    for (let level = 0; level < 60; level += 1) value = { a: value };
    return value;
  };
  const { test: fits, check, generate = () => fits } = interpretSchema(schema);
  const generated = generate();
  for (const end of [null, 5, null]) {
    const [value, isRight] = [nested(end), end === null];
    expect([fits(value), generated(value), check(value) === undefined]).toEqual([isRight, isRight, isRight]);
  }
});

test('no text of a schema is run as code, even if the schema is invalid', () => {
  const ran: string[] = [];
  Object.assign(globalThis, { ranByASchema: (keyword: string) => ran.push(keyword) });
  const evil = (keyword: string) => `ranByASchema('${keyword}')`;
  const numbers = ['maximum', 'minimum', 'exclusiveMaximum', 'exclusiveMinimum'];
  const lengths = ['maxLength', 'minLength', 'maxItems', 'minItems'];
  const schemas: JsonSchema[] = [
    ...[...numbers, ...lengths].map((keyword) => ({ [keyword]: evil(keyword) }) as JsonSchema),
    { type: `x' || ${evil('type')} || '` } as unknown as JsonSchema,
    { enum: [`' + ${evil('enum')} + '`, `\u2028${evil('line')}`] },
    { properties: { [`"]; ${evil('properties')}; value["`]: { type: 'string' } } },
    { required: [`"]; ${evil('required')}; value["`] },
    { properties: { a: {} }, additionalProperties: false, required: [`' || ${evil('others')} || '`] },
  ];
  try {
    for (const schema of schemas)
      for (const value of [0, 'text', [1], { a: 1, b: 2 }, null]) interpretSchema(schema).generate?.()(value);
    expect(ran).toEqual([]);
  } finally {
    Reflect.deleteProperty(globalThis, 'ranByASchema');
  }
});
