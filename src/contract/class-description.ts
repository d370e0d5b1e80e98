import type { JsonSchema } from './json-schema.js';

/**
 * JSON Schema whose nodes may say what a value is in the tool: `instanceOf: Date`, `URL`, `Uint8Array`,
 * `BigInt`, `Set`, `Map`, or a DTO class, which is described on its own.
 */
export type DescribedSchema = JsonSchema & { readonly instanceOf?: unknown };

/** One parameter of a described tool method. */
export interface DescribedParameter {
  /** Nothing where the parameter is destructured. */
  readonly name?: string;
  /** The parameter is no part of the schema. */
  readonly inject?: 'context' | 'signal';
  readonly optional?: boolean;
  /** A rest parameter; its schema is that of the array. */
  readonly rest?: boolean;
  /** Nothing where decorators say all. */
  readonly schema?: DescribedSchema;
}

/** A described tool method. */
export interface DescribedTool {
  /** What the TSDoc comment says; `@Tool`'s own description wins. */
  readonly description?: string;
  readonly parameters: readonly DescribedParameter[];
  /** JSON Schema of the result. */
  readonly output?: JsonSchema;
  /** Types that contain themselves. */
  readonly $defs?: Readonly<Record<string, DescribedSchema>>;
}

/** A described property of a DTO class. */
export interface DescribedProperty {
  readonly schema: DescribedSchema;
  readonly optional?: boolean;
}

/** What the types of a class say, as `toolwright generate` writes it. */
export interface ClassDescription {
  /** What a DTO class is called in `$defs`: minifiers rename classes. */
  readonly name?: string;
  /** The classes that the constructor asks for; `undefined` at the place of what is no class. */
  readonly dependencies?: readonly (object | undefined)[];
  readonly tools?: Readonly<Record<string, DescribedTool>>;
  readonly properties?: Readonly<Record<string, DescribedProperty>>;
  readonly $defs?: Readonly<Record<string, DescribedSchema>>;
}
