import type { ClassType, DescribedSchema } from '../../core/contract/declaration.js';
import type { JsonSchema, StandardSchema } from '../../core/contract/json-schema.js';
import type { PropertyTransform } from '../validators/transform-rules.js';

/** The JSON types that need no hydrating on the way in. */
export type ScalarName = 'string' | 'number' | 'integer' | 'boolean';

/**
 * What is known of one value's type: the common source of the schema that the model sees and of the
 * hydration that the tool's arguments go through, so that the two cannot disagree.
 */
export type ValueType =
  | { readonly kind: 'any' }
  | { readonly kind: 'scalar'; readonly name: ScalarName }
  /** Text in JSON; an instance in the tool. `bytes` is a `Uint8Array`, `buffer` Node's subclass of it. */
  | { readonly kind: 'date' | 'url' | 'bytes' | 'buffer' | 'bigint' }
  | { readonly kind: 'enum'; readonly values: readonly unknown[] }
  | ArrayType
  | RecordType
  | { readonly kind: 'class'; readonly class: ClassType; readonly groups?: readonly string[] }
  | TaggedType
  /** An explicit schema; values arrive as JSON delivers them, or as the Standard Schema parses them. */
  | { readonly kind: 'schema'; readonly schema: JsonSchema; readonly standard?: StandardSchema }
  | DescribedType;

/** What the generated file says of a type that no other kind can say: unions, tuples, plain objects. */
export interface DescribedType {
  readonly kind: 'described';
  readonly schema: DescribedSchema;
  /** The types that contain themselves, by name: what `$ref` leads to. */
  readonly definitions: Readonly<Record<string, DescribedSchema>>;
}

/** An object in JSON, and in the tool unless it is a `Map` there. */
export interface RecordType {
  readonly kind: 'record';
  readonly values: ValueType;
  readonly collection?: 'map';
  /** JSON has only text for keys. */
  readonly keys?: 'number';
}

/** What the keys of a `Map` look like in JSON where they are numbers in the tool. */
export const NUMBER_KEY = '^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$';

/** What a `bigint` looks like in JSON. */
export const BIGINT_DIGITS = '^-?[0-9]+$';

/** An array in JSON, and in the tool unless it is a `Set` there. */
interface ArrayType {
  readonly kind: 'array';
  readonly items: ValueType;
  /** Further keywords of the items' schema: what rules with `each: true` say. */
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

/** One branch of a discriminated union. */
interface TaggedVariant {
  readonly tag: string;
  readonly class: ClassType;
}

/** Whether these are scalars of which nothing is said but a description: nothing of their schema can be wrong. */
export function arePlain(properties: readonly PropertyModel[]): boolean {
  for (const { type, keywords } of properties) {
    if (type.kind !== 'scalar') return false;
    for (const name in keywords) if (name !== 'description') return false;
  }
  return true;
}

/** A value: what a parameter, a property of a DTO and the generated file's word on either come to. */
export interface ValueModel {
  readonly type: ValueType;
  readonly nullable: boolean;
  /** Further keywords of its schema: description, constraints, default. */
  readonly keywords: JsonSchema;
}

/** One property of an arguments object or of a DTO class. */
export interface PropertyModel extends ValueModel {
  /** The name in JSON. */
  readonly name: string;
  /** The name on the instance, where it differs (`@Expose({ name })`). */
  readonly key?: string;
  readonly required: boolean;
  /** Applied to the hydrated value in this order (`@Transform`). */
  readonly transforms?: readonly PropertyTransform[];
  /**
   * The schema describes what the transforms make of the value, so that they come before the check: of what was sent,
   * or always, also where nothing was (`@Expose`).
   */
  readonly transformedFirst?: 'sent' | 'always';
  /** class-validator goes on into the value by itself (`@ValidateNested`). */
  readonly cascades?: boolean;
}

/** What the arguments are: properties of their own, a DTO class that takes all of them, or any other type. */
export type ArgumentsModel =
  | { readonly properties: readonly PropertyModel[] }
  | { readonly class: ClassType; readonly groups?: readonly string[] }
  | { readonly type: ValueType };

/**
 * Rules that JSON Schema cannot say: none; some that can be asked one by one; or such that class-validator
 * itself has to look at instances (conditions, validators of the author's own).
 */
export type RemainingRules = 'none' | 'all' | readonly RemainingRule[];

/** One rule to ask about one property of an instance; `true` means that it holds. */
export type RemainingRule = (instance: object) => boolean;

/** What is known of a DTO class. */
export interface ClassModel {
  readonly class: ClassType;
  readonly properties: readonly PropertyModel[];
  /** What is left to validate once a value fits the schema. */
  readonly remaining: RemainingRules;
  /** Where the generated types and class-validator's rules say different things, as sentences. */
  readonly disagreements?: readonly string[];
}
