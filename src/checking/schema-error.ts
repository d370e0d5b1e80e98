/** One disagreement between a value and a schema, in the terms of JSON Schema. */
export interface SchemaError {
  readonly keyword: string;
  /** Where the value lies: a JSON pointer. */
  readonly instancePath: string;
  /** What the keyword says of it: the property that is missing, the format that it has not. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string | undefined;
  /** What the keyword is given. */
  readonly schema?: unknown;
  readonly parentSchema?: object | undefined;
  readonly data?: unknown;
}

/** So many errors are told apart; those beyond are only counted. */
export const MAX_ERRORS = 200;
