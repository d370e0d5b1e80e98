/* The zod schemas of the workloads, for the peers. */
import { z } from 'zod';

/** `optional` makes a property optional: peers with strict mode require `null` for a missing value. */
const zodSchemasWith = (optional) => ({
  add: z.object({ a: z.number(), b: z.number() }),
  search: z.object({
    query: z.string().min(1).max(200),
    mode: z.enum(['exact', 'fuzzy', 'semantic']),
    limit: z.int().min(1).max(50).default(10),
    tags: optional(z.array(z.string()).max(10)),
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
          note: optional(z.string()),
        }),
      )
      .min(1),
    labels: z.record(z.string(), z.string()),
  }),
});

/** zod schemas by the name of the tool. */
export const zodSchemas = zodSchemasWith((type) => type.optional());

/** zod schemas whose optional properties are also nullable, for strict mode. */
export const strictZodSchemas = zodSchemasWith((type) => type.nullish());
