import type { JsonSchema } from '../contract/json-schema.js';
import type { ParamOptions } from '../contract/param-options.js';
import type { TransformRule } from '../validators/transform-rules.js';
import type { ValidationRule } from '../validators/validation-rules.js';
import { acceptsInitial } from './accepts-initial.js';
import { type ApiProperty, withApiProperty } from './api-property.js';
import { applicableKeywords } from './applicable-keywords.js';
import type { DescribedValue } from './described-type.js';
import { designToken } from './design-token.js';
import { mergeKeywords } from './merge-keywords.js';
import { constraintKeywords, orderedKeywords } from './option-keywords.js';
import { paramOptionFault } from './param-option-fault.js';
import { type PropertyRules, propertyRules } from './property-rules.js';
import { fitsHint, isCollection, propertyType } from './property-type.js';
import type { TypeFault } from './type-result.js';
import type { PropertyModel, RemainingRules, ValueType } from './value-type.js';

/** What decorators and metadata say of one property of a class. */
export interface DecoratedProperty {
  readonly key: string;
  readonly options?: ParamOptions;
  /** Its class-validator rules in the groups asked for; nothing where it never had any. */
  readonly rules?: readonly ValidationRule[];
  /** Its rules in any group, which may tell its type where nothing else does. */
  readonly rulesOfAnyGroup?: readonly ValidationRule[];
  readonly transform?: TransformRule;
  readonly designType: unknown;
  readonly groups?: readonly string[];
  /** What the generated file says of it. */
  readonly described?: DescribedValue & { readonly optional: boolean };
  /** What `@ApiProperty` says of it. */
  readonly api?: ApiProperty;
}

/** A property, described; or why it cannot be. */
export type DescribedProperty =
  | {
      readonly ok: true;
      readonly property: PropertyModel;
      readonly remaining: RemainingRules;
      /** What the types say, and what the rules do. */
      readonly disagreement?: string;
    }
  | TypeFault;

/** Describes one property of a DTO class. */
export function describeProperty(decorated: DecoratedProperty): DescribedProperty {
  const { key, options = {}, transform, groups, described, api } = decorated;
  const wrong = paramOptionFault(options);
  if (wrong !== undefined) return wrong;
  const designType = (described && designToken(described.type)) ?? decorated.designType;
  const eachIsOwn = !isCollection(designType);
  const rules = propertyRules(decorated.rules ?? [], eachIsOwn);
  const said = withApiProperty(rules, api, designType);
  const facts = { options, rules: said, transform, designType, groups, described, apiType: api?.type };
  const applicable = propertyType(facts);
  const result = applicable.ok
    ? applicable
    : propertyType({ ...facts, rules: propertyRules(decorated.rulesOfAnyGroup ?? [], eachIsOwn) });
  if (!result.ok) return result;
  const name = options.name ?? transform?.name ?? key;
  const transforms = transform?.transforms ?? [];
  return {
    ok: true,
    disagreement: disagreementOf(decorated, rules, result.type),
    remaining:
      rules.needsValidator || mayDiffer(decorated, rules, result.type) ? 'all' : remainingOf(key, rules),
    property: {
      name,
      ...(name === key ? {} : { key }),
      type: withItemKeywords(result.type, said),
      required: isRequired(decorated, rules),
      nullable: options.nullable ?? isNullable(decorated, rules),
      keywords: keywordsOf(result.type, decorated, said),
      ...(transforms.length > 0 ? { transforms } : {}),
      ...(rules.isNested ? { cascades: true } : {}),
    },
  };
}

function remainingOf(key: string, { inexact, isOptional }: PropertyRules): RemainingRules {
  if (inexact.length === 0) return 'none';
  return inexact.map(({ rule, meaning: { enough } }) => (instance) => {
    const value = (instance as Readonly<Record<string, unknown>>)[key];
    if ((value === undefined || value === null) && isOptional) return true;
    return (typeof value === 'string' && enough?.test(value)) || rule.passes(value, instance);
  });
}

/** The rules were written for another type than the schema has, or for the value after a `@Transform`. */
function mayDiffer(decorated: DecoratedProperty, rules: PropertyRules, type: ValueType): boolean {
  if ((decorated.rules ?? []).length === 0) return false;
  if (isTransformed(decorated) || namesType(decorated.options ?? {})) return true;
  return rules.own.hint !== undefined && !fitsHint(type, rules.own.hint);
}

/** Only where the type came from the generated file: nobody looks at both otherwise. */
function disagreementOf(
  decorated: DecoratedProperty,
  { own: { hint } }: PropertyRules,
  type: ValueType,
): string | undefined {
  const { options = {}, described } = decorated;
  if (described === undefined || hint === undefined || namesType(options)) return undefined;
  if (isTransformed(decorated) || type.kind === 'any' || fitsHint(type, hint)) return undefined;
  return `its type is ${typeName(type)}, and its class-validator rules are for ${hint}`;
}

function typeName(type: ValueType): string {
  if (type.kind === 'scalar') return type.name;
  return type.kind === 'class' ? type.class.name : type.kind;
}

function namesType({ schema, type, items, enum: values, additionalProperties }: ParamOptions): boolean {
  return [schema, type, items, values, additionalProperties].some((said) => said !== undefined);
}

function isTransformed({ transform }: DecoratedProperty): boolean {
  return (transform?.transforms ?? []).length > 0;
}

/** What only documents that `null` is a value does not say so to rules that refuse it. */
function isNullable({ described, api, rules: all = [] }: DecoratedProperty, rules: PropertyRules): boolean {
  if (rules.isConditional || described?.nullable === true) return true;
  return api?.nullable === true && (rules.isOptional || all.length === 0);
}

/** Rules make a property required unless all of them accept its absence; so does having no rules at all. */
function isRequired(decorated: DecoratedProperty, rules: PropertyRules): boolean {
  const { options, rules: all, described, api } = decorated;
  if (options?.required !== undefined) return options.required;
  if (options?.default !== undefined || rules.isOptional || rules.isConditional) return false;
  // Rules judge the instance, and that has its initialiser's value where nothing was sent.
  if (initialOf(decorated, rules) !== undefined) return false;
  if (all !== undefined && !rules.acceptsMissing) return true;
  if (api?.required !== undefined) return api.required;
  return described === undefined ? all === undefined : !described.optional;
}

/** The value of its initialiser, where something tells it and a missing property may have it. */
function initialOf(
  { options, described, api, rules: all = [] }: DecoratedProperty,
  rules: PropertyRules,
): unknown {
  const initial = options?.schema === undefined ? (api?.default ?? described?.keywords.default) : undefined;
  return initial !== undefined && acceptsInitial(initial, all, rules) ? initial : undefined;
}

/** An explicit schema is complete; otherwise what `@Param` says wins over the rules, keyword by keyword. */
function keywordsOf(type: ValueType, decorated: DecoratedProperty, rules: PropertyRules): JsonSchema {
  const { options = {}, described, api } = decorated;
  const isExplicit = options.schema !== undefined;
  const fromRules = isExplicit ? {} : applicableKeywords(type, rules.own.keywords);
  const { description, default: _, ...generated } = (!isExplicit && described?.keywords) || {};
  // An initialiser's value is what a `@Transform` leads to: filled in before, it would go through it.
  const fallback = isTransformed(decorated) ? undefined : initialOf(decorated, rules);
  const constraints = { ...mergeKeywords(generated, fromRules), ...constraintKeywords(options) };
  return orderedKeywords({
    description: options.description ?? api?.description ?? description,
    constraints,
    defaultValue: options.default ?? fallback,
  });
}

function withItemKeywords(type: ValueType, rules: PropertyRules): ValueType {
  if (type.kind !== 'array') return type;
  const keywords = applicableKeywords(type.items, rules.items.keywords);
  return Object.keys(keywords).length === 0 ? type : { ...type, keywords };
}
