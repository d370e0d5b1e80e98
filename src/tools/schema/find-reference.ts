import type { JsonSchema } from '../../core/contract/json-schema.js';
import { cached } from '../../core/kernel/cached.js';
import { type Fields, isObject, keyOfStep } from '../../core/kernel/json.js';
import { isSchemaNode, subschemas } from './keywords.js';

/**
 * The target of a reference within its root; `undefined` if it does not exist or is outside. `from`: the schema with
 * the reference, by default the root.
 */
export function findReference(
  reference: string,
  root: JsonSchema,
  from: JsonSchema = root,
): JsonSchema | boolean | undefined {
  const { bases, named } = cached(known, root, addressesOf);
  const [address = '', ...parts] = resolveUri(reference, bases.get(from) ?? ROOT).split('#');
  const fragment = parts.join('#');
  const resource = named.get(address);
  if (resource === undefined || fragment === '') return resource;
  if (!fragment.startsWith('/')) return named.get(`${address}#${fragment}`);
  let node: unknown = resource;
  for (const step of fragment.split('/').slice(1)) {
    const key = readStep(step);
    if (!isObject(node) || !Object.hasOwn(node, key)) return undefined;
    node = (node as Fields)[key];
  }
  return isSchemaNode(node) || typeof node === 'boolean' ? node : undefined;
}

/** The addresses of a schema's parts, from their ids. */
interface Addresses {
  /** The base address for the references of each part. */
  readonly bases: ReadonlyMap<JsonSchema, string>;
  readonly named: ReadonlyMap<string, JsonSchema>;
}

/** The address of a schema without an id. */
const ROOT = 'schema://whole/';

const known = new WeakMap<JsonSchema, Addresses>();

function addressesOf(root: JsonSchema): Addresses {
  const bases = new Map<JsonSchema, string>([[root, ROOT]]);
  const named = new Map<string, JsonSchema>([[ROOT, root]]);
  for (const [schema, around] of bases) {
    const { $id, $anchor, $dynamicAnchor } = schema;
    const base = typeof $id === 'string' ? resolveUri($id.replace(/#$/, ''), around) : around;
    // In draft 7, an id that is only a fragment is an anchor.
    if (base.includes('#')) named.set(base, schema);
    else {
      bases.set(schema, base);
      if (base !== around) named.set(base, schema);
    }
    for (const anchor of [$anchor, $dynamicAnchor])
      if (typeof anchor === 'string') named.set(`${base.split('#')[0]}#${anchor}`, schema);
    for (const part of subschemas(schema)) if (!bases.has(part)) bases.set(part, bases.get(schema) ?? base);
  }
  return { bases, named };
}

function resolveUri(reference: string, base: string): string {
  if (reference.startsWith('#')) return base.split('#')[0] + reference;
  return URL.parse(reference, base)?.href ?? reference;
}

function readStep(step: string): string {
  try {
    return keyOfStep(decodeURIComponent(step));
  } catch {
    return step;
  }
}
