import type { JsonSchema } from '../contract/json-schema.js';
import { resolveReference } from './resolve-reference.js';

/** Keywords whose schemas judge the same value as the schema they stand in. */
const SAME_VALUE = ['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else', 'not', 'propertyNames'];
const SAME_VALUE_BY_KEY = ['dependentSchemas', 'dependencies'];
/** Keywords whose schemas judge members of the value, whatever their key. */
const MEMBERS = [
  'additionalProperties',
  'unevaluatedProperties',
  'items',
  'prefixItems',
  'additionalItems',
  'unevaluatedItems',
  'contains',
];

/**
 * Every schema below `start` that judges the value at a path. The validator names the schema that an error
 * arose in as an object; its path in the schema stops at each `$ref` and does not tell which branch of a
 * union led there.
 */
export function schemasAt(
  start: JsonSchema,
  path: readonly string[],
  root: JsonSchema,
): ReadonlySet<JsonSchema> {
  let level = sameValue([start], root);
  for (const key of path)
    level = sameValue(
      [...level].flatMap((schema) => memberSchemas(schema, key)),
      root,
    );
  return level;
}

function sameValue(starts: readonly JsonSchema[], root: JsonSchema): Set<JsonSchema> {
  const found = new Set<JsonSchema>();
  const open = [...starts];
  for (let schema = open.pop(); schema !== undefined; schema = open.pop()) {
    if (found.has(schema)) continue;
    found.add(schema);
    if (typeof schema.$ref === 'string') open.push(resolveReference(schema, root));
    for (const keyword of SAME_VALUE) open.push(...schemasIn(schema[keyword]));
    for (const keyword of SAME_VALUE_BY_KEY) open.push(...valuesOf(schema[keyword]));
  }
  return found;
}

function memberSchemas(schema: JsonSchema, key: string): readonly JsonSchema[] {
  const { properties = {} } = schema;
  return [
    ...(Object.hasOwn(properties, key) ? schemasIn(properties[key]) : []),
    ...valuesOf(schema.patternProperties),
    ...MEMBERS.flatMap((keyword) => schemasIn(schema[keyword])),
  ];
}

function schemasIn(node: unknown): readonly JsonSchema[] {
  if (Array.isArray(node)) return node.filter(isSchema);
  return isSchema(node) ? [node] : [];
}

function valuesOf(node: unknown): readonly JsonSchema[] {
  return isSchema(node) ? Object.values(node).filter(isSchema) : [];
}

function isSchema(node: unknown): node is JsonSchema {
  return typeof node === 'object' && node !== null && !Array.isArray(node);
}
