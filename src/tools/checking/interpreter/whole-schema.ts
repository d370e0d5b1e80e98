import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { cached } from '../../../core/kernel/cached.js';
import {
  type Draft,
  draftOf,
  findReference,
  isKnownIn,
  isSchemaNode,
  KEYWORDS,
  type KeywordValue,
  reachableSchemas,
  schemaPlaces,
  subschemas,
} from '../../schema/keywords.js';
import { resolveReference, unionChooser } from '../schema-level.js';

/** Facts that all parts of a schema share. */
export interface WholeSchema {
  readonly root: JsonSchema;
  readonly draft: Draft;
  /** Some part uses evaluated properties or items. */
  readonly isTracking: boolean;
  /** The target of some reference depends on the path to it. */
  readonly isDynamic: boolean;
  /** Results must be remembered, because values would be validated too often. */
  readonly isRepeating: boolean;
  /** Tests become generated code. */
  readonly isGenerating?: boolean;
}

/** Analyzes all parts of a schema once. */
export function wholeSchema(schema: JsonSchema): WholeSchema {
  const given = everySchema(schema);
  const draft = draftOf(schema, given);
  const root = withMetaSchemas(schema, given);
  const parts = [...(root === schema ? given : everySchema(root))];
  const isDynamic = parts.some((part) => (part.$dynamicRef ?? part.$recursiveRef) !== undefined);
  const isReferring = isDynamic || parts.some((part) => part.$ref !== undefined);
  return {
    root,
    draft,
    isTracking:
      draft !== '7' &&
      parts.some((part) => (part.unevaluatedProperties ?? part.unevaluatedItems) !== undefined),
    isDynamic,
    isRepeating: isReferring && (leadsBack(stepsOf(root), 2) || validatesItselfAgain(root)),
  };
}

/** Whether validating a value leads to validating the same value with the same schema, without end. */
export function validatesItselfAgain(root: JsonSchema): boolean {
  return leadsBack(stepsOf(root, true), 1);
}

/** Validating a value with one schema requires validating it, or a child of it, with another. */
interface Step {
  readonly to: JsonSchema;
  /** The types of values that the step applies to, if not all. */
  readonly types?: readonly string[] | undefined;
  /** At most one step of each name applies to a value. */
  readonly way: string;
}

type Steps = ReadonlyMap<JsonSchema, readonly Step[]>;

const VALUES_OF = { properties: 'object', items: 'array' };

/** An array item is in the tuple or after it; a property is listed or not. */
const ONE_OF: Readonly<Record<string, string>> = {
  properties: 'listed or not',
  additionalProperties: 'listed or not',
  unevaluatedProperties: 'listed or not',
  items: 'within or behind',
  prefixItems: 'within or behind',
  additionalItems: 'within or behind',
  unevaluatedItems: 'within or behind',
  // biome-ignore lint/suspicious/noThenProperty: it is a keyword
  then: 'then or else',
  else: 'then or else',
};

/** The steps of each schema. `isSame`: only those that validate the value itself, not a child. */
function stepsOf(root: JsonSchema, isSame = false): Steps {
  const steps = new Map<JsonSchema, readonly Step[]>();
  for (const schema of everySchema(root)) {
    const taken: Step[] = [];
    const target = referredSchema(schema, root);
    if (target !== undefined) taken.push({ to: target, way: '$ref' });
    for (const { node, name, key, keyword } of schemaPlaces(schema)) {
      const { validates } = keyword;
      if (!isSchemaNode(node) || validates === undefined || validates === 'names') continue;
      if (isSame && validates !== 'value') continue;
      const types = validates === 'value' ? resolveReference(node, root).type : VALUES_OF[validates];
      let way = ONE_OF[name] ?? `${name} ${key}`;
      const branches: unknown = name === 'anyOf' || name === 'oneOf' ? schema[name] : undefined;
      if (Array.isArray(branches)) {
        const chosen = unionChooser(branches, root)({});
        if (chosen.kind === 'branch' || (chosen.kind === 'tag' && chosen.isCertain)) way = name;
      }
      taken.push({ to: node, way, types: types === undefined ? undefined : [types].flat() });
    }
    steps.set(schema, taken);
  }
  return steps;
}

/**
 * Whether any schema leads back to itself in this many ways for the same value. With two ways, as in
 * `Node = anyOf: [{ a: Node }, { a: Node, b }]`, each level of a value would double the work. A tag that distinguishes
 * the branches leaves only one way.
 */
function leadsBack(steps: Steps, ways: number): boolean {
  const circles = circlesOf(steps);
  // Only containers lead further.
  for (const [part, taken] of steps)
    for (const type of ['object', 'array']) {
      const found = new Set<string>();
      for (const { to, types, way } of taken)
        if (circles.get(to) === circles.get(part) && types?.includes(type) !== false) found.add(way);
      if (found.size >= ways) return true;
    }
  return false;
}

/** For each schema, a representative of its cycle of schemas that lead to each other. */
function circlesOf(steps: Steps): ReadonlyMap<JsonSchema, JsonSchema> {
  // All schemas, each after the schemas that it leads to.
  const done: JsonSchema[] = [];
  const seen = new Set<JsonSchema>();
  const back = new Map<JsonSchema, JsonSchema[]>();
  for (const start of steps.keys()) {
    if (seen.has(start)) continue;
    seen.add(start);
    // Without recursion: chains of references may be longer than the stack.
    const open = [{ part: start, left: [...(steps.get(start) ?? [])] }];
    for (let at = open.at(-1); at !== undefined; at = open.at(-1)) {
      const next = at.left.pop()?.to;
      if (next === undefined) {
        open.pop();
        done.push(at.part);
        continue;
      }
      cached(back, next, () => []).push(at.part);
      if (seen.has(next)) continue;
      seen.add(next);
      open.push({ part: next, left: [...(steps.get(next) ?? [])] });
    }
  }
  const circles = new Map<JsonSchema, JsonSchema>();
  for (const first of done.reverse()) {
    if (circles.has(first)) continue;
    circles.set(first, first);
    const open = [first];
    for (const part of open)
      for (const before of back.get(part) ?? []) {
        if (circles.has(before)) continue;
        circles.set(before, first);
        open.push(before);
      }
  }
  return circles;
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

/** Adds the meta-schemas that parts refer to as definitions, built from the keyword table. */
function withMetaSchemas(schema: JsonSchema, parts: ReadonlySet<JsonSchema>): JsonSchema {
  const $defs = { ...schema.$defs };
  for (const { $ref = '#' } of parts)
    for (const [draft, address, end] of ADDRESSES) {
      if (!$ref.startsWith(address)) continue;
      const properties: Record<string, JsonSchema> = {};
      for (const [name, keyword] of KEYWORDS)
        if (isKnownIn(draft, keyword)) properties[name] = TAKEN[keyword.takes];
      $defs[address + end] = { $id: address + end, type: ['object', 'boolean'], properties };
    }
  return Object.keys($defs).length === Object.keys(schema.$defs ?? {}).length ? schema : { ...schema, $defs };
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
