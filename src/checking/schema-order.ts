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
  let schema: JsonSchema | undefined = root;
  return path.split('.').map((part) => {
    const current: JsonSchema = schema ? resolveReference(schema, root) : {};
    const names = Object.keys(current.properties ?? {});
    const position = names.indexOf(part);
    if (position >= 0) {
      schema = current.properties?.[part];
      return position;
    }
    schema = isSchema(current.items) ? current.items : undefined;
    return /^\d+$/.test(part) ? Number(part) : Number.MAX_SAFE_INTEGER;
  });
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
