import type { JsonSchema } from '../contract/json-schema.js';
import { branchTypes } from './branch-types.js';
import type { DefaultsOf } from './fill-defaults.js';
import { resolveReference } from './resolve-reference.js';

/**
 * What tidying needs to know of one schema, read once: which keys are known, what their defaults are, and
 * which of them may be absent.
 */
export interface Shape {
  readonly schema: JsonSchema;
  /** JSON types the schema or its branches allow; empty where it does not say. */
  readonly types: readonly string[];
  readonly properties: ReadonlyMap<string, ShapeSource>;
  readonly required: ReadonlySet<string>;
  readonly defaults: readonly (readonly [name: string, value: unknown])[];
  /** Keys that `properties` does not list stay. */
  readonly keepsExtra: boolean;
  readonly items?: ShapeSource;
  readonly values?: ShapeSource;
  readonly anyOf: readonly JsonSchema[];
}

/** A shape read when it is first needed, so that recursive schemas end. */
export type ShapeSource = () => Shape;

/** The shapes of one root schema. */
export function shapesOf(root: JsonSchema, defaultsOf: DefaultsOf): (schema: JsonSchema) => Shape {
  const known = new WeakMap<JsonSchema, Shape>();
  const shapeOf = (schema: JsonSchema): Shape => {
    const resolved = resolveReference(schema, root);
    const existing = known.get(resolved);
    if (existing !== undefined) return existing;
    const shape = readShape(resolved, { root, defaultsOf, later: (child) => () => shapeOf(child) });
    known.set(resolved, shape);
    return shape;
  };
  return shapeOf;
}

/** Keywords that let other keys in, or that only the validator can judge. */
const OPEN_KEYWORDS = [
  'patternProperties',
  'allOf',
  'oneOf',
  'anyOf',
  'if',
  'propertyNames',
  'unevaluatedProperties',
  '$dynamicRef',
];

interface ShapeReader {
  readonly root: JsonSchema;
  readonly defaultsOf: DefaultsOf;
  readonly later: (schema: JsonSchema) => ShapeSource;
}

function readShape(schema: JsonSchema, { root, defaultsOf, later }: ShapeReader): Shape {
  const properties = Object.entries(schema.properties ?? {}).filter(([name]) => name !== '__proto__');
  const { additionalProperties, items } = schema;
  return {
    schema,
    types: schema.type === undefined ? branchTypes(schema.anyOf ?? [], root) : [schema.type].flat(),
    properties: new Map(properties.map(([name, child]) => [name, later(child)])),
    required: new Set(schema.required),
    defaults: defaultsOf(schema),
    keepsExtra:
      schema.properties === undefined ||
      additionalProperties === true ||
      isSchema(additionalProperties) ||
      OPEN_KEYWORDS.some((keyword) => keyword in schema),
    items: isSchema(items) ? later(items) : undefined,
    values: isSchema(additionalProperties) ? later(additionalProperties) : undefined,
    anyOf: schema.anyOf ?? [],
  };
}

function isSchema(node: unknown): node is JsonSchema {
  return typeof node === 'object' && node !== null && !Array.isArray(node);
}
