import type { JsonSchema } from '../contract/json-schema.js';
import type { ParamOptions } from '../contract/param-options.js';
import type { DescribedValue as Described } from './described-type.js';
import { constraintKeywords, orderedKeywords } from './option-keywords.js';
import { paramOptionFault } from './param-option-fault.js';
import { resolveDesignType } from './resolve-type-reference.js';
import { typeFromOptions } from './type-from-options.js';
import { known, type TypeFault, type TypeResult } from './type-result.js';
import { unknownType } from './unknown-type.js';
import type { ScalarName, ValueType } from './value-type.js';

/** All that can be known of one parameter. */
export interface ValueFacts {
  readonly options?: ParamOptions;
  /** The entry of `design:paramtypes`. */
  readonly designType?: unknown;
  /** The parameter's literal default, where it has one: `limit = 10`. */
  readonly defaultValue?: { readonly value: unknown };
  /** What the generated file says of its type. */
  readonly described?: Described;
  /** class-validator groups, for DTO classes. */
  readonly groups?: readonly string[];
}

/** A value, described; or why it cannot be. */
export type DescribedValue =
  | {
      readonly ok: true;
      readonly type: ValueType;
      readonly nullable: boolean;
      readonly keywords: JsonSchema;
      /** `false` where the value may be left out; nothing where that was not said. */
      readonly required?: boolean;
    }
  | TypeFault;

/**
 * Describes one parameter from, in this order: an explicit schema, `@Param`'s options, the generated file,
 * decorator metadata, and the type of its literal default. Never guesses: what is not known is a fault.
 *
 * @example
 * ```ts
 * describeValue({ designType: Number, options: { minimum: 1 } });
 * // { ok: true, type: { kind: 'scalar', name: 'number' }, nullable: false, keywords: { minimum: 1 } }
 * ```
 */
export function describeValue(facts: ValueFacts): DescribedValue {
  const { options = {}, designType, groups } = facts;
  const wrong = paramOptionFault(options);
  if (wrong !== undefined) return wrong;
  const literal = options.default === undefined ? facts.defaultValue : { value: options.default };
  const named = typeFromOptions(options, { designType, groups });
  const result =
    named ??
    (facts.described
      ? known(facts.described.type)
      : typeFromMetadata(facts, [options.const, literal?.value]));
  if (!result.ok) return result;
  const isNull = literal?.value === null || (named === undefined && facts.described?.nullable === true);
  // An explicit schema is complete.
  const { description, ...keywords } = (options.schema === undefined && facts.described?.keywords) || {};
  return {
    ok: true,
    type: result.type,
    nullable: options.nullable ?? isNull,
    keywords: orderedKeywords({
      description: options.description ?? description,
      constraints: { ...keywords, ...constraintKeywords(options) },
      defaultValue: literal?.value,
    }),
    required: options.required ?? (literal === undefined ? undefined : false),
  };
}

function typeFromMetadata(facts: ValueFacts, literals: readonly unknown[]): TypeResult {
  const { designType, groups } = facts;
  if (designType !== undefined && designType !== Object) return resolveDesignType(designType, groups);
  for (const literal of literals) {
    const type = typeOfLiteral(literal);
    if (type !== undefined) return known(type);
  }
  return unknownType(designType);
}

const SCALARS: readonly ScalarName[] = ['string', 'number', 'boolean'];

/** What TypeScript itself infers from a literal: `10` → number, `['a']` → an array of strings. */
function typeOfLiteral(literal: unknown): ValueType | undefined {
  if (literal instanceof Date) return { kind: 'date' };
  if (Array.isArray(literal)) return typeOfItems(literal);
  const name = SCALARS.find((scalar) => scalar === typeof literal);
  return name && { kind: 'scalar', name };
}

function typeOfItems(literals: readonly unknown[]): ValueType | undefined {
  const items = typeOfLiteral(literals[0]);
  const alike = literals.every((literal) => typeof literal === typeof literals[0]);
  return items?.kind === 'scalar' && alike ? { kind: 'array', items } : undefined;
}
