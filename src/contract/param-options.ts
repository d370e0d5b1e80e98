import type { ClassType } from './class-type.js';
import type { Integer } from './integer.js';
import type { JsonSchema } from './json-schema.js';
import type { SchemaSource } from './standard-schema.js';

/** What stands for a type at run time: a class, `String`, `Number`, `Boolean`, `Date`, `Object`, {@link Integer}. */
export type TypeToken =
  | ClassType<unknown>
  | StringConstructor
  | NumberConstructor
  | BooleanConstructor
  | DateConstructor
  | ObjectConstructor
  | typeof Integer;

/**
 * A type as an author names it: usually behind a function, so that classes declared later can be named;
 * an array of one token means an array of it.
 */
export type TypeReference = TypeToken | (() => TypeToken | readonly TypeToken[]);

/** The values that are allowed: a list, or a TypeScript enum object. */
export type EnumSource = readonly unknown[] | Readonly<Record<string, string | number>>;

/** JSON Schema's constraints by their own names, as `@Param` takes them. */
export interface SchemaConstraints {
  readonly title?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly const?: unknown;
  readonly examples?: readonly unknown[];
  readonly deprecated?: boolean;
}

/** Options of `@Param`, on a method's parameter or on a property of a DTO class. */
export interface ParamOptions extends SchemaConstraints {
  /** Name of the property; default: the parameter's own name. */
  readonly name?: string;
  readonly description?: string;
  /** `() => Integer`, `() => ItemDto`, `() => [ItemDto]`, … */
  readonly type?: TypeReference;
  /** Type of an array's items; makes the parameter an array. */
  readonly items?: TypeReference | JsonSchema;
  readonly enum?: EnumSource;
  readonly required?: boolean;
  /** `null` is a value of its own. */
  readonly nullable?: boolean;
  readonly default?: unknown;
  /** Makes the parameter a record: the type or schema of its values, or `true` for any. */
  readonly additionalProperties?: boolean | JsonSchema | TypeReference;
  /** Explicit schema; wins over everything else that is known of the type. */
  readonly schema?: SchemaSource;
}
