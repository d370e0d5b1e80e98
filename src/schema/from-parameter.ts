import type { ParamOptions } from '../contract/declaration.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { paramOptionFault } from './param-option-fault.js';
import { constraintKeywords, orderedKeywords, typeFromOptions } from './param-options.js';
import { resolveDesignType } from './type-reference.js';
import { known, type TypeFault, type TypeResult, unknownType } from './type-result.js';
import { type ScalarName, type ValueModel, type ValueType } from './value-type.js';

/** All that can be known of one parameter. */
export interface ParameterSource {
  readonly options?: ParamOptions;
  /** The entry of `design:paramtypes`. */
  readonly designType?: unknown;
  /** The parameter's literal default, where it has one: `limit = 10`. */
  readonly defaultValue?: { readonly value: unknown };
  /** What the generated file says of it. */
  readonly generated?: ValueModel;
}

/** `required` is `false` where the value may be left out, and nothing where that was not said. */
type ParameterResult = ({ readonly ok: true; readonly required?: boolean } & ValueModel) | TypeFault;

const NO_OPTIONS: ParamOptions = {};
const NO_KEYWORDS: JsonSchema = {};

/**
 * The model of one parameter from, in this order: an explicit schema, `@Param`'s options, the generated file,
 * decorator metadata, and the type of its literal default. Never guesses: what is not known is a fault.
 *
 * @example
 * ```ts
 * fromParameter({ designType: Number, options: { minimum: 1 } });
 * // { ok: true, type: { kind: 'scalar', name: 'number' }, nullable: false, keywords: { minimum: 1 } }
 * ```
 */
export function fromParameter(source: ParameterSource): ParameterResult {
  const { options = NO_OPTIONS, designType, generated } = source;
  const wrong = paramOptionFault(options);
  if (wrong !== undefined) return wrong;
  const literal = options.default === undefined ? source.defaultValue : { value: options.default };
  const named = typeFromOptions(options, { designType });
  const result =
    named ??
    (generated ? known(generated.type) : typeFromMetadata(designType, [options.const, literal?.value]));
  if (!result.ok) return result;
  const isNull = literal?.value === null || (named === undefined && generated?.nullable === true);
  // An explicit schema is complete.
  const { description, ...keywords } = (options.schema === undefined && generated?.keywords) || NO_KEYWORDS;
  return {
    ok: true,
    type: result.type,
    nullable: options.nullable ?? isNull,
    keywords: orderedKeywords({
      description: options.description ?? description,
      constraints: constraintKeywords(options, keywords),
      defaultValue: literal?.value,
    }),
    required: options.required ?? (literal === undefined ? undefined : false),
  };
}

function typeFromMetadata(designType: unknown, literals: readonly unknown[]): TypeResult {
  if (designType !== undefined && designType !== Object) return resolveDesignType(designType);
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
