import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { JsonSchema } from 'toolwright';
import { compileSchema } from '../../../src/checking/compile.js';
import { describeErrors } from '../../../src/checking/faults.js';
import { interpretSchema } from '../../../src/checking/interpreter/interpret-schema.js';
import type { SchemaError } from '../../../src/checking/interpreter/judge.js';
import { runs } from '../../setup/runs.js';
import { anySchema, anyValue } from './any-schema.js';

const wrap = (schema: JsonSchema): JsonSchema => ({ properties: { a: schema }, items: schema });

describe.each(['7', '2020-12'] as const)('an interpreted schema of draft %s', (draft) => {
  const schemas = fc.tuple(anySchema(draft), anySchema(draft), anySchema(draft));
  const values = fc.array(anyValue, { minLength: 20, maxLength: 20 });

  test('has the verdicts and the errors of the compiled one', () => {
    const property = fc.property(schemas, values, ([root, one, other], each) => {
      const schema: JsonSchema = {
        ...(draft === '7' ? { $schema: 'http://json-schema.org/draft-07/schema#' } : {}),
        allOf: [root],
        $defs: { one: wrap(one), other: wrap(other) },
      };
      const interpreted = interpretSchema(schema);
      fc.pre(!interpreted.isBetterInterpreted);
      const compiled = compileSchema(schema);
      const verdict = (errors: readonly SchemaError[] | undefined) => ({
        errors: errors?.map(essence),
        told: errors && describeErrors(errors, schema),
        fits: errors === undefined,
      });
      const verdicts = each.map((value) => {
        return { ...verdict(interpreted.check(value)), fits: interpreted.test(value) };
      });
      // Once for all values: to expect something takes longer than to judge a value.
      expect(verdicts).toEqual(each.map((value) => verdict(compiled(value))));
    });
    fc.assert(property, { numRuns: runs(300) });
  });
});

function essence({ keyword, instancePath, params, data }: SchemaError) {
  return { keyword, instancePath, params, data };
}
