import type { JsonObject, JsonSchema } from '../../core/contract/json-schema.js';
import type { ArgumentFault } from '../../core/contract/tool.js';
import { isRecord } from '../../core/kernel/json.js';
import { findReference } from '../schema/find-reference.js';
import {
  allSchemas,
  isSchemaNode,
  keywordNames,
  mapSubschemas,
  schemaPlaces,
  subschemas,
} from '../schema/keywords.js';
import { resolveReference, unionChooser } from './schema-level.js';

/**
 * Keywords under which schemas are closed. Under other keywords, closing could make the whole schema accept more: if
 * a closed branch no longer matches, `oneOf` or `not` may succeed.
 */
const CLOSABLE: ReadonlySet<string> = new Set(keywordNames(({ closable }) => closable === true));

/** Keywords of an object that keep keys that `properties` does not list. */
export const OPEN_KEYWORDS = keywordNames(({ minds }) => minds?.includes('unlisted') === true);

/** Keywords that may reject an object because a property was filled in. */
const MINDS_FILLING = keywordNames(({ minds }) => minds?.includes('filled') === true);

/** The names of the properties whose defaults are filled in. */
type FilledIn = (schema: JsonSchema) => readonly string[];

/**
 * A stricter form of a schema that accepts only arguments that need no normalizing: no unknown keys anywhere, and no
 * missing defaults below the root. The schema itself accepts everything that this form accepts, so a valid call costs
 * only one pass. Returns `undefined` if no such form can be derived.
 */
export function closedSchema(schema: JsonSchema, filledIn: FilledIn): JsonSchema | undefined {
  const parts = closableParts(schema);
  if (isDelicate(schema, parts)) return undefined;
  const close = (part: JsonSchema): JsonSchema =>
    parts.closed.has(part) ? closedPart(mapSubschemas(part, close), filledIn(part)) : part;
  const closed = close(schema);
  const mindsFilling = MINDS_FILLING.some((keyword) => keyword in schema);
  // Otherwise the root's own defaults are filled in without another check.
  return mindsFilling || refersToRoot(parts.closed, schema)
    ? closed
    : { ...closed, required: schema.required ?? [] };
}

/** The parts of a schema that are closed, and those that do not change. */
interface Parts {
  readonly closed: ReadonlySet<JsonSchema>;
  readonly kept: ReadonlySet<JsonSchema>;
}

function closableParts(root: JsonSchema): Parts {
  const closed = new Set([root]);
  const kept = new Set<JsonSchema>();
  for (const part of closed)
    for (const { node, name } of schemaPlaces(part))
      if (isSchemaNode(node)) (isClosable(name, part, root) ? closed : kept).add(node);
  for (const part of kept) for (const within of subschemas(part)) kept.add(within);
  return { closed, kept };
}

/** If a tag distinguishes the branches of `oneOf`, at most one closed branch matches. */
function isClosable(name: string, { oneOf }: JsonSchema, root: JsonSchema): boolean {
  if (name !== 'oneOf' || !Array.isArray(oneOf)) return CLOSABLE.has(name);
  const types = oneOf.map((branch) => resolveReference(branch, root).type);
  if (!types.every((type) => type === 'object' || type === 'null')) return false;
  const chosen = unionChooser(oneOf, root)({});
  return chosen.kind === 'branch' || (chosen.kind === 'tag' && chosen.isCertain);
}

function isDelicate(root: JsonSchema, { closed, kept }: Parts): boolean {
  for (const part of kept) if (closed.has(part) || refers(part)) return true;
  for (const part of closed) {
    if ((part.unevaluatedProperties ?? part.unevaluatedItems) !== undefined) return true;
    if (typeof part.$ref === 'string') {
      const target = findReference(part.$ref, { root, from: part });
      if (typeof target !== 'object' || !closed.has(target)) return true;
    } else if (refers(part)) return true;
  }
  return false;
}

function refers({ $ref, $dynamicRef, $recursiveRef }: JsonSchema): boolean {
  return ($ref ?? $dynamicRef ?? $recursiveRef) !== undefined;
}

function refersToRoot(parts: ReadonlySet<JsonSchema>, root: JsonSchema): boolean {
  for (const part of parts)
    if (typeof part.$ref === 'string' && findReference(part.$ref, { root, from: part }) === root) return true;
  return false;
}

function closedPart(schema: JsonSchema, filledIn: readonly string[]): JsonSchema {
  if (schema.properties === undefined) return schema;
  const isOpen =
    schema.additionalProperties === undefined && !OPEN_KEYWORDS.some((keyword) => keyword in schema);
  return {
    ...schema,
    ...(isOpen ? { additionalProperties: false } : {}),
    required: [...new Set([...(schema.required ?? []), ...filledIn])],
  };
}

/** Checking, normalizing and the history each need stack for a level. No author intends this depth. */
const MOST_LEVELS = 500;
const MOST_FAULTS = 50;

const NO_FAULTS: readonly ArgumentFault[] = [];

const TOO_DEEP: ArgumentFault = {
  path: '',
  message: `the arguments are nested too deep: at most ${MOST_LEVELS} levels`,
};

/** Faults of arguments that are independent of the schema: numbers that JSON cannot write, and too deep nesting. */
export function boundFaults(args: unknown): readonly ArgumentFault[] {
  if (isWithinBounds(args, 0)) return NO_FAULTS;
  const faults: ArgumentFault[] = [];
  return collectFaults(args, [], faults) ? faults : [TOO_DEEP];
}

/** Runs for each call, so it allocates nothing. */
function isWithinBounds(value: unknown, levels: number): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return true;
  if (levels === MOST_LEVELS) return false;
  if (Array.isArray(value)) return areWithinBounds(value, levels + 1);
  for (const key in value) {
    const member = (value as Readonly<Record<string, unknown>>)[key];
    if (typeof member !== 'string' && !isWithinBounds(member, levels + 1)) return false;
  }
  return true;
}

function areWithinBounds(items: readonly unknown[], levels: number): boolean {
  for (let index = 0; index < items.length; index += 1) {
    const item = items[index];
    if (typeof item !== 'string' && !isWithinBounds(item, levels)) return false;
  }
  return true;
}

/** Returns `false` if the nesting is too deep. `keys` lead to the value. */
function collectFaults(value: unknown, keys: string[], faults: ArgumentFault[]): boolean {
  if (typeof value === 'number' && !Number.isFinite(value) && faults.length < MOST_FAULTS) {
    const message = Number.isNaN(value) ? 'must be a number' : 'is too large for a number';
    faults.push({ path: keys.join('.'), message });
  }
  if (typeof value !== 'object' || value === null) return true;
  if (keys.length === MOST_LEVELS) return false;
  for (const [key, member] of Object.entries(value)) {
    keys.push(key);
    if (!collectFaults(member, keys, faults)) return false;
    keys.pop();
  }
  return true;
}

/**
 * Creates the test for values that the schema would not bound: numbers that JSON cannot write, and too deep nesting.
 * Returns `undefined` if the schema bounds all values, as most schemas do. The test runs before the schema's check,
 * which may need stack for each level.
 */
export function boundsTest(schema: JsonSchema): ((args: JsonObject) => boolean) | undefined {
  if (boundsValues(schema)) return undefined;
  const open = openProperties(schema);
  if (open === undefined) return (args) => isWithinBounds(args, 0);
  return (args) => open.every((name) => isWithinBounds(args[name], 1));
}

function boundsValues(schema: JsonSchema): boolean {
  for (const part of allSchemas(schema)) if (isOpen(part)) return false;
  return true;
}

/** The properties of a schema that may contain any value; `undefined` if the schema is more than its properties. */
function openProperties(schema: JsonSchema): readonly string[] | undefined {
  const { type, properties = {}, additionalProperties, required: _, $defs: _defs, ...others } = schema;
  if (type !== 'object' || additionalProperties !== false || Object.keys(others).length > 0) return undefined;
  return Object.keys(properties).filter((name) => {
    const property = properties[name];
    return !isRecord(property) || !boundsValues(property);
  });
}

function isOpen(schema: JsonSchema): boolean {
  const { type, anyOf, oneOf, items, additionalProperties = true } = schema;
  if (refers(schema)) return true;
  if (schemaPlaces(schema).some(({ node }) => node === true)) return true;
  if (schema.enum !== undefined || 'const' in schema) return false;
  const types = [type ?? []].flat();
  if (types.includes('object') && additionalProperties === true) return true;
  if (types.includes('array') && items === undefined) return true;
  return types.length === 0 && (anyOf ?? oneOf) === undefined;
}
