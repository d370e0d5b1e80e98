import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { findReference } from '../../schema/find-reference.js';
import {
  type Draft,
  draftOf,
  isKnownIn,
  isSchemaNode,
  KEYWORDS,
  type KeywordValue,
  reachableSchemas,
  schemaPlaces,
  subschemas,
} from '../../schema/keywords.js';

/** Facts that all parts of a schema share. */
export interface WholeSchema {
  readonly root: JsonSchema;
  readonly draft: Draft;
  /** Some part uses evaluated properties or items. */
  readonly isTracking: boolean;
  /** The target of some reference depends on the path to it. */
  readonly isDynamic: boolean;
  /** Some part has a reference that does not depend on the path to it. */
  readonly isReferring: boolean;
  /** Some schema leads back to itself for the same value. */
  readonly isEndless: boolean;
  /** Tests become generated code. */
  readonly isGenerating?: boolean;
}

/** Analyzes all parts of a schema once. */
export function wholeSchema(schema: JsonSchema): WholeSchema {
  const given = everySchema(schema);
  const draft = draftOf(schema, given);
  const root = withMetaSchemas(schema, given);
  let [isTracking, isDynamic, isReferring] = [false, false, false];
  for (const part of root === schema ? given : everySchema(root)) {
    isTracking ||= (part.unevaluatedProperties ?? part.unevaluatedItems) !== undefined;
    isDynamic ||= (part.$dynamicRef ?? part.$recursiveRef) !== undefined;
    isReferring ||= part.$ref !== undefined;
  }
  return {
    root,
    draft,
    isTracking: isTracking && draft !== '7',
    isDynamic,
    isReferring,
    isEndless: (isReferring || isDynamic) && validatesItselfAgain(root),
  };
}

/** Whether validating a value leads to validating the same value with the same schema, without end. */
export function validatesItselfAgain(root: JsonSchema): boolean {
  const open = new Map([...everySchema(root)].reverse().map((part) => [part, sameValueSchemas(part, root)]));
  // Removes the schemas that lead only to removed ones, until only circles are left.
  for (let before = 0; before !== open.size; ) {
    before = open.size;
    for (const [part, next] of open) if (!next.some((each) => open.has(each))) open.delete(part);
  }
  return open.size > 0;
}

/** The schemas that validate the same value as a schema: branches, conditions, and the target of its reference. */
function sameValueSchemas(schema: JsonSchema, root: JsonSchema): readonly JsonSchema[] {
  const parts = schemaPlaces(schema).filter(({ keyword }) => keyword.validates === 'value');
  return [referredSchema(schema, root), ...parts.map(({ node }) => node)].filter(isSchemaNode);
}

/** Every schema that may validate a value: schemas within a schema, and targets of references. */
function everySchema(root: JsonSchema): ReadonlySet<JsonSchema> {
  return reachableSchemas([root], (schema) => [...subschemas(schema), referredSchema(schema, root)]);
}

/** The target of a reference, if it does not depend on the path to it. */
export function referredSchema(schema: JsonSchema, root: JsonSchema): JsonSchema | undefined {
  const reference = schema.$ref ?? schema.$dynamicRef ?? schema.$recursiveRef;
  if (typeof reference !== 'string') return undefined;
  const target = findReference(reference, root, schema);
  return isSchemaNode(target) ? target : undefined;
}

const ADDRESSES: readonly (readonly [draft: Draft, address: string, end: string])[] = [
  ['7', 'http://json-schema.org/draft-07/', 'schema#'],
  ['2019-09', 'https://json-schema.org/draft/2019-09/', 'schema'],
  ['2020-12', 'https://json-schema.org/draft/2020-12/', 'schema'],
];

/** Adds the meta-schemas that parts refer to as definitions. */
function withMetaSchemas(schema: JsonSchema, parts: ReadonlySet<JsonSchema>): JsonSchema {
  const $defs = { ...schema.$defs };
  for (const { $ref = '#' } of parts)
    for (const [draft, address, end] of ADDRESSES)
      if ($ref.startsWith(address)) $defs[address + end] = metaSchema(draft, address + end);
  return Object.keys($defs).length === Object.keys(schema.$defs ?? {}).length ? schema : { ...schema, $defs };
}

/** The meta-schema of a draft, built from the keyword table. */
function metaSchema(draft: Draft, $id: string): JsonSchema {
  const known = [...KEYWORDS].filter(([, keyword]) => isKnownIn(draft, keyword));
  const properties = Object.fromEntries(known.map(([name, { takes }]) => [name, TAKEN[takes]]));
  return { $id, type: ['object', 'boolean'], properties };
}

const SCHEMA: JsonSchema = { $ref: '#' };
const SCHEMAS: JsonSchema = { type: 'array', minItems: 1, items: SCHEMA };
const NAMES: JsonSchema = { type: 'array', items: { type: 'string' }, uniqueItems: true };
const TYPE: JsonSchema = { enum: ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] };

/** The schema of a keyword's value. */
const TAKEN: Readonly<Record<KeywordValue, JsonSchema>> = {
  'a schema': SCHEMA,
  'a list of schemas': SCHEMAS,
  'schemas by name': { type: 'object', additionalProperties: SCHEMA },
  'schemas by pattern': {
    type: 'object',
    additionalProperties: SCHEMA,
    propertyNames: { format: 'regex' },
  },
  'a schema or a list of schemas': { anyOf: [SCHEMA, SCHEMAS] },
  'schemas or lists of names, by name': { type: 'object', additionalProperties: { anyOf: [SCHEMA, NAMES] } },
  anything: {},
  'a list': { type: 'array' },
  'a list of values': { type: 'array' },
  text: { type: 'string' },
  'a fragment': { type: 'string' },
  'a number': { type: 'number' },
  'a number above 0': { type: 'number', exclusiveMinimum: 0 },
  'a count': { type: 'integer', minimum: 0 },
  'true or false': { type: 'boolean' },
  false: {},
  names: NAMES,
  'names by name': { type: 'object', additionalProperties: NAMES },
  'a pattern': { type: 'string', format: 'regex' },
  types: { anyOf: [TYPE, { type: 'array', items: TYPE, minItems: 1, uniqueItems: true }] },
};
