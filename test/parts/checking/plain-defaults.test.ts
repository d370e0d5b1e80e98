import { test } from '@jest/globals';
import fc from 'fast-check';
import { defineTool, type JsonSchema, ToolRegistry } from 'toolwright';
import { rejectedDefaults } from '../../../src/tools/checking/schema-faults.js';

const VALUE = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom(0.5, -0, '', 'a', '1', true, false));

const PLAIN_SCHEMA = fc.record(
  {
    description: fc.constant('A value'),
    type: fc.constantFrom('string', 'number', 'integer', 'boolean', 'array', 'object', 'null'),
    enum: fc.array(VALUE, { minLength: 1, maxLength: 3 }),
    minimum: fc.integer({ min: -2, max: 0 }),
    maximum: fc.integer({ min: 0, max: 2 }),
    minLength: fc.integer({ min: 0, max: 2 }),
  },
  { requiredKeys: [] },
);

test('a default is rejected if and only if a call with the same value is', async () => {
  await fc.assert(
    fc.asyncProperty(PLAIN_SCHEMA, VALUE, async (schema, value) => {
      const taking = defineTool({
        name: 'take',
        description: 'Takes',
        coerce: false,
        parameters: { type: 'object', properties: { value: schema }, required: ['value'] },
        execute: () => 'taken',
      });
      const { isError } = await new ToolRegistry().register(taking).execute('take', { value });
      const withDefault: JsonSchema = { properties: { value: { ...schema, default: value } } };
      return rejectedDefaults(withDefault).length > 0 === isError;
    }),
    { numRuns: 300 },
  );
});
