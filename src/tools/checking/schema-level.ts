import type { JsonSchema } from '../../core/contract/json-schema.js';
import { cached } from '../../core/kernel/cached.js';
import { isObject, isRecord } from '../../core/kernel/json.js';
import { findReference } from '../schema/find-reference.js';
import { isSchemaNode, reachableSchemas, type Subschema, schemaPlaces } from '../schema/keywords.js';
import { patternOf } from './formats.js';

/**
 * All schemas that may apply to the value at one location: behind references, in every branch, under conditions. They
 * are read once for the location and everything below it.
 */
export class SchemaLevel {
  readonly #schemas: readonly JsonSchema[];
  readonly #root: JsonSchema;
  readonly #below = new Map<string, SchemaLevel>();
  #positions: ReadonlyMap<string, number> | undefined;
  #otherNames: ReadonlySet<string> | undefined;
  #patterns: readonly RegExp[] | undefined;

  constructor(schemas: readonly JsonSchema[], root: JsonSchema) {
    const sameValue = (schema: JsonSchema): readonly JsonSchema[] => [
      resolveReference(schema, root),
      ...partsThat(schema, ({ keyword }) => keyword.validates === 'value'),
    ];
    this.#schemas = [...reachableSchemas(schemas, sameValue)];
    this.#root = root;
  }

  /** The properties with their positions in the order of the schema. */
  get positions(): ReadonlyMap<string, number> {
    this.#positions ??= new Map(
      [...new Set(this.#schemas.flatMap(({ properties }) => keysOf(properties)))].map((name, position) => [
        name,
        position,
      ]),
    );
    return this.#positions;
  }

  /** Whether any of the schemas names a key. */
  names(key: string): boolean {
    if (this.positions.has(key)) return true;
    this.#otherNames ??= new Set(this.#schemas.flatMap(otherNames));
    this.#patterns ??= this.#schemas.flatMap(({ patternProperties }) =>
      keysOf(patternProperties).map((pattern) => patternOf(pattern)),
    );
    return this.#otherNames.has(key) || this.#patterns.some((pattern) => pattern.test(key));
  }

  /** The level of a child: keys and indices that are not named share one level. */
  below(step: string): SchemaLevel {
    const name = this.positions.has(step) ? `property ${step}` : 'other';
    return cached(this.#below, name, () => {
      const schemas = this.#schemas.flatMap((schema) =>
        partsThat(schema, ({ name: keyword, key, keyword: { validates } }) =>
          keyword === 'properties' ? key === step : validates === 'properties' || validates === 'items',
        ),
      );
      return new SchemaLevel(schemas, this.#root);
    });
  }
}

const levels = new WeakMap<JsonSchema, SchemaLevel>();

/** The level of a whole schema; it is the same for all calls. */
export function levelOf(schema: JsonSchema): SchemaLevel {
  return cached(levels, schema, () => new SchemaLevel([schema], schema));
}

function partsThat(schema: JsonSchema, isWanted: (part: Subschema) => boolean): readonly JsonSchema[] {
  return schemaPlaces(schema).flatMap((part) =>
    isSchemaNode(part.node) && isWanted(part) ? [part.node] : [],
  );
}

/** Keys that are not listed in the properties but named by other keywords. */
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

/** A branch that may be chosen. */
type Candidate = Extract<ChosenBranch, { readonly kind: 'branch' }> & {
  /** After following its reference. */
  readonly resolved: JsonSchema;
};

function createChooser(branches: readonly JsonSchema[], root: JsonSchema): Chooser {
  const candidates = branches
    .map((branch, index): Candidate => {
      const resolved = resolveReference(branch, root);
      return { kind: 'branch', branch, index, resolved };
    })
    .filter(({ resolved }) => resolved.type !== 'null');
  const [only, ...others] = candidates;
  if (only === undefined) return () => UNCLEAR;
  if (others.length === 0) return (value) => (value === null ? UNCLEAR : only);
  const tag = tagOf(candidates, root);
  return tag === undefined ? () => UNCLEAR : byTag(candidates, tag);
}

/** A property that distinguishes the branches of a union. */
interface Tag {
  readonly property: string;
  /** For each candidate, the values that only it has. */
  readonly values: readonly (readonly unknown[])[];
}

/** The first property for which every branch has its own values. */
function tagOf(candidates: readonly Candidate[], root: JsonSchema): Tag | undefined {
  for (const property of Object.keys(candidates[0]?.resolved.properties ?? {})) {
    const values = candidates.map(({ resolved }) => tagValues(resolved, property, root));
    const all = values.flat();
    const isTag = values.every((ofBranch) => ofBranch.length > 0) && new Set(all).size === all.length;
    if (isTag) return { property, values };
  }
  return undefined;
}

function tagValues(branch: JsonSchema, property: string, root: JsonSchema): readonly unknown[] {
  const { properties = {} } = branch;
  if (!Object.hasOwn(properties, property)) return [];
  const schema = resolveReference(properties[property] ?? {}, root);
  const values = schema.const !== undefined ? [schema.const] : (schema.enum ?? []);
  // Objects would need a deep comparison.
  return values.some(isObject) ? [] : values;
}

function byTag(candidates: readonly Candidate[], { property, values }: Tag): Chooser {
  const byValue = new Map<unknown, ChosenBranch>();
  candidates.forEach((candidate, position) => {
    for (const value of values[position] ?? []) byValue.set(value, candidate);
  });
  const tags = values.flat();
  const other: ChosenBranch = { kind: 'tag', property, tags, isCertain: true };
  const isRequired = candidates.every(({ resolved }) => resolved.required?.includes(property));
  const missing: ChosenBranch = { kind: 'tag', property, tags, isCertain: isRequired };
  return (value) => {
    if (!isRecord(value)) return UNCLEAR;
    const sent = Object.hasOwn(value, property) ? value[property] : undefined;
    return sent === undefined ? missing : (byValue.get(sent) ?? other);
  };
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

/** References may chain; a chain longer than this is a cycle. */
export const MOST_HOPS = 32;

const REFUSES_ALL: JsonSchema = { not: {} };

/**
 * The target of a `$ref`; other schemas are returned unchanged, and an unresolvable reference as `{}`. `true` and
 * `false` become equivalent schemas.
 */
export function resolveReference(schema: JsonSchema | boolean, root: JsonSchema): JsonSchema {
  let current = schema;
  for (let hops = 0; hops < MOST_HOPS; hops += 1) {
    if (typeof current === 'boolean') return current ? {} : REFUSES_ALL;
    if (typeof current.$ref !== 'string') return current;
    current = findReference(current.$ref, root, current) ?? {};
  }
  return {};
}

type TypeTest = (value: unknown) => boolean;

/** In JSON Schema's sense: only finite numbers are numbers, and `3.0` is an integer. */
const TYPE_TESTS: ReadonlyMap<string, TypeTest> = new Map<string, TypeTest>([
  ['string', (value) => typeof value === 'string'],
  ['number', Number.isFinite],
  ['integer', Number.isInteger],
  ['boolean', (value) => typeof value === 'boolean'],
  ['array', Array.isArray],
  ['object', isRecord],
  ['null', (value) => value === null],
]);

const NO_TYPE: TypeTest = () => false;

/** The test of a JSON type. */
export function typeTest(type: string): TypeTest {
  return TYPE_TESTS.get(type) ?? NO_TYPE;
}

/** Whether a value has a JSON type. */
export function isOfType(value: unknown, type: string): boolean {
  return typeTest(type)(value);
}
