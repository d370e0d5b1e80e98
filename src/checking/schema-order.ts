import type { ArgumentFault } from '../contract/argument-fault.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { resolveReference } from './resolve-reference.js';

/** Faults in the order in which the schema lists the properties; unknown places last, in their own order. */
export function schemaOrder(faults: readonly ArgumentFault[], schema: JsonSchema): readonly ArgumentFault[] {
  const ranked = faults.map((fault) => ({ fault, ranks: ranksOf(fault.path, schema) }));
  ranked.sort((one, other) => compare(one.ranks, other.ranks));
  return ranked.map(({ fault }) => fault);
}

function ranksOf(path: string, root: JsonSchema): readonly number[] {
  let schemas: readonly JsonSchema[] = [root];
  return path.split('.').map((part) => {
    const current = schemas.flatMap((schema) => withBranches(schema, root));
    const names = [...new Set(current.flatMap(({ properties = {} }) => Object.keys(properties)))];
    const position = names.indexOf(part);
    schemas = current.flatMap(({ properties = {}, items }) => {
      if (position >= 0) return Object.hasOwn(properties, part) ? [properties[part] as JsonSchema] : [];
      return isSchema(items) ? [items] : [];
    });
    if (position >= 0) return position;
    return /^\d+$/.test(part) ? Number(part) : Number.MAX_SAFE_INTEGER;
  });
}

/** The schema behind a reference, or the branches that stand for it: of a union, one branch's faults are told. */
function withBranches(schema: JsonSchema, root: JsonSchema): readonly JsonSchema[] {
  const resolved = resolveReference(schema, root);
  const branches = [...(resolved.anyOf ?? []), ...((resolved.oneOf ?? []) as readonly JsonSchema[])];
  return [resolved, ...branches.map((branch) => resolveReference(branch, root))];
}

function isSchema(items: JsonSchema['items']): items is JsonSchema {
  return typeof items === 'object' && !Array.isArray(items);
}

function compare(one: readonly number[], other: readonly number[]): number {
  for (let index = 0; index < Math.min(one.length, other.length); index += 1) {
    const difference = (one[index] ?? 0) - (other[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}
