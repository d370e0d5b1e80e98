import type { ClassType, DescribedSchema, ParamOptions } from '../contract/declaration.js';
import type { JsonSchema } from '../contract/json-schema.js';
import type { TransformRule, TypeRule } from '../validators/transform-rules.js';
import type { ValidationRule } from '../validators/validation-rules.js';
import { type ApiProperty, withApiProperty } from './api-property.js';
import { applicableKeywords, misplacedFault } from './applicable-keywords.js';
import { constraintKeywords, orderedKeywords, paramOptionFault, typeFromOptions } from './from-parameter.js';
import { allSchemas, mergeKeywords } from './keywords.js';
import { isStandard, type PropertyRules, propertyRules, type ValueRules } from './property-rules.js';
import type { TypeHint } from './rule-meaning.js';
import {
  designToken,
  emptyReference,
  isEnumObject,
  knownType,
  mapType,
  resolveDesignType,
  resolveTypeReference,
  type TypeFault,
  type TypeResult,
  unknownType,
} from './type-reference.js';
import {
  type PropertyModel,
  type RemainingRules,
  type ScalarName,
  type ValueModel,
  type ValueType,
} from './value-type.js';

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
  readonly generated?: ValueModel & { readonly optional: boolean };
  /** What `@ApiProperty` says of it. */
  readonly api?: ApiProperty;
}

/** A property, or why nothing can be said of it. */
type PropertyResult =
  | {
      readonly ok: true;
      readonly property: PropertyModel;
      readonly remaining: RemainingRules;
      /** What the types say, and what the rules do. */
      readonly disagreement?: string;
    }
  | TypeFault;

/** The model of one property of a DTO class. */
export function fromProperty(decorated: DecoratedProperty): PropertyResult {
  const { key, options = {}, transform, groups, generated, api } = decorated;
  const wrong = paramOptionFault(options);
  if (wrong !== undefined) return wrong;
  const designType = (generated && designToken(generated.type)) ?? decorated.designType;
  const eachIsOwn = !isCollection(designType);
  const rules = propertyRules(decorated.rules ?? [], eachIsOwn);
  const said = withApiProperty(rules, api, designType);
  const facts = { options, rules: said, transform, designType, groups, generated, apiType: api?.type };
  const applicable = propertyType(facts);
  const result = applicable.ok
    ? applicable
    : propertyType({ ...facts, rules: propertyRules(decorated.rulesOfAnyGroup ?? [], eachIsOwn) });
  if (!result.ok) return result;
  const misplaced = misplacedFault(result.type, options);
  if (misplaced !== undefined) return misplaced;
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
      ...(transformsFirst(decorated, result.type)
        ? { transformedFirst: transform?.isExposed ? 'always' : 'sent' }
        : {}),
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
  const { options = {}, generated } = decorated;
  if (generated === undefined || hint === undefined || namesType(options)) return undefined;
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

/**
 * Whether the type is that of the value after a `@Transform`. What `@Type` makes an instance of is checked before, as
 * is what `@Param` gives another type than the property has: then it says what is sent.
 */
function transformsFirst(decorated: DecoratedProperty, type: ValueType): boolean {
  const { options = {}, transform, designType } = decorated;
  if (!isTransformed(decorated) || transform?.type !== undefined || !isPlain(type)) return false;
  if (!namesType(options) || options.enum !== undefined) return true;
  const designed = designType === Array ? 'array' : kindOf(resolveDesignType(designType));
  return designed === kindOf({ ok: true, type });
}

/** Whether its values are the same in JSON and for the tool, or are written in JSON as one text. */
function isPlain(type: ValueType): boolean {
  switch (type.kind) {
    case 'scalar':
    case 'enum':
    case 'date':
    case 'url':
      return true;
    case 'array':
      return type.collection !== 'set' && isPlain(type.items);
    case 'record':
      return type.collection !== 'map' && isPlain(type.values);
    case 'schema':
      return type.standard === undefined;
    case 'described':
      return [...allSchemas(type.schema)].every(
        (part: DescribedSchema) => part.instanceOf === undefined && part.$ref === undefined,
      );
    default:
      return false;
  }
}

function kindOf(result: TypeResult): string | undefined {
  if (!result.ok) return undefined;
  const { type } = result;
  if (type.kind !== 'scalar') return type.kind;
  return type.name === 'integer' ? 'number' : type.name;
}

/** What only documents that `null` is a value does not say so to rules that refuse it. */
function isNullable({ generated, api, rules: all = [] }: DecoratedProperty, rules: PropertyRules): boolean {
  if (rules.isConditional || generated?.nullable === true) return true;
  return api?.nullable === true && (rules.isOptional || all.length === 0);
}

/** Rules make a property required unless all of them accept its absence; so does having no rules at all. */
function isRequired(decorated: DecoratedProperty, rules: PropertyRules): boolean {
  const { options, rules: all, generated, api } = decorated;
  if (options?.required !== undefined) return options.required;
  if (options?.default !== undefined || rules.isOptional || rules.isConditional) return false;
  // Rules judge the instance, and that has its initialiser's value where nothing was sent.
  if (initialOf(decorated, rules) !== undefined) return false;
  if (all !== undefined && !rules.acceptsMissing) return true;
  if (api?.required !== undefined) return api.required;
  return generated === undefined ? all === undefined : !generated.optional;
}

/** The value of its initialiser, where something tells it and a missing property may have it. */
function initialOf(
  { options, generated, api, rules: all = [] }: DecoratedProperty,
  rules: PropertyRules,
): unknown {
  const initial = options?.schema === undefined ? (api?.default ?? generated?.keywords.default) : undefined;
  return initial !== undefined && acceptsInitial(initial, all, rules) ? initial : undefined;
}

const NO_KEYWORDS: JsonSchema = {};

/** An explicit schema is complete; otherwise what `@Param` says wins over the rules, keyword by keyword. */
function keywordsOf(type: ValueType, decorated: DecoratedProperty, rules: PropertyRules): JsonSchema {
  const { options = {}, generated, api } = decorated;
  const isExplicit = options.schema !== undefined;
  const fromRules = isExplicit ? NO_KEYWORDS : applicableKeywords(type, rules.own.keywords);
  const { description, default: _, ...known } = (!isExplicit && generated?.keywords) || NO_KEYWORDS;
  // An initialiser's value is what a `@Transform` leads to: filled in before, it would go through it.
  const fallback = isTransformed(decorated) ? undefined : initialOf(decorated, rules);
  const constraints = constraintKeywords(options, mergeKeywords(known, fromRules));
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

/** All that is known of one property of a DTO class. */
interface PropertyFacts {
  readonly options: ParamOptions;
  readonly rules: PropertyRules;
  readonly transform?: TransformRule;
  readonly designType: unknown;
  readonly groups?: readonly string[];
  /** What the generated file says of it. */
  readonly generated?: ValueModel;
  /** What `@ApiProperty` names beyond what can be said in rules: a class. */
  readonly apiType?: ValueType;
}

/**
 * The type of a DTO's property from, in this order: `@Param`, the generated file, class-transformer's `@Type`,
 * class-validator's rules, `@ApiProperty`, and decorator metadata. Only a union of classes needs `@Type` before
 * the generated file: it says by which tag instances are made.
 */
function propertyType(facts: PropertyFacts): TypeResult {
  const { options, designType, groups } = facts;
  const named = typeFromOptions(options, { designType, groups });
  if (named !== undefined) return named;
  if (facts.generated && !facts.transform?.type?.discriminator) {
    return knownType(narrowed(facts.generated.type, facts.rules));
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
function isCollection(designType: unknown): boolean {
  return COLLECTIONS.includes(designType);
}

const COLLECTIONS: readonly unknown[] = [Array, Set, Map, Object, undefined];

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
  return fromRules(rules.items) ?? (apiType ? knownType(apiType) : unknownType(designType ?? Array));
}

function singleType({ transform, rules, designType, groups, apiType }: PropertyFacts): TypeResult {
  if (transform?.type) return fromTypeRule(transform.type, rules.own, groups);
  if (isEnumObject(designType) && rules.own.values === undefined) return resolveTypeReference(designType);
  const design = resolveDesignType(designType, groups);
  if (design.ok && rules.own.values === undefined) return knownType(refine(design.type, rules.own.hint));
  return fromRules(rules.own) ?? (apiType ? knownType(apiType) : design);
}

/** What rules alone tell: the values they allow, or the one kind of value that they accept. */
function fromRules({ values, hint, keywords }: ValueRules): TypeResult | undefined {
  if (values !== undefined) return knownType({ kind: 'enum', values });
  const type = hint === undefined ? typeOfConst(keywords.const) : typeOfHint(hint);
  return type && knownType(type);
}

function typeOfHint(hint: TypeHint): ValueType | undefined {
  if (hint === 'date') return { kind: 'date' };
  if (hint === 'object') return { kind: 'schema', schema: { type: 'object' } };
  return hint === 'array' ? undefined : { kind: 'scalar', name: hint };
}

function typeOfConst(value: unknown): ValueType | undefined {
  const name = (['string', 'number', 'boolean'] as readonly ScalarName[]).find(
    (scalar) => scalar === typeof value,
  );
  return name && { kind: 'scalar', name };
}

/** A rule is narrower than the metadata (`@IsInt` on `number`) or knows better (`@IsDateString` on `Date`). */
function refine(type: ValueType, hint: TypeHint | undefined): ValueType {
  if (hint === undefined || fitsHint(type, hint)) return type;
  return typeOfHint(hint) ?? type;
}

/** Whether every value of a type is of the kind that a rule accepts. */
function fitsHint(type: ValueType, hint: TypeHint): boolean {
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
    return knownType({ kind: 'tagged', property, keepProperty, variants, groups });
  }
  const type = resolved(rule, groups);
  if (!type.ok || type.type.kind !== 'scalar') return type;
  return rules.values === undefined
    ? knownType(refine(type.type, rules.hint))
    : knownType({ kind: 'enum', values: rules.values });
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

/**
 * Whether the rules accept the value of a property's initialiser. `@Length(2, 5) name = ''` means that a name
 * must be sent. Rules that are not class-validator's own are asked when the tool is called.
 */
function acceptsInitial(
  value: unknown,
  all: readonly ValidationRule[],
  { isOptional, isConditional }: PropertyRules,
): boolean {
  if (isConditional || (value === null && isOptional)) return true;
  return all.every((rule) => {
    if (rule.role === 'defined') return value !== null;
    // class-validator refuses plain objects, and finds nothing in an empty list.
    if (rule.role === 'nested') return Array.isArray(value) && value.length === 0;
    return !isStandard(rule) || rule.passes(value, {});
  });
}
