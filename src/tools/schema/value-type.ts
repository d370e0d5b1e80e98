import { Buffer } from 'node:buffer';
import {
  type ClassType,
  type DescribedSchema,
  type EnumSource,
  Integer,
} from '../../core/contract/declaration.js';
import type { JsonSchema, StandardSchema } from '../../core/contract/json-schema.js';
import type { UnplacedFault } from '../../core/errors/author-fault.js';
import { filterFields, isObject, isRecord } from '../../core/kernel/json.js';
import { authorHasRun, type PropertyTransform } from '../validators/dto-rules.js';
import { isSchemaNode } from './keywords.js';

/** The JSON form of a `bigint`. */
export const BIGINT_DIGITS = '^-?[0-9]+$';

/** The JSON types that need no hydration. */
export type ScalarName = 'string' | 'number' | 'integer' | 'boolean';

/**
 * The type of a value. The schema for the model and the hydration of the arguments both use it, so that they cannot
 * disagree.
 */
export type ValueType =
  | { readonly kind: 'any' }
  | { readonly kind: 'scalar'; readonly name: ScalarName }
  /** A string in JSON; an instance in the tool. */
  | { readonly kind: TextualKind }
  | { readonly kind: 'enum'; readonly values: readonly unknown[] }
  | ArrayType
  | RecordType
  | { readonly kind: 'class'; readonly class: ClassType; readonly groups?: readonly string[] }
  | TaggedType
  /** An explicit schema; values arrive as JSON, or as the Standard Schema parses them. */
  | { readonly kind: 'schema'; readonly schema: JsonSchema; readonly standard?: StandardSchema }
  | DescribedType;

/** `bytes` is a `Uint8Array`, `buffer` Node's subclass of it. */
type TextualKind = 'date' | 'url' | 'bytes' | 'buffer' | 'bigint';

/** The types that are a string in JSON and an instance in the tool, with the class and the JSON form. */
export const TEXTUAL_TYPES: ReadonlyMap<
  TextualKind,
  { readonly class: unknown; readonly schema: JsonSchema }
> = new Map<TextualKind, { class: unknown; schema: JsonSchema }>([
  ['date', { class: Date, schema: { type: 'string', format: 'date-time' } }],
  ['url', { class: URL, schema: { type: 'string', format: 'uri' } }],
  ['bytes', { class: Uint8Array, schema: { type: 'string', contentEncoding: 'base64' } }],
  ['buffer', { class: Buffer, schema: { type: 'string', contentEncoding: 'base64' } }],
  ['bigint', { class: BigInt, schema: { type: 'string', pattern: BIGINT_DIGITS } }],
]);

/** A type from the generated file that no other kind can express: unions, tuples, plain objects. */
export interface DescribedType {
  readonly kind: 'described';
  readonly schema: DescribedSchema;
  /** Recursive types by name: the targets of `$ref`. */
  readonly definitions: Readonly<Record<string, DescribedSchema>>;
}

/** An object in JSON, and in the tool an object or a `Map`. */
interface RecordType {
  readonly kind: 'record';
  readonly values: ValueType;
  readonly collection?: 'map';
  /** JSON keys are always strings. */
  readonly keys?: 'number';
}

/** The JSON form of the keys of a `Map` with numeric keys. */
export const NUMBER_KEY = '^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$';

/** An array in JSON, and in the tool an array or a `Set`. */
interface ArrayType {
  readonly kind: 'array';
  readonly items: ValueType;
  /** Further keywords of the items' schema, from rules with `each: true`. */
  readonly keywords?: JsonSchema;
  readonly collection?: 'set';
}

/** A union of classes, distinguished by the value of one property. */
export interface TaggedType {
  readonly kind: 'tagged';
  readonly property: string;
  /** The tag stays on the instance. */
  readonly keepProperty: boolean;
  readonly variants: readonly TaggedVariant[];
  readonly groups?: readonly string[];
}

/** A branch of a tagged union. */
interface TaggedVariant {
  readonly tag: string;
  readonly class: ClassType;
}

/** Whether all are scalars without keywords except descriptions, so that their schema cannot be wrong. */
export function arePlain(properties: readonly PropertyModel[]): boolean {
  return properties.every(
    ({ type, keywords }) =>
      type.kind === 'scalar' && Object.keys(keywords).every((name) => name === 'description'),
  );
}

/** The model of a value: a parameter, a property of a DTO, or the generated description of either. */
export interface ValueModel {
  readonly type: ValueType;
  readonly nullable: boolean;
  /** Further keywords of its schema: description, constraints, default. */
  readonly keywords: JsonSchema;
}

/** A property of an arguments object or of a DTO class. */
export interface PropertyModel extends ValueModel {
  /** The name in JSON. */
  readonly name: string;
  /** The name on the instance, if it differs (`@Expose({ name })`). */
  readonly key?: string;
  readonly required: boolean;
  /** Applied to the hydrated value in this order (`@Transform`). */
  readonly transforms?: readonly PropertyTransform[];
  /**
   * The schema describes the value after the transforms, so they run before the check: `sent`: only if a value was
   * sent; `always`: also without a value (`@Expose`).
   */
  readonly transformedFirst?: 'sent' | 'always';
  /** class-validator visits the value itself (`@ValidateNested`). */
  readonly cascades?: boolean;
}

/** The type of the arguments: separate properties, a DTO class for all of them, or any other type. */
export type ArgumentsModel =
  | { readonly properties: readonly PropertyModel[] }
  | { readonly class: ClassType; readonly groups?: readonly string[] }
  | { readonly type: ValueType };

/**
 * Rules that JSON Schema cannot express: `none`; a list of rules that can run separately; or `all`: class-validator
 * itself must check instances (conditions, custom validators).
 */
type RemainingRules = 'none' | 'all' | readonly RemainingRule[];

/** Runs one rule on one property of an instance; `true` means that it passes. */
export type RemainingRule = (instance: object) => boolean;

/** The model of a DTO class. */
export interface ClassModel {
  readonly properties: readonly PropertyModel[];
  /** The rules that remain after a value matches the schema. */
  readonly remaining: RemainingRules;
  /** Contradictions between the generated types and class-validator's rules, as sentences. */
  readonly disagreements?: readonly string[];
}

const SCALAR_TOKENS = { string: String, number: Number, boolean: Boolean, integer: Integer };
const ANY_OBJECT: ValueType = { kind: 'schema', schema: { type: 'object' } };

/** The types of tokens and type names. */
const TOKENS: ReadonlyMap<unknown, ValueType> = new Map<unknown, ValueType>([
  ...(['string', 'number', 'boolean', 'integer'] as const).flatMap((name) => {
    const type: ValueType = { kind: 'scalar', name };
    return [[name, type] as const, [SCALAR_TOKENS[name], type] as const];
  }),
  ['object', ANY_OBJECT],
  [Object, ANY_OBJECT],
  [Date, { kind: 'date' }],
  [URL, { kind: 'url' }],
  [Uint8Array, { kind: 'bytes' }],
  [Buffer, { kind: 'buffer' }],
  [BigInt, { kind: 'bigint' }],
]);

/** Built-in classes without a content type, or that JSON cannot represent. */
const UNKNOWN: ReadonlySet<unknown> = new Set<unknown>([
  Array,
  Function,
  Promise,
  Map,
  Set,
  WeakMap,
  WeakSet,
  Symbol,
  RegExp,
  Error,
  ArrayBuffer,
]);

/**
 * The type of a reference: a token, a function that returns a token, a name such as `'integer'`, an enum object, or
 * an array of one of these (`type: () => X`).
 */
export function resolveTypeReference(reference: unknown, groups?: readonly string[]): TypeResult {
  const token = TOKENS.get(reference);
  if (token !== undefined) return knownType(token);
  if (isThunk(reference)) {
    let referred: unknown;
    authorHasRun();
    try {
      referred = reference();
    } catch (error) {
      return emptyReference(error);
    }
    return isThunk(referred) ? unknownType(referred) : resolveTypeReference(referred, groups);
  }
  if (Array.isArray(reference)) {
    return mapType(resolveTypeReference(reference[0], groups), (items) => ({ kind: 'array', items }));
  }
  if (reference === undefined) return emptyReference();
  if (isEnumObject(reference)) return knownType({ kind: 'enum', values: enumValues(reference) });
  if (typeof reference !== 'function' || UNKNOWN.has(reference)) return unknownType(reference);
  return knownType({ kind: 'class', class: reference as unknown as ClassType, groups });
}

/** The type in decorator metadata. Unlike in a reference, `Object` is not a type there. */
export function resolveDesignType(designType: unknown, groups?: readonly string[]): TypeResult {
  if (designType === undefined || designType === Object) return unknownType(designType);
  if (isThunk(designType) || typeof designType === 'string') return unknownType(designType);
  return resolveTypeReference(designType, groups);
}

/** Arrow functions have no `prototype`; classes and `String`, `Date`, … do. */
function isThunk(reference: unknown): reference is () => unknown {
  return typeof reference === 'function' && !Object.hasOwn(reference, 'prototype');
}

/**
 * The values of an enum in the order of declaration, without duplicates: a list unchanged, or a TypeScript enum
 * object without the reverse mapping of numeric members (`{ A: 0, 0: 'A' }`).
 */
export function enumValues(source: EnumSource): readonly unknown[] {
  if (Array.isArray(source)) return [...new Set(source)];
  const members = source as Readonly<Record<string, string | number>>;
  const isReverse = (key: string) => {
    const value = members[key];
    return typeof value === 'string' && members[value] === Number(key) && String(Number(key)) === key;
  };
  const keys = Object.keys(members).filter((key) => !isReverse(key));
  return [...new Set(keys.map((key) => members[key]))];
}

/** Whether a value is a TypeScript enum object, which swc emits instead of `String` or `Number`. */
export function isEnumObject(value: unknown): value is Readonly<Record<string, string | number>> {
  if (!isRecord(value)) return false;
  const values = Object.values(value);
  return values.length > 0 && values.every((value) => typeof value === 'string' || typeof value === 'number');
}

/** Why a value cannot be described, and the fix. */
export type TypeFault = { readonly ok: false } & UnplacedFault;

/** A type, or why it is unknown. */
export type TypeResult = { readonly ok: true; readonly type: ValueType } | TypeFault;

/** A fault of one property of a DTO class. */
export type PropertyFault = UnplacedFault & { readonly property: string };

/** Wraps a known type. */
export function knownType(type: ValueType): TypeResult {
  return { ok: true, type };
}

/** Changes a known type. */
export function mapType(result: TypeResult, change: (type: ValueType) => ValueType): TypeResult {
  return result.ok ? knownType(change(result.type)) : result;
}

const FIX =
  '@Param({ type: () => X }), items: () => X for an array, enum: [...] for a union of literals, ' +
  'or schema: {...}';

const GENERATE =
  '`npx toolwright generate` reads it from the types; import the generated file in the application';
const UNTYPED = 'it has no type annotation: write one';
const TYPE_IMPORT = 'the class is imported with `import type`';
/** The likeliest cause of a type that is not known. */
export const NO_METADATA =
  'the build tool emits no decorator metadata (esbuild, tsx, or `emitDecoratorMetadata` is off): run ' +
  '`npx toolwright generate` and import the generated file';
const CYCLE = 'the class was not loaded yet, because two files import each other';

/** The possible causes of metadata without a type, likeliest first. A function, so that bundles can omit the texts. */
function causesOf(found: unknown): readonly string[] {
  switch (found) {
    case undefined:
      return [NO_METADATA, CYCLE, 'the parameter is the context of the call: mark it with @Context()'];
    case Array:
    case Set:
    case Map:
      return [
        `the metadata of ${found === Array ? 'an array' : 'a Set or Map'} does not contain the types of its items: ${GENERATE}`,
      ];
    case Function:
      return [TYPE_IMPORT, 'the type is a function, which JSON cannot represent'];
    case Promise:
      return ['the type is a promise, which JSON cannot represent'];
    case Symbol:
      return ['JSON has no symbols'];
    default: {
      const erased = `the type is an interface, a union or \`any\`, which do not exist at run time: ${GENERATE}`;
      return found === Object ? [erased, UNTYPED, TYPE_IMPORT] : [erased, TYPE_IMPORT];
    }
  }
}

/** The fault of an unknown type: never a guess, always the causes and the fix. */
export function unknownType(found: unknown): TypeFault {
  const named =
    typeof found === 'function' ? `the metadata contains ${found.name}` : `found ${String(found)}`;
  const place = found === undefined ? 'there is no metadata' : named;
  return {
    ok: false,
    problem: `its type is unknown (${place})`,
    causes: causesOf(found),
    fix: fixOf(found),
  };
}

function fixOf(declared: unknown): string {
  if (declared === Set) return '@Param({ items: () => X }), with the type of its items';
  if (declared === Map) return '@Param({ additionalProperties: () => X }), with the type of its values';
  return declared === BigInt ? 'no type in @Param: a bigint is sent as its digits' : FIX;
}

/** The type that `@Param` states, as the `Set`, `Map` or `bigint` that the parameter is declared as. */
export function asDeclared(stated: ValueType, declared: unknown, generated?: ValueType): TypeResult {
  if (declared === Set && stated.kind === 'array') return knownType({ ...stated, collection: 'set' });
  if (declared === Map && stated.kind === 'record') {
    const keys = generated?.kind === 'record' ? generated.keys : undefined;
    return knownType({ ...stated, collection: 'map', keys });
  }
  if (declared === BigInt && stated.kind === 'scalar' && stated.name === 'string')
    return knownType({ kind: 'bigint' });
  // A Standard Schema may itself parse the JSON into any value.
  const isParsed = stated.kind === 'bigint' || (stated.kind === 'schema' && stated.standard !== undefined);
  if (isParsed || !CONVERTED.includes(declared)) return knownType(stated);
  const name = declared === BigInt ? 'bigint' : (declared as ClassType).name;
  return {
    ok: false,
    problem: `its @Param states another type than its declaration, a ${name}`,
    fix: fixOf(declared),
  };
}

const CONVERTED: readonly unknown[] = [Set, Map, BigInt];

/** The fault of a type reference without a result: `() => X` with X undefined. */
export function emptyReference(cause?: unknown): TypeFault {
  const detail = cause instanceof Error ? `threw: ${cause.message}` : 'gave undefined';
  return {
    ok: false,
    problem: `its type reference ${detail}`,
    causes: ['two files import each other, and the class was not loaded yet', TYPE_IMPORT],
    fix: 'type: () => X, with X imported as a value and without the import cycle',
  };
}

/** The decorator metadata of a type, so that a described type can replace metadata and be compared with it. */
export function designToken(type: ValueType): unknown {
  switch (type.kind) {
    case 'scalar':
      return scalarToken(type.name === 'integer' ? 'number' : type.name);
    case 'enum': {
      const [kind, ...others] = new Set(type.values.map((value) => typeof value));
      return others.length === 0 && kind !== undefined ? scalarToken(kind) : Object;
    }
    case 'array':
      return type.collection === 'set' ? Set : Array;
    case 'record':
      return type.collection === 'map' ? Map : Object;
    case 'class':
      return type.class;
    case 'any':
    case 'tagged':
    case 'schema':
    case 'described':
      return undefined;
    default:
      return TEXTUAL_TYPES.get(type.kind)?.class;
  }
}

function scalarToken(name: string): unknown {
  if (name === 'string') return String;
  return name === 'number' ? Number : Boolean;
}

/** Keywords that belong to the property and not to its type. */
const WORDS: ReadonlySet<string> = new Set(['description', 'title', 'default', 'deprecated', 'examples']);

/**
 * Converts a described schema to a type. Parts that the other kinds of types can express use these, so that rules,
 * instances and coercion apply. The rest stays a schema that is written and hydrated unchanged.
 */
export function fromGenerated(
  schema: DescribedSchema,
  definitions: DescribedType['definitions'] = {},
): ValueModel {
  const nullable = withoutNull(schema);
  const words = filterFields(nullable.schema, (name) => WORDS.has(name));
  const form: DescribedSchema = filterFields(nullable.schema, (name) => !WORDS.has(name));
  const { type, keywords } = typeOf(form, definitions);
  return { type, nullable: nullable.isNullable, keywords: { ...keywords, ...words } };
}

/** The type of a form without words, with the keywords that the type does not cover. */
function typeOf(
  form: DescribedSchema,
  definitions: DescribedType['definitions'],
): Pick<ValueModel, 'type' | 'keywords'> {
  const { instanceOf, type, ...rest } = form;
  const { items, additionalProperties, ...others } = rest;
  for (const [kind, textual] of TEXTUAL_TYPES)
    if (textual.class === instanceOf)
      return {
        type: { kind },
        keywords: filterFields(rest, (name, value) => textual.schema[name] !== value),
      };
  const isArray = type === 'array' && isObject(items) && !('prefixItems' in form);
  if (instanceOf === Set || (isArray && instanceOf === undefined)) {
    const { items: _, ...keywords } = rest;
    const schema = (items ?? {}) as DescribedSchema;
    const item = fromGenerated(schema, definitions);
    const collection = instanceOf === Set ? 'set' : undefined;
    const array: ValueType = item.nullable
      ? { kind: 'array', items: { kind: 'described', schema, definitions }, collection }
      : { kind: 'array', items: item.type, keywords: item.keywords, collection };
    return { type: array, keywords };
  }
  const hasShape = 'properties' in form || 'propertyNames' in form;
  const hasValues = additionalProperties === true || isObject(additionalProperties);
  if (instanceOf === Map || (type === 'object' && hasValues && !hasShape)) {
    const { additionalProperties: _, ...keywords } = rest;
    const schema = additionalProperties === true ? {} : ((additionalProperties ?? {}) as DescribedSchema);
    const value = fromGenerated(schema, definitions);
    const isPlain = !value.nullable && Object.keys(value.keywords).length === 0;
    const values: ValueType = isPlain ? value.type : { kind: 'described', schema, definitions };
    if (instanceOf !== Map) return { type: { kind: 'record', values }, keywords };
    const { propertyNames } = keywords;
    const hasNumbers = isSchemaNode(propertyNames) && propertyNames.pattern === NUMBER_KEY;
    const keys = hasNumbers ? 'number' : undefined;
    return { type: { kind: 'record', values, collection: 'map', keys }, keywords };
  }
  if (typeof instanceOf === 'function')
    return { type: { kind: 'class', class: instanceOf as unknown as ClassType }, keywords: others };
  if (Array.isArray(form.enum)) {
    const { enum: values, ...keywords } = others;
    return { type: { kind: 'enum', values: values as readonly unknown[] }, keywords };
  }
  if (typeof type === 'string' && Object.hasOwn(SCALAR_TOKENS, type))
    return { type: { kind: 'scalar', name: type as ScalarName }, keywords: others };
  if (Object.keys(form).length === 0) return { type: { kind: 'any' }, keywords: {} };
  return { type: { kind: 'described', schema: form, definitions }, keywords: {} };
}

/** The forms in which the generator writes `| null`. */
function withoutNull(schema: DescribedSchema): {
  readonly schema: DescribedSchema;
  readonly isNullable: boolean;
} {
  const { type, anyOf, ...others } = schema;
  if (Array.isArray(type) && type.length === 2 && type.includes('null')) {
    const only = type.find((name) => name !== 'null');
    const values = schema.enum?.filter((value) => value !== null);
    return { schema: { type: only, ...others, ...(values ? { enum: values } : {}) }, isNullable: true };
  }
  const branches = anyOf?.filter((branch) => branch.type !== 'null') ?? [];
  const [only, second] = branches;
  if (only === undefined || second !== undefined || anyOf?.length !== 2) return { schema, isNullable: false };
  return { schema: { ...only, ...others }, isNullable: true };
}

/** The definition that a `$ref` of a description names. */
export function referredDefinition(
  reference: string,
  described: DescribedType['definitions'],
): { readonly name: string; readonly schema: DescribedSchema } | undefined {
  const name = reference.replace(/^#\/\$defs\//, '');
  if (!Object.hasOwn(described, name)) return undefined;
  const schema = described[name];
  return isSchemaNode(schema) ? { name, schema } : undefined;
}
