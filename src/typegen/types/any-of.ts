import type { DescribedSchema } from './described-schema.js';

/** Whatever one of the schemas lets through. Types that differ for TypeScript may be the same in JSON. */
export function anyOf(schemas: readonly DescribedSchema[]): DescribedSchema {
  const [only, ...others] = new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values();
  if (only === undefined || others.length === 0) return only ?? {};
  // A branch without constraints lets everything through.
  const isOpen = schemas.some((schema) => Object.keys(schema).length === 0);
  return isOpen ? {} : { anyOf: [only, ...others] };
}
