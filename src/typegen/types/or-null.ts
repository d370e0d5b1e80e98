import { nullableSchema } from '../../schema/nullable-schema.js';
import type { DescribedSchema } from './described-schema.js';

/** The schema, or `null`; a constant beside `null` is a list of two. */
export function orNull({ const: only, ...others }: DescribedSchema): DescribedSchema {
  return nullableSchema(only === undefined ? others : { ...others, enum: [only] });
}
