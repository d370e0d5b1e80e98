import type { JsonSchema } from '../../core/contract/json-schema.js';
import { keyOfStep } from '../../core/kernel/json.js';
import { isSchemaNode, subschemas } from './keywords.js';

/** Where a reference stands: in which whole, and in which schema of it, the root by default. */
interface ReferencePlace {
  readonly root: JsonSchema;
  readonly from?: JsonSchema;
}

/** What a reference means, within its whole; nothing for one that leads nowhere or out of it. */
export function findReference(
  reference: string,
  { root, from = root }: ReferencePlace,
): JsonSchema | boolean | undefined {
  const { bases, named } = addressesOf(root);
  const [address = '', fragment = ''] = split(resolveUri(reference, bases.get(from) ?? ROOT));
  const resource = named.get(address);
  if (resource === undefined || fragment === '') return resource;
  return fragment.startsWith('/') ? follow(resource, fragment) : named.get(`${address}#${fragment}`);
}

/** What the ids in a schema make of its parts. */
interface Addresses {
  /** What the references of each part are relative to. */
  readonly bases: ReadonlyMap<JsonSchema, string>;
  readonly named: ReadonlyMap<string, JsonSchema>;
}

/** The address of a schema that gives itself none. */
const ROOT = 'schema://whole/';

const known = new WeakMap<JsonSchema, Addresses>();

function addressesOf(root: JsonSchema): Addresses {
  const before = known.get(root);
  if (before !== undefined) return before;
  const bases = new Map<JsonSchema, string>([[root, ROOT]]);
  const named = new Map<string, JsonSchema>([[ROOT, root]]);
  for (const [schema, around] of bases) {
    const { $id, $anchor, $dynamicAnchor } = schema;
    const base = typeof $id === 'string' ? resolveUri($id.replace(/#$/, ''), around) : around;
    // In draft 7 an id that is a fragment only names its schema.
    if (base.includes('#')) named.set(base, schema);
    else {
      bases.set(schema, base);
      if (base !== around) named.set(base, schema);
    }
    for (const anchor of [$anchor, $dynamicAnchor])
      if (typeof anchor === 'string') named.set(`${split(base)[0]}#${anchor}`, schema);
    for (const part of subschemas(schema)) if (!bases.has(part)) bases.set(part, bases.get(schema) ?? base);
  }
  const addresses = { bases, named };
  known.set(root, addresses);
  return addresses;
}

function resolveUri(reference: string, base: string): string {
  if (reference.startsWith('#')) return split(base)[0] + reference;
  return URL.parse(reference, base)?.href ?? reference;
}

function split(uri: string): readonly [address: string, fragment: string] {
  const hash = uri.indexOf('#');
  return hash < 0 ? [uri, ''] : [uri.slice(0, hash), uri.slice(hash + 1)];
}

function follow(resource: JsonSchema, pointer: string): JsonSchema | boolean | undefined {
  let node: unknown = resource;
  for (const step of pointer.split('/').slice(1)) {
    const key = readStep(step);
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, key)) return undefined;
    node = (node as Readonly<Record<string, unknown>>)[key];
  }
  return isSchemaNode(node) || typeof node === 'boolean' ? node : undefined;
}

function readStep(step: string): string {
  try {
    return keyOfStep(decodeURIComponent(step));
  } catch {
    return step;
  }
}
