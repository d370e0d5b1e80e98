import type { JsonSchema } from '../contract/json-schema.js';

/** The only kind of value that a rule accepts, where it accepts only one. */
export type TypeHint = 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object' | 'date';

/** What JSON Schema says of one class-validator rule. It never says more than the rule does. */
export interface RuleMeaning {
  readonly hint?: TypeHint;
  readonly keywords?: JsonSchema;
  /** The only values that are accepted. */
  readonly values?: readonly unknown[];
  /** Nothing is left for class-validator to judge. */
  readonly exact: boolean;
  /** Text that matches passes the rule for certain; asking the rule itself is dear. */
  readonly enough?: RegExp;
  /** The rule accepts a property that is not there. */
  readonly acceptsMissing?: boolean;
}

/** One row of the table: from the decorator's own arguments to its meaning. */
type RuleRow = (constraints: readonly unknown[]) => RuleMeaning;

/** Rows by the name that class-validator records: `isInt`, `minLength`, … */
export type RuleTable = Readonly<Record<string, RuleRow>>;

/** The keywords say all that the rule says. */
export function exactly(hint: TypeHint, keywords: JsonSchema = {}): RuleMeaning {
  return { hint, keywords, exact: true };
}

/** The keywords say part of it; class-validator judges the rest when the tool is called. */
export function partly(hint: TypeHint, keywords: JsonSchema = {}): RuleMeaning {
  return { hint, keywords, exact: false };
}

/** Only these values; `exact` is for lists that JSON can compare. */
export function oneOf(values: readonly unknown[], exact = true): RuleMeaning {
  const comparable = values.filter(isJsonScalar);
  if (comparable.length === 0) return { exact: false };
  return { values: comparable, exact: exact && comparable.length === values.length };
}

/** Whether `===` on a value means the same as comparison in JSON Schema. */
export function isJsonScalar(value: unknown): boolean {
  return (
    value === null ||
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    (typeof value === 'number' && Number.isFinite(value))
  );
}

/** The options that a decorator was given, where it takes some. */
export function optionsOf(constraint: unknown): Readonly<Record<string, unknown>> {
  return typeof constraint === 'object' && constraint !== null
    ? (constraint as Readonly<Record<string, unknown>>)
    : {};
}
