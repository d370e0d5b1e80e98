/* The workloads' schemas as zod, for the peers. */
import { z } from 'zod';

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
