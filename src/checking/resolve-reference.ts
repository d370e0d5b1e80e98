import type { JsonSchema } from '../contract/json-schema.js';

/** The schema a local `$ref` points at; any other schema as it is, and an unresolvable one as `{}`. */
export function resolveReference(schema: JsonSchema, root: JsonSchema): JsonSchema {
  let current = schema;
  // References may chain; a chain longer than this is a cycle.
  for (let hops = 0; typeof current.$ref === 'string' && hops < 32; hops += 1)
    current = lookUp(current.$ref, root);
  return current;
}

function lookUp(reference: string, root: JsonSchema): JsonSchema {
  if (reference !== '#' && !reference.startsWith('#/')) return {};
  let node: unknown = root;
  for (const part of reference.split('/').slice(1)) {
    const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    node = isObject(node) && Object.hasOwn(node, key) ? node[key] : undefined;
  }
  return isObject(node) ? node : {};
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null;
}
