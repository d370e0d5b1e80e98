import { Buffer } from 'node:buffer';
import type { ClassType, DescribedSchema } from '../../core/contract/declaration.js';
import type { JsonSchema, StandardSchema } from '../../core/contract/json-schema.js';
import type { PropertyTransform } from '../validators/transform-rules.js';

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
  readonly class: ClassType;
  readonly properties: readonly PropertyModel[];
  /** The rules that remain after a value matches the schema. */
  readonly remaining: RemainingRules;
  /** Contradictions between the generated types and class-validator's rules, as sentences. */
  readonly disagreements?: readonly string[];
}
