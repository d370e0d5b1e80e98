/* The schemas of the workloads as JSON Schema, for the baseline and for comparisons of builds. */

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
