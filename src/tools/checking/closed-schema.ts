import type { JsonObject, JsonSchema } from '../../core/contract/json-schema.js';
import type { ArgumentFault } from '../../core/contract/tool.js';
import { isRecord } from '../../core/kernel/json.js';
import { findReference } from '../schema/find-reference.js';
import {
  allSchemas,
  eachSubschema,
  isSchemaNode,
  keywordNames,
  mapSubschemas,
  subschemas,
} from '../schema/keywords.js';
import { resolveReference, unionChooser } from './schema-level.js';

/**
 * Keywords under which schemas are closed. Under any other, closing could change what is accepted in both
 * directions: a value that a closed branch no longer matches may make `oneOf` or `not` succeed.
 */
const CLOSABLE: ReadonlySet<string> = new Set(keywordNames(({ closable }) => closable === true));

/** Keywords of an object beside which the keys that `properties` does not list stay. */
export const OPEN_KEYWORDS = keywordNames(({ minds }) => minds?.includes('unlisted') === true);

/** Keywords that may refuse an object for a property that was filled in. */
const MINDS_FILLING = keywordNames(({ minds }) => minds?.includes('filled') === true);

/** The names of the properties that are filled in where they are left out. */
type FilledIn = (schema: JsonSchema) => readonly string[];

/**
 * A stricter form of a schema that accepts only what needs no normalizing: no unknown keys anywhere, and below
 * the root no default left to fill in. Whatever it accepts, the schema itself accepts too; one pass of it
 * is all that a well-formed call costs. `undefined` where no such form can be derived.
 */
export function closedSchema(schema: JsonSchema, filledIn: FilledIn): JsonSchema | undefined {
  const parts = partsOf(schema);
  if (isDelicate(schema, parts)) return undefined;
  const close = (part: JsonSchema): JsonSchema =>
    parts.closed.has(part) ? closedPart(mapSubschemas(part, close), filledIn(part)) : part;
  const closed = close(schema);
  const mindsFilling = MINDS_FILLING.some((keyword) => keyword in schema);
  // Otherwise the root's own defaults are filled in without a closer look.
  return mindsFilling || refersToRoot(parts.closed, schema)
    ? closed
    : { ...closed, required: schema.required ?? [] };
}

/** The parts of a schema that are closed, and those that stay as they are. */
interface Parts {
  readonly closed: ReadonlySet<JsonSchema>;
  readonly kept: ReadonlySet<JsonSchema>;
}

function partsOf(root: JsonSchema): Parts {
  const closed = new Set([root]);
  const kept = new Set<JsonSchema>();
  for (const part of closed)
    eachSubschema(part, ({ node, name }) => {
      if (isSchemaNode(node)) (isClosable(name, part, root) ? closed : kept).add(node);
    });
  for (const part of kept) for (const within of subschemas(part)) kept.add(within);
  return { closed, kept };
}

/** If a tag distinguishes the branches of `oneOf`, closing them leaves at most one that fits. */
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

/** Checks, normalizing and the history each need stack for a level; such depth is never intended. */
const MOST_LEVELS = 500;
const MOST_FAULTS = 50;

const NONE: readonly ArgumentFault[] = [];

const TOO_DEEP: ArgumentFault = {
  path: '',
  message: `the arguments are nested too deep: at most ${MOST_LEVELS} levels`,
};

/** What is wrong with arguments whatever their schema says: numbers that JSON cannot write, and endless nesting. */
export function boundFaults(args: unknown): readonly ArgumentFault[] {
  if (isWithinBounds(args, 0)) return NONE;
  const faults: ArgumentFault[] = [];
  return collectFaults(args, { levels: 0, faults }) ? faults : [TOO_DEEP];
}

/** It runs for each call, so that it makes nothing. */
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

interface Within {
  readonly levels: number;
  readonly faults: ArgumentFault[];
  readonly key?: string;
  readonly around?: Within;
}

/** Gives `false` where the nesting does not end. */
function collectFaults(value: unknown, within: Within): boolean {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    const message = Number.isNaN(value) ? 'must be a number' : 'is too large for a number';
    if (within.faults.length < MOST_FAULTS) within.faults.push({ path: pathOf(within), message });
  }
  if (typeof value !== 'object' || value === null) return true;
  if (within.levels === MOST_LEVELS) return false;
  const { levels, faults } = within;
  for (const [key, member] of Object.entries(value)) {
    if (!collectFaults(member, { levels: levels + 1, faults, key, around: within })) return false;
  }
  return true;
}

function pathOf(within: Within): string {
  const keys: string[] = [];
  for (let at: Within | undefined = within; at?.key !== undefined; at = at.around) keys.unshift(at.key);
  return keys.join('.');
}

/**
 * Whether arguments have nothing wrong in that sense where a schema would not see it; nothing where it would in
 * any case, as most do, and many in all but some properties. Asked before the schema, which may need stack for
 * each level.
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

/** The properties of a schema that may hold anything; `undefined` where it is more than its properties. */
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
  let holdsAnything = false;
  eachSubschema(schema, ({ node }) => {
    holdsAnything ||= node === true;
  });
  if (holdsAnything) return true;
  if (schema.enum !== undefined || 'const' in schema) return false;
  const types = [type ?? []].flat();
  if (types.includes('object') && additionalProperties === true) return true;
  if (types.includes('array') && items === undefined) return true;
  return types.length === 0 && (anyOf ?? oneOf) === undefined;
}
