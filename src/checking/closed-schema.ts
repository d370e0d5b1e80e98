import type { JsonSchema } from '../contract/json-schema.js';

/**
 * Keywords under which closing a schema could change what it accepts in both directions, not only make it
 * stricter: a value that a closed branch no longer matches may make `oneOf` or `not` succeed.
 */
const DELICATE: ReadonlySet<string> = new Set([
  'oneOf',
  'not',
  'if',
  'allOf',
  'contains',
  'dependentSchemas',
  'dependencies',
  'propertyNames',
  'patternProperties',
  'unevaluatedProperties',
  'unevaluatedItems',
  '$dynamicRef',
  '$recursiveRef',
]);

/**
 * A stricter form of a schema that accepts only what needs no tidying: no unknown keys anywhere, and below
 * the root no default left to fill in. Whatever it accepts, the schema itself accepts too; one pass of it
 * is all that a well-formed call costs. `undefined` where no such form can be derived.
 */
export function closedSchema(schema: JsonSchema): JsonSchema | undefined {
  if (isDelicate(schema)) return undefined;
  const { required = [] } = schema;
  return { ...close(schema), required };
}

/** A name that every object has by inheritance: whether it was sent takes a closer look. */
function isInherited(name: string): boolean {
  return name in Object.prototype;
}

function isDelicate(node: unknown): boolean {
  // In `required`; elsewhere it does no harm to be careful.
  if (typeof node === 'string') return isInherited(node);
  if (typeof node !== 'object' || node === null) return false;
  if (Array.isArray(node)) return node.some(isDelicate);
  return Object.entries(node).some(
    ([keyword, child]) => DELICATE.has(keyword) || isInherited(keyword) || isDelicate(child),
  );
}

function close(schema: JsonSchema): JsonSchema {
  const { properties, $defs, items, additionalProperties, anyOf } = schema;
  const open = properties !== undefined && additionalProperties === undefined && anyOf === undefined;
  return {
    ...schema,
    ...(properties ? { properties: closeAll(properties) } : {}),
    ...($defs ? { $defs: closeAll($defs) } : {}),
    ...(isSchema(items) ? { items: close(items) } : {}),
    ...(isSchema(additionalProperties) ? { additionalProperties: close(additionalProperties) } : {}),
    ...(anyOf ? { anyOf: anyOf.map((branch) => (isSchema(branch) ? close(branch) : branch)) } : {}),
    ...(open ? { additionalProperties: false } : {}),
    ...(properties
      ? { required: [...new Set([...(schema.required ?? []), ...withDefaults(properties)])] }
      : {}),
  };
}

function withDefaults(properties: Readonly<Record<string, JsonSchema>>): readonly string[] {
  return Object.keys(properties).filter(
    (name) => isSchema(properties[name]) && properties[name].default !== undefined,
  );
}

function closeAll(schemas: Readonly<Record<string, JsonSchema>>): Readonly<Record<string, JsonSchema>> {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, child]) => [name, isSchema(child) ? close(child) : child]),
  );
}

function isSchema(node: unknown): node is JsonSchema {
  return typeof node === 'object' && node !== null && !Array.isArray(node);
}
