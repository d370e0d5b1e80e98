import { afterAll, expect, test } from '@jest/globals';
import { closeCompilers } from './compilers.js';
import { generateTool } from './small-project.js';

afterAll(closeCompilers);

test('a const enum becomes an enum of its values with the comments of its members', async () => {
  const { text } = await generateTool(
    '  @Tool() run(level: Level, other = Level.High) {}',
    'const enum Level { /** Hardly */ Low, High = 5 }',
  );
  expect(text).toContain(
    "{ name: 'level', schema: { type: 'number', enum: [0, 5], description: '- `0`: Hardly' } }",
  );
  expect(text).toContain('default: 5');
});

test('types inferred by zod are resolved, and defaults are optional in z.input', async () => {
  const before = `import { z } from 'zod';
    const Address = z.object({ zip: z.string(), country: z.enum(['DE', 'AT']).default('DE'), at: z.date().nullable() });
    type Address = z.infer<typeof Address>;`;
  const { faults, text } = await generateTool(
    '  @Tool() run(given: z.input<typeof Address>, a: Address) {}',
    before,
  );
  expect(faults).toEqual([]);
  expect(text).toContain("country: { type: 'string', enum: ['AT', 'DE'] }");
  expect(text).toContain("at: { type: ['string', 'null'], format: 'date-time', instanceOf: Date }");
  expect(text).toContain("required: ['zip', 'at']");
  expect(text).toContain("required: ['zip', 'country', 'at']");
});

test('recursive filter types, as Prisma generates them, become $defs', async () => {
  const before = `type Where = { AND?: Where | Where[]; email?: Filter<'User'> | string };
    type Filter<Model = never> = { equals?: string; not?: Filter<Model> | string };`;
  const { faults, text } = await generateTool('  @Tool() run(where: Where) {}', before);
  expect(faults).toEqual([]);
  expect(text).toContain("{ name: 'where', schema: { $ref: '#/$defs/Where' } }");
  expect(text.replace(/\s+/g, ' ')).toContain(
    "AND: { anyOf: [ { $ref: '#/$defs/Where' }, { type: 'array', items: { $ref: '#/$defs/Where' } }",
  );
});
