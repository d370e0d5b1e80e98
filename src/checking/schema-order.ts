import type { JsonSchema } from '../contract/json-schema.js';
import { levelOf, type SchemaLevel } from './schema-level.js';

/** Something that lies at a place in the arguments. */
export interface Placed {
  /** The keys and indices that lead there. */
  readonly steps: readonly string[];
}

/** Faults in the order in which the schema lists the properties; unknown places last, in their own order. */
export function schemaOrder<Fault extends Placed>(
  faults: readonly Fault[],
  schema: JsonSchema,
): readonly Fault[] {
  const root = levelOf(schema);
  const ranked = faults.map((fault) => ({ fault, ranks: ranksOf(fault.steps, root) }));
  ranked.sort((one, other) => compare(one.ranks, other.ranks));
  return ranked.map(({ fault }) => fault);
}

function ranksOf(steps: readonly string[], root: SchemaLevel): readonly number[] {
  let level = root;
  return steps.map((step) => {
    const position = level.positions.get(step);
    level = level.below(step);
    if (position !== undefined) return position;
    return /^\d+$/.test(step) ? Number(step) : Number.MAX_SAFE_INTEGER;
  });
}

function compare(one: readonly number[], other: readonly number[]): number {
  for (let index = 0; index < Math.min(one.length, other.length); index += 1) {
    const difference = (one[index] ?? 0) - (other[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}
