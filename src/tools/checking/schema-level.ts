import type { JsonSchema } from '../../core/contract/json-schema.js';
import { cached } from '../../core/kernel/cached.js';
import { isObject, isRecord } from '../../core/kernel/json.js';
import { findReference, isSchemaNode, reachableSchemas, schemaPlaces } from '../schema/keywords.js';
import { patternOf } from './formats.js';

/**
 * All schemas that may apply to the value at one location: behind references, in every branch, under conditions. They
 * are read once for the location and everything below it.
 */
export class SchemaLevel {
  readonly #schemas: ReadonlySet<JsonSchema>;
  readonly #root: JsonSchema;
  readonly #below = new Map<string, SchemaLevel>();
  /** The properties with their positions in the order of the schema. */
  readonly positions = new Map<string, number>();
  /** Keys that other keywords than `properties` name. */
  readonly #otherNames = new Set<string>();
  readonly #patterns: RegExp[] = [];

  constructor(schemas: readonly JsonSchema[], root: JsonSchema) {
    this.#schemas = reachableSchemas(schemas, (schema) => {
      const same = schemaPlaces(schema).filter(({ keyword }) => keyword.validates === 'value');
      return [resolveReference(schema, root), ...same.map(({ node }) => node)];
    });
    this.#root = root;
    for (const schema of this.#schemas) {
      const { properties, required = [], dependentRequired, dependentSchemas, dependencies } = schema;
      for (const name of keysOf(properties)) cached(this.positions, name, () => this.positions.size);
      for (const name of required) this.#otherNames.add(name);
      for (const dependents of [dependentRequired, dependentSchemas, dependencies])
        for (const [name, needed] of Object.entries(dependents ?? {})) {
          this.#otherNames.add(name);
          if (Array.isArray(needed)) for (const other of needed) this.#otherNames.add(String(other));
        }
      for (const pattern of keysOf(schema.patternProperties)) this.#patterns.push(patternOf(pattern));
    }
  }

  /** Whether any of the schemas names a key. */
  names(key: string): boolean {
    return (
      this.positions.has(key) ||
      this.#otherNames.has(key) ||
      this.#patterns.some((pattern) => pattern.test(key))
    );
  }

  /** The level of a child: keys and indices that are not named share one level. */
  below(step: string): SchemaLevel {
    const name = this.positions.has(step) ? `property ${step}` : 'other';
    return cached(this.#below, name, () => {
      const schemas: JsonSchema[] = [];
      for (const schema of this.#schemas)
        for (const {
          node,
          name: keyword,
          key,
          keyword: { validates },
        } of schemaPlaces(schema)) {
          const isBelow =
            keyword === 'properties' ? key === step : validates === 'properties' || validates === 'items';
          if (isBelow && isSchemaNode(node)) schemas.push(node);
        }
      return new SchemaLevel(schemas, this.#root);
    });
  }
}

const levels = new WeakMap<JsonSchema, SchemaLevel>();

/** The level of a whole schema; it is the same for all calls. */
export function levelOf(schema: JsonSchema): SchemaLevel {
  return cached(levels, schema, () => new SchemaLevel([schema], schema));
}

function keysOf(schemas: unknown): readonly string[] {
  return isSchemaNode(schemas) ? Object.keys(schemas) : [];
}

/** The branch of a union that a value was meant for, if it can be determined. */
type ChosenBranch =
  /** No other branch accepts the value. */
  | { readonly kind: 'branch'; readonly branch: JsonSchema; readonly index: number }
  /** The union has a tag, and no branch has the value's tag. */
  | {
      readonly kind: 'tag';
      readonly property: string;
      readonly tags: readonly unknown[];
      /** No branch accepts the value: it has another tag, or lacks a tag that all branches require. */
      readonly isCertain: boolean;
    }
  | { readonly kind: 'unclear' };

/** Determines the branch of a value. */
type Chooser = (value: unknown) => ChosenBranch;

const UNCLEAR: ChosenBranch = { kind: 'unclear' };

const choosers = new WeakMap<JsonSchema, WeakMap<readonly JsonSchema[], Chooser>>();

/** The chooser of a union: by its tag, or because all other branches are `null`. */
export function unionChooser(branches: readonly JsonSchema[], root: JsonSchema): Chooser {
  const ofRoot = cached(choosers, root, () => new WeakMap<readonly JsonSchema[], Chooser>());
  return cached(ofRoot, branches, () => createChooser(branches, root));
}

function createChooser(branches: readonly JsonSchema[], root: JsonSchema): Chooser {
  const candidates: { readonly chosen: ChosenBranch; readonly schema: JsonSchema }[] = [];
  for (const [index, branch] of branches.entries()) {
    const schema = resolveReference(branch, root);
    if (schema.type !== 'null') candidates.push({ chosen: { kind: 'branch', branch, index }, schema });
  }
  const [only, second] = candidates;
  if (only === undefined) return () => UNCLEAR;
  if (second === undefined) return (value) => (value === null ? UNCLEAR : only.chosen);
  // The tag is the first property for which every branch has its own values.
  for (const property of Object.keys(only.schema.properties ?? {})) {
    const byValue = new Map<unknown, ChosenBranch>();
    const isTag = candidates.every(({ chosen, schema: { properties = {} } }) => {
      const declared = Object.hasOwn(properties, property) ? properties[property] : undefined;
      const { const: constant, enum: listed = [] } = resolveReference(declared ?? {}, root);
      const values = constant !== undefined ? [constant] : listed;
      for (const value of values) {
        // Objects would need a deep comparison.
        if (isObject(value) || byValue.has(value)) return false;
        byValue.set(value, chosen);
      }
      return values.length > 0;
    });
    if (!isTag) continue;
    const tags = [...byValue.keys()];
    const isRequired = candidates.every(({ schema }) => schema.required?.includes(property));
    const missing: ChosenBranch = { kind: 'tag', property, tags, isCertain: isRequired };
    const other: ChosenBranch = { kind: 'tag', property, tags, isCertain: true };
    return (value) => {
      if (!isRecord(value)) return UNCLEAR;
      const sent = Object.hasOwn(value, property) ? value[property] : undefined;
      return sent === undefined ? missing : (byValue.get(sent) ?? other);
    };
  }
  return () => UNCLEAR;
}

/**
 * The index of the branch that a refused value is closest to: the only one of its type, or the one with most of an
 * object's keys and fewest missing ones; -1 if no branch is closest.
 */
export function closestBranch(branches: readonly JsonSchema[], root: JsonSchema, value: unknown): number {
  const schemas = branches.map((branch) => resolveReference(branch, root));
  const scores = schemas.map((schema) => {
    const { type, const: only, enum: values, properties = {}, required = [] } = schema;
    const isMeant = type === undefined || [type].flat().some((name) => isOfType(value, name));
    // The fault of the union lists the values.
    if (!isMeant || only !== undefined || values !== undefined) return Number.NEGATIVE_INFINITY;
    if (!isRecord(value)) return 0;
    const named = Object.keys(value).filter(
      (key) => Object.hasOwn(properties, key) || required.includes(key),
    );
    return named.length - required.filter((key) => !Object.hasOwn(value, key)).length;
  });
  const best = Math.max(...scores);
  const index = scores.indexOf(best);
  return best > Number.NEGATIVE_INFINITY && scores.lastIndexOf(best) === index ? index : -1;
}

/** The JSON types that the branches of a union allow together; empty if a branch states no type. */
export function branchTypes(branches: readonly JsonSchema[], root: JsonSchema): readonly string[] {
  const types = branches.map((branch) => [resolveReference(branch, root).type ?? []].flat());
  return types.some((ofBranch) => ofBranch.length === 0) ? [] : [...new Set(types.flat())];
}

const REFUSES_ALL: JsonSchema = { not: {} };

/** `true` and `false` as equivalent schemas. */
function asSchema(schema: JsonSchema | boolean): JsonSchema {
  if (typeof schema !== 'boolean') return schema;
  return schema ? {} : REFUSES_ALL;
}

const ends = new WeakMap<JsonSchema, WeakMap<JsonSchema, JsonSchema | undefined>>();

/**
 * The schema that the `$ref` of a schema leads to, also through further references; `undefined` if it leads back to
 * itself, and `{}` if it leads nowhere or to such a reference. Other schemas are returned unchanged.
 */
export function endOfReferences(schema: JsonSchema | boolean, root: JsonSchema): JsonSchema | undefined {
  let at = asSchema(schema);
  if (typeof at.$ref !== 'string') return at;
  const known = cached(ends, root, () => new WeakMap<JsonSchema, JsonSchema | undefined>());
  const passed: JsonSchema[] = [];
  while (typeof at.$ref === 'string' && !known.has(at)) {
    known.set(at, undefined);
    passed.push(at);
    at = asSchema(findReference(at.$ref, root, at) ?? {});
  }
  const end = known.has(at) ? (known.get(at) ?? {}) : at;
  const circle = passed.indexOf(at);
  for (const each of circle < 0 ? passed : passed.slice(0, circle)) known.set(each, end);
  return known.get(asSchema(schema));
}

/** The same; `{}` for a reference that leads back to itself. */
export function resolveReference(schema: JsonSchema | boolean, root: JsonSchema): JsonSchema {
  return endOfReferences(schema, root) ?? {};
}

/** Whether a value has a JSON type: only finite numbers are numbers, and `3.0` is an integer. */
export function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case 'string':
    case 'boolean':
      return typeof value === type;
    case 'number':
      return Number.isFinite(value);
    case 'integer':
      return Number.isInteger(value);
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isRecord(value);
    default:
      return type === 'null' && value === null;
  }
}
