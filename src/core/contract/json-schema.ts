/** A JSON Schema (draft 7 or 2020-12) as plain data. Keywords that this type does not name are allowed. */
export interface JsonSchema {
  // With `| undefined`, as TypeBox writes them: under `exactOptionalPropertyTypes` that is another type.
  readonly $ref?: string | undefined;
  readonly $defs?: Readonly<Record<string, JsonSchema>> | undefined;
  readonly type?: string | readonly string[] | undefined;
  readonly description?: string | undefined;
  readonly properties?: Readonly<Record<string, JsonSchema>> | undefined;
  readonly required?: readonly string[] | undefined;
  readonly additionalProperties?: boolean | JsonSchema | undefined;
  readonly items?: boolean | JsonSchema | readonly JsonSchema[] | undefined;
  readonly anyOf?: readonly JsonSchema[] | undefined;
  readonly enum?: readonly unknown[] | undefined;
  readonly const?: unknown;
  readonly default?: unknown;
  readonly format?: string | undefined;
  readonly [keyword: string]: unknown;
}

/** The arguments of a call as JSON delivers them: an object whose own keys are property names. */
export type JsonObject = Record<string, unknown>;

/** One problem that a Standard Schema found. */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The result of a Standard Schema's `validate`. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** The part of https://standardschema.dev that is used here; zod 4, valibot and arktype implement it. */
export interface StandardSchema<Input = unknown, Output = Input> {
  // With `| undefined`, as zod writes them: under `exactOptionalPropertyTypes` that is another type.
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    validate(value: unknown): StandardResult<Output> | Promise<StandardResult<Output>>;
    /** JSON Schema of either side (Standard JSON Schema 1.1). */
    readonly jsonSchema?: {
      input(options: {
        readonly target: string;
        readonly libraryOptions?: Record<string, unknown> | undefined;
      }): Record<string, unknown>;
      output(options: { readonly target: string }): Record<string, unknown>;
    };
  };
}

/** A schema as an author writes it: JSON Schema (including TypeBox) or a Standard Schema. */
export type SchemaSource = JsonSchema | StandardSchema;

/** The type of the values of a schema: a Standard Schema's output, TypeBox's `static`, or `Otherwise`. */
export type ValueOf<Source, Otherwise = unknown> = Source extends {
  readonly '~standard': { readonly types?: { readonly output: infer Output } | undefined };
}
  ? Output
  : Source extends { readonly static: infer Static }
    ? Static
    : Otherwise;
