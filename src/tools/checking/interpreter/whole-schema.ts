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
  type Subschema,
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
  let [isTracking, isDynamic, isReferring] = [false, false, false];
  for (const part of root === schema ? given : everySchema(root)) {
    isTracking ||= (part.unevaluatedProperties ?? part.unevaluatedItems) !== undefined;
    isDynamic ||= (part.$dynamicRef ?? part.$recursiveRef) !== undefined;
    isReferring ||= part.$ref !== undefined;
  }
  const isRepeating =
    (isReferring || isDynamic) && (leadsBack(stepsOf(root), 2) || validatesItselfAgain(root));
  return {
    root,
    draft,
    isTracking: isTracking && draft !== '7',
    isDynamic,
    isRepeating,
  };
}

/** Whether validating a value leads to validating the same value with the same schema, without end. */
export function validatesItselfAgain(root: JsonSchema): boolean {
  const steps = [...stepsOf(root)].map(
    ([part, taken]) => [part, taken.filter(({ isSame }) => isSame)] as const,
  );
  return leadsBack(new Map(steps), 1);
}

function stepsOf(root: JsonSchema): Steps {
  return new Map([...everySchema(root)].map((part) => [part, stepsFrom(part, root)]));
}

/**
 * Whether any schema leads back to itself in this many ways for the same value. With two ways, as in
 * `Node = anyOf: [{ a: Node }, { a: Node, b }]`, each level of a value would double the work. A tag that distinguishes
 * the branches leaves only one way.
 */
function leadsBack(steps: Steps, ways: number): boolean {
  const circles = circlesOf(steps);
  return [...steps].some(([part, taken]) => {
    const within = taken.filter(({ to }) => circles.get(to) === circles.get(part));
    return within.length >= ways && waysOf(within) >= ways;
  });
}

/** Validating a value with one schema requires validating it, or a child of it, with another. */
interface Step {
  readonly to: JsonSchema;
  /** The value itself is validated, not a child. */
  readonly isSame: boolean;
  /** The types of values that the step applies to, if not all. */
  readonly types?: readonly string[];
  /** At most one step of each name applies to a value. */
  readonly way: string;
}

function stepsFrom(schema: JsonSchema, root: JsonSchema): readonly Step[] {
  const steps: Step[] = [];
  const target = referredSchema(schema, root);
  if (target !== undefined) steps.push({ to: target, way: '$ref', isSame: true });
  for (const part of schemaPlaces(schema)) {
    const { node, keyword } = part;
    if (!isSchemaNode(node) || keyword.validates === undefined || keyword.validates === 'names') continue;
    const types =
      keyword.validates === 'value' ? resolveReference(node, root).type : VALUES_OF[keyword.validates];
    const step = { to: node, way: wayOf(part, schema, root), isSame: keyword.validates === 'value' };
    steps.push(types === undefined ? step : { ...step, types: [types].flat() });
  }
  return steps;
}

const VALUES_OF = { properties: 'object', items: 'array' };

/** An array item is in the tuple or after it; a property is listed or not. */
const ONE_OF: ReadonlyMap<string, string> = new Map([
  ...['properties', 'additionalProperties', 'unevaluatedProperties'].map(
    (name) => [name, 'listed or not'] as const,
  ),
  ...['items', 'prefixItems', 'additionalItems', 'unevaluatedItems'].map(
    (name) => [name, 'within or behind'] as const,
  ),
  ...['then', 'else'].map((name) => [name, 'then or else'] as const),
]);

function wayOf({ name, key }: Subschema, schema: JsonSchema, root: JsonSchema): string {
  const branches = name === 'anyOf' || name === 'oneOf' ? schema[name] : undefined;
  if (Array.isArray(branches)) {
    const chosen = unionChooser(branches, root)({});
    if (chosen.kind === 'branch' || (chosen.kind === 'tag' && chosen.isCertain)) return name;
  }
  return ONE_OF.get(name) ?? `${name} ${key}`;
}

/** The most ways in which the same value is validated; containers are objects or arrays. */
function waysOf(steps: readonly Step[]): number {
  const ways = ['object', 'array'].map(
    (type) =>
      new Set(steps.filter(({ types }) => types === undefined || types.includes(type)).map(({ way }) => way))
        .size,
  );
  return Math.max(...ways);
}

type Steps = ReadonlyMap<JsonSchema, readonly Step[]>;

/** For each schema, a representative of its cycle of schemas that lead to each other. */
function circlesOf(steps: Steps): ReadonlyMap<JsonSchema, JsonSchema> {
  const back = new Map([...steps.keys()].map((part): [JsonSchema, JsonSchema[]] => [part, []]));
  for (const [from, taken] of steps) for (const { to } of taken) back.get(to)?.push(from);
  const circles = new Map<JsonSchema, JsonSchema>();
  for (const first of finished(steps).reverse()) {
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

/** All schemas, each after the schemas that it leads to. */
function finished(steps: Steps): JsonSchema[] {
  const done: JsonSchema[] = [];
  const seen = new Set<JsonSchema>();
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
      } else if (!seen.has(next)) {
        seen.add(next);
        open.push({ part: next, left: [...(steps.get(next) ?? [])] });
      }
    }
  }
  return done;
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
