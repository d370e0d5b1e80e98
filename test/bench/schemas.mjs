/* The workloads' schemas: for the floor as JSON Schema, for the peers as zod. */
import { z } from 'zod';

const text = { type: 'string' };

const object = (properties, optional = []) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
});

/** JSON Schemas by the name of the tool. */
export const jsonSchemas = {
  add: object({ a: { type: 'number' }, b: { type: 'number' } }),
  search: object(
    {
      query: { ...text, minLength: 1, maxLength: 200 },
      mode: { ...text, enum: ['exact', 'fuzzy', 'semantic'] },
      limit: { type: 'integer', minimum: 1, maximum: 50, default: 10 },
      tags: { type: 'array', items: text, maxItems: 10 },
    },
    ['limit', 'tags'],
  ),
  create_order: object({
    customer: object({
      name: { ...text, minLength: 1 },
      email: { ...text, format: 'email' },
      address: object({
        street: text,
        city: text,
        zip: text,
        country: { ...text, minLength: 2, maxLength: 2 },
      }),
    }),
    items: {
      type: 'array',
      minItems: 1,
      items: object(
        {
          sku: text,
          quantity: { type: 'integer', minimum: 1 },
          price: { type: 'number', minimum: 0 },
          note: text,
        },
        ['note'],
      ),
    },
    labels: { type: 'object', additionalProperties: text },
  }),
};

/** `absent` says how an optional property is written: a strict-mode peer wants `null` instead of nothing. */
const zodSchemasWith = (absent) => ({
  add: z.object({ a: z.number(), b: z.number() }),
  search: z.object({
    query: z.string().min(1).max(200),
    mode: z.enum(['exact', 'fuzzy', 'semantic']),
    limit: z.int().min(1).max(50).default(10),
    tags: absent(z.array(z.string()).max(10)),
  }),
  create_order: z.object({
    customer: z.object({
      name: z.string().min(1),
      email: z.email(),
      address: z.object({
        street: z.string(),
        city: z.string(),
        zip: z.string(),
        country: z.string().length(2),
      }),
    }),
    items: z
      .array(
        z.object({
          sku: z.string(),
          quantity: z.int().min(1),
          price: z.number().min(0),
          note: absent(z.string()),
        }),
      )
      .min(1),
    labels: z.record(z.string(), z.string()),
  }),
});

/** zod schemas by the name of the tool. */
export const zodSchemas = zodSchemasWith((type) => type.optional());

/** The same where optional has to be nullable. */
export const strictZodSchemas = zodSchemasWith((type) => type.nullish());
