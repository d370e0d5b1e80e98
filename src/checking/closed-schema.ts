import type { JsonSchema } from '../contract/json-schema.js';
import { findReference } from '../schema/find-reference.js';
import { allSchemas, eachSubschema, mapSubschemas } from '../schema/keywords.js';

/**
 * Keywords under which schemas can be closed. Under any other, closing could change what is accepted in both
 * directions, not only make it stricter: a value that a closed branch no longer matches may make `oneOf` or
 * `not` succeed.
 */
const CLOSABLE: ReadonlySet<string> = new Set([
  'properties',
  '$defs',
  'definitions',
  'items',
  'prefixItems',
  'additionalProperties',
  'anyOf',
  'contentSchema',
]);

/** The names of the properties that are filled in where they are left out. */
export type FilledIn = (schema: JsonSchema) => readonly string[];

/**
 * A stricter form of a schema that accepts only what needs no tidying: no unknown keys anywhere, and below
 * the root no default left to fill in. Whatever it accepts, the schema itself accepts too; one pass of it
 * is all that a well-formed call costs. `undefined` where no such form can be derived.
 */
export function closedSchema(schema: JsonSchema, filledIn: FilledIn): JsonSchema | undefined {
  const parts = allSchemas(schema);
  for (const part of parts) if (isDelicate(part, { root: schema, parts })) return undefined;
  const closed = close(schema, filledIn);
  // The root's own defaults are filled in without a closer look.
  return refersToRoot(parts, schema) ? closed : { ...closed, required: schema.required ?? [] };
}

interface Whole {
  readonly root: JsonSchema;
  readonly parts: ReadonlySet<JsonSchema>;
}

function isDelicate(schema: JsonSchema, { root, parts }: Whole): boolean {
  const { $ref, $dynamicRef, $recursiveRef } = schema;
  if (($dynamicRef ?? $recursiveRef ?? schema.dependentRequired ?? schema.maxProperties) !== undefined)
    return true;
  if (typeof $ref === 'string') {
    const target = findReference($ref, { root, from: schema });
    if (typeof target !== 'object' || !parts.has(target)) return true;
  }
  let isOpenable = false;
  eachSubschema(schema, ({ name }) => {
    isOpenable ||= !CLOSABLE.has(name);
  });
  return isOpenable;
}

function refersToRoot(parts: ReadonlySet<JsonSchema>, root: JsonSchema): boolean {
  for (const part of parts)
    if (typeof part.$ref === 'string' && findReference(part.$ref, { root, from: part }) === root) return true;
  return false;
}

function close(schema: JsonSchema, filledIn: FilledIn): JsonSchema {
  const { properties, additionalProperties, anyOf } = schema;
  const closed = mapSubschemas(schema, (part) => close(part, filledIn));
  if (properties === undefined) return closed;
  const isOpen = additionalProperties === undefined && anyOf === undefined;
  return {
    ...closed,
    ...(isOpen ? { additionalProperties: false } : {}),
    required: [...new Set([...(schema.required ?? []), ...filledIn(schema)])],
  };
}
