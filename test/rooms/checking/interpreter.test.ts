import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { JsonSchema } from 'toolwright';
import { interpretSchema } from '../../../src/checking/interpreter/interpret-schema.js';
import { runs } from '../../setup/runs.js';
import { anySchema, anyValue } from './any-schema.js';

const wrap = (schema: JsonSchema): JsonSchema => ({ properties: { a: schema }, items: schema });

describe.each(['7', '2020-12'] as const)('an interpreted schema of draft %s', (draft) => {
  const schemas = fc.tuple(anySchema(draft), anySchema(draft), anySchema(draft));
  const values = fc.array(anyValue, { minLength: 20, maxLength: 20 });

  test('has the same verdicts as a test, with errors, and as generated code', () => {
    const property = fc.property(schemas, values, ([root, one, other], each) => {
      const schema: JsonSchema = {
        ...(draft === '7' ? { $schema: 'http://json-schema.org/draft-07/schema#' } : {}),
        allOf: [root],
        $defs: { one: wrap(one), other: wrap(other) },
      };
      const { test, check, generate = () => test } = interpretSchema(schema);
      const generated = generate();
      const verdicts = each.map((value) => [check(value) === undefined, test(value), generated(value)]);
      // Once for all values: to expect something takes longer than to judge a value.
      expect(verdicts).toEqual(verdicts.map(([fits]) => [fits, fits, fits]));
    });
    fc.assert(property, { numRuns: runs(300) });
  });
});
