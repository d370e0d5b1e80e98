import type { JsonSchema } from '../contract/json-schema.js';
import { eachSubschema, isSchemaNode, type Subschema } from '../schema/keywords.js';
import { patternOf } from './formats.js';
import { resolveReference } from './unions.js';

/**
 * All schemas that may have a say about the value at one place: behind references, in every branch, under
 * conditions. Read once for all that lies there, and below.
 */
export class SchemaLevel {
  readonly #schemas: readonly JsonSchema[];
  readonly #root: JsonSchema;
  readonly #below = new Map<string, SchemaLevel>();
  #positions: ReadonlyMap<string, number> | undefined;
  #otherNames: ReadonlySet<string> | undefined;
  #patterns: readonly RegExp[] | undefined;

  constructor(schemas: readonly JsonSchema[], root: JsonSchema) {
    this.#schemas = [...sameValue(schemas, root)];
    this.#root = root;
  }

  /** The properties, numbered in their order. */
  get positions(): ReadonlyMap<string, number> {
    this.#positions ??= new Map(
      [...new Set(this.#schemas.flatMap(({ properties }) => keysOf(properties)))].map((name, position) => [
        name,
        position,
      ]),
    );
    return this.#positions;
  }

  /** Whether any of the schemas speaks of a key. */
  names(key: string): boolean {
    if (this.positions.has(key)) return true;
    this.#otherNames ??= new Set(this.#schemas.flatMap(otherNames));
    this.#patterns ??= this.#schemas.flatMap(({ patternProperties }) =>
      keysOf(patternProperties).map((pattern) => patternOf(pattern, 'u')),
    );
    return this.#otherNames.has(key) || this.#patterns.some((pattern) => pattern.test(key));
  }

  /** The level of a member: what is not named is judged as any other, be it a key or an index. */
  below(step: string): SchemaLevel {
    const name = this.positions.has(step) ? `property ${step}` : 'other';
    const known = this.#below.get(name);
    if (known !== undefined) return known;
    const schemas = this.#schemas.flatMap((schema) => partsThat(schema, (part) => judgesMember(part, step)));
    const level = new SchemaLevel(schemas, this.#root);
    this.#below.set(name, level);
    return level;
  }
}

const levels = new WeakMap<JsonSchema, SchemaLevel>();

/** The level of a whole schema: what it says of its places is the same for all calls. */
export function levelOf(schema: JsonSchema): SchemaLevel {
  const known = levels.get(schema);
  if (known !== undefined) return known;
  const level = new SchemaLevel([schema], schema);
  levels.set(schema, level);
  return level;
}

function sameValue(starts: readonly JsonSchema[], root: JsonSchema): ReadonlySet<JsonSchema> {
  const found = new Set(starts);
  for (const schema of found) {
    if (typeof schema.$ref === 'string') found.add(resolveReference(schema, root));
    for (const part of partsThat(schema, ({ keyword }) => keyword.judges === 'value')) found.add(part);
  }
  return found;
}

function judgesMember({ keyword, name, key }: Subschema, member: string): boolean {
  if (name === 'properties') return key === member;
  return keyword.judges === 'properties' || keyword.judges === 'items';
}

function partsThat(schema: JsonSchema, isWanted: (part: Subschema) => boolean): readonly JsonSchema[] {
  const parts: JsonSchema[] = [];
  eachSubschema(schema, (part) => {
    if (isSchemaNode(part.node) && isWanted(part)) parts.push(part.node);
  });
  return parts;
}

/** Keys that are not listed among the properties, and spoken of all the same. */
function otherNames(schema: JsonSchema): readonly string[] {
  const { required = [], dependentRequired, dependentSchemas, dependencies } = schema;
  const dependents = [dependentRequired, dependentSchemas, dependencies].flatMap((dependent) =>
    Object.entries(dependent ?? {}).flatMap(([key, needed]) => [
      key,
      ...(Array.isArray(needed) ? needed.map(String) : []),
    ]),
  );
  return [...required, ...dependents];
}

function keysOf(schemas: unknown): readonly string[] {
  return isSchemaNode(schemas) ? Object.keys(schemas) : [];
}
