import type { JsonSchema } from '../contract/json-schema.js';
import type { Definitions } from './definitions.js';

/**
 * An explicit schema as part of a larger one. References into itself (`#`, `#/$defs/Node`) would point at
 * the larger one there, so what they mean moves to its `$defs`. A schema without any keeps its bytes.
 */
export function embedSchema(schema: JsonSchema, definitions: Definitions): JsonSchema {
  if (!refersToItself(schema)) return schema;
  const embed: Embedding = { root: schema, definitions };
  const { $defs: _, definitions: __, ...body } = schema;
  return rewrite(body, embed) as JsonSchema;
}

interface Embedding {
  readonly root: JsonSchema;
  readonly definitions: Definitions;
}

function refersToItself(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false;
  return (
    isLocal(Object.getOwnPropertyDescriptor(node, '$ref')?.value) || Object.values(node).some(refersToItself)
  );
}

function isLocal(reference: unknown): reference is string {
  return typeof reference === 'string' && reference.startsWith('#');
}

function rewrite(node: unknown, embed: Embedding): unknown {
  if (Array.isArray(node)) return node.map((item) => rewrite(item, embed));
  if (typeof node !== 'object' || node === null) return node;
  const entries = Object.entries(node).map(([key, value]) =>
    key === '$ref' && isLocal(value)
      ? ['$ref', move(value, embed).$ref]
      : [key, key === 'enum' || key === 'const' || key === 'default' ? value : rewrite(value, embed)],
  );
  return Object.fromEntries(entries);
}

/** The definition that a reference means, moved to the larger schema on first use. */
function move(reference: string, embed: Embedding): JsonSchema {
  const steps = reference.split('/').slice(1).map(readStep);
  const target = follow(embed.root, steps);
  if (target === undefined) return { $ref: reference };
  const { $defs: _, definitions: __, ...body } = target;
  return embed.definitions.refer(
    target,
    steps.at(-1) ?? embed.root.title?.toString() ?? 'Schema',
    () => rewrite(body, embed) as JsonSchema,
  );
}

function follow(root: JsonSchema, steps: readonly string[]): JsonSchema | undefined {
  let node: unknown = root;
  for (const step of steps) {
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, step)) return undefined;
    node = (node as Record<string, unknown>)[step];
  }
  return typeof node === 'object' && node !== null ? (node as JsonSchema) : undefined;
}

function readStep(step: string): string {
  return decodeURIComponent(step).replace(/~1/g, '/').replace(/~0/g, '~');
}
