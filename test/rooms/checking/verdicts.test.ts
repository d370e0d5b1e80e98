import { expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { defineTool, ToolRegistry } from 'toolwright';
import { runs } from '../../setup/runs.js';
import { objectOf, randomValue, schemaOf, unionOf, wrapped } from './random-schema.js';

test('ToolRegistry.execute accepts exactly what ajv accepts where nothing is mended', async () => {
  const property = fc.asyncProperty(
    schemaOf(2),
    schemaOf(2),
    unionOf(3),
    fc.array(randomValue, { minLength: 10, maxLength: 10 }),
    async (one, other, root, values) => {
      const parameters = {
        type: 'object',
        properties: { value: root },
        $defs: { one: wrapped(one), other: wrapped(other) },
      };
      const validate = new Ajv2020({ strict: false, logger: false }).compile(parameters);
      const tools = new ToolRegistry({ coerce: false }).register(
        defineTool({ name: 'call', description: 'x', parameters, execute: () => 'ran' }),
      );
      for (const each of values) {
        const { isError } = await tools.execute('call', { value: each });
        expect(!isError).toBe(validate({ value: each }));
      }
    },
  );
  await fc.assert(property, { numRuns: runs(25) });
});

test('ToolRegistry.execute hands on what fits, and what it hands on fits still', async () => {
  const property = fc.asyncProperty(
    schemaOf(2),
    objectOf(3),
    fc.array(randomValue, { minLength: 10, maxLength: 10 }),
    async (one, root, values) => {
      const parameters = {
        type: 'object',
        properties: { value: root },
        required: ['value'],
        $defs: { one: wrapped(one), other: wrapped(one) },
      };
      const validate = new Ajv2020({ strict: false, logger: false }).compile(parameters);
      let delivered: unknown;
      const execute = (args: object): void => {
        delivered = args;
      };
      const tools = new ToolRegistry().register(
        defineTool({ name: 'call', description: 'x', parameters, execute }),
      );
      for (const each of values) {
        delivered = undefined;
        await tools.execute('call', { value: each });
        if (delivered !== undefined) expect([delivered, validate(delivered)]).toEqual([delivered, true]);
        if (validate({ value: each })) expect(delivered).toBeDefined();
      }
    },
  );
  await fc.assert(property, { numRuns: runs(25) });
});
