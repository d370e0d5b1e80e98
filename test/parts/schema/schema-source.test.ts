import { describe, expect, test } from '@jest/globals';
import { Type } from '@sinclair/typebox';
import type { SchemaSource } from 'toolwright';
import { z } from 'zod';
import { readSchemaSource } from '../../../src/tools/schema/schema-source.js';

describe('readSchemaSource', () => {
  test('JSON Schema is returned unchanged', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      title: 'T',
      type: 'object',
      properties: { b: {}, a: { enum: [2, 1] } },
      'x-own': { k: 1 },
    };
    const read = readSchemaSource(schema);
    expect(JSON.stringify(read.ok && read.schema)).toBe(JSON.stringify(schema));
    expect(read.ok && read.standard).toBeUndefined();
  });

  test('a TypeBox schema is returned without its symbols', () => {
    const read = readSchemaSource(Type.Object({ city: Type.String(), days: Type.Optional(Type.Integer()) }));
    expect(read).toEqual({
      ok: true,
      schema: {
        type: 'object',
        properties: { city: { type: 'string' }, days: { type: 'integer' } },
        required: ['city'],
      },
    });
    expect(read.ok && Object.getOwnPropertySymbols(read.schema)).toEqual([]);
  });

  test('zod 4 returns the JSON Schema of its input, and the zod schema for parsing', () => {
    const source = z.object({ n: z.string().transform(Number), unit: z.enum(['C', 'F']).default('C') });
    const read = readSchemaSource(source);
    expect(read).toMatchObject({
      ok: true,
      schema: {
        type: 'object',
        properties: { n: { type: 'string' }, unit: { default: 'C' } },
        required: ['n'],
      },
      standard: source,
    });
    expect(read.ok && '$schema' in read.schema).toBe(false);
  });

  test('a Standard Schema with only the older toJSONSchema method is converted with it', () => {
    const source = {
      '~standard': { version: 1, vendor: 'older', validate: (value: unknown) => ({ value }) },
      toJSONSchema: ({ io }: { io: string }) => ({ type: 'string', description: io }),
    } as const;
    expect(readSchemaSource(source)).toMatchObject({
      ok: true,
      schema: { type: 'string', description: 'input' },
    });
  });

  test.each<[string, unknown, RegExp]>([
    [
      'a Standard Schema without JSON Schema',
      { '~standard': { version: 1, vendor: 'plain', validate: () => ({ value: 1 }) } },
      /\(plain\) without a JSON Schema/,
    ],
    [
      'a type that JSON does not have',
      z.object({ big: z.bigint(), any: z.any(), days: z.object({ off: z.array(z.date()) }) }),
      /cannot be written as JSON Schema by zod at `properties.big` and `properties.days.properties.off.items`: /,
    ],
    ['a string', 'string', /neither JSON Schema nor a Standard Schema/],
    ['undefined', undefined, /neither JSON Schema nor a Standard Schema/],
  ])('%s is a fault with a fix', (_, source, problem) => {
    const read = readSchemaSource(source as SchemaSource);
    expect(read).toMatchObject({
      ok: false,
      problem: expect.stringMatching(problem),
      fix: expect.any(String),
    });
  });

  test('a schema with a cycle is a fault instead of a crash', () => {
    const schema: Record<string, unknown> = { type: 'object' };
    schema.properties = { self: schema };
    expect(readSchemaSource(schema)).toMatchObject({
      ok: false,
      problem: expect.stringMatching(/not plain JSON/),
    });
  });
});
