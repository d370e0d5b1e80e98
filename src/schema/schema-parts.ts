import type { JsonSchema } from '../contract/json-schema.js';

/** Keywords under which one schema, a list of schemas, or schemas by name stand. */
const ONE = ['items', 'additionalProperties'] as const;
const LIST = ['anyOf', 'prefixItems'] as const;

/** A schema with each schema directly within it replaced; everything else stays as it is. */
export function schemaParts(schema: JsonSchema, replace: (part: JsonSchema) => JsonSchema): JsonSchema {
  const replaced: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (ONE.some((one) => one === keyword) && isSchemaNode(value)) replaced[keyword] = replace(value);
    else if (LIST.some((one) => one === keyword) && Array.isArray(value)) {
      replaced[keyword] = value.map((one: unknown) => (isSchemaNode(one) ? replace(one) : one));
    } else if (keyword === 'properties' && isSchemaNode(value)) {
      replaced[keyword] = Object.fromEntries(
        Object.entries(value).map(([name, one]) => [name, isSchemaNode(one) ? replace(one) : one]),
      );
    } else replaced[keyword] = value;
  }
  return replaced;
}

/** Whether something is a schema and not `true`, a list or a plain value. */
export function isSchemaNode(node: unknown): node is JsonSchema {
  return typeof node === 'object' && node !== null && !Array.isArray(node);
}
