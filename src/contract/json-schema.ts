/** A JSON Schema (draft 7 or 2020-12) as plain data. Keywords this type does not name are allowed. */
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
