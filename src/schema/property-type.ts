import type { ClassType } from '../contract/class-type.js';
import type { ParamOptions } from '../contract/param-options.js';
import type { TransformRule, TypeRule } from '../validators/transform-rules.js';
import type { DescribedValue } from './described-type.js';
import { isEnumObject } from './enum-values.js';
import type { PropertyRules, ValueRules } from './property-rules.js';
import { resolveDesignType, resolveTypeReference } from './resolve-type-reference.js';
import type { TypeHint } from './rules/rule-row.js';
import { typeFromOptions } from './type-from-options.js';
import { known, mapType, type TypeResult } from './type-result.js';
import { emptyReference, unknownType } from './unknown-type.js';
import type { ScalarName, ValueType } from './value-type.js';

/** All that is known of one property of a DTO class. */
export interface PropertyFacts {
  readonly options: ParamOptions;
  readonly rules: PropertyRules;
  readonly transform?: TransformRule;
  readonly designType: unknown;
  readonly groups?: readonly string[];
  /** What the generated file says of it. */
  readonly described?: DescribedValue;
  /** What `@ApiProperty` names beyond what can be said in rules: a class. */
  readonly apiType?: ValueType;
}

/**
 * The type of a DTO's property from, in this order: `@Param`, the generated file, class-transformer's `@Type`,
 * class-validator's rules, `@ApiProperty`, and decorator metadata. Only a union of classes needs `@Type` before
 * the generated file: it says by which tag instances are made.
 */
export function propertyType(facts: PropertyFacts): TypeResult {
  const { options, designType, groups } = facts;
  const named = typeFromOptions(options, { designType, groups });
  if (named !== undefined) return named;
  if (facts.described && !facts.transform?.type?.discriminator) {
    return known(narrowed(facts.described.type, facts.rules));
  }
  switch (collectionOf(facts)) {
    case 'array':
      return mapType(itemType(facts), (items) => ({ kind: 'array', items }));
    case 'set':
      return mapType(itemType(facts), (items) => ({ kind: 'array', items, collection: 'set' }));
    case 'map':
      return mapType(itemType(facts), (values) => ({ kind: 'record', values, collection: 'map' }));
    default:
      return singleType(facts);
  }
}

/** Whether `each: true` is about items: on a scalar class-validator judges the value itself. */
export function isCollection(designType: unknown): boolean {
  return [Array, Set, Map, Object, undefined].some((type) => type === designType);
}

/** Rules may allow less than the type: whole numbers, some of the texts. */
function narrowed(type: ValueType, rules: PropertyRules): ValueType {
  if (type.kind === 'array') return { ...type, items: narrowedBy(type.items, rules.items) };
  return narrowedBy(type, rules.own);
}

function narrowedBy(type: ValueType, { values, hint }: ValueRules): ValueType {
  if (type.kind !== 'scalar') return type;
  if (values?.every((value) => typeof value === type.name)) return { kind: 'enum', values };
  return type.name === 'number' && hint === 'integer' ? { kind: 'scalar', name: 'integer' } : type;
}

function collectionOf({ designType, transform, rules }: PropertyFacts): 'array' | 'set' | 'map' | undefined {
  const declared = isCollection(designType) ? (designType ?? transform?.type?.reflected) : designType;
  if (declared === Set) return 'set';
  if (declared === Map) return 'map';
  return declared === Array || rules.hasItems || rules.own.hint === 'array' ? 'array' : undefined;
}

function itemType({ transform, rules, designType, groups, apiType }: PropertyFacts): TypeResult {
  if (transform?.type) return fromTypeRule(transform.type, rules.items, groups);
  return fromRules(rules.items) ?? (apiType ? known(apiType) : unknownType(designType ?? Array));
}

function singleType({ transform, rules, designType, groups, apiType }: PropertyFacts): TypeResult {
  if (transform?.type) return fromTypeRule(transform.type, rules.own, groups);
  if (isEnumObject(designType) && rules.own.values === undefined) return resolveTypeReference(designType);
  const design = resolveDesignType(designType, groups);
  if (design.ok && rules.own.values === undefined) return known(refine(design.type, rules.own.hint));
  return fromRules(rules.own) ?? (apiType ? known(apiType) : design);
}

/** What rules alone tell: the values they allow, or the one kind of value that they accept. */
function fromRules({ values, hint, keywords }: ValueRules): TypeResult | undefined {
  if (values !== undefined) return known({ kind: 'enum', values });
  const type = hint === undefined ? typeOfConst(keywords.const) : typeOfHint(hint);
  return type && known(type);
}

function typeOfHint(hint: TypeHint): ValueType | undefined {
  if (hint === 'date') return { kind: 'date' };
  if (hint === 'object') return { kind: 'schema', schema: { type: 'object' } };
  return hint === 'array' ? undefined : { kind: 'scalar', name: hint };
}

function typeOfConst(value: unknown): ValueType | undefined {
  const name = (['string', 'number', 'boolean'] as readonly ScalarName[]).find((one) => one === typeof value);
  return name && { kind: 'scalar', name };
}

/** A rule is narrower than the metadata (`@IsInt` on `number`) or knows better (`@IsDateString` on `Date`). */
function refine(type: ValueType, hint: TypeHint | undefined): ValueType {
  if (hint === undefined || fitsHint(type, hint)) return type;
  return typeOfHint(hint) ?? type;
}

/** Whether every value of a type is of the kind that a rule accepts. */
export function fitsHint(type: ValueType, hint: TypeHint): boolean {
  switch (type.kind) {
    case 'scalar':
      return type.name === hint || (type.name === 'integer' && hint === 'number');
    case 'enum':
      return type.values.every((value) => value === null || typeof value === hint);
    case 'date':
      return hint === 'date';
    case 'array':
      return hint === 'array';
    case 'schema':
    case 'described':
      return type.schema.type === hint;
    default:
      return hint === 'object' && type.kind !== 'any';
  }
}

function fromTypeRule(rule: TypeRule, rules: ValueRules, groups: readonly string[] | undefined): TypeResult {
  const { discriminator } = rule;
  if (discriminator && discriminator.subTypes.length > 0) {
    const variants = discriminator.subTypes.map(({ name, value }) => ({ tag: name, class: value }));
    const { property, keepProperty } = discriminator;
    return known({ kind: 'tagged', property, keepProperty, variants, groups });
  }
  const type = resolved(rule, groups);
  if (!type.ok || type.type.kind !== 'scalar') return type;
  return rules.values === undefined
    ? known(refine(type.type, rules.hint))
    : known({ kind: 'enum', values: rules.values });
}

function resolved(rule: TypeRule, groups: readonly string[] | undefined): TypeResult {
  let reference: unknown;
  try {
    reference = rule.resolve();
  } catch (error) {
    return emptyReference(error);
  }
  return resolveTypeReference(reference as ClassType, groups);
}
