import type { JsonSchema } from '../contract/json-schema.js';
import { resolveReference } from './resolve-reference.js';

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
  const root = new Level([schema], schema);
  const ranked = faults.map((fault) => ({ fault, ranks: ranksOf(fault.steps, root) }));
  ranked.sort((one, other) => compare(one.ranks, other.ranks));
  return ranked.map(({ fault }) => fault);
}

function ranksOf(steps: readonly string[], root: Level): readonly number[] {
  let level = root;
  return steps.map((step) => {
    const position = level.positions.get(step);
    level = level.below(step);
    if (position !== undefined) return position;
    return /^\d+$/.test(step) ? Number(step) : Number.MAX_SAFE_INTEGER;
  });
}

/** The schemas of one place, read once for all faults that lie there or below. */
class Level {
  readonly #schemas: readonly JsonSchema[];
  readonly #root: JsonSchema;
  readonly #below = new Map<string, Level>();
  #ofItems: Level | undefined;
  #positions: ReadonlyMap<string, number> | undefined;

  constructor(schemas: readonly JsonSchema[], root: JsonSchema) {
    this.#schemas = [...new Set(schemas.flatMap((schema) => withBranches(schema, root)))];
    this.#root = root;
  }

  /** The properties, numbered in their order. */
  get positions(): ReadonlyMap<string, number> {
    this.#positions ??= new Map(
      [...new Set(this.#schemas.flatMap(({ properties = {} }) => Object.keys(properties)))].map(
        (name, position) => [name, position],
      ),
    );
    return this.#positions;
  }

  below(step: string): Level {
    if (!this.positions.has(step)) {
      this.#ofItems ??= new Level(
        this.#schemas.flatMap(({ items }) => (isSchema(items) ? [items] : [])),
        this.#root,
      );
      return this.#ofItems;
    }
    const known = this.#below.get(step);
    if (known !== undefined) return known;
    const schemas = this.#schemas.flatMap(({ properties = {} }) =>
      Object.hasOwn(properties, step) ? [properties[step] as JsonSchema] : [],
    );
    const made = new Level(schemas, this.#root);
    this.#below.set(step, made);
    return made;
  }
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
