import type { JsonSchema } from '../contract/json-schema.js';
import { findReference } from '../schema/find-reference.js';

/** References may chain; a chain longer than this is a cycle. */
const MOST_HOPS = 32;

const REFUSES_ALL: JsonSchema = { not: {} };

/**
 * The schema that a `$ref` points at; any other schema as it is, and an unresolvable one as `{}`. Where
 * `true` or `false` stands for a schema, the schema that means the same.
 */
export function resolveReference(schema: JsonSchema | boolean, root: JsonSchema): JsonSchema {
  let current = schema;
  for (let hops = 0; hops < MOST_HOPS; hops += 1) {
    if (typeof current === 'boolean') return current ? {} : REFUSES_ALL;
    if (typeof current.$ref !== 'string') return current;
    current = findReference(current.$ref, { root, from: current }) ?? {};
  }
  return {};
}
