import type { JsonSchema } from '../../core/contract/json-schema.js';
import { cached } from '../../core/kernel/cached.js';
import { type Fields, isObject, isRecord, keyOfStep, mapFields } from '../../core/kernel/json.js';
import { ANY_VALUE, BOOLEAN, NUMBER, type OptionRule, WHOLE } from '../../core/kernel/options.js';

/** The drafts that are distinguished. */
export type Draft = '7' | '2019-09' | '2020-12';

/** The kind of a keyword's value. Kinds with schemas mark positions of schemas; other values are data. */
export type KeywordValue =
  | 'a schema'
  | 'a list of schemas'
  | 'schemas by name'
  | 'schemas by pattern'
  | 'a schema or a list of schemas'
  | 'schemas or lists of names, by name'
  | 'anything'
  | 'a list'
  | 'a list of values'
  | 'text'
  | 'a fragment'
  | 'a number'
  | 'a number above 0'
  | 'a count'
  | 'true or false'
  | 'false'
  | 'names'
  | 'names by name'
  | 'a pattern'
  | 'types';

/** The facts about one keyword of JSON Schema. */
interface Keyword {
  readonly takes: KeywordValue;
  /**
   * What its schemas validate: the value itself, or its children. Absent if they only serve as reference targets, or
   * describe other data.
   */
  readonly validates?: 'value' | 'properties' | 'items' | 'names';
  /** The type of values that it constrains; absent: any type. */
  readonly of?: 'string' | 'number' | 'array' | 'object';
  /** Which of two values is stricter. */
  readonly stricter?: 'larger' | 'smaller';
  /** The keyword whose value it must not exceed. */
  readonly upTo?: string;
  /** A schema under it can refuse unknown keys without making the outer schema accept more. */
  readonly closable?: true;
  /** What else it may constrain in an object: keys that `properties` does not list, or a property that is filled in. */
  readonly minds?: readonly ('unlisted' | 'filled')[];
  /** The first and the last draft that has it. */
  readonly since?: Draft;
  readonly until?: Draft;
}

/** The regular expression of a `pattern`; `undefined` if it is invalid. */
export function regularExpression(pattern: string, flags = 'u'): RegExp | undefined {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return undefined;
  }
}

const UNLISTED = ['unlisted'] as const;
const FILLED = ['filled'] as const;
const BOTH = ['unlisted', 'filled'] as const;

function keywordsOf(
  of: Keyword['of'],
  keywords: Readonly<Record<string, Omit<Keyword, 'of'>>>,
): readonly (readonly [string, Keyword])[] {
  return Object.entries(mapFields(keywords, (keyword) => ({ ...keyword, of })));
}

const TEXT = { takes: 'text' } as const;
const FLAG = { takes: 'true or false' } as const;
const NEWER_FLAG = { takes: 'true or false', since: '2019-09' } as const;

/** Every keyword of JSON Schema from draft 7 on. Other keywords belong to other tools. */
export const KEYWORDS: ReadonlyMap<string, Keyword> = new Map([
  ...keywordsOf(undefined, {
    allOf: { takes: 'a list of schemas', validates: 'value', minds: BOTH },
    anyOf: { takes: 'a list of schemas', validates: 'value', closable: true, minds: UNLISTED },
    oneOf: { takes: 'a list of schemas', validates: 'value', minds: BOTH },
    if: { takes: 'a schema', validates: 'value', minds: BOTH },
    // biome-ignore lint/suspicious/noThenProperty: it is a keyword
    then: { takes: 'a schema', validates: 'value' },
    else: { takes: 'a schema', validates: 'value' },
    not: { takes: 'a schema', validates: 'value', minds: FILLED },
    definitions: { takes: 'schemas by name', closable: true },
    $defs: { takes: 'schemas by name', since: '2019-09', closable: true },
    default: { takes: 'anything' },
    const: { takes: 'anything', minds: FILLED },
    enum: { takes: 'a list of values', minds: FILLED },
    examples: { takes: 'a list' },
    type: { takes: 'types' },
    ...{ $id: TEXT, $ref: TEXT, $schema: TEXT, $comment: TEXT, title: TEXT, description: TEXT },
    $anchor: { takes: 'text', since: '2019-09' },
    $dynamicAnchor: { takes: 'text', since: '2019-09' },
    $dynamicRef: { takes: 'a fragment', since: '2020-12', minds: UNLISTED },
    $recursiveRef: { takes: 'a fragment', since: '2019-09', until: '2019-09' },
    $recursiveAnchor: { takes: 'true or false', since: '2019-09', until: '2019-09' },
    $async: { takes: 'false' },
    ...{ readOnly: FLAG, nullable: FLAG, deprecated: NEWER_FLAG, writeOnly: NEWER_FLAG },
  }),
  ...keywordsOf('string', {
    contentSchema: { takes: 'a schema', since: '2019-09', closable: true },
    ...{ format: TEXT, contentMediaType: TEXT, contentEncoding: TEXT },
    pattern: { takes: 'a pattern' },
    minLength: { takes: 'a count', stricter: 'larger', upTo: 'maxLength' },
    maxLength: { takes: 'a count', stricter: 'smaller' },
  }),
  ...keywordsOf('number', {
    minimum: { takes: 'a number', stricter: 'larger', upTo: 'maximum' },
    exclusiveMinimum: { takes: 'a number', stricter: 'larger', upTo: 'exclusiveMaximum' },
    maximum: { takes: 'a number', stricter: 'smaller' },
    exclusiveMaximum: { takes: 'a number', stricter: 'smaller' },
    multipleOf: { takes: 'a number above 0' },
  }),
  ...keywordsOf('array', {
    items: { takes: 'a schema or a list of schemas', validates: 'items', closable: true },
    prefixItems: { takes: 'a list of schemas', validates: 'items', since: '2020-12', closable: true },
    additionalItems: { takes: 'a schema', validates: 'items', until: '2019-09' },
    unevaluatedItems: { takes: 'a schema', validates: 'items', since: '2019-09' },
    contains: { takes: 'a schema', validates: 'items' },
    minItems: { takes: 'a count', stricter: 'larger', upTo: 'maxItems' },
    maxItems: { takes: 'a count', stricter: 'smaller' },
    uniqueItems: FLAG,
    minContains: { takes: 'a count', since: '2019-09', upTo: 'maxContains' },
    maxContains: { takes: 'a count', since: '2019-09' },
  }),
  ...keywordsOf('object', {
    properties: { takes: 'schemas by name', validates: 'properties', closable: true },
    patternProperties: { takes: 'schemas by pattern', validates: 'properties', minds: BOTH },
    additionalProperties: { takes: 'a schema', validates: 'properties', closable: true },
    unevaluatedProperties: {
      takes: 'a schema',
      validates: 'properties',
      since: '2019-09',
      minds: UNLISTED,
    },
    propertyNames: { takes: 'a schema', validates: 'names', minds: BOTH },
    dependentSchemas: { takes: 'schemas by name', validates: 'value', since: '2019-09', minds: FILLED },
    dependencies: { takes: 'schemas or lists of names, by name', validates: 'value', minds: FILLED },
    minProperties: { takes: 'a count', stricter: 'larger', upTo: 'maxProperties' },
    maxProperties: { takes: 'a count', stricter: 'smaller', minds: FILLED },
    required: { takes: 'names' },
    dependentRequired: { takes: 'names by name', since: '2019-09', minds: FILLED },
  }),
]);

const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] as const;

/** The rules for values of keywords. Schemas within a value are not checked. */
export const KEYWORD_RULES: Readonly<Record<KeywordValue, OptionRule>> = {
  'a schema': { accepts: isSchema, fix: 'a schema: an object, true or false' },
  'a list of schemas': { accepts: isFilled, fix: 'a list of schemas' },
  'schemas by name': { accepts: isRecord, fix: 'an object of schemas' },
  'schemas by pattern': { accepts: isRecord, fix: 'an object of schemas' },
  'a schema or a list of schemas': {
    accepts: (value) => isSchema(value) || isFilled(value),
    fix: 'a schema, or a list of schemas in draft 7',
  },
  'schemas or lists of names, by name': { accepts: isRecord, fix: 'an object of schemas or lists of names' },
  anything: ANY_VALUE,
  'a list': { accepts: Array.isArray, fix: 'a list' },
  'a list of values': { accepts: isFilled, fix: 'a list of at least one value' },
  text: { accepts: (value) => typeof value === 'string', fix: 'a string' },
  'a fragment': {
    accepts: (value) => typeof value === 'string' && value.startsWith('#'),
    fix: 'a reference within the schema, which begins with #',
  },
  'a number': NUMBER,
  'a number above 0': {
    accepts: (value) => Number.isFinite(value) && Number(value) > 0,
    fix: 'a number above 0',
  },
  'a count': WHOLE,
  'true or false': BOOLEAN,
  false: { accepts: (value) => value === false, fix: 'false: arguments are checked synchronously' },
  names: { accepts: isNameList, fix: 'a list of different names' },
  'names by name': {
    accepts: (value) => isRecord(value) && Object.values(value).every(isNameList),
    fix: 'an object of lists of different names',
  },
  'a pattern': { accepts: isPattern, fix: 'a regular expression, as a string' },
  types: { accepts: areTypes, fix: `a type or a list of different types (${TYPES.join(', ')})` },
};

/** Whether all items are different strings. */
function isNameList(value: unknown): boolean {
  if (!Array.isArray(value) || new Set(value).size !== value.length) return false;
  return value.every((name) => typeof name === 'string');
}

/** With or without Unicode: some patterns of older tools are invalid with it, newer ones without it. */
function isPattern(value: unknown): boolean {
  return (
    typeof value === 'string' && (regularExpression(value) ?? regularExpression(value, '')) !== undefined
  );
}

/** Whether a value can be a schema. */
function isSchema(value: unknown): boolean {
  return isRecord(value) || typeof value === 'boolean';
}

function isFilled(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

function areTypes(value: unknown): boolean {
  const isType = (type: unknown): boolean => TYPES.some((known) => known === type);
  return Array.isArray(value) ? isFilled(value) && isNameList(value) && value.every(isType) : isType(value);
}

/** The names of the keywords that match a condition. */
export function keywordNames(isMeant: (keyword: Keyword) => boolean): readonly string[] {
  return [...KEYWORDS].flatMap(([name, keyword]) => (isMeant(keyword) ? [name] : []));
}

const NUMERIC: ReadonlySet<KeywordValue> = new Set<KeywordValue>(['a number', 'a number above 0', 'a count']);

/** The numeric bounds of values that exist in every draft. */
export const BOUNDS: readonly string[] = keywordNames(
  ({ takes, since }) => NUMERIC.has(takes) && since === undefined,
);

const DRAFTS: readonly Draft[] = ['7', '2019-09', '2020-12'];

/** Whether a draft has a keyword. */
export function isKnownIn(draft: Draft, { since, until }: Pick<Keyword, 'since' | 'until'>): boolean {
  if (since === undefined && until === undefined) return true;
  const at = DRAFTS.indexOf(draft);
  return DRAFTS.indexOf(since ?? '7') <= at && at <= DRAFTS.indexOf(until ?? '2020-12');
}

/**
 * The draft of a schema: 2020-12, unless it names another draft or has keywords of an earlier one. Draft 7 writes
 * tuples as `items: [...]`; only 2019-09 has `$recursiveRef`.
 */
export function draftOf(schema: JsonSchema, parts: Iterable<JsonSchema> = allSchemas(schema)): Draft {
  const { $schema } = schema;
  if (typeof $schema === 'string' && /draft-0[3-7]/.test($schema)) return '7';
  if (typeof $schema === 'string' && $schema.includes('2019-09')) return '2019-09';
  let draft: Draft = '2020-12';
  for (const { items, $recursiveRef } of parts) {
    if (Array.isArray(items)) return '7';
    if ($recursiveRef !== undefined) draft = '2019-09';
  }
  return draft;
}

/** A direct subschema, or the value in its position. */
interface Subschema {
  readonly node: unknown;
  readonly name: string;
  readonly keyword: Keyword;
  /** The name or index under the keyword, if it contains several. */
  readonly key?: string;
}

/** Whether a value is a schema object, and not `true`, an array or a plain value. */
export function isSchemaNode(node: unknown): node is JsonSchema {
  return isRecord(node);
}

/** Every value in the position of a direct subschema. */
export function schemaPlaces(schema: JsonSchema): readonly Subschema[] {
  const parts: Subschema[] = [];
  for (const name of Object.keys(schema)) {
    const keyword = HOLDING.get(name);
    if (keyword === undefined) continue;
    const node = schema[name];
    if (!holdsSeveral(node, keyword)) parts.push({ node, name, keyword });
    else for (const key of Object.keys(node)) parts.push({ node: node[key], name, keyword, key });
  }
  return parts;
}

/** The keywords that contain schemas; the name of the kind says so. */
const HOLDING: ReadonlyMap<string, Keyword> = new Map(
  [...KEYWORDS].filter(([, { takes }]) => /\bschemas?\b/.test(takes)),
);

function holdsSeveral(value: unknown, { takes }: Keyword): value is Fields {
  if (takes === 'a schema' || !isObject(value)) return false;
  return Array.isArray(value) || takes !== 'a schema or a list of schemas';
}

/** The direct subschemas. */
export function subschemas(schema: JsonSchema): readonly JsonSchema[] {
  return schemaPlaces(schema)
    .map(({ node }) => node)
    .filter(isSchemaNode);
}

/** Every schema within a schema, at any depth, itself first, each once. */
export function allSchemas(root: JsonSchema): ReadonlySet<JsonSchema> {
  return reachableSchemas([root], subschemas);
}

/** The schemas, and all that they lead to, each once. */
export function reachableSchemas(
  starts: readonly JsonSchema[],
  next: (schema: JsonSchema) => readonly unknown[],
): ReadonlySet<JsonSchema> {
  const found = new Set(starts);
  for (const schema of found) for (const part of next(schema)) if (isSchemaNode(part)) found.add(part);
  return found;
}

/** A schema with each direct subschema replaced; everything else does not change. */
export function mapSubschemas(schema: JsonSchema, replace: (part: JsonSchema) => JsonSchema): JsonSchema {
  const mapNode = (node: unknown): unknown => (isSchemaNode(node) ? replace(node) : node);
  return mapFields(schema, (value, name) => {
    const keyword = HOLDING.get(name);
    if (keyword === undefined) return value;
    if (!holdsSeveral(value, keyword)) return mapNode(value);
    return Array.isArray(value) ? value.map(mapNode) : mapFields(value, mapNode);
  });
}

const STRICTEST = { larger: Math.max, smaller: Math.min };

/** Combines both schemas: the stricter of two bounds; patterns and the like that must both match go into `allOf`. */
export function mergeKeywords(first: JsonSchema, second: JsonSchema): JsonSchema {
  if (Object.keys(first).length === 0) return second;
  const merged: Record<string, unknown> = { ...first };
  const both: JsonSchema[] = [];
  for (const [keyword, value] of Object.entries(second)) {
    const before = merged[keyword];
    const stricter = KEYWORDS.get(keyword)?.stricter;
    if (before === undefined) merged[keyword] = value;
    else if (stricter) merged[keyword] = STRICTEST[stricter](before as number, value as number);
    else if (keyword === 'allOf') both.push(...(value as readonly JsonSchema[]));
    else if (JSON.stringify(before) !== JSON.stringify(value)) both.push({ [keyword]: value });
  }
  if (both.length === 0) return merged;
  return { ...merged, allOf: [...((merged.allOf as readonly JsonSchema[] | undefined) ?? []), ...both] };
}

/** The schema, or `null`: a second type if there is one type, otherwise a second branch. */
export function nullableSchema(schema: JsonSchema): JsonSchema {
  if (Object.keys(schema).length === 0) return schema;
  const { enum: values } = schema;
  if (values !== undefined) {
    const types = [schema.type ?? []].flat();
    const type = types.length === 0 || types.includes('null') ? schema.type : [...types, 'null'];
    return {
      ...schema,
      ...(type === undefined ? {} : { type }),
      enum: values.includes(null) ? values : [...values, null],
    };
  }
  if (typeof schema.type === 'string' && schema.$ref === undefined) {
    return schema.type === 'null' ? schema : { ...schema, type: [schema.type, 'null'] };
  }
  const isUnion = schema.anyOf !== undefined && Object.keys(schema).length === 1;
  return { anyOf: [...(isUnion ? (schema.anyOf ?? []) : [schema]), { type: 'null' }] };
}

/** The schema in which `null` counts as absent, for each optional property at any depth. */
export function nullableOptionals(schema: JsonSchema): JsonSchema {
  const changed = mapSubschemas(schema, nullableOptionals);
  const { properties, required = [] } = changed;
  if (properties === undefined) return changed;
  const nullable = mapFields(properties, (property, name) =>
    required.includes(name) || !isRecord(property) ? property : nullableSchema(property),
  );
  return { ...changed, properties: nullable };
}

/**
 * The target of a reference within its root; `undefined` if it does not exist or is outside. `from`: the schema with
 * the reference, by default the root.
 */
export function findReference(
  reference: string,
  root: JsonSchema,
  from: JsonSchema = root,
): JsonSchema | boolean | undefined {
  const { bases, named } = cached(addresses, root, addressesOf);
  const [address = '', ...parts] = resolveUri(reference, bases.get(from) ?? ROOT).split('#');
  const fragment = parts.join('#');
  const resource = named.get(address);
  if (resource === undefined || fragment === '') return resource;
  if (!fragment.startsWith('/')) return named.get(`${address}#${fragment}`);
  let node: unknown = resource;
  for (const step of fragment.split('/').slice(1)) {
    const key = readStep(step);
    if (!isObject(node) || !Object.hasOwn(node, key)) return undefined;
    node = (node as Fields)[key];
  }
  return isSchemaNode(node) || typeof node === 'boolean' ? node : undefined;
}

/** The addresses of a schema's parts, from their ids. */
interface Addresses {
  /** The base address for the references of each part. */
  readonly bases: ReadonlyMap<JsonSchema, string>;
  readonly named: ReadonlyMap<string, JsonSchema>;
}

/** The address of a schema without an id. */
const ROOT = 'schema://whole/';

const addresses = new WeakMap<JsonSchema, Addresses>();

function addressesOf(root: JsonSchema): Addresses {
  const bases = new Map<JsonSchema, string>([[root, ROOT]]);
  const named = new Map<string, JsonSchema>([[ROOT, root]]);
  for (const [schema, around] of bases) {
    const { $id, $anchor, $dynamicAnchor } = schema;
    const base = typeof $id === 'string' ? resolveUri($id.replace(/#$/, ''), around) : around;
    // In draft 7, an id that is only a fragment is an anchor.
    if (base.includes('#')) named.set(base, schema);
    else {
      bases.set(schema, base);
      if (base !== around) named.set(base, schema);
    }
    for (const anchor of [$anchor, $dynamicAnchor])
      if (typeof anchor === 'string') named.set(`${base.split('#')[0]}#${anchor}`, schema);
    for (const part of subschemas(schema)) if (!bases.has(part)) bases.set(part, bases.get(schema) ?? base);
  }
  return { bases, named };
}

function resolveUri(reference: string, base: string): string {
  if (reference.startsWith('#')) return base.split('#')[0] + reference;
  return URL.parse(reference, base)?.href ?? reference;
}

function readStep(step: string): string {
  try {
    return keyOfStep(decodeURIComponent(step));
  } catch {
    return step;
  }
}
