import type { JsonSchema } from '../../contract/json-schema.js';
import { findReference } from '../../schema/find-reference.js';
import { isSchemaNode, subschemas } from '../../schema/keywords.js';

/** Every schema that may judge something: those within a schema, and those that references lead to. */
export function everySchema(root: JsonSchema): ReadonlySet<JsonSchema> {
  const found = new Set([root]);
  for (const schema of found) {
    for (const part of subschemas(schema)) found.add(part);
    const target = referredSchema(schema, root);
    if (target !== undefined) found.add(target);
  }
  return found;
}

/** What a schema refers to, as far as that does not depend on who asks. */
export function referredSchema(schema: JsonSchema, root: JsonSchema): JsonSchema | undefined {
  const reference = schema.$ref ?? schema.$dynamicRef ?? schema.$recursiveRef;
  if (typeof reference !== 'string') return undefined;
  const target = findReference(reference, { root, from: schema });
  return isSchemaNode(target) ? target : undefined;
}
